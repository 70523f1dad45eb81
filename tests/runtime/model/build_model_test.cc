// What capture finds in a model, and what it refuses.
#include "runtime/model/build.h"

#include <gtest/gtest.h>

#include <ATen/ATen.h>
#include <torch/utils.h>

#include <stdexcept>

#include "runtime/model/kernel_workspace.h"
#include "tests/runtime/models/running_model.h"
#include "tests/support/guarded_allocator.h"

namespace piper {
namespace {

constexpr std::int64_t kSeq = 8, kVocab = 10, kDim = 4;

Tensors sum_of_losses(const Tensors& in, const at::Tensor& head) {
  return {at::cross_entropy_loss(at::linear(in[0], head).view({-1, kVocab}), in[1].view({-1}), {},
                                 at::Reduction::Sum, -100)};
}

// A model of three regions; `middle` is the one in between.
using Middle = std::function<at::Tensor(Build&, const at::Tensor& h)>;
Middle* current_middle = nullptr;

void build_with_middle(Build& b) {
  const at::Tensor tokens = b.input("tokens", {kSeq}, at::kLong);
  const at::Tensor labels = b.input("labels", {kSeq}, at::kLong);
  const ParameterHandle embedding = b.parameter("embed", {kVocab, kDim}, Init::normal(1));
  const ParameterHandle head = b.parameter("head", {kVocab, kDim}, Init::normal(1));
  at::Tensor h = b.region(
      {tokens}, [=](const Tensors& in) { return Tensors{at::embedding(embedding, in[0])}; })[0];
  h = (*current_middle)(b, h);
  b.loss(b.region({h, labels}, [=](const Tensors& in) { return sum_of_losses(in, head); })[0]);
}

const Config& default_config() {
  static const Config config;
  return config;
}

Expected<LiveModel> build(Middle middle, const Config& config = default_config(),
                          bool measure = true) {
  current_middle = &middle;
  return build_model(config, build_with_middle, measure);
}

// `code: message`, and the line of this file that it names, counted from `line`.
void expect_refusal(const Expected<LiveModel>& built, const std::string& code,
                    const std::string& part_of_message) {
  ASSERT_FALSE(built) << "expected " << code;
  EXPECT_EQ(built.error()[0].code, code) << to_string(built.error());
  EXPECT_NE(built.error()[0].message.find(part_of_message), std::string::npos)
      << to_string(built.error());
}

at::Tensor one_linear(Build& b, const at::Tensor& h) {
  const ParameterHandle weight = b.parameter("w", {6, kDim}, Init::normal(1));
  const ParameterHandle back = b.parameter("back", {kDim, 6}, Init::normal(1));
  const at::Tensor wide =
      b.region({h}, [=](const Tensors& in) { return Tensors{at::linear(in[0], weight)}; })[0];
  return b.region(
      {wide}, [=](const Tensors& in) { return Tensors{at::linear(at::relu(in[0] * 2), back)}; })[0];
}

TEST(Capture, CountsTheWorkAndMemoryOfALinear) {
  const ModelGraph graph = value_of(build(one_linear)).graph;

  const Region& linear = graph.regions[1];
  EXPECT_EQ(linear.flops, (Affine{2 * kSeq * kDim * 6, 0}));
  EXPECT_EQ(linear.saved_bytes,
            (Affine{kSeq * kDim * 4, 0}));  // its input, for the weight's gradient
  EXPECT_EQ(linear.transient_bytes, (Affine{0, 0}));
  EXPECT_EQ(graph.value(linear.outputs[0]).shape, (std::vector<Affine>{{1, 0}, {0, kSeq}, {0, 6}}));
}

TEST(Capture, CountsElementwiseWorkAndWhatIsNotKept) {
  const ModelGraph graph = value_of(build(one_linear)).graph;

  const Region& second = graph.regions[2];
  const std::int64_t wide = kSeq * 6;
  EXPECT_EQ(second.flops, (Affine{2 * wide + 2 * wide * kDim, 0}));
  EXPECT_EQ(second.saved_bytes, (Affine{wide * 4, 0}));  // relu's result
  EXPECT_EQ(second.pending_bytes,
            (Affine{wide * 4 + kSeq * kDim * 4, 0}));  // that, and the result's gradient
  EXPECT_EQ(second.transient_bytes,
            (Affine{wide * 4, 0}));  // x * 2, which relu does not need later
}

TEST(Capture, FindsTheSameGraphWithoutMeasuring) {
  const ModelGraph measured = value_of(build(one_linear, default_config(), true)).graph;
  ModelGraph quick = value_of(build(one_linear, default_config(), false)).graph;

  for (std::size_t i = 0; i < quick.regions.size(); ++i) {
    Region costs = measured.regions[i];
    costs.inputs = quick.regions[i].inputs, costs.outputs = quick.regions[i].outputs;
    costs.parameters = quick.regions[i].parameters, costs.tags = quick.regions[i].tags;
    quick.regions[i] = costs;
  }
  EXPECT_EQ(print(quick), print(measured));
}

TEST(Capture, GivesAGraphThatIsVerifiedAndReadsBack) {
  const ModelGraph graph = value_of(build(one_linear)).graph;

  EXPECT_TRUE(verify(graph)) << to_string(verify(graph).error());
  EXPECT_EQ(value_of(parse_model_graph(print(graph), "text")), graph);
}

TEST(Capture, NotesParametersInOrderOfFirstUse) {
  const ModelGraph graph =
      value_of(build([](Build& b, const at::Tensor& h) {
        const ParameterHandle first = b.parameter("first", {kDim}, Init::constant(1));
        const ParameterHandle second = b.parameter("second", {kDim}, Init::constant(1));
        return b.region({h}, [=](const Tensors& in) {
          const at::Tensor scaled = in[0] * *second;
          return Tensors{scaled * *first * *second};
        })[0];
      })).graph;

  std::vector<std::string> names;
  for (const ParameterId id : graph.regions[1].parameters) {
    names.push_back(graph.parameter(id).name);
  }
  EXPECT_EQ(names, (std::vector<std::string>{"second", "first"}));
}

TEST(Capture, NotesParametersThatTheSecondHalfOfABackwardReads) {
  const ModelGraph graph =
      value_of(build([](Build& b, const at::Tensor& h) {
        const ParameterHandle weight = b.parameter("w", {kDim, kDim}, Init::normal(1));
        const ParameterHandle gate = b.parameter("gate", {kDim, 1}, Init::normal(1));
        const ParameterHandle gain = b.parameter("gain", {}, Init::normal(1));
        return b.region({h}, [=](const Tensors& in) {
          const at::Tensor gated = (*weight).mul(*gate);
          return Tensors{at::linear(in[0] * *gain, gated)};
        })[0];
      })).graph;

  EXPECT_EQ(graph.regions[1].parameters.size(), 3U);
  EXPECT_EQ(graph.regions[1].reread_parameters, (std::vector{ParameterId{2}, ParameterId{3}}))
      << "the weight and its gate";
  EXPECT_TRUE(graph.regions[2].reread_parameters.empty()) << "a linear";
}

TEST(Capture, NotesTheProductsOfBfloat16AndCountsCopiesOfWhatIsNoMatrix) {
  Config config;
  config.training.dtype = DType::bfloat16;
  const ModelGraph narrow = value_of(build(one_linear, config)).graph;

  EXPECT_EQ(narrow.regions[1].workspace,
            kernel_workspace({{{kSeq, 0}, {0, kDim}, {0, 6}, false},    // the forward
                              {{kSeq, 0}, {0, 6}, {0, kDim}, false},    // the gradient of its input
                              {{0, 6}, {kSeq, 0}, {0, kDim}, true}}));  // and of its weight

  const ModelGraph wide = value_of(build([](Build& b, const at::Tensor& h) {
                            return b.region({h}, [](const Tensors& in) {
                              const at::Tensor ones = at::ones({1}, in[0].options());
                              return Tensors{at::matmul(in[0], ones.expand({kDim, kDim}))};
                            })[0];
                          })).graph;
  EXPECT_TRUE(wide.regions[1].workspace.empty());
  EXPECT_EQ(wide.regions[1].peaks->evaluate.of,
            (std::vector<Affine>{{kSeq * kDim * 4, 4 + kDim * kDim * 4}}));
}

TEST(Capture, TagsRegionsWithTheScopesAroundThem) {
  const ModelGraph graph =
      value_of(build([](Build& b, at::Tensor h) {
        for (int i = 0; i < 2; ++i) {
          const auto layer = b.annotate("layer");
          const auto part = b.annotate("part", 7 + i);
          h = b.region({h}, [](const Tensors& in) { return Tensors{in[0] + 1}; })[0];
        }
        return h;
      })).graph;

  const TagId layer = *graph.find_tag("layer");
  EXPECT_EQ(graph.regions[0].tags, std::vector<Tag>{});
  EXPECT_EQ(graph.regions[1].tag(layer), 0u);
  EXPECT_EQ(graph.regions[2].tag(layer), 1u);
  EXPECT_EQ(graph.regions[2].tag(*graph.find_tag("part")), 8u);
  EXPECT_EQ(graph.regions[3].tag(layer), std::nullopt);
}

TEST(Capture, NamesTheLineOfARegion) {
  const ModelGraph graph =
      value_of(build([](Build& b, const at::Tensor& h) {
        return b.region({h}, [](const Tensors& in) { return Tensors{in[0] + 1}; })[0];
      })).graph;

  EXPECT_EQ(graph.regions[1].where.file, "tests/runtime/model/build_model_test.cc");
  EXPECT_GT(graph.regions[1].where.line, 100u);
}

TEST(Capture, MakesResultsContiguous) {
  const LiveModel live = value_of(build([](Build& b, const at::Tensor& h) {
    const at::Tensor turned =
        b.region({h}, [](const Tensors& in) { return Tensors{(in[0] + 1).transpose(1, 2)}; })[0];
    return b.region({turned},
                    [](const Tensors& in) { return Tensors{in[0].transpose(1, 2) * 1}; })[0];
  }));

  const Tensors results = live.regions[1]({at::ones({3, kSeq, kDim})});

  EXPECT_TRUE(results[0].is_contiguous());
}

TEST(Capture, RefusesAnOperationOutsideEveryRegionAndNamesTheRegionBefore) {
  const auto built = build([](Build&, const at::Tensor& h) { return h * 2; });

  expect_refusal(built, "model.outside_region", "aten::mul on float32[2, 8, 4]");
  EXPECT_EQ(built.error()[0].where.file, "tests/runtime/model/build_model_test.cc");
}

TEST(Capture, RefusesATensorOfAnotherRegionThatIsNoInput) {
  expect_refusal(build([](Build& b, const at::Tensor& h) {
                   return b.region({h}, [h](const Tensors& in) { return Tensors{in[0] + h}; })[0];
                 }),
                 "model.foreign_tensor", "aten::add uses a tensor that the region was not given");
}

TEST(Capture, RefusesAParameterThatWasCopiedOutOfItsHandle) {
  expect_refusal(build([](Build& b, const at::Tensor& h) {
                   const at::Tensor copied = *b.parameter("w", {kDim}, Init::constant(1));
                   return b.region(
                       {h}, [copied](const Tensors& in) { return Tensors{in[0] * copied}; })[0];
                 }),
                 "model.foreign_tensor", "aten::mul");
}

TEST(Capture, RefusesWritingToAnInputOfTheRegion) {
  expect_refusal(build([](Build& b, const at::Tensor& h) {
                   return b.region({h}, [](const Tensors& in) {
                     at::Tensor x = in[0];
                     x.mul_(2);
                     return Tensors{x + 1};
                   })[0];
                 }),
                 "model.in_place", "aten::mul_ writes to an input of the region, float32[2, 8, 4]");
}

TEST(Capture, RefusesWritingToAParameter) {
  expect_refusal(build([](Build& b, const at::Tensor& h) {
                   const ParameterHandle w = b.parameter("w", {kDim}, Init::constant(1));
                   return b.region({h}, [=](const Tensors& in) {
                     const torch::NoGradGuard no_grad;
                     at::Tensor(*w).add_(1);
                     return Tensors{in[0] * *w};
                   })[0];
                 }),
                 "model.in_place", "aten::add_ writes to parameter 'w'");
}

TEST(Capture, AllowsWritingToWhatTheRegionMade) {
  EXPECT_TRUE(build([](Build& b, const at::Tensor& h) {
    return b.region({h}, [](const Tensors& in) { return Tensors{(in[0] + 1).mul_(2)}; })[0];
  }));
}

TEST(Capture, RefusesAResultThatIsAnInput) {
  expect_refusal(build([](Build& b, const at::Tensor& h) {
                   return b.region({h}, [](const Tensors& in) {
                     return Tensors{in[0].view({-1, kSeq, kDim})};
                   })[0];
                 }),
                 "model.aliased_result",
                 "result 0 of the region shares memory with one of its inputs");
}

TEST(Capture, RefusesTwoResultsInTheSameMemory) {
  expect_refusal(build([](Build& b, const at::Tensor& h) {
                   return b.region({h}, [](const Tensors& in) {
                     const at::Tensor x = in[0] + 1;
                     return Tensors{x, x.view({-1, kSeq, kDim})};
                   })[0];
                 }),
                 "model.aliased_result", "results 0 and 1 of the region share memory");
}

TEST(Capture, RefusesARegionThatKeepsATensor) {
  expect_refusal(build([](Build& b, const at::Tensor& h) {
                   const auto kept = std::make_shared<at::Tensor>();
                   return b.region({h}, [kept](const Tensors& in) {
                     *kept = in[0] + 1;
                     return Tensors{*kept * 2};
                   })[0];
                 }),
                 "model.region_state", "the region keeps a tensor after it has run");
}

TEST(Capture, RefusesSizesThatGrowWithTheSquareOfTheRows) {
  expect_refusal(build([](Build& b, const at::Tensor& h) {
                   return b.region({h}, [](const Tensors& in) {
                     const at::Tensor flat = in[0].flatten(1);
                     const at::Tensor rows_by_rows = at::softmax(at::mm(flat, flat.t()), -1);
                     return Tensors{at::mm(rows_by_rows, flat).view_as(in[0])};
                   })[0];
                 }),
                 "model.not_affine", "expected a fixed part and a part for each row");
}

TEST(Capture, RefusesAnInputThatIsNoValueOfTheModel) {
  expect_refusal(build([](Build& b, const at::Tensor&) {
                   return b.region({at::Tensor()}, [](const Tensors&) { return Tensors{}; })[0];
                 }),
                 "model.region_input", "input 0 of the region");
}

TEST(Capture, TurnsWhatLibTorchThrowsInARegionIntoOneLine) {
  const auto built = build([](Build& b, const at::Tensor& h) {
    return b.region({h}, [](const Tensors& in) { return Tensors{in[0].view({3, 1000})}; })[0];
  });

  expect_refusal(built, "model.region_failed", "shape '[3, 1000]' is invalid");
  EXPECT_EQ(built.error()[0].message.find('\n'), std::string::npos);
}

TEST(Capture, TurnsAnyExceptionIntoADiagnostic) {
  expect_refusal(build([](Build&, const at::Tensor&) -> at::Tensor {
                   throw std::runtime_error("no such layer\nsecond line");
                 }),
                 "model.failed", "failed: no such layer");
  expect_refusal(build([](Build&, const at::Tensor&) -> at::Tensor { throw 42; }), "model.failed",
                 "threw something that is no std::exception");
}

TEST(Capture, KnowsTheShapesOfOperatorsThatHaveNoRuleOnTheMetaDevice) {
  const ModelGraph graph =
      value_of(build([](Build& b, const at::Tensor& h) {
        const ParameterHandle kernel = b.parameter("kernel", {kSeq, kSeq, 3}, Init::normal(1));
        return b.region({h}, [=](const Tensors& in) {
          at::Tensor x = at::conv1d(in[0], *kernel, {}, 1, 1);
          x = at::group_norm(x.relu_().roll(1, 2), 2);
          x = x - std::get<0>(x.max(1, true)) + x.std(2, true, true) + x.max();
          return Tensors{at::layer_norm(at::where(x > 0, x, x.flip(1)), {kDim})};
        })[0];
      })).graph;

  EXPECT_EQ(graph.value(graph.regions[1].outputs[0]).shape,
            (std::vector<Affine>{{1, 0}, {0, kSeq}, {0, kDim}}));
  EXPECT_GT(graph.regions[1].flops.per_row, 2 * kSeq * kDim * kSeq * 3);  // the convolution's
}

at::Tensor weight_normed(Build& b, const at::Tensor& h, std::int64_t width) {
  const ParameterHandle weight = b.parameter("w", {width, kDim}, Init::normal(1));
  const ParameterHandle gain = b.parameter("gain", {width, 1}, Init::constant(1));
  return b.region({h}, [=](const Tensors& in) {
    return Tensors{at::linear(in[0], at::_weight_norm(weight, gain, 0)).sum(-1, true) + in[0]};
  })[0];
}

TEST(Capture, RunsAnOperatorWithoutAShapeRuleInMemoryOfItsOwn) {
  const test::GuardedTensors guarded;
  constexpr std::int64_t kWidth = 1000;

  const ModelGraph graph = value_of(build([](Build& b, const at::Tensor& h) {
                             return weight_normed(b, h, kWidth);
                           })).graph;

  EXPECT_EQ(graph.regions[1].saved_bytes,  // the input; the weight and the norms of its rows
            (Affine{kSeq * kDim * 4, kWidth * kDim * 4 + kWidth * 4}));
}

TEST(Capture, RefusesToRunAnOperatorOnMoreZerosThanAShare) {
  const auto with_rows = [](std::int64_t mib) {
    return build(
        [=](Build& b, const at::Tensor& h) { return weight_normed(b, h, (mib << 20) / 4 / kDim); });
  };

  expect_refusal(with_rows(200), "model.meta_kernel",  // the backward takes more
                 "aten::_weight_norm_interface_backward");
  expect_refusal(with_rows(300), "model.meta_kernel", "aten::_weight_norm_interface,");
  EXPECT_TRUE(build(one_linear)) << "as before";
}

TEST(Capture, RefusesShapesThatDependOnValues) {
  expect_refusal(
      build([](Build& b, const at::Tensor& h) {
        return b.region(
            {h}, [](const Tensors& in) { return Tensors{in[0].masked_select(in[0] > 0)}; })[0];
      }),
      "model.region_failed", "aten::masked_select: attempted to run this operator with Meta");
}

TEST(Capture, IsAsBeforeAfterARefusal) {
  ASSERT_FALSE(build([](Build&, const at::Tensor& h) { return h * 2; }));

  EXPECT_TRUE(build(one_linear));
  EXPECT_TRUE(at::ones({2}).mul(2).defined());
}

TEST(Freeze, MarksParametersByGlobAndSavesNothingForThem) {
  Config config;
  config.model.freeze = {"w*"};

  const ModelGraph graph = value_of(build(one_linear, config)).graph;

  EXPECT_TRUE(graph.parameters[2].frozen);
  EXPECT_FALSE(graph.parameters[3].frozen);
  EXPECT_EQ(graph.regions[1].saved_bytes,
            (Affine{0, 0}));  // no gradient of the weight: no input kept
}

TEST(Freeze, RefusesAGlobThatMatchesNothing) {
  Config config;
  config.model.freeze = {"heads"};
  config.locations["model.freeze"] = {"job.toml", 3, 1};

  const auto built = build(one_linear, config);

  ASSERT_FALSE(built);
  EXPECT_EQ(
      to_string(built.error()),
      "job.toml:3:1: error: no parameter matches 'heads' (did you mean 'head'?) [model.freeze]");
}

TEST(ModelKeys, ReachTheModelAndUnknownOnesAreRefused) {
  Config config;
  config.model.keys["width"] = {std::int64_t{12}, {"job.toml", 2, 1}};
  config.model.keys["widht"] = {std::int64_t{12}, {"job.toml", 3, 1}};
  std::int64_t width = 0;
  double rate = 0;

  const auto built = build(
      [&](Build& b, const at::Tensor& h) {
        width = b.integer("width", 5);
        rate = b.number("rate", 0.5);
        return h;
      },
      config);

  EXPECT_EQ(width, 12);
  EXPECT_EQ(rate, 0.5);
  expect_refusal(built, "model.unknown_key", "unknown key 'widht'");
  EXPECT_EQ(built.error()[0].where, (Location{"job.toml", 3, 1}));
}

TEST(ModelKeys, OfAnotherTypeAreRefused) {
  Config config;
  config.model.keys["width"] = {std::string("wide"), {"job.toml", 2, 1}};

  expect_refusal(build(
                     [](Build& b, const at::Tensor& h) {
                       b.integer("width", 5);
                       return h;
                     },
                     config),
                 "model.key_type", "[model] width: expected an integer");
}

TEST(Loss, IsZeroWithoutGradientWhereNoLabelCounts) {
  RunningModel model(value_of(build(one_linear)));

  const at::Tensor loss = model.loss({{"tokens", at::zeros({2, kSeq}, at::kLong)},
                                      {"labels", at::full({2, kSeq}, -100, at::kLong)}});
  loss.backward();

  EXPECT_EQ(loss.item<float>(), 0);
  for (const Parameter& parameter : model.graph().parameters) {
    EXPECT_EQ(model.parameter(parameter.name).grad().abs().max().item<float>(), 0)
        << parameter.name;
  }
}

}  // namespace
}  // namespace piper
