// Whole runs of the program. Needs the runtime.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <regex>
#include <string>
#include <vector>

#include "tests/cli/run_program.h"

namespace piper::testing {
namespace {

namespace fs = std::filesystem;

class Run : public ::testing::Test {
 protected:
  Run() : folder_(fs::temp_directory_path() / ("piper_run_" + std::to_string(::getpid()))) {
    fs::create_directories(folder_ / "text");
    for (int document = 0; document < 10; ++document) {
      std::ofstream(folder_ / "text" / std::to_string(document))
          << std::string(100, static_cast<char>('a' + document));
    }
    write_job(2, R"(pp = 2
[[strategy]]
plugin = "interleaved1f1b"
)");
  }
  ~Run() override { fs::remove_all(folder_); }

  void write_job(int layers, const std::string& mesh_and_strategies) const {
    std::ofstream(folder_ / "job.toml") << "[model]\nlayers = " << layers << R"(
dim = 8
heads = 2
ffn = 16
vocab = 257
[training]
dataset_path = "text/*"
seq_len = 8
global_batch_size = 6
microbatches = 3
steps = 4
[mesh]
)" << mesh_and_strategies;
  }

  Ended run(std::vector<std::string> arguments, const std::string& interrupt_at = "",
            int signal = SIGINT) const {
    arguments.insert(arguments.begin() + 1, "job.toml");
    return run_program(PIPER_PROGRAM, arguments, folder_,
                       {{"PIPER_CACHE", PIPER_BINARY_DIR "/tests/cache"}}, interrupt_at, signal);
  }

  // Names and bytes of all files.
  std::map<std::string, std::string> files() const {
    std::map<std::string, std::string> files;
    for (const auto& entry : fs::recursive_directory_iterator(folder_)) {
      files[entry.path()] = entry.is_regular_file() ? content(entry.path()) : "";
    }
    return files;
  }
  std::string content(const std::string& name) const {
    std::ifstream stream(folder_ / name, std::ios::binary);
    return {std::istreambuf_iterator<char>(stream), {}};
  }

