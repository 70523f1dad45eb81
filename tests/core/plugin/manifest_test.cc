#include "core/plugin/manifest.h"

#include <gtest/gtest.h>

namespace piper {
namespace {

const std::string kHead = R"(id = "zero"
version = "1.2.3"
abi = "0.1"
summary = "a test"
)";

std::string errors(const std::string& text) {
  const auto manifest = parse_manifest(text, "zero.toml");
  return manifest ? "" : to_string(manifest.error());
}

TEST(Manifest, IsReadWhole) {
  const auto manifest = *parse_manifest(kHead + R"(
provides = ["sharding"]
requires = ["pipeline >= 1.2", { id = "experts", reason = "it shards them" }]
conflicts = ["fsdp"]
axes = ["dp"]
[[option]]
name = "stage"
type = "i64"
default = 1
min = 0
max = 3
unit = "levels"
help = "how much"
)",
                                        "zero.toml");

  EXPECT_EQ(manifest.id, "zero");
  EXPECT_EQ(manifest.version, "1.2.3");
  EXPECT_EQ(manifest.abi_major, 0U);
  EXPECT_EQ(manifest.abi_minor, 1U);
  EXPECT_EQ(to_string(manifest.requirements[0]), "pipeline >= 1.2");
  EXPECT_EQ(manifest.requirements[1].reason, "it shards them");
  EXPECT_EQ(manifest.provides[0].id, "sharding");
  EXPECT_EQ(manifest.conflicts[0].id, "fsdp");
  EXPECT_EQ(manifest.axes, (std::vector<std::string>{"dp"}));
  ASSERT_EQ(manifest.options.size(), 1U);
  EXPECT_EQ(manifest.options[0].unit, "levels");
}

TEST(Manifest, ComparesVersionsAsNumbers) {
  const auto wanted = [](const char* text) {
    return parse_manifest(kHead + "requires = [\"x " + text + "\"]", "zero.toml")->requirements[0];
  };

  EXPECT_TRUE(accepts(wanted(">= 1.9"), "1.10.0"));
  EXPECT_FALSE(accepts(wanted("> 1.10"), "1.10.0"));
  EXPECT_TRUE(accepts(wanted("< 2"), "1.10.0"));
  EXPECT_TRUE(accepts(wanted("== 1.10"), "1.10.0"));
}

TEST(Manifest, RefusesAWrongOne) {
  const std::string enumeration =
      "[[option]]\nname = \"a\"\ntype = \"enum\"\nvalues = [\"one\", \"two\"]\nhelp = \"x\"\n";
  const std::pair<std::string, const char*> cases[] = {
      {"", "manifest.missing_key"},
      {"id = ", "manifest.syntax"},
      {std::string(40000, '#'), "manifest.too_long"},
      {kHead + "surprise = 1", "manifest.unknown_key"},
      {kHead + "axes = 3", "manifest.type"},
      {kHead + "requires = [\"x ~ 1\"]", "manifest.capability"},
      {kHead + "option = 3", "manifest.type"},
      {kHead + "[[option]]\nname = \"Stage\"\ntype = \"i64\"\nhelp = \"x\"", "manifest.name"},
      {kHead + "[[option]]\nname = \"plugin\"\ntype = \"i64\"\nhelp = \"x\"", "manifest.name"},
      {kHead + "[[option]]\nname = \"a\"\ntype = \"int\"\nhelp = \"x\"", "manifest.type"},
      {kHead + "[[option]]\nname = \"a\"\ntype = \"i64\"", "manifest.missing_key"},
      {kHead + "[[option]]\nname = \"a\"\ntype = \"enum\"\nhelp = \"x\"", "manifest.values"},
      {kHead + enumeration + "spellings = 1", "manifest.type"},
      {kHead + enumeration + "spellings = { other = \"three\" }", "manifest.values"},
      {kHead + enumeration + "spellings = { O_ne = \"two\" }", "manifest.values"},
      {kHead +
           "[[option]]\nname = \"a\"\ntype = \"i64\"\nsaves_memory = true\nmin = 0\nhelp = \"x\"",
       "manifest.values"},
      {kHead + "[[option]]\nname = \"a\"\ntype = \"i64\"\nsaves_memory = 1\nhelp = \"x\"",
       "manifest.type"},
      {kHead + "[[option]]\nname = \"a\"\ntype = \"str\"\nmin = 1\nhelp = \"x\"", "manifest.bound"},
      {kHead + "[[option]]\nname = \"a\"\ntype = \"i64\"\nmin = 1\ndefault = 0\nhelp = \"x\"",
       "manifest.default"},
  };
  for (const auto& [text, code] : cases) {
    EXPECT_NE(errors(text).find("[" + std::string(code) + "]"), std::string::npos)
        << text.substr(0, 200) << "\n"
        << errors(text);
  }
}

TEST(Manifest, PointsAtTheMistake) {
  EXPECT_EQ(errors(kHead +
                   "[[option]]\nname = \"a\"\ntype = \"i64\"\nmax = 3\ndefault = 4\nhelp = \"x\""),
            "zero.toml:9:11: error: default of option 'a': expected an integer of at most 3, got 4 "
            "[manifest.default]");
}

}  // namespace
}  // namespace piper
