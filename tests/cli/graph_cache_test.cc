#include "core/cli/graph_cache.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

namespace piper {
namespace {

namespace fs = std::filesystem;

// x -> loss, with one parameter.
ModelGraph tiny_model() {
  ModelGraph model;
  model.name = "tiny";
  model.parameters = {{"w", DType::float32, {3, 2}, false, {}}};
  model.values = {{"x", DType::int64, {{1, 0}, {0, 4}}, none<RegionId>()},
                  {"", DType::float32, {}, RegionId{0}}};
  Region region;
  region.parameters = {ParameterId{0}};
  region.inputs = {ValueId{0}};
  region.outputs = {ValueId{1}};
  model.regions = {region};
  model.loss = ValueId{1};
  model.labels = ValueId{0};
  return model;
}

class Cache : public ::testing::Test {
 protected:
  Cache()
      : folder_(fs::temp_directory_path() / ("piper_cache_" + std::to_string(::getpid()))),
        runtime_(folder_ / "runtime.so") {
    fs::create_directories(folder_);
    write(runtime_, "one");
    ::setenv("PIPER_CACHE", (folder_ / "cache").c_str(), 1);
  }
  ~Cache() override {
    ::unsetenv("PIPER_CACHE");
    fs::remove_all(folder_);
  }

  static void write(const fs::path& file, const std::string& text) {
    std::ofstream(file, std::ios::binary) << text;
  }

  GraphCache cache() const { return {config_, runtime_}; }

  fs::path folder_, runtime_;
  Config config_;
};

TEST_F(Cache, GivesBackTheGraphThatWasStored) {
  ASSERT_TRUE(verify(tiny_model()).has_value());
  EXPECT_FALSE(cache().load().has_value());

  cache().store(tiny_model());

  const auto loaded = cache().load();
  ASSERT_TRUE(loaded.has_value());
  EXPECT_EQ(*loaded, tiny_model());
}

TEST_F(Cache, LiesInThePiperCacheFolderWithNothingElse) {
  cache().store(tiny_model());

  EXPECT_EQ(fs::path(cache().file()).parent_path(), folder_ / "cache" / "graphs");
  std::size_t files = 0;
  for ([[maybe_unused]] const auto& entry : fs::directory_iterator(folder_ / "cache" / "graphs")) {
    ++files;
  }
  EXPECT_EQ(files, 1U);
}

TEST_F(Cache, HasNothingForAnotherModel) {
  cache().store(tiny_model());

  config_.model.layers = 3;

  EXPECT_FALSE(cache().load().has_value());
}

TEST_F(Cache, ServesAnotherMeshOrOptimizer) {
  cache().store(tiny_model());

  config_.mesh.axes = {{"pp", 2}, {"dp", 2}};
  config_.optimizer.lr = 1;

  EXPECT_TRUE(cache().load().has_value());
}

TEST_F(Cache, HasNothingForAnotherRuntime) {
  cache().store(tiny_model());

  write(runtime_, "another");

  EXPECT_FALSE(cache().load().has_value());
}

TEST_F(Cache, HasNothingForAnotherVersionOfTheUsersLibrary) {
  config_.model.library = folder_ / "model.so";
  write(config_.model.library, "one");
  cache().store(tiny_model());
  ASSERT_TRUE(cache().load().has_value());

  write(config_.model.library, "another");

  EXPECT_FALSE(cache().load().has_value());
}

TEST_F(Cache, HasNothingForAnotherConfigJson) {
  config_.model.hf_assets_path = folder_;
  write(folder_ / "config.json", "{\"a\": 1}");
  cache().store(tiny_model());
  ASSERT_TRUE(cache().load().has_value());

  write(folder_ / "config.json", "{\"a\": 2}");

  EXPECT_FALSE(cache().load().has_value());
}

TEST_F(Cache, TakesABrokenFileForNone) {
  cache().store(tiny_model());
  const auto size = fs::file_size(cache().file());

  fs::resize_file(cache().file(), size - 5);

  EXPECT_FALSE(cache().load().has_value());
}

TEST_F(Cache, DoesWithoutAFolderThatCanBeWritten) {
  write(folder_ / "cache", "a file where the folder should be");

  cache().store(tiny_model());

  EXPECT_FALSE(cache().load().has_value());
}

TEST_F(Cache, IsOffWithoutAnyFolder) {
  const std::string home = std::getenv("HOME") != nullptr ? std::getenv("HOME") : "";
  ::setenv("PIPER_CACHE", "relative/folder", 1);
  ::unsetenv("XDG_CACHE_HOME");
  ::unsetenv("HOME");

  const std::string file = cache().file();
  ::setenv("HOME", home.c_str(), 1);

  EXPECT_EQ(file, "");
}

}  // namespace
}  // namespace piper
