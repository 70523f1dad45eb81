// A small job whose engine is made up.
#pragma once

#include <gtest/gtest.h>

#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "runtime/train/train.h"
#include "tests/runtime/data/fixture.h"
#include "tests/runtime/train/fake_engine.h"

namespace piper::testing {

inline constexpr auto kTokens = static_cast<ValueId>(0);
inline constexpr auto kLabels = static_cast<ValueId>(1);

// A job on two ranks: 5 rows a step of a data set of 20 rows to train on and 7 held out. Row i has
// i % 3 counted labels.
class Train : public ::testing::Test {
 protected:
  Train() {
    std::string text;
    for (int i = 0; i < 27; ++i) {
      const std::string id = std::to_string(i);
      text += "{\"tokens\": [" + id + ", " + id + "], \"labels\": [" + (i % 3 > 0 ? "1" : "-100") +
              ", " + (i % 3 > 1 ? "1" : "-100") + "]}\n";
    }
    job_.config = job_of({folder_.write("rows.jsonl", text)}, 2, 5);
    job_.config.training.dataset = Dataset::jsonl;
    job_.config.training.steps = 4;
    job_.config.validation.fraction = 7.0 / 27;
    job_.config.metrics.file = folder_.path("metrics.jsonl");
    job_.model = model_of_text(2);
    job_.model.parameters.push_back({"w", DType::float64, {1}, false, {}});
    job_.config.model.library = "none.so";  // its weights are saved without a config.json
    job_.plans = {two_ranks(Plan::Kind::train, 5), two_ranks(Plan::Kind::evaluate, 5), {}};
    engine_->on_train = [this](const FakeEngine::Asked&) {
      engine_->weight += 1;
      StepResult result;
      result.loss = 2;
      result.tokens = 5;
      return result;
    };
  }

  Expected<TrainSummary> run() {
    return train(job_, {"", false}, [this](const Job&) -> Expected<std::unique_ptr<Engine>> {
      return std::unique_ptr<Engine>(std::move(owned_));
    });
  }

  std::vector<nlohmann::json> metrics() const {
    std::ifstream stream(job_.config.metrics.file);
    std::vector<nlohmann::json> lines;
    for (std::string line; std::getline(stream, line);) {
      lines.push_back(nlohmann::json::parse(line));
    }
    return lines;
  }

  Folder folder_;
  Job job_;
  std::unique_ptr<FakeEngine> owned_ = std::make_unique<Kept>(record_);
  FakeEngine* engine_ = owned_.get();

  // Outlives the engine, which the loop destroys.
  struct Record {
    std::vector<FakeEngine::Asked> trained, evaluated;
    std::vector<std::string> cancelled;
  };
  Record record_;
  struct Kept : FakeEngine {
    explicit Kept(Record& to) : FakeEngine(2), record(to) {}
    ~Kept() override { record = {trained, evaluated, cancelled}; }
    Record& record;
  };
};

}  // namespace piper::testing
