// Which bytes are UTF-8 (RFC 3629).
#include "core/base/utf8.h"

#include <gtest/gtest.h>

#include <string_view>

namespace piper {
namespace {

TEST(Utf8, HasSequencesOfOneToFourBytes) {
  for (const std::string_view text :
       {"", "a\n", "\xC2\x80", "\xDF\xBF", "\xE0\xA0\x80", "\xED\x9F\xBF", "\xEF\xBF\xBF",
        "\xF0\x90\x80\x80", "\xF4\x8F\xBF\xBF"}) {
    EXPECT_TRUE(is_utf8(text)) << testing::PrintToString(text);
  }
  EXPECT_EQ(sequence_length("\xE2\x82\xAC and more"), 3U);
}

TEST(Utf8, HasNoOverlongFormsSurrogatesOrTooLargeOnes) {
  for (const std::string_view text :
       {"\x80", "\xC0\x80", "\xC1\xBF", "\xE0\x9F\xBF", "\xED\xA0\x80", "\xF0\x8F\xBF\xBF",
        "\xF4\x90\x80\x80", "\xF5\x80\x80\x80", "\xC3", "\xE2\x82", "\xE2\x28\xA1"}) {
    EXPECT_FALSE(is_utf8(text)) << testing::PrintToString(text);
  }
}

TEST(Utf8, EndsAtTheFirstByteThatIsNone) {
  EXPECT_EQ(utf8_prefix("a\xC3\xA4\xFF!"), 3U);
}

}  // namespace
}  // namespace piper