  fs::path folder_;
};

std::string last_line(const std::string& text) {
  return text.substr(text.rfind('\n', text.size() - 2) + 1);
}

TEST_F(Run, TrainsAndEndsWithOneLineOfFigures) {
  const Ended trained = run({"train", "--no-progress"});

  EXPECT_EQ(trained.status, 0) << trained.err;
  EXPECT_EQ(trained.err, "");
  EXPECT_TRUE(std::regex_match(
      last_line(trained.out),
      std::regex("done steps=4 loss=[0-9.]+ held_out_loss=[0-9.]+ tokens_per_second=[0-9.]+ "
                 "seconds=[0-9.]+\n")))
      << trained.out;
}

TEST_F(Run, SaysAsMuchAsTheLogLevelAsks) {
  const std::string remarked =  // no effect with unit costs
      "--cost.machine=" PIPER_SOURCE_DIR "/examples/machines/h200.toml";
  const Ended all = run({"train", remarked, "--log-level", "info"});
  const Ended remarks = run({"train", remarked, "--log-level", "warning"});
  const Ended result = run({"train", remarked, "--log-level", "error"});

  EXPECT_NE(all.out.find("\nstep 1  loss "), std::string::npos) << all.out;
  EXPECT_NE(all.err.find("warning: cost.machine has no effect"), std::string::npos) << all.err;
  EXPECT_EQ(remarks.err, all.err);
  EXPECT_EQ(result.err, "");
  for (const Ended& quiet : {remarks, result}) {
    EXPECT_EQ(quiet.status, 0);
    EXPECT_TRUE(quiet.out.starts_with("done steps=4 ")) << quiet.out;
    EXPECT_EQ(std::count(quiet.out.begin(), quiet.out.end(), '\n'), 1) << quiet.out;
  }
  EXPECT_EQ(run({"check", "--pipelines.pp=2", "--log-level", "error"}).status, 2);
}

TEST_F(Run, WritesATraceAndCostsThatFitThePredictedOnes) {
  const Ended trained = run({"train", "--no-progress", "--training.steps=2",
                             "--profiling.trace=measured.json", "--costs=costs.toml"});
  const Ended simulated =
      run({"simulate", "--trace=predicted.json", "--costs=measured", "--cost.file=costs.toml"});
  const Ended compared =
      run_program(PIPER_PROGRAM, {"trace", "compare", "predicted.json", "measured.json"}, folder_);

  EXPECT_EQ(trained.status, 0) << trained.err;
  EXPECT_EQ(simulated.status, 0) << simulated.err;
  EXPECT_EQ(compared.status, 0) << compared.err;
  EXPECT_NE(compared.out.find("\nforward "), std::string::npos) << compared.out;
  EXPECT_NE(compared.out.find("\nrecv "), std::string::npos) << compared.out;
  EXPECT_NE(compared.out.find("\nstep "), std::string::npos) << compared.out;
}

// By check and train alike, before the first step: nothing is made or changed.
TEST_F(Run, RefusesOutputsThatCannotBeWritten) {
  const std::map<std::string, std::string> before = files();
  for (const std::string output :
       {"checkpoint.last_save_path=job.toml/out", "checkpoint.last_save_path=job.toml",
        "checkpoint.last_save_path=/proc/x", "metrics.file=text", "profiling.trace=job.toml/t"}) {
    for (const std::string command : {"check", "train"}) {
      const Ended refused = run({command, "--" + output});

      EXPECT_EQ(refused.status, 2) << refused.out << refused.err;
      EXPECT_TRUE(refused.err.starts_with("--" + output + ": error: ")) << refused.err;
      EXPECT_TRUE(refused.err.ends_with("[output.unwritable]\n")) << refused.err;
      EXPECT_EQ(refused.out.find("step 1"), std::string::npos) << refused.out;
    }
  }
  for (const std::string option : {"--costs", "--save-gradients"}) {
    const Ended refused = run({"train", option, "job.toml/out"});

    EXPECT_EQ(refused.status, 2);
    EXPECT_TRUE(refused.err.starts_with("error: " + option + ": expected a file that can be"))
        << refused.err;
  }
  EXPECT_EQ(files(), before);
}

TEST_F(Run, RefusesOutputsThatAreItsInputs) {
  fs::create_symlink("text/0", folder_ / "link");
  const std::map<std::string, std::string> before = files();
  for (const std::string output : {"metrics.file=text/3", "metrics.file=link",
                                   "profiling.trace=job.toml", "metrics.file=./job.toml"}) {
    for (const std::string command : {"check", "train"}) {
      const Ended refused = run({command, "--" + output});

      EXPECT_EQ(refused.status, 2) << refused.out << refused.err;
      EXPECT_TRUE(refused.err.starts_with("--" + output + ": error: ")) << refused.err;
      EXPECT_TRUE(refused.err.ends_with("[output.is_input]\n")) << refused.err;
    }
  }
  EXPECT_EQ(run({"simulate", "--svg", "text/0"}).status, 2);
  EXPECT_EQ(run({"simulate", "--trace", "job.toml"}).status, 2);
  EXPECT_EQ(run({"capture", "--output", "link"}).status, 2);
  EXPECT_EQ(run({"train", "--metrics.file=m", "--profiling.trace=./m"}).status, 2);
  EXPECT_EQ(files(), before);
}

TEST_F(Run, MakesTheFoldersOfItsOutputsWhereCheckMakesNone) {
  const std::vector<std::string> outputs{"--checkpoint.last_save_path=a/b", "--metrics.file=c/d/m",
                                         "--profiling.trace=e/f/t"};
  std::vector<std::string> check{"check"}, train{"train", "--training.steps=2"};
  check.insert(check.end(), outputs.begin(), outputs.end());
  train.insert(train.end(), outputs.begin(), outputs.end());
  train.insert(train.end(), {"--costs", "g/h/c.toml", "--save-gradients", "i/j/g.safetensors"});
  const std::map<std::string, std::string> before = files();

  const Ended checked = run(check);
  EXPECT_EQ(checked.status, 0) << checked.err;
  EXPECT_EQ(files(), before);

  const Ended trained = run(train);
  EXPECT_EQ(trained.status, 0) << trained.err;
  for (const char* const file :
       {"a/b/model.safetensors", "c/d/m", "e/f/t", "g/h/c.toml", "i/j/g.safetensors"}) {
    EXPECT_NE(content(file), "") << file;
  }
}

TEST_F(Run, SleepsWhereEmulatedAndRefusesToVerifyThat) {
  const std::vector<std::string> emulated{"--emulate.forward_ms=1", "--emulate.backward_input_ms=1",
                                          "--emulate.backward_weight_ms=1"};
  std::vector<std::string> train{"train", "--no-progress"}, verify{"verify"};
  train.insert(train.end(), emulated.begin(), emulated.end());
  verify.insert(verify.end(), emulated.begin(), emulated.end());

  const Ended trained = run(train);
  const Ended verified = run(verify);

  EXPECT_EQ(trained.status, 0) << trained.err;
  EXPECT_NE(last_line(trained.out).find("loss=0.0000 held_out_loss=0.0000"), std::string::npos)
      << trained.out;
  EXPECT_EQ(verified.status, 2);
  EXPECT_NE(verified.err.find("[verify.emulated]"), std::string::npos) << verified.err;
}

TEST_F(Run, WritesGradientsWhereAsked) {
  const Ended trained = run({"train", "--training.steps=1", "--save-gradients=g.safetensors"});

  EXPECT_EQ(trained.status, 0) << trained.err;
  EXPECT_TRUE(fs::exists(folder_ / "g.safetensors"));
}

TEST_F(Run, EndsWithASummaryAfterCtrlC) {
  const Ended interrupted = run({"train", "--training.steps=1000000"}, "\nstep 2");

  EXPECT_EQ(interrupted.status, 130) << interrupted.err;
  EXPECT_TRUE(last_line(interrupted.out).starts_with("interrupted steps=")) << interrupted.out;
  EXPECT_TRUE(interrupted.out.ends_with(" weights=not_saved\n")) << interrupted.out;
  EXPECT_NE(interrupted.out.find(
                "\nthe weights were not saved: checkpoint.last_save_path is not given\n"),
            std::string::npos)
      << interrupted.out;
}

// On every rank the same step, whenever the signal comes: the weights are those of a run of as many
// steps.
TEST_F(Run, SavesTheWeightsOfAWholeStepAfterASignal) {
  write_job(2, R"(dp = 2
[[directive]]
op = "replicate"
filter = {}
shard_optimizer = true
bucket_bytes = "1KiB"
)");
  for (const int signal : {SIGINT, SIGTERM}) {
    const Ended interrupted =
        run({"train", "--training.steps=1000000", "--checkpoint.last_save_path=out"}, "\nstep 2",
            signal);
    ASSERT_EQ(interrupted.status, 130) << interrupted.err;
    const std::string said = last_line(interrupted.out);
    EXPECT_TRUE(said.ends_with(" weights=out\n")) << said;
    std::smatch steps;
    ASSERT_TRUE(std::regex_search(said, steps, std::regex("^interrupted steps=([0-9]+) ")));

    const Ended whole =
        run({"train", "--training.steps=" + steps.str(1), "--checkpoint.last_save_path=whole"});
    ASSERT_EQ(whole.status, 0) << whole.err;
    EXPECT_EQ(content("out/model.safetensors"), content("whole/model.safetensors"));
  }
}

TEST_F(Run, TrainsBesideStepsWithoutACountedLabel) {
  std::ofstream rows(folder_ / "rows.jsonl");
  for (int row = 0; row < 8; ++row) {
    rows << "{\"tokens\": [1,2,3,4,5,6,7,8], \"labels\": ["
         << (row == 3 ? "2,3,4,5,6,7,8,9" : "-100,-100,-100,-100,-100,-100,-100,-100") << "]}\n";
  }
  rows.close();
  const std::vector<std::string> job{
      "--training.dataset=jsonl",  "--training.dataset_path=rows.jsonl",
      "--validation.fraction=0",   "--training.global_batch_size=1",
      "--training.microbatches=1", "--training.dtype=float64"};
  std::vector<std::string> train{"train", "--training.steps=8", "--metrics.file=m"},
      verify{"verify", "--steps", "8"};
  train.insert(train.end(), job.begin(), job.end());
  verify.insert(verify.end(), job.begin(), job.end());

  const Ended trained = run(train);
  const Ended verified = run(verify);

  EXPECT_EQ(trained.status, 0) << trained.err;
  EXPECT_EQ(last_line(trained.out).find("done steps=8 loss="), 0u) << trained.out;
  const std::string metrics = content("m");
  std::size_t empty = 0;
  for (std::size_t at = 0; (at = metrics.find("\"loss\":null", at)) != std::string::npos; ++at) {
    ++empty;
  }
  EXPECT_EQ(empty, 7u) << metrics;
  const std::size_t remark = trained.err.find("rows.jsonl:");
  ASSERT_NE(remark, std::string::npos) << trained.err;
  EXPECT_NE(trained.err[remark + std::string_view("rows.jsonl:").size()], '4') << trained.err;
  EXPECT_NE(trained.err.find("[data.no_tokens]"), std::string::npos) << trained.err;
  EXPECT_EQ(verified.status, 0) << verified.out << verified.err;
}

TEST_F(Run, ComparesWithOneDevice) {
  const Ended verified = run({"verify", "--training.dtype=float64", "--optimizer.name=sgd"});

  EXPECT_EQ(verified.status, 0) << verified.out << verified.err;
}

TEST_F(Run, EndsWithStatusOneWhereParityIsNotMet) {
  const Ended verified = run({"verify", "--optimizer.name=sgd", "--break-scaling=1.01"});

  EXPECT_EQ(verified.status, 1) << verified.out << verified.err;
  EXPECT_EQ(verified.err, "");
}

// Four stages in a V with split backward and overlap groups: no plugin says any of it.
TEST_F(Run, ComparesAJobOfDirectiveTablesWithOneDevice) {
  write_job(4, R"(pp = 2
[[directive]]
op = "tag"
filter = {}
name = "PP"
parts = 4
by = "count"
[[directive]]
op = "place"
filter = { PP = [0, 3] }
ranks = { pp = 0 }
[[directive]]
op = "place"
filter = { PP = [1, 2] }
ranks = { pp = 1 }
[[directive]]
op = "split_backward"
filter = { PP = "0..1" }
[[directive]]
op = "order"
ranks = [0]
actions = "0F0 0F1 3F0 3B0 (0F2;3F1) 0I0 3B1 0W0 3F2 3B2 0B1 0I2 0W2"
)");

  const Ended verified = run({"verify", "--training.dtype=float64", "--optimizer.name=sgd"});

  EXPECT_EQ(verified.status, 0) << verified.out << verified.err;
}

TEST_F(Run, ComparesAShardedJobWithOneDevice) {
  write_job(2, R"(dp = 2
[[directive]]
op = "replicate"
filter = {}
shard_optimizer = true
shard_grads = true
shard_params = true
bucket_bytes = "2KiB"
)");

  const Ended verified = run({"verify", "--training.dtype=float64", "--optimizer.name=sgd"});

  EXPECT_EQ(verified.status, 0) << verified.out << verified.err;
}

TEST_F(Run, RefusesAPlanThatTheRuntimeCannotRunWhereCheckOnlyWarns) {
  write_job(2, R"([[directive]]
op = "shard"
filter = { layer = 1 }
)");

  const Ended checked = run({"check"});
  const Ended trained = run({"train"});

  const std::string what = "job.toml:14:1: error: job: this version of the runtime cannot run ";
  EXPECT_EQ(trained.status, 2);
  EXPECT_EQ(trained.out, "");
  EXPECT_TRUE(trained.err.starts_with(what + "all_to_all")) << trained.err;
  EXPECT_TRUE(trained.err.ends_with("[runtime.unsupported]\n")) << trained.err;
  EXPECT_EQ(checked.status, 0) << checked.err;
  EXPECT_EQ(replace_all(checked.err, ": warning: ", ": error: "), trained.err);
}

}  // namespace
}  // namespace piper::testing
