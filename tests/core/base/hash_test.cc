// Hashes and random bits that other programs and other versions must agree on.
#include "core/base/hash.h"

#include <gtest/gtest.h>

#include "core/base/random.h"

namespace piper {
namespace {

TEST(Hash, IsThePublishedOneOfKnownTexts) {
  EXPECT_EQ(fnv1a(""), 0xcbf29ce484222325U);
  EXPECT_EQ(fnv1a("a"), 0xaf63dc4c8601ec8cU);
  EXPECT_EQ(fnv1a("foobar"), 0x85944171f73967e8U);
}

TEST(Hash, OfATextIsThatOfItsPieces) {
  Fnv1a state;
  state.add("foo");
  state.add("");
  state.add("bar");

  EXPECT_EQ(state.value(), fnv1a("foobar"));
}

TEST(RandomBits, AreThePublishedSequenceOfSplitmix64) {
  EXPECT_EQ(random_bits(1234567, 0), 6457827717110365317U);
  EXPECT_EQ(random_bits(1234567, 1), 3203168211198807973U);
  EXPECT_EQ(random_bits(1234567, 2), 9817491932198370423U);
}

}  // namespace
}  // namespace piper
