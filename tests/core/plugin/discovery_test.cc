// Where plugins are found, which of two wins, and what is not trusted.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "core/plugin/host.h"

namespace piper {
namespace {

namespace fs = std::filesystem;

class Discovery : public testing::Test {
 protected:
  void SetUp() override {
    ::umask(022);
    root_ = fs::canonical(fs::temp_directory_path()) /
            ("piper_discovery_" + std::to_string(::getpid()));
    fs::create_directories(folder("a"));
    fs::create_directories(folder("b"));
  }
  void TearDown() override { fs::remove_all(root_); }

  std::string folder(const std::string& name) const { return (root_ / name).string(); }
  void put(const std::string& plugin, const std::string& to) const {
    const fs::path from = fs::path(HOSTILE_DIR) / plugin / (plugin + ".so");
    fs::copy_file(from, root_ / to);
    ::chmod((root_ / to).c_str(), 0755);
  }
  std::vector<PluginInfo> find(std::vector<std::string> folders, bool allow_unsafe = false) const {
    return *find_plugins({std::move(folders), allow_unsafe});
  }
  // The errors of a job that names `plugin`.
  std::string check(const std::string& plugin, std::vector<std::string> folders,
                    Diagnostics* warnings = nullptr) const {
    Config config;
    config.strategies = {{plugin, plugin, {}, {"job.toml", 3, 1}}};
    const Status status = check_strategies(config, {std::move(folders), false}, warnings);
    std::string text = status ? "" : to_string(status.error());
    for (std::size_t at = 0; (at = text.find(root_.string(), at)) != std::string::npos;) {
      text.replace(at, root_.string().size(), "ROOT");
    }
    return text;
  }

