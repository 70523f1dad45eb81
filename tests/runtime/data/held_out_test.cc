#include "runtime/data/held_out.h"

#include <gtest/gtest.h>

#include <numeric>
#include <set>
#include <string>

namespace piper {
namespace {

std::int64_t whole(const std::vector<Document>& documents, const Division& division) {
  std::int64_t sum = 0;
  for (std::size_t i = 0; i < documents.size(); ++i) {
    sum += division.held_out[i] ? documents[i].tokens : 0;
  }
  return sum;
}

TEST(HeldOut, IsAShareOfTheTokensNotOfTheDocuments) {
  std::vector<Document> documents;
  for (std::uint64_t i = 0; i < 100; ++i) {
    documents.push_back({mixed_hash(std::to_string(i)), 10 + static_cast<std::int64_t>(i) * 20});
  }

  const Division division = divide(documents, 0.1, 16);

  EXPECT_EQ(division.tail, 0);
  EXPECT_GE(whole(documents, division), 10000);  // of 100000
  EXPECT_LE(whole(documents, division), 15000);
}

TEST(HeldOut, TakesDocumentsInTheOrderOfTheirHashes) {
  const std::vector<Document> documents = {{5, 100}, {1, 100}, {9, 100}, {3, 100}, {7, 100}};

  EXPECT_EQ(divide(documents, 0.4, 16).held_out,
            (std::vector<bool>{false, true, false, true, false}));
}

TEST(HeldOut, LeavesADocumentOutThatWouldPassOneAndAHalfTimesTheShare) {
  // The share is 120 of 1200: 181 is too many, 150 is not.
  const std::vector<Document> documents = {{1, 181}, {2, 150}, {3, 869}};

  const Division division = divide(documents, 0.1, 16);

  EXPECT_EQ(division.held_out, (std::vector<bool>{false, true, false}));
  EXPECT_EQ(division.tail, 0);
}

TEST(HeldOut, OfOneDocumentIsItsTail) {
  const Division division = divide({{1, 1000}}, 0.1, 10);

  EXPECT_EQ(division.held_out, std::vector<bool>{false});
  EXPECT_EQ(division.cut, 0u);
  EXPECT_EQ(division.tail, 10 * 10 + 1);  // ten whole rows, and the last label
}

// A large file and a small one: what the small one holds is far from a tenth.
TEST(HeldOut, IsMadeUpByATailOfTheLargestWhereTheWholeOnesAreTooFew) {
  const std::vector<Document> documents = {{2, 160001}, {1, 1501}};

  const Division division = divide(documents, 0.1, 16);

  EXPECT_EQ(division.held_out, (std::vector<bool>{false, true}));
  EXPECT_EQ(division.cut, 0u);
  EXPECT_EQ(whole(documents, division) + division.tail, 1009 * 16 + 1);  // of 161502
}

TEST(HeldOut, LeavesARowToTrainOn) {
  EXPECT_EQ(divide({{1, 11}}, 0.5, 10).tail, 0);  // one row in all
  EXPECT_EQ(divide({{1, 21}}, 0.5, 10).tail, 0);  // 10 would be left, and 11 are a row
  EXPECT_EQ(divide({{1, 22}}, 0.5, 10).tail, 11);
  EXPECT_EQ(divide({{1, 22}, {2, 22}}, 1, 10).held_out, (std::vector<bool>{true, false}));
}

TEST(HeldOut, OfNothingIsNothing) {
  EXPECT_EQ(divide({{1, 1000}, {2, 1000}}, 0, 10).tail, 0);
  EXPECT_TRUE(divide({}, 0.1, 10).held_out.empty());
}

TEST(HeldOut, RowsAreAShareOfAllAndNeitherNoneNorAll) {
  std::vector<std::uint64_t> hashes(1000);
  std::iota(hashes.begin(), hashes.end(), 0);
  for (std::uint64_t& hash : hashes) {
    hash = mixed_hash(std::to_string(hash));
  }

  EXPECT_EQ(divide_rows(hashes, 0.1).size(), 100u);
  EXPECT_EQ(divide_rows({4, 2}, 0.01), std::vector<std::uint32_t>{1});
  EXPECT_EQ(divide_rows({4, 2}, 0.99), std::vector<std::uint32_t>{1});
  EXPECT_TRUE(divide_rows({4}, 0.5).empty());
  EXPECT_TRUE(divide_rows(hashes, 0).empty());
}

TEST(HeldOut, HashesOfTextsThatDifferLittleAreFarApart) {
  std::set<std::uint64_t> seen;
  std::uint64_t high = 0;
  for (int i = 0; i < 1000; ++i) {
    const std::uint64_t hash = mixed_hash("a line of some length, number " + std::to_string(i));
    seen.insert(hash);
    high += hash >> 63;
  }
  EXPECT_EQ(seen.size(), 1000u);
  EXPECT_NEAR(static_cast<double>(high), 500, 80);
  // Guards against a change of the hash, which would train on what was held out.
  EXPECT_EQ(mixed_hash("piper"), mixed_hash(std::string("piper")));
}

}  // namespace
}  // namespace piper
