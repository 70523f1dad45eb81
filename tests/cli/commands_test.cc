#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "tests/cli/run_program.h"

namespace piper::testing {
namespace {

namespace fs = std::filesystem;

class Program : public ::testing::Test {
 protected:
  Program() : folder_(fs::temp_directory_path() / ("piper_cli_" + std::to_string(::getpid()))) {
    fs::create_directories(folder_);
  }
  ~Program() override { fs::remove_all(folder_); }

  Ended run(const std::vector<std::string>& arguments) const {
    return run_program(PIPER_PROGRAM, arguments, folder_,
                       {{"PIPER_CACHE", PIPER_BINARY_DIR "/tests/cache"}});
  }
  std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ / name, std::ios::binary) << text;
    return name;
  }
  static bool has_runtime() { return fs::exists(PIPER_BINARY_DIR "/lib/libpiper_runtime.so"); }

  fs::path folder_;
};

// Two layers that can be planned without a runtime.
constexpr const char* kGraph = PIPER_SOURCE_DIR "/tests/cli/bad_input/data/two_layers.graph";

std::string graph_job() {
  return std::string("[model]\ngraph = \"") + kGraph +
         "\"\n[mesh]\npp = 2\n[training]\nmicrobatches = 2\nglobal_batch_size = 5\n"
         "[[strategy]]\nplugin = \"interleaved1f1b\"\n";
}

TEST_F(Program, ListsItsCommandsInTheHelp) {
  const Ended help = run({"--help"});

  EXPECT_EQ(help.status, 0);
  for (const char* command :
       {"train", "plan", "check", "capture", "simulate", "verify", "plugins"}) {
    EXPECT_NE(help.out.find(std::string("\n  ") + command + ' '), std::string::npos) << command;
    EXPECT_EQ(run({command, "--help"}).status, 0) << command;
  }
}

TEST_F(Program, NamesOptionsInTheHelpAsTheyAreWritten) {
  const std::string help = run({"train", "--help"}).out;

  EXPECT_NE(help.find("  --no-progress  "), std::string::npos) << help;
  EXPECT_NE(help.find("  --plugin-dir FOLDER  "), std::string::npos) << help;
}

TEST_F(Program, TakesAnOverrideWithASpaceAndRefusesOneWithoutAJob) {
  const Ended spaced =
      run({"plan", write("job.toml", graph_job()), "--training.microbatches", "1"});
  const Ended jobless = run({"plugins", "--training.steps=3"});

  EXPECT_EQ(spaced.status, 0) << spaced.err;
  EXPECT_NE(spaced.out.find(" microbatches 1"), std::string::npos) << spaced.out.substr(0, 200);
  EXPECT_EQ(jobless.status, 2);
  EXPECT_EQ(
      jobless.err,
      "error: expected nothing to override without a job, got --training.steps=3 [cli.usage]\n"
      "note: `piper plugins --help` says more\n");
}

TEST_F(Program, PrintsItsVersion) {
  const Ended version = run({"--version"});

  EXPECT_EQ(version.status, 0);
  EXPECT_TRUE(version.out.starts_with("piper 0.")) << version.out;
  for (const char* line : {"\nplugin ABI  0.", "\nLibTorch    ", "\nbuild       "}) {
    EXPECT_NE(version.out.find(line), std::string::npos) << version.out;
  }
}

TEST_F(Program, ItsHelpIsInItsOwnWords) {
  const std::string train = run({"train", "--help"}).out;
  const std::string verify = run({"verify", "--help"}).out;

  EXPECT_NE(train.find("  --no-progress               print no progress line\n"), std::string::npos)
      << train;
  EXPECT_NE(train.find("  --plugin-dir FOLDER         a further"), std::string::npos) << train;
  EXPECT_NE(train.find("\n  JOB.toml                    the job file\n"), std::string::npos)
      << train;
  EXPECT_NE(verify.find("steps to compare (default: 1)"), std::string::npos) << verify;
}

