// The specification of accesses is whole, and docs/plan.md shows it. That lowering says the same is
// seen by the verifier, in every plan that a test makes; here it is broken on purpose.
#include "core/plan/accesses.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace piper {
namespace {

constexpr const char* kBegin = "<!-- Accesses, as core/plan/accesses.h prints them. -->\n";
constexpr const char* kEnd = "<!-- End of accesses. -->\n";

std::string contents(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

// PIPER_UPDATE_GOLDEN=1 writes the table into the page.
TEST(Accesses, StandInTheDocumentAsTheProgramPrintsThem) {
  const auto page = std::filesystem::path(PIPER_SOURCE_DIR) / "docs" / "plan.md";
  const std::string text = contents(page);
  const std::size_t mark = text.find(kBegin), end = text.find(kEnd);
  ASSERT_TRUE(mark != std::string::npos && end != std::string::npos && mark < end) << page;
  const std::size_t begin = mark + std::string(kBegin).size();

  const char* const update = std::getenv("PIPER_UPDATE_GOLDEN");
  if (update != nullptr && std::string(update) == "1") {
    std::ofstream(page, std::ios::binary) << text.substr(0, begin) << '\n'
                                          << access_table() << '\n'
                                          << text.substr(end);
    return;
  }

  EXPECT_EQ(text.substr(begin, end - begin), '\n' + access_table() + '\n')
      << "PIPER_UPDATE_GOLDEN=1 writes it";
}

TEST(Accesses, AreGivenOfEveryOperationThatLoweringMakes) {
  for (const OpTraits& of : kOpTraits) {
    const bool made = of.op != Op::statistic && of.op != Op::state_update;

    EXPECT_EQ(accesses_of(of.op).empty(), !made) << of.name;
  }
}

// What moves data reads it where it comes from, and writes it where it goes.
TEST(Accesses, AgreeWithTheDirectionOfAnOperation) {
  for (const OpTraits& of : kOpTraits) {
    const auto rules = accesses_of(of.op);
    const auto has = [&](auto... accesses) {
      return std::any_of(rules.begin(), rules.end(), [&](const AccessRule& rule) {
        return ((rule.access == accesses) || ...);
      });
    };
    if (of.direction == Direction::out || of.direction == Direction::both) {
      EXPECT_EQ(has(Access::reads, Access::changes), !rules.empty()) << of.name;
    }
    if (of.direction == Direction::in || of.direction == Direction::both) {
      EXPECT_EQ(has(Access::writes, Access::changes), !rules.empty()) << of.name;
    }
    if (of.direction == Direction::out) {
      EXPECT_FALSE(has(Access::writes, Access::changes)) << of.name;
    }
    if (of.direction == Direction::in) {
      EXPECT_FALSE(has(Access::reads, Access::changes)) << of.name;
    }
  }
}

TEST(Accesses, KeepOnlyWhatTheForwardOfTheSameChunkTouches) {
  for (const AccessRule& rule : kAccesses) {
    if (rule.access == Access::keeps) {
      const What kept = rule.what == What::outputs_kept ? What::outputs : rule.what;

      EXPECT_TRUE(touches(Op::forward, kept)) << to_string(rule.op);
    }
  }
}

}  // namespace
}  // namespace piper