  fs::path root_;
};

TEST_F(Discovery, ListsPluginsByIdWithoutLoadingThem) {
  put("silent_error", "a/second.so");
  put("good", "a/first.so");
  put("disagrees", "a/third.so");

  const auto plugins = find({folder("a")});

  ASSERT_EQ(plugins.size(), 3U);
  EXPECT_EQ(plugins[0].manifest.id, "disagrees");  // only running it would tell
  EXPECT_TRUE(plugins[0].usable());
  EXPECT_EQ(plugins[1].manifest.id, "good");
  EXPECT_EQ(plugins[2].manifest.id, "silent_error");
}

TEST_F(Discovery, TakesTheFirstFolderAndNamesTheShadowedFile) {
  put("good", "a/good.so");
  put("good", "b/good.so");
  Diagnostics warnings;

  const auto plugins = find({folder("b"), folder("a")});
  EXPECT_EQ(check("good", {folder("b"), folder("a")}, &warnings), "");

  ASSERT_EQ(plugins.size(), 2U);
  EXPECT_EQ(plugins[0].file, folder("b/good.so"));
  EXPECT_TRUE(plugins[0].usable());
  EXPECT_EQ(plugins[1].shadowed_by, folder("b/good.so"));
  ASSERT_EQ(warnings.size(), 1U);
  EXPECT_EQ(warnings[0].code, "plugin.shadowed");
}

TEST_F(Discovery, PrintsTheNearestNameAndTheFoldersSearched) {
  put("good", "a/good.so");

  EXPECT_EQ(check("goood", {folder("a"), folder("b")}),
            "job.toml:3:1: error: no plugin 'goood' (did you mean 'good'?) [plugin.not_found]\n"
            "note: looked in ROOT/a\nnote: looked in ROOT/b");
}

TEST_F(Discovery, RefusesAFileThatOthersMayWrite) {
  put("good", "a/good.so");
  ::chmod(folder("a/good.so").c_str(), 0775);

  EXPECT_EQ(check("good", {folder("a")}),
            "job.toml:3:1: error: plugin 'good' is refused: expected that only its owner may write "
            "it, got mode 0775; use "
            "--allow-unsafe-plugins to load it all the same [plugin.unsafe]\nROOT/a/good.so: note: "
            "the file");
}

TEST_F(Discovery, RefusesAFolderThatOthersMayWrite) {
  put("good", "a/good.so");
  ::chmod(folder("a").c_str(), 01777);

  EXPECT_EQ(find({folder("a")})[0].problems.at(0).code, "plugin.unsafe");
}

TEST_F(Discovery, RefusesAFolderThatOthersMayReplace) {
  put("good", "a/good.so");
  ::chmod(root_.c_str(), 0777);

  EXPECT_EQ(find({folder("a")})[0].problems.at(0).code, "plugin.unsafe");
}

TEST_F(Discovery, RefusesALinkIntoAFolderThatOthersMayWrite) {
  put("good", "b/good.so");
  fs::create_symlink(root_ / "b/good.so", root_ / "a/good.so");
  ::chmod(folder("b").c_str(), 0777);

  EXPECT_EQ(find({folder("a")})[0].problems.at(0).code, "plugin.unsafe");
}

TEST_F(Discovery, RefusesAFileOfAnotherUser) {
  put("good", "a/good.so");
  if (::chown(folder("a/good.so").c_str(), 65534, 65534) != 0) {
    GTEST_SKIP() << "only root can give a file away";
  }

  const auto plugins = find({folder("a")});

  ASSERT_FALSE(plugins[0].problems.empty());
  EXPECT_NE(plugins[0].problems[0].message.find("got user 65534"), std::string::npos);
}

TEST_F(Discovery, LoadsWhatIsUnsafeWhenToldToWithAWarning) {
  put("good", "a/good.so");
  ::chmod(folder("a/good.so").c_str(), 0777);

  const auto plugins = find({folder("a")}, true);

  EXPECT_TRUE(plugins[0].usable());
  ASSERT_EQ(plugins[0].warnings.size(), 1U);
  EXPECT_EQ(plugins[0].warnings[0].severity, Severity::warning);
}

TEST_F(Discovery, AddsTheFoldersOfTheEnvironmentBeforeTheGivenOnes) {
  ::setenv("PIPER_PLUGIN_PATH", (folder("a") + ":").c_str(), 1);
  const auto path = plugin_search_path({folder("b")});
  ::unsetenv("PIPER_PLUGIN_PATH");

  ASSERT_TRUE(path);
  const auto& folders = path->directories;
  ASSERT_GE(folders.size(), 2U);
  EXPECT_EQ(folders[folders.size() - 2], folder("a"));
  EXPECT_EQ(folders.back(), folder("b"));
}

TEST_F(Discovery, RefusesARelativeFolderOfTheEnvironment) {
  ::setenv("PIPER_PLUGIN_PATH", "plugins", 1);
  const auto path = plugin_search_path({});
  ::unsetenv("PIPER_PLUGIN_PATH");

  EXPECT_EQ(
      to_string(path.error()),
      "error: expected absolute folders in PIPER_PLUGIN_PATH, got 'plugins' [plugin.directory]");
}

TEST_F(Discovery, RefusesAFolderOfTheEnvironmentThatIsNotThere) {
  ::setenv("PIPER_PLUGIN_PATH", (folder("a") + ":/no/such/folder").c_str(), 1);
  const auto path = plugin_search_path({});
  ::unsetenv("PIPER_PLUGIN_PATH");

  ASSERT_FALSE(path);
  EXPECT_EQ(to_string(path.error()),
            "error: expected folders in PIPER_PLUGIN_PATH, got '/no/such/folder' "
            "[plugin.directory]");
}

TEST_F(Discovery, RefusesAGivenFolderThatIsNotThere) {
  EXPECT_EQ(
      to_string(plugin_search_path({folder("c/d")}).error()),
      "error: expected a folder for --plugin-dir, got '" + folder("c/d") + "' [plugin.directory]");
}

TEST_F(Discovery, DescribesRefusedPluginsToo) {
  put("newer_minor", "a/newer_minor.so");

  const auto plugins = find({folder("a")});

  EXPECT_NE(describe(plugins).find("refused: the plugin needs at least plugin ABI 0.4"),
            std::string::npos);
  EXPECT_NE(describe_json(plugins).find("\"code\": \"plugin.abi_minor\""), std::string::npos);
}

}  // namespace
}  // namespace piper
