// Plugins that break the rules: each is refused with its code and its message, and the host goes
// on.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "core/plugin/abi.h"
#include "core/plugin/elf.h"
#include "core/plugin/host.h"
#include "tests/support/toy_model.h"

namespace piper {
namespace {

namespace fs = std::filesystem;

// What proposing with the plugin of a folder under HOSTILE_DIR says; "" when it is accepted.
// Folders are shown as DIR.
std::string propose_with(const std::string& id, const std::string& folder) {
  Config config = test::toy_config(1, 1, 2);
  config.strategies = {{id, id, {}, {"job.toml", 7, 1}}};
  const auto proposals = propose(config, test::toy_model(), SearchPath{{folder}, false});
  std::string text = proposals ? "" : to_string(proposals.error());
  for (std::size_t at = 0; (at = text.find(folder, at)) != std::string::npos;) {
    text.replace(at, folder.size(), "DIR");
  }
  return text;
}

std::string refusal(const std::string& id) {
  return propose_with(id, std::string(HOSTILE_DIR) + "/" + id);
}

// A copy of the good plugin, changed by `edit`, in a folder of its own.
template <typename Edit>
std::string refusal_of_changed(const std::string& id, Edit&& edit) {
  const fs::path folder =
      fs::temp_directory_path() / ("piper_hostile_" + std::to_string(::getpid()) + "_" + id);
  ::umask(022);
  fs::create_directory(folder);
  std::string bytes = *read_library(std::string(HOSTILE_DIR) + "/good/good.so");
  edit(bytes);
  std::ofstream(folder / (id + ".so"), std::ios::binary) << bytes;
  std::string text = propose_with(id, folder.string());
  fs::remove_all(folder);
  return text;
}

struct Case {
  const char* id;
  const char* message;
};

void PrintTo(const Case& item, std::ostream* out) {
  *out << item.id;
}

class Hostile : public testing::TestWithParam<Case> {};

TEST_P(Hostile, IsRefusedAndTheHostGoesOn) {
  const std::string text = refusal(GetParam().id);

  EXPECT_EQ(text, GetParam().message);
  EXPECT_EQ(refusal("good"), "");
}

const Case kCases[] = {
    {"wrong_major",
     "job.toml:7:1: error: plugin 'wrong_major' is refused: the plugin is made for plugin ABI 1.0; "
     "this Piper has plugin ABI 0.3: "
     "upgrade Piper, or use an older build of the plugin [plugin.abi_major]\n"
     "DIR/wrong_major.so: note: the file"},
    {"newer_minor",
     "job.toml:7:1: error: plugin 'newer_minor' is refused: the plugin needs at least plugin ABI "
     "0.4; this Piper has plugin ABI 0.3: "
     "upgrade Piper, or use an older build of the plugin [plugin.abi_minor]\n"
     "DIR/newer_minor.so: note: the file"},
    {"older_minor",
     "job.toml:7:1: error: plugin 'older_minor' is refused: the plugin was built with plugin ABI "
     "0.0, and drafts (major 0) must be "
     "the same; this Piper has plugin ABI 0.3: rebuild the plugin with this Piper's SDK "
     "[plugin.abi_minor]\n"
     "DIR/older_minor.so: note: the file"},
    {"short_struct",
     "job.toml:7:1: error: short_struct: expected a piper_plugin of at least 80 bytes, got 16 "
     "[plugin.short_struct]\n"
     "DIR/short_struct.so: note: the file"},
    {"no_manifest",
     "job.toml:7:1: error: plugin 'no_manifest' is refused: the library has no section "
     "'piper.manifest': it is no Piper plugin, or "
     "was built without piper_add_strategy [plugin.no_manifest]\n"
     "DIR/no_manifest.so: note: the file"},
    {"disagrees",
     "job.toml:7:1: error: disagrees: the manifest says disagrees 1.0.0 for plugin ABI 0.3, the "
     "library says somebody_else 2.0.0 for "
     "0.3 [plugin.mismatch]\n"
     "DIR/disagrees.so: note: the file"},
    {"throws",
     "job.toml:7:1: error: throws: the cat is on the keyboard [plugin.exception]\n"
     "note: this is a fault of the plugin, not of the job"},
    {"throws_past",
     "job.toml:7:1: error: throws_past: an exception left plan: nobody caught this "
     "[plugin.exception]"},
    {"silent_error",
     "job.toml:7:1: error: silent_error: plan failed with code 77 and reported nothing, which is a "
     "fault of the plugin "
     "[plugin.no_diagnostic]"},
    {"null_slot",
     "job.toml:7:1: error: null_slot: expected a function 'plan' in its table, got NULL "
     "[plugin.null_slot]\n"
     "DIR/null_slot.so: note: the file"},
    {"no_table",
     "job.toml:7:1: error: no_table: its entry returned no table and reported nothing "
     "[plugin.no_table]\n"
     "DIR/no_table.so: note: the file"},
    {"newer_entry",
     "job.toml:7:1: error: newer_entry: the plugin needs at least plugin ABI 0.10; this Piper has "
     "plugin ABI 0.3: upgrade Piper, or "
     "use an older build of the plugin [plugin.abi_minor]\n"
     "DIR/newer_entry.so: note: the file"},
    {"no_entry",
     "job.toml:7:1: error: no_entry: the library exports no piper_plugin_entry_v0 "
     "[plugin.no_entry]\n"
     "DIR/no_entry.so: note: the file"},
    {"own_thread",
     "job.toml:7:1: error: own_thread: calls the host outside of plan, or on a thread of its own "
     "[plugin.wrong_state]"},
    {"invented_handles",
     "job.toml:7:1: error: invented_handles: tag: the region is none that this call of plan has "
     "got [abi.stale_handle]\n"
     "job.toml:7:1: error: invented_handles: place: the family of ranks is none that this call of "
     "plan has got [abi.stale_handle]\n"
     "job.toml:7:1: error: invented_handles: ranks.list: the family of ranks is none that this "
     "call of plan has got "
     "[abi.stale_handle]"},
    {"bad_arguments",
     "job.toml:7:1: error: bad_arguments: place is NULL [abi.null]\n"
     "job.toml:7:1: error: bad_arguments: tag: filter is NULL [abi.null]\n"
     "job.toml:7:1: error: bad_arguments: tag: name is NULL [abi.null]\n"
     "job.toml:7:1: error: bad_arguments: tag: name: expected UTF-8 of at most 64 KiB, got 2 bytes "
     "that are not [abi.string]\n"
     "job.toml:7:1: error: bad_arguments: tag: expected a struct_size of at least 32, got 4 "
     "[abi.struct_size]\n"
     "job.toml:7:1: error: bad_arguments: tag: by: unknown value 99 [abi.value]\n"
     "job.toml:7:1: error: bad_arguments: tag: partition: expected a struct_size of at least 56, "
     "got 4 [abi.struct_size]\n"
     "job.toml:7:1: error: bad_arguments: tag: passes: unknown value 1048576 [abi.value]\n"
     "job.toml:7:1: error: bad_arguments: tag: condition: unknown value 99 [abi.value]\n"
     "job.toml:7:1: error: bad_arguments: filter: conditions: expected at most 268435456 elements "
     "of at least 48 bytes, got "
     "18446744073709551615 of 8 [abi.span]\n"
     "job.toml:7:1: error: bad_arguments: graph: expected a struct_size of at least 128, got 8 "
     "[abi.struct_size]\n"
     "job.toml:7:1: error: bad_arguments: job is NULL [abi.null]\n"
     "job.toml:7:1: error: bad_arguments: units is NULL [abi.null]\n"
     "job.toml:7:1: error: bad_arguments: report: diag is NULL [abi.null]\n"
     "job.toml:7:1: error: bad_arguments: report: unknown severity 55 [abi.value]\n"
     "job.toml:7:1: error: bad_arguments: ranks.at: coordinates: expected at most 268435456 "
     "elements of at least 24 bytes, got "
     "18446744073709551615 of 8 [abi.span]\n"
     "job.toml:7:1: error: bad_arguments: order_chain: pass: unknown value 9 [abi.value]\n"
     "job.toml:7:1: error: bad_arguments: order_chain: actions is NULL [abi.null]\n"
     "job.toml:7:1: error: bad_arguments: recompute is NULL [abi.null]"},
};

INSTANTIATE_TEST_SUITE_P(Plugin, Hostile, testing::ValuesIn(kCases),
                         [](const testing::TestParamInfo<Case>& item) {
                           return std::string(item.param.id);
                         });

TEST(HostileFile, TwoOfOneFolderWithOneIdAreBothRefused) {
  EXPECT_EQ(propose_with("twin", HOSTILE_DIR "/twins"),
            "job.toml:7:1: error: plugin 'twin' is refused: two plugins of one folder have the id "
            "'twin' [plugin.duplicate_id]\n"
            "DIR/first_twin.so: note: the file\n"
            "DIR/second_twin.so: note: the other one");
}

TEST(HostileFile, ThatIsCutOffIsRefusedBeforeItIsLoaded) {
  std::size_t whole = 0;

  const std::string text = refusal_of_changed("truncated", [&](std::string& bytes) {
    whole = bytes.size();
    bytes.resize(bytes.size() / 2);
  });

  EXPECT_EQ(text,
            "job.toml:7:1: error: plugin 'truncated' is refused: the file is cut off: its tables "
            "point past its end (" +
                std::to_string(whole / 2) +
                " bytes) [plugin.truncated]\nDIR/truncated.so: note: the file");
  EXPECT_EQ(refusal("good"), "");
}

TEST(HostileFile, OfAnotherMachineIsRefusedNamingBoth) {
  const std::string text = refusal_of_changed(
      "wrong_machine", [](std::string& bytes) { bytes[18] = 8; });  // e_machine: MIPS

  EXPECT_NE(
      text.find("job.toml:7:1: error: plugin 'wrong_machine' is refused: expected a library for "),
      std::string::npos)
      << text;
  EXPECT_NE(
      text.find(
          ", got one for machine 8 [plugin.wrong_machine]\nDIR/wrong_machine.so: note: the file"),
      std::string::npos)
      << text;
}

TEST(HostileFile, ThatIsNoLibraryIsRefused) {
  EXPECT_EQ(refusal_of_changed("text", [](std::string& bytes) { bytes = "just a text"; }),
            "job.toml:7:1: error: plugin 'text' is refused: expected a shared library (ELF), got "
            "something else "
            "[plugin.not_a_library]\nDIR/text.so: note: the file");
}

TEST(HostilePlugin, KeepingAHandleIsRefusedAtTheNextCall) {
  EXPECT_EQ(refusal("stale_handle"), "");  // its first call gets the handle

  EXPECT_EQ(refusal("stale_handle"),
            "job.toml:7:1: error: stale_handle: place: the family of ranks is none that this call "
            "of plan has got [abi.stale_handle]");
}

TEST(HostilePlugin, WithAnUndefinedSymbolIsRefusedNamingIt) {
  const std::string text = refusal("undefined_symbol");

  EXPECT_NE(text.find("undefined symbol: nobody_has_this"), std::string::npos) << text;
  EXPECT_NE(text.find("[plugin.load_failed]"), std::string::npos) << text;
  EXPECT_NE(text.find("note: link the plugin to the library that has it"), std::string::npos)
      << text;
}

TEST(HostilePlugin, IsRefusedAgainWithTheSameWords) {
  const std::string first = refusal("null_slot");

  EXPECT_EQ(refusal("null_slot"), first);
}

TEST(Negotiation, AgreesOnTheLowerMinor) {
  EXPECT_EQ(*negotiate({1, 5}, {1, 2}, 3), 3U);
  EXPECT_EQ(*negotiate({1, 5}, {1, 2}, 9), 5U);
  EXPECT_EQ(*negotiate({1, 5}, {1, 5}, 5), 5U);
}

TEST(Negotiation, RefusesAnotherMajorAndAHostThatIsTooOld) {
  EXPECT_EQ(negotiate({1, 5}, {2, 0}, 0).error()[0].code, "plugin.abi_major");
  EXPECT_EQ(negotiate({2, 0}, {1, 5}, 5).error()[0].message,
            "the plugin is made for plugin ABI 1.5; this Piper has plugin ABI 2.0: rebuild the "
            "plugin with this Piper's SDK");
  EXPECT_EQ(negotiate({1, 5}, {1, 6}, 6).error()[0].code, "plugin.abi_minor");
  EXPECT_EQ(negotiate({1, 5}, {1, 4}, 3).error()[0].code, "plugin.abi_minor");
}

TEST(Negotiation, WantsTheSameMinorWhileTheAbiIsADraft) {
  EXPECT_TRUE(negotiate({0, 3}, {0, 3}, 3));
  EXPECT_FALSE(negotiate({0, 3}, {0, 2}, 2));
  EXPECT_FALSE(negotiate({0, 3}, {0, 3}, 4));
}

}  // namespace
}  // namespace piper