TEST_F(Program, RefusesToStartWithoutACommand) {
  const Ended nothing = run({});

  EXPECT_EQ(nothing.status, 2);
  EXPECT_NE(nothing.err.find("[cli.usage]"), std::string::npos) << nothing.err;
}

TEST_F(Program, ListsPluginsAsTextAndAsJson) {
  const Ended text = run({"plugins"});
  const Ended json = run({"plugins", "--json"});

  EXPECT_EQ(text.status, 0) << text.err;
  EXPECT_NE(text.out.find("interleaved1f1b"), std::string::npos) << text.out;
  EXPECT_EQ(json.status, 0) << json.err;
  EXPECT_NE(json.out.find("\"interleaved1f1b\""), std::string::npos) << json.out;
}

TEST_F(Program, ChecksAJobThatHasAGraphWithoutARuntime) {
  const Ended checked = run({"check", write("job.toml", graph_job())});

  EXPECT_EQ(checked.status, 0) << checked.err;
  EXPECT_NE(checked.out.find("\nok"), std::string::npos) << checked.out;
  EXPECT_EQ(checked.err, "");
}

TEST_F(Program, PrintsTheSamePlanTwice) {
  const std::string job = write("job.toml", graph_job());

  const Ended first = run({"plan", job});
  const Ended second = run({"plan", job});

  EXPECT_EQ(first.status, 0) << first.err;
  EXPECT_TRUE(first.out.starts_with("piper-plan 1\n")) << first.out;
  EXPECT_EQ(first.out, second.out);
}

TEST_F(Program, PrintsWhatOneRankRuns) {
  const std::string job = write("job.toml", graph_job());

  const Ended all = run({"plan", job});
  const Ended one = run({"plan", job, "--rank", "1"});

  EXPECT_EQ(one.status, 0) << one.err;
  EXPECT_TRUE(one.out.starts_with("program 1 ranks (1)")) << one.out;
  EXPECT_EQ(one.out.find("program 0"), std::string::npos);
  const std::string program = one.out.substr(0, one.out.find("# memory"));
  EXPECT_NE(all.out.find(program), std::string::npos);
  EXPECT_NE(one.out.find("\n# train     1  "), std::string::npos) << one.out;
}

TEST_F(Program, PrintsThePlanOfAHeldOutBatch) {
  const Ended plan = run({"plan", write("job.toml", graph_job()), "--evaluate"});

  EXPECT_EQ(plan.status, 0) << plan.err;
  EXPECT_TRUE(plan.out.starts_with("piper-plan 1\nevaluate ")) << plan.out;
  EXPECT_EQ(plan.out.find("update"), std::string::npos);
}

TEST_F(Program, PrintsWhatThePlannerHasAfterAPhase) {
  const std::string job = write("job.toml", graph_job());

  const Ended phase = run({"plan", job, "--after", "directives"});
  const Ended unknown = run({"plan", job, "--after", "directive"});

  EXPECT_EQ(phase.status, 0) << phase.err;
  EXPECT_NE(phase.out, "");
  EXPECT_EQ(unknown.status, 2);
  EXPECT_EQ(unknown.out, "");
  EXPECT_NE(unknown.err.find("unknown phase 'directive' (did you mean 'directives'?)"),
            std::string::npos)
      << unknown.err;
}

TEST_F(Program, WritesThePlanAsJsonOfEveryRankOrOfOne) {
  const std::string job = write("job.toml", graph_job());

  const Ended all = run({"plan", job, "--format", "json"});
  const Ended one = run({"plan", job, "--format", "json", "--rank", "1"});

  EXPECT_EQ(all.status, 0) << all.err;
  const auto value = nlohmann::json::parse(all.out);
  EXPECT_EQ(value["programs"].size(), 2U);
  EXPECT_EQ(value["kind"], "train");
  EXPECT_EQ(nlohmann::json::parse(one.out)["programs"].size(), 1U);
}

