// Model graphs as text, and what is refused of them.
#include <gtest/gtest.h>

#include <string>

#include "core/ir/model_graph.h"
#include "tests/support/header_sample.h"
#include "tests/support/toy_model.h"

namespace piper {
namespace {

using test::toy_model;

const char* const kText =
    "piper-model-graph 1\n"
    "name \"two \\\"regions\\\"\"\n"
    "tag 0 layer\n"
    "parameter 0 \"w\" float32 [4, 4] at \"m.cc\":3:4\n"
    "parameter 1 \"b\" bfloat16 [4] frozen\n"
    "value 0 \"tokens\" int64 [r, 4] input\n"
    "value 1 \"labels\" int64 [r, 4] input\n"
    "value 2 float32 [3r+2, 4] from 0\n"
    "value 3 float32 [] from 1\n"
    "region 0 {layer=0} (%0) -> (%2) parameters (0, 1) flops 3r saved 16r+2 transient 0 pending "
    "32r+2 keeps (%0) awaits (%0, %2) gradients (%2) peaks evaluate (9r) forward (16r+2, 32) "
    "backward () input (r) weight (8) rereads (0) workspace (3r+4 from 1, 16 from 4) "
    "at \"m.cc\":5\n"
    "region 1 {} (%2, %1) -> (%3) parameters () flops 0 saved 0 transient 0\n"
    "loss %3\n"
    "labels %1\n";

Expected<ModelGraph> parsed(const std::string& text) {
  return parse_model_graph(text, "m.graph");
}

// The text with one part replaced; every test names a part that is there once.
std::string with(const std::string& part, const std::string& by) {
  std::string text = kText;
  const std::size_t at = text.find(part);
  PIPER_CHECK(at != std::string::npos, "the test replaces what is not there");
  return text.replace(at, part.size(), by);
}

std::string replaced(std::string text, const std::string& part, const std::string& by) {
  return text.replace(text.find(part), part.size(), by);
}

std::string refusal(const std::string& text) {
  const Expected<ModelGraph> model = parsed(text);
  return model ? "accepted" : to_string(model.error());
}

TEST(ModelGraphText, IsReadBackAsItWasPrinted) {
  const Expected<ModelGraph> model = parsed(kText);

  ASSERT_TRUE(model) << to_string(model.error());
  EXPECT_EQ(print(*model), kText);
}

TEST(ModelGraphText, KeepsEverything) {
  for (const bool tied : {false, true}) {
    const ModelGraph model = toy_model({.layers = 3, .tied = tied, .frozen_embedding = tied});

    const Expected<ModelGraph> read = parsed(print(model));

    ASSERT_TRUE(read) << to_string(read.error());
    EXPECT_TRUE(*read == model);
  }
}

TEST(ModelGraphText, KeepsNamesThatNeedEscapes) {
  ModelGraph model = toy_model();
  model.name = "a\"b\\c\nd\te\x01 \xc3\xa9";
  model.parameters[0].name = "weight with \"quotes\"";
  model.parameters[0].where = {"a b.cc", 0, 0};
  model.regions[0].where = {"", 3, 0};

  const Expected<ModelGraph> read = parsed(print(model));

  ASSERT_TRUE(read) << to_string(read.error());
  EXPECT_TRUE(*read == model);
}

TEST(ModelGraphText, SaysWhereItIsWrong) {
  EXPECT_EQ(
      refusal(""),
      "m.graph:1:1: error: expected 'piper-model-graph', got the end of the text [ir.syntax]");
  EXPECT_EQ(refusal(with("graph 1", "graph 2")),
            "m.graph:1:19: error: expected version 1 of the text of a model graph, got 2 "
            "[ir.version]");
  EXPECT_EQ(refusal(with("float32 [4, 4]", "flot32 [4, 4]")),
            "m.graph:4:17: error: unknown dtype 'flot32' (did you mean 'float32'?) [ir.syntax]");
  EXPECT_EQ(refusal(with("[r, 4] input\nvalue 1", "[r, 4 input\nvalue 1")),
            "m.graph:6:30: error: expected ']', got 'input' [ir.syntax]");
  EXPECT_EQ(refusal(with("value 1", "value 4")),
            "m.graph:7:7: error: expected value 1, got 4 [ir.syntax]");
  EXPECT_EQ(refusal(with("{layer=0}", "{layr=0}")),
            "m.graph:10:11: error: unknown tag 'layr' (did you mean 'layer'?) [ir.tag]");
  EXPECT_EQ(refusal(with("{layer=0}", "{layer=4294967295}")),
            "m.graph:10:17: error: expected a number from 0 to 4294967294, got 4294967295 "
            "[ir.syntax]");
  EXPECT_EQ(refusal(with("{layer=0}", "{layer=99999999999999999999}")),
            "m.graph:10:17: error: expected a number that fits in 64 bits, got "
            "'99999999999999999999} (%' [ir.syntax]");
  EXPECT_EQ(refusal(with("tag 0 layer\n", "tag 0 layer\n\n")),
            "m.graph:4:1: error: expected a line that starts with tag, dimension, parameter, "
            "value, region, loss or labels, in that order, got the end of the line [ir.syntax]");
  EXPECT_EQ(refusal(with("\"w\"", "\"\xc3\xa9\xc3\xa9\" x")),
            "m.graph:4:18: error: unknown dtype 'x' (known: float32, float64, bfloat16, int64, "
            "bool) [ir.syntax]");
}

TEST(ModelGraphText, AcceptsOnlyWhatIsPrinted) {
  EXPECT_EQ(
      refusal(with("[r, 4] input\nvalue 1", "[1r, 4] input\nvalue 1")),
      "m.graph:6:25: error: expected 'r, 4] input', got '1r, 4] input': only the printed form "
      "is read back [ir.form]");
  EXPECT_EQ(refusal(with("labels %1\n", "labels %01\n")),
            "m.graph:13:9: error: expected '1', got '01': only the printed form is read back "
            "[ir.form]");
  EXPECT_EQ(refusal(std::string(kText) + "\n"),
            "m.graph:14:1: error: expected a line that starts with tag, dimension, parameter, "
            "value, region, loss or labels, in that order, got the end of the line [ir.syntax]");
}

TEST(ModelGraph, IsRefusedWhereItBreaksARule) {
  const std::pair<std::string, std::string> cases[] = {
      {with("parameter 1 \"b\"", "parameter 1 \"w\""),
       "m.graph:5:1: error: parameter 'w' is declared twice: as parameter 0 and as parameter 1 "
       "[ir.duplicate_name]"},
      {with("parameter 1 \"b\" bfloat16", "parameter 1 \"b\" int64"),
       "m.graph:5:1: error: parameter 'b': expected a floating-point dtype, got int64 [ir.dtype]"},
      {with("[4] frozen", "[-4] frozen"),
       "m.graph:5:1: error: parameter 'b': expected dimensions of at least 0, got -4 [ir.shape]"},
      {with("[4] frozen", "[99999999, 99999999, 99999999] frozen"),
       "m.graph:5:1: error: parameter 'b' is larger than 1 PiB [ir.size]"},
      {with("\"labels\" int64 [r, 4]", "\"labels\" int64 [4, r]"),
       "m.graph:7:1: error: value 1 ('labels'): expected the rows as the first dimension of an "
       "input of the model [ir.shape]"},
      {with("\"labels\" int64 [r, 4]", "\"labels\" float32 [r, 4]"),
       "m.graph:1:1: error: the labels are value 1: expected an int64 input of the model "
       "[ir.labels]"},
      {with("[3r+2, 4]", "[3r+2, 4r]"),
       "m.graph:8:1: error: value 2: expected at most one dimension that depends on the rows, got "
       "two [ir.shape]"},
      {with("float32 [] from 1", "float32 [4] from 1"),
       "m.graph:1:1: error: the loss is value 3: expected a floating-point scalar that a region "
       "computes [ir.loss]"},
      {with("loss %3\n", ""), "m.graph:1:1: error: the model has no loss [ir.loss]"},
      {with("labels %1\n", ""),
       "m.graph:1:1: error: the model has no labels: expected an input whose entries other than "
       "-100 are counted [ir.labels]"},
      {with("(%0) -> (%2)", "(%3) -> (%2)"),
       "m.graph:10:1: error: region 0 reads value 3 before a region has produced it [ir.order]\n"
       "m.graph:10:1: error: region 0 keeps value 0, which is not its own [ir.kept]\n"
       "m.graph:10:1: error: region 0 awaits value 0, which is not its own [ir.kept]"},
      {with("(%0) -> (%2)", "(%0) -> (%2, %2)"),
       "m.graph:10:1: error: region 0 returns value 2 twice [ir.producer]"},
      {with("[] from 1", "[] from 7"),
       "m.graph:9:1: error: value 3: expected a producer below 2 (the number of regions), got 7 "
       "[ir.range]\n"
       "m.graph:11:1: error: region 1 returns value 3, whose producer is region 7 [ir.producer]"},
      {with("parameters (0, 1)", "parameters (0, 0)"),
       "m.graph:10:1: error: region 0 lists parameter 'w' twice [ir.duplicate]"},
      {with("parameters (0, 1)", "parameters (0, 5)"),
       "m.graph:10:1: error: region 0: no parameter 5 [ir.range]"},
      {with("{layer=0}", "{layer=0, layer=1}"),
       "m.graph:10:1: error: region 0 has tag layer twice [ir.tag]"},
      {with("keeps (%0)", "keeps (%1)"),
       "m.graph:10:1: error: region 0 keeps value 1, which is not its own [ir.kept]"},
      {with("gradients (%2)", "gradients (%0)"),
       "m.graph:10:1: error: region 0 gradients value 0, which is not its own [ir.kept]"},
      {with("awaits (%0, %2)", "awaits (%2, %0)"),
       "m.graph:10:1: error: region 0 awaits: expected values in ascending order [ir.kept]"},
      {with("(16r+2, 32)", "(16r+2, 1)"),
       "m.graph:10:1: error: region 0: expected no size of a peak to be covered by another, and "
       "those that grow fastest first [ir.size]"},
      {with("weight (8)", "weight (-8)"),
       "m.graph:10:1: error: region 0: expected peaks from 0 to 1 PiB a row [ir.size]"},
      {with("rereads (0)", "rereads (2)"),
       "m.graph:10:1: error: region 0 rereads parameter 2, which is not its own [ir.kept]"},
      {with("rereads (0)", "rereads (1, 0)"),
       "m.graph:10:1: error: region 0 rereads: expected parameters in ascending order [ir.kept]"},
      {with("3r+4 from 1", "-3r+4 from 1"),
       "m.graph:10:1: error: region 0: expected a workspace from 0 to 1 PiB a row, by ascending "
       "rows from 1 [ir.size]"},
      {with("3r+4 from 1", "3r+4 from 4"),
       "m.graph:10:1: error: region 0: expected a workspace from 0 to 1 PiB a row, by ascending "
       "rows from 1 [ir.size]"},
  };
  for (const auto& [text, message] : cases) {
    EXPECT_EQ(refusal(text), message);
  }
}

TEST(ModelGraph, PrintsAsTheSampleBesideThePrinter) {
  const std::string sample =
      test::header_sample("core/ir/model_graph_text.cc", "piper-model-graph 1");

  const Expected<ModelGraph> model = parsed(sample);

  ASSERT_TRUE(model) << to_string(model.error());
  EXPECT_EQ(print(*model), sample);
}

TEST(ModelGraph, PointsAtTheModelsSourceWhereItDidNotComeFromText) {
  ModelGraph model = toy_model();
  model.regions[1].inputs = {model.loss};

  const Status status = verify(model);

  ASSERT_FALSE(status);
  EXPECT_EQ(to_string(status.error()),
            "toy.cc:11: error: region 1 reads value 7 before a region has produced it [ir.order]");
}

// kText with a value whose first dimension is known at run time only.
std::string routed(const std::string& dimension = "dimension 0 routed at most 3r+2\n",
                   const std::string& shape = "[routed, 4] from 0") {
  return replaced(with("tag 0 layer\n", "tag 0 layer\n" + dimension), "[3r+2, 4] from 0", shape);
}

TEST(RunTimeDimension, IsReadBackAsItWasPrinted) {
  const Expected<ModelGraph> model = parsed(routed());

  ASSERT_TRUE(model) << to_string(model.error());
  EXPECT_EQ(print(*model), routed());
  EXPECT_EQ(model->dimensions[0].maximum, (Affine{3, 2}));
  EXPECT_EQ(model->values[2].run_time[0], DimensionId{0});
  EXPECT_FALSE(valid(model->values[2].run_time[1]));
}

TEST(RunTimeDimension, CountsAtItsMaximumForCapacity) {
  const Expected<ModelGraph> model = parsed(routed());

  ASSERT_TRUE(model);
  EXPECT_EQ(model->values[2].bytes(), (Affine{48, 32}));
}

TEST(RunTimeDimension, MayStandAnywhereInAShape) {
  const std::string text =
      routed("dimension 0 a at most 9\ndimension 1 rows at most r\n", "[7, a, rows, 2] from 0");
  const Expected<ModelGraph> model = parsed(text);

  ASSERT_TRUE(model) << to_string(model.error());
  EXPECT_EQ(print(*model), text);
  EXPECT_EQ(model->values[2].bytes(), (Affine{7 * 9 * 2 * 4, 0}));
}

TEST(RunTimeDimension, IsRefusedWhereItBreaksARule) {
  const std::pair<std::string, std::string> cases[] = {
      {routed("dimension 0 r at most 3r+2\n", "[r, 4] from 0"),
       "m.graph:4:1: error: expected letters, digits and '_' in the name of a run-time dimension, "
       "and another name than the rows' r, got 'r' [ir.name]"},
      {routed("dimension 0 routed at most 3r+2\ndimension 1 routed at most 4\n"),
       "m.graph:5:1: error: two run-time dimensions are called 'routed' [ir.duplicate_name]"},
      {routed("dimension 0 routed at most -2\n"),
       "m.graph:4:1: error: run-time dimension 'routed': expected a maximum of at least 0, got a "
       "negative one [ir.shape]"},
      {routed("dimension 0 routed at most 3r+2\n", "[routed, 4r] from 0"),
       "m.graph:9:1: error: value 2: expected at most one dimension that depends on the rows, got "
       "two [ir.shape]"},
      {routed("dimension 0 routed at least 2\n"),
       "m.graph:4:23: error: expected 'most', got 'least 2' [ir.syntax]"},
      {routed("dimension 0 routed at most 3r+2\n", "[routd, 4] from 0"),
       "m.graph:9:18: error: unknown run-time dimension 'routd' (did you mean 'routed'?) "
       "[ir.dimension]"},
  };
  for (const auto& [text, message] : cases) {
    const std::string got = refusal(text);
    EXPECT_TRUE(got.starts_with(message)) << got << "\nexpected " << message;
  }
  EXPECT_NE(refusal(replaced(routed("dimension 0 routed at most r\n", "[routed, 4] from 0"),
                             "\"labels\" int64 [r, 4]", "\"labels\" int64 [routed, 4]"))
                .find("value 1 ('labels'): expected known dimensions of an input of the model, got "
                      "'routed', which is known at run time only [ir.shape]"),
            std::string::npos);
}

TEST(RunTimeDimension, OfAValueMustBeItsSize) {
  Expected<ModelGraph> model = parsed(routed());
  ASSERT_TRUE(model);
  model->values[2].shape[0] = {3, 1};
  ModelGraph short_list = *parsed(routed());
  short_list.values[2].run_time.pop_back();
  ModelGraph unknown = *parsed(routed());
  unknown.values[2].run_time[0] = DimensionId{4};

  EXPECT_EQ(to_string(verify(*model).error()),
            "error: value 2: expected the maximum of 'routed' as its size [ir.shape]");
  EXPECT_EQ(to_string(verify(short_list).error()),
            "error: value 2: expected run-time dimensions for 2 dimensions, got 1 [ir.shape]");
  EXPECT_EQ(to_string(verify(unknown).error()),
            "error: value 2: no run-time dimension 4 [ir.range]");
}

TEST(Value, HasBytesThatAreAffineInTheRows) {
  Value value;
  value.dtype = DType::bfloat16;
  value.shape = {{0, 3}, {2, 1}, {0, 5}};

  EXPECT_EQ(value.bytes(), (Affine{60, 30}));
  EXPECT_EQ(value.bytes().at(4), 270);
}

TEST(Value, OfNoDimensionIsOneElement) {
  Value value;
  value.dtype = DType::float64;

  EXPECT_EQ(value.bytes(), (Affine{0, 8}));
}

}  // namespace
}  // namespace piper
