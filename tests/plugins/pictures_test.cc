// The pictures in docs/schedules.md are what the plugins plan. A text block after a line
//     <!-- picture: zerobubble schedule=zbv pp=3 microbatches=5 -->
// is compared; with PIPER_UPDATE_GOLDEN=1 it is written.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <sstream>

#include "tests/support/plugin_job.h"
#include "tests/support/toy_model.h"

namespace piper {
namespace {

std::string draw(const std::string& words) {
  std::istringstream text(words);
  test::PluginJob job;
  std::string options, word;
  text >> job.plugin;
  while (text >> word) {
    if (word.starts_with("pp=")) {
      job.pp = static_cast<std::uint32_t>(std::stoul(word.substr(3)));
    } else if (word.starts_with("microbatches=")) {
      job.microbatches = static_cast<std::uint32_t>(std::stoul(word.substr(13)));
    } else {
      options += word + " ";
    }
  }
  job.options = test::options_of(options);
  const auto proposals = test::propose(job, test::toy_model({.layers = 16}));
  if (!proposals) {
    return to_string(proposals.error());
  }
  std::uint32_t stages = 0;
  for (const Directive& directive : proposals->at(0).directives) {
    stages += std::holds_alternative<TagDirective>(directive.what) ? 1 : 0;
  }
  return test::picture(test::rows_of(proposals->at(0)), stages, job.microbatches);
}

TEST(SchedulesPage, ShowsWhatThePluginsPlan) {
  const std::string file = std::string(PIPER_SOURCE_DIR) + "/docs/schedules.md";
  const std::string mark = "<!-- picture: ", fence = "```text\n", end = "```\n";
  std::ifstream stream(file);
  std::string page{std::istreambuf_iterator<char>(stream), {}};
  int pictures = 0;
  for (std::size_t at = page.find(mark); at != std::string::npos; at = page.find(mark, at + 1)) {
    const std::size_t words = at + mark.size();
    const std::string job = page.substr(words, page.find(" -->", words) - words);
    const std::size_t begin = page.find(fence, words) + fence.size();
    const std::size_t length = page.find(end, begin) - begin;
    const std::string drawn = draw(job);
    ++pictures;
    if (std::getenv("PIPER_UPDATE_GOLDEN") != nullptr) {
      page.replace(begin, length, drawn);
    } else {
      EXPECT_EQ(page.substr(begin, length), drawn) << job;
    }
  }
  EXPECT_GE(pictures, 12);
  if (std::getenv("PIPER_UPDATE_GOLDEN") != nullptr) {
    std::ofstream(file) << page;
  }
}

}  // namespace
}  // namespace piper