TEST_F(Program, DrawsThePlanAndEveryPhase) {
  const std::string job = write("job.toml", graph_job());

  for (const char* format : {"svg", "dot"}) {
    const std::string start = format == std::string("svg") ? "<svg " : "digraph ";
    const Ended plan = run({"plan", job, "--format", format});
    const Ended rank = run({"plan", job, "--format", format, "--rank", "0"});
    EXPECT_EQ(plan.status, 0) << plan.err;
    EXPECT_TRUE(plan.out.starts_with(start)) << plan.out;
    EXPECT_LT(rank.out.size(), plan.out.size());
  }
  for (const char* phase : {"directives", "expand", "communicate", "schedule"}) {
    const Ended drawn = run({"plan", job, "--format", "dot", "--after", phase});
    EXPECT_EQ(drawn.status, 0) << drawn.err;
    EXPECT_TRUE(drawn.out.starts_with("digraph ")) << drawn.out;
  }
}

TEST_F(Program, LeavesTheLayoutOfAPhasesGraphToGraphviz) {
  const Ended drawn =
      run({"plan", write("job.toml", graph_job()), "--after", "expand", "--format", "svg"});

  EXPECT_EQ(drawn.status, 2);
  EXPECT_EQ(drawn.err,
            "error: --after prints as text or dot: pipe --format dot to `dot -Tsvg` [cli.usage]\n");
}

TEST_F(Program, ExplainsANodeOfThePlan) {
  const std::string job = write("job.toml", graph_job());

  const Ended node = run({"plan", job, "--explain", "1F0@1"});
  const Ended held_out = run({"plan", job, "--explain", "1F0@1", "--evaluate"});
  const Ended unknown = run({"plan", job, "--explain", "1G0@1"});

  EXPECT_EQ(node.status, 0) << node.err;
  EXPECT_NE(node.out.find("of the train plan: forward"), std::string::npos) << node.out;
  EXPECT_NE(node.out.find("place of interleaved1f1b (job.toml:"), std::string::npos) << node.out;
  EXPECT_NE(held_out.out.find("of the evaluate plan: forward"), std::string::npos);
  EXPECT_EQ(unknown.status, 2);
  EXPECT_NE(unknown.err.find("did you mean '1F0@1'?) [show.unknown_node]"), std::string::npos)
      << unknown.err;
}

TEST_F(Program, ComparesThePlansOfTwoJobsAsDiffDoes) {
  const std::string job = write("job.toml", graph_job());

  const Ended same = run({"plan", job, "--diff", job});
  const Ended different = run({"plan", job, "--diff", job, "--training.microbatches=1"});
  const Ended missing = run({"plan", job, "--diff", "nowhere.toml"});

  EXPECT_EQ(same.status, 0) << same.err;
  EXPECT_EQ(same.out, "");
  EXPECT_EQ(different.status, 1) << different.err;
  EXPECT_TRUE(different.out.starts_with("--- job.toml with overrides (plan ")) << different.out;
  EXPECT_NE(different.out.find("\nmicro-batches: 1 -> 2\n"), std::string::npos) << different.out;
  EXPECT_EQ(missing.status, 2);
}

TEST_F(Program, ReadsThePlansThatItPrints) {
  const std::string job = write("job.toml", graph_job());

  for (const std::vector<std::string>& which :
       std::vector<std::vector<std::string>>{{"plan", job}, {"plan", job, "--evaluate"}}) {
    const std::string file = write("printed.plan", run(which).out);
    const Ended checked = run({"plan", "--check", file, "--graph", kGraph});
    EXPECT_EQ(checked.status, 0) << checked.err;
    EXPECT_TRUE(checked.out.starts_with("plan ") && checked.out.ends_with(" tasks: verified\n"))
        << checked.out;
  }
}

