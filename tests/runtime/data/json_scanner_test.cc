#include "runtime/data/json_scanner.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <random>

namespace piper {
namespace {

// "" where `text` is one JSON value, else the place (from 0) and the reason.
std::string fault_of(std::string_view text) {
  JsonScanner in(text);
  if (in.skip() && (in.at_end() || in.unexpected("the end"))) {
    return "";
  }
  return std::to_string(in.failed_at()) + ": " + in.reason();
}

TEST(JsonScanner, TakesWhatJsonIs) {
  for (const char* text :
       {"{}", "[]", " [ 1 , -2.5e+3, 0, true, false, null ] ", R"({"a": {"b": [[], {}]}, "": ""})",
        R"("\" \\ \/ \b \f \n \r \t \u00e9 é 😀")", "12345678901234567890123"}) {
    EXPECT_EQ(fault_of(text), "") << text;
  }
}

TEST(JsonScanner, SaysWhereAndWhyNot) {
  EXPECT_EQ(fault_of("[1, 2"), "5: expected ',' or ']', got the end of the line");
  EXPECT_EQ(fault_of("[1 2]"), "3: expected ',' or ']', got '2'");
  EXPECT_EQ(fault_of("[1,]"), "3: expected a value, got ']'");
  EXPECT_EQ(fault_of("{\"a\" 1}"), "5: expected ':' after the name of a field, got '1'");
  EXPECT_EQ(fault_of("{a: 1}"), "1: expected a string, got 'a'");
  EXPECT_EQ(fault_of("{\"a\": 1,}"), "8: expected a string, got '}'");
  EXPECT_EQ(fault_of("[01]"), "1: expected a number without leading zeros, got '01'");
  EXPECT_EQ(fault_of("[1.]"), "3: expected a digit after '.', got ']'");
  EXPECT_EQ(fault_of("[-]"), "2: expected a digit after '-', got ']'");
  EXPECT_EQ(fault_of("[1e+]"), "4: expected a digit of an exponent, got ']'");
  EXPECT_EQ(fault_of("[NaN]"), "1: expected a value, got 'N'");
  EXPECT_EQ(fault_of("[nul]"), "1: expected a value, got 'n'");
  EXPECT_EQ(fault_of("\"abc"), "0: expected the end of a string, got the end of the line");
  EXPECT_EQ(fault_of("[\"\\x\"]"), "2: expected an escape such as \\n or \\u0041, got '\\x'");
  EXPECT_EQ(fault_of("[\"\\u12g4\"]"), "2: expected four hexadecimal digits after \\u, got '12g4'");
  EXPECT_EQ(fault_of("[\"a\tb\"]"),
            "3: expected control characters in a string to be escaped, got '\\x09'");
  EXPECT_EQ(fault_of("[\"a\xff\"]"), "3: expected UTF-8 in a string, got the byte '\\xff'");
  EXPECT_EQ(fault_of("1 2"), "2: expected the end, got '2'");
  EXPECT_EQ(fault_of(""), "0: expected a value, got the end of the line");
}

TEST(JsonScanner, TakesHalfOfASurrogatePairInAString) {
  EXPECT_EQ(fault_of(R"({"text": "\ud800", "more": "\udc00 \ud83d\ude00"})"), "");
}

TEST(JsonScanner, GoesAsDeepAsItMustWithoutACall) {
  const std::string deep = std::string(2000000, '[') + std::string(2000000, ']');
  EXPECT_EQ(fault_of(deep), "");
}

// Whatever a byte turns into, the verdict is that of another parser.
TEST(JsonScanner, AgreesWithAnotherParserOnChangedTexts) {
  const std::string text =
      R"({"tokens": [1, -20, 300], "x": [0.5, 1e3, -2.5E-3], "s": "a\n\u00e9 é", "o": {"k": )"
      R"([true, false, null, {}, []]}})";
  const std::string letters = "{}[],:\"\\u0123456789.eE+-tfn rale\xc3\xa9\xff\x01 ";
  std::mt19937 random(7);
  int right = 0;
  for (int i = 0; i < 100000; ++i) {
    std::string changed = text;
    for (std::uint32_t n = random() % 3; n > 0; --n) {
      const std::size_t at = random() % changed.size();
      const char letter = letters[random() % letters.size()];
      switch (random() % 3) {
        case 0:
          changed[at] = letter;
          break;
        case 1:
          changed.erase(at, 1);
          break;
        default:
          changed.insert(at, 1, letter);
      }
    }
    const bool expected = nlohmann::json::accept(changed);
    ASSERT_EQ(fault_of(changed).empty(), expected) << changed << '\n' << fault_of(changed);
    right += expected ? 1 : 0;
  }
  EXPECT_GT(right, 10000);
  EXPECT_LT(right, 90000);
}

TEST(JsonScanner, ReadsIntegersUpTo2To53AndTellsOthersFromThem) {
  const auto read = [](std::string_view text) {
    JsonScanner in(text);
    JsonScanner::Number number;
    EXPECT_TRUE(in.number(number));
    return number;
  };

  EXPECT_EQ(read("9007199254740992").value, 9007199254740992);
  EXPECT_TRUE(read("-9007199254740992").fits);
  EXPECT_EQ(read("-17").value, -17);
  EXPECT_FALSE(read("9007199254740993").fits);
  EXPECT_FALSE(read("36893488147419103232").fits);  // 2^65: wraps to 0
  EXPECT_TRUE(read("9007199254740993").integer);
  EXPECT_FALSE(read("1.0").integer);
  EXPECT_EQ(read("1e5").text, "1e5");
}

TEST(JsonScanner, WhatIsPrintedHasNoControlCharacters) {
  EXPECT_EQ(printable("\x1b[2J\x07 é \x7f\xff\xc2\x9b"), "\\x1b[2J\\x07 é \\x7f\\xff\\xc2\\x9b");
  EXPECT_EQ(printable("abcdef", 3), "abc...");
  EXPECT_EQ(printable("abc", 3), "abc");
  EXPECT_EQ(printable(std::string_view("\0", 1)), "\\x00");
}

}  // namespace
}  // namespace piper