TEST_F(Program, SaysOnWhichLineAPlanFileIsWrong) {
  const std::string text = run({"plan", write("job.toml", graph_job())}).out;
  const auto checked = [&](const std::string& part, const std::string& by) {
    std::string broken = text;
    const std::size_t at = broken.find(part);
    EXPECT_NE(at, std::string::npos) << part << " is not in\n" << text;
    const auto line =
        std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(at), '\n');
    const std::string file = write("broken.plan", broken.replace(at, part.size(), by));
    const Ended ended = run({"plan", "--check", file, "--graph", kGraph});
    EXPECT_EQ(ended.status, 2);
    EXPECT_EQ(ended.out, "");
    EXPECT_NE(("\n" + ended.err).find("\nbroken.plan:" + std::to_string(line + 1)),
              std::string::npos)
        << ended.err;
    return ended.err;
  };
  const std::size_t backward = text.find(" backward ");
  const std::size_t wait = text.find(" wait ", backward);
  const std::string waits = text.substr(wait, text.find(" read ", wait) - wait);

  EXPECT_NE(checked(" backward ", " backwrd  ").find("[plan.syntax]"), std::string::npos);
  EXPECT_NE(checked(text.substr(backward, wait - backward) + waits,
                    text.substr(backward, wait - backward))
                .find("error: "),
            std::string::npos);
}

TEST_F(Program, RefusesAPlanFileThatIsNotThere) {
  const Ended ended = run({"plan", "--check", "nowhere.plan", "--graph", kGraph});
  const Ended alone = run({"plan", "--check", "nowhere.plan"});

  EXPECT_EQ(ended.status, 2);
  EXPECT_EQ(ended.err,
            "error: expected a file of `piper plan`, got 'nowhere.plan', which cannot be read "
            "[cli.input]\n");
  EXPECT_EQ(alone.status, 2);
  EXPECT_NE(alone.err.find("[cli.usage]"), std::string::npos) << alone.err;
}

TEST_F(Program, SimulatesAPlanFileAsItsJob) {
  const std::string job = write("job.toml", graph_job());
  const std::string file = write("printed.plan", run({"plan", job}).out);

  const Ended of_file = run({"simulate", file, "--graph", kGraph, "--json"});
  const Ended of_job = run({"simulate", job, "--costs", "unit", "--json"});

  EXPECT_EQ(of_file.status, 0) << of_file.err;
  EXPECT_EQ(of_file.out, of_job.out);
  EXPECT_EQ(run({"simulate", file, "--graph", kGraph, "--costs", "analytical"}).status, 2);
}

TEST_F(Program, RefusesOptionsOfPlanThatSayNothingTogether) {
  const std::string job = write("job.toml", graph_job());

  for (const std::vector<std::string>& options :
       std::vector<std::vector<std::string>>{{"--format", "jsn"},
                                             {"--after", "expand", "--format", "json"},
                                             {"--after", "expand", "--rank", "0"},
                                             {"--rank", "2"},
                                             {"--explain", "1F0", "--format", "svg"},
                                             {"--explain", "1F0", "--diff", job},
                                             {"--diff", job, "--after", "expand"}}) {
    std::vector<std::string> arguments{"plan", job};
    arguments.insert(arguments.end(), options.begin(), options.end());

    const Ended refused = run(arguments);

    EXPECT_EQ(refused.status, 2) << options[0];
    EXPECT_EQ(refused.out, "");
    EXPECT_NE(refused.err.find("[cli.usage]"), std::string::npos) << refused.err;
  }
}

TEST_F(Program, SimulatesAStepAsTextAndAsJson) {
  const std::string job = write("job.toml", graph_job());

  const Ended text = run({"simulate", job, "--costs", "unit"});
  const Ended json = run({"simulate", job, "--costs", "unit", "--json"});
  const Ended again = run({"simulate", job, "--costs", "unit", "--json"});

  EXPECT_EQ(text.status, 0) << text.err;
  EXPECT_NE(text.out.find("step 9.000 units, bubble 33.3 %"), std::string::npos) << text.out;
  EXPECT_EQ(json.status, 0) << json.err;
  EXPECT_EQ(nlohmann::json::parse(json.out)["makespan"], 9.0);
  EXPECT_EQ(json.out, again.out);
}

TEST_F(Program, SimulatesUnderTheCostsOfTheJobOrOthers) {
  const std::string job = write("job.toml", graph_job());
  const auto makespan = [&](std::vector<std::string> options) {
    options.insert(options.begin(), {"simulate", job, "--json"});
    const Ended ended = run(options);
    EXPECT_EQ(ended.status, 0) << ended.err;
    return nlohmann::json::parse(ended.out);
  };

  EXPECT_EQ(makespan({})["unit"], "units");
  EXPECT_EQ(makespan({"--costs", "analytical"})["unit"], "ms");
  EXPECT_EQ(makespan({"--costs", "unit"}), makespan({"--pair", "atomic"}))
      << "nothing is paired in 1F1B";
  EXPECT_EQ(makespan({}), makespan({"--contention"})) << "in units, messages take no time";
}

TEST_F(Program, WritesATraceAndAPictureOfASimulation) {
  const std::string job = write("job.toml", graph_job());

  const Ended ended = run({"simulate", job, "--trace", "trace.json", "--svg", "grid.svg"});

  EXPECT_EQ(ended.status, 0) << ended.err;
  std::ifstream trace(folder_ / "trace.json"), picture(folder_ / "grid.svg");
  EXPECT_GT(nlohmann::json::parse(trace)["traceEvents"].size(), 20U);
  std::string start(5, ' ');
  picture.read(start.data(), 5);
  EXPECT_EQ(start, "<svg ");
}

TEST_F(Program, SaysWhichOutputOfASimulationCannotBeWritten) {
  const std::string job = write("job.toml", graph_job());

  for (const char* option : {"--trace", "--svg"}) {
    const Ended ended = run({"simulate", job, option, "job.toml/file"});
    EXPECT_EQ(ended.status, 2);
    EXPECT_EQ(ended.out, "");
    EXPECT_EQ(ended.err, std::string("error: ") + option +
                             ": expected a file that can be written, got 'job.toml/file': not a "
                             "directory [output.unwritable]\n");
  }
}

// The program, as a shell starts it with a redirection.
TEST_F(Program, EndsWithAMessageWhereStandardOutputIsFull) {
  write("job.toml", graph_job());
  for (const std::string command :
       {"plan job.toml --format json", "plan job.toml", "check job.toml", "plugins --json",
        "simulate job.toml", "capture job.toml", "--help", "--version"}) {
    const Ended full =
        run_program("/bin/sh", {"-c", PIPER_PROGRAM + (' ' + command) + " >/dev/full"}, folder_);

    EXPECT_EQ(full.status, 1) << command;
    EXPECT_EQ(full.err,
              "error: standard output cannot be written: no space left on device [cli.stdout]\n")
        << command;
  }
}

TEST_F(Program, KeepsTheStatusOfARefusalWhereStandardOutputIsFull) {
  const Ended refused =
      run_program("/bin/sh", {"-c", PIPER_PROGRAM " check no_job.toml >/dev/full"}, folder_);

  EXPECT_EQ(refused.status, 2) << refused.err;
}

TEST_F(Program, RunsWithoutStandardStreams) {
  write("job.toml", graph_job());
  const std::string command = PIPER_PROGRAM " plan job.toml";

  for (const std::string closed : {"<&-", ">&-", "2>&-", "<&- >&- 2>&-"}) {
    EXPECT_EQ(run_program("/bin/sh", {"-c", command + ' ' + closed}, folder_).status, 0) << closed;
  }
}

TEST_F(Program, WritesAGraphToStandardOutputUnderItsName) {
  const Ended captured =
      run({"capture", write("job.toml", graph_job()), "--output", "/dev/stdout"});

  EXPECT_EQ(captured.status, 0) << captured.err;
  EXPECT_EQ(captured.out, run({"capture", "job.toml"}).out);
}

TEST_F(Program, CapturesAGraphThatReadsBackAsItself) {
  const Ended captured = run({"capture", write("job.toml", graph_job()), "-o", "again.graph"});

  EXPECT_EQ(captured.status, 0) << captured.err;
  std::stringstream again, original;
  again << std::ifstream(folder_ / "again.graph").rdbuf();
  original << std::ifstream(kGraph).rdbuf();
  EXPECT_EQ(again.str(), original.str());
}

TEST_F(Program, PlansTheSameBytesInEveryOrderOfTables) {
  const std::string job = "[model]\ngraph = \"" + std::string(kGraph) +
                          "\"\n[mesh]\npp = 2\ndp = 2\n[training]\nglobal_batch_size = 8\n";
  std::vector<std::string> tables{
      "[[strategy]]\nplugin = \"interleaved1f1b\"\n", "[[directive]]\nop = \"split\"\nn = 2\n",
      "[[directive]]\nop = \"replicate\"\nfilter = { PP = 1 }\nshard_optimizer = true\n",
      "[[directive]]\nop = \"tag\"\nfilter = { attention = \"*\" }\nname = \"A\"\nindex = 0\n"};
  std::sort(tables.begin(), tables.end());
  std::set<std::string> plans;

  do {
    std::string text = job;
    for (const std::string& table : tables) {
      text += table;
    }
    const Ended plan = run({"plan", write("job.toml", text)});
    EXPECT_EQ(plan.status, 0) << plan.err;
    plans.insert(plan.out);
  } while (std::next_permutation(tables.begin(), tables.end()));

  EXPECT_EQ(plans.size(), 1U);
  EXPECT_NE(plans.begin()->find("reduce_scatter"), std::string::npos);
  EXPECT_EQ(plans.begin()->find("job.toml"), std::string::npos);
}

TEST_F(Program, TellsStrategiesOfTheJobsOwnSplit) {
  const std::string split = "[[directive]]\nop = \"split\"\nn = 4\n";
  const Ended by_key =
      run({"plan", write("key.toml", graph_job()), "--format", "csv", "--training.microbatches=4"});
  const Ended by_table = run({"plan", write("table.toml", graph_job() + split), "--format", "csv"});

  EXPECT_EQ(by_table.status, 0) << by_table.err;
  EXPECT_NE(by_table.out.find("0F3"), std::string::npos) << by_table.out;
  EXPECT_EQ(by_table.out, by_key.out);
}

TEST_F(Program, ChecksTheSchedulesOfTheOriginalPiperWithoutARuntime) {
  int jobs = 0;
  for (const auto& entry : fs::directory_iterator(PIPER_SOURCE_DIR "/examples/upstream")) {
    if (entry.path().extension() == ".toml") {
      const Ended checked = run_program(PIPER_PROGRAM, {"check", entry.path()}, PIPER_SOURCE_DIR);
      EXPECT_EQ(checked.status, 0) << entry.path() << '\n' << checked.err;
      EXPECT_EQ(checked.err, "");
      ++jobs;
    }
  }
  EXPECT_EQ(jobs, 9);
}

TEST_F(Program, ChecksEveryExample) {
  if (!has_runtime()) {
    GTEST_SKIP() << "this build has no runtime";
  }
  int examples = 0;
  for (const auto& entry : fs::directory_iterator(PIPER_SOURCE_DIR "/examples")) {
    if (entry.path().extension() == ".toml") {
      const Ended checked = run({"check", entry.path()});
      EXPECT_EQ(checked.status, 0) << entry.path() << '\n' << checked.err;
      ++examples;
    }
  }
  EXPECT_GE(examples, 6);
}

}  // namespace
}  // namespace piper::testing
