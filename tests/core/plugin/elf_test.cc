// The ELF reader on good, broken and randomly changed libraries: it may refuse, and must never
// crash.
#include "core/plugin/elf.h"

#include <elf.h>
#include <gtest/gtest.h>

#include <cstring>
#include <random>

namespace piper {
namespace {

const std::string& good() {
  static const std::string bytes = *read_library(HOSTILE_DIR "/good/good.so");
  return bytes;
}

std::string code(const std::string& bytes) {
  const auto section = elf_section(bytes, "piper.manifest", "x.so");
  return section ? "" : section.error().front().code;
}

TEST(Elf, ReadsTheManifest) {
  const auto section = elf_section(good(), "piper.manifest", "x.so");

  ASSERT_TRUE(section);
  EXPECT_EQ(section->substr(0, 12), "id = \"good\"\n");
}

TEST(Elf, RefusesEveryPrefix) {
  for (std::size_t size = 0; size < good().size(); size += 1 + size / 50) {
    EXPECT_NE(code(good().substr(0, size)), "") << size;
  }
  EXPECT_EQ(code(good().substr(0, good().size() - 1)), "plugin.truncated");
}

TEST(Elf, RefusesASegmentThatReachesPastTheEnd) {
  // Loading such a file ends the process with SIGBUS. The section table is there.
  std::string bytes = good();
  Elf64_Ehdr header;
  std::memcpy(&header, bytes.data(), sizeof(header));
  for (std::size_t i = 0; i < header.e_phnum; ++i) {
    const std::size_t at = header.e_phoff + i * sizeof(Elf64_Phdr);
    Elf64_Phdr segment;
    std::memcpy(&segment, bytes.data() + at, sizeof(segment));
    if (segment.p_type == PT_LOAD) {
      segment.p_filesz = bytes.size() + 1 - segment.p_offset;
      bytes.replace(at, sizeof(segment), reinterpret_cast<const char*>(&segment), sizeof(segment));
    }
  }

  EXPECT_EQ(code(bytes), "plugin.truncated");
}

TEST(Elf, SurvivesRandomChanges) {
  std::mt19937 random(20240607);
  int refused = 0;
  for (int round = 0; round < 2000; ++round) {
    std::string bytes = good();
    // The headers, at both ends of the file, are where changes matter.
    const bool front = round % 2 == 0;
    const std::size_t span = std::min<std::size_t>(bytes.size(), front ? 1024 : 2304);
    for (int change = 0; change < 1 + round % 8; ++change) {
      const std::size_t at = random() % span;
      bytes[front ? at : bytes.size() - 1 - at] = static_cast<char>(random() % 256);
    }
    refused += code(bytes).empty() ? 0 : 1;
  }
  EXPECT_GT(refused, 100);
}

TEST(Elf, SurvivesEveryExtremeNumberInItsHeaders) {
  for (std::size_t at = 16; at + 8 <= 64 + 56 * 12; at += 2) {
    for (const std::uint64_t number : {std::uint64_t{0}, ~std::uint64_t{0}, std::uint64_t{1} << 63U,
                                       std::uint64_t{good().size()}}) {
      std::string bytes = good();
      bytes.replace(at, 8, reinterpret_cast<const char*>(&number), 8);
      code(bytes);
    }
  }
}

TEST(Elf, IsNotFooledByOffsetsThatWrapAround) {
  for (const std::size_t at : {32, 40}) {  // of the program headers, of the sections
    std::string bytes = good();
    const std::uint64_t offset = ~std::uint64_t{0} - 7;
    bytes.replace(at, 8, reinterpret_cast<const char*>(&offset), 8);
    EXPECT_EQ(code(bytes), "plugin.truncated") << at;
  }
}

TEST(Elf, SaysWhatALibraryIsNot) {
  EXPECT_EQ(code(""), "plugin.not_a_library");
  EXPECT_EQ(code("#!/bin/sh\n"), "plugin.not_a_library");
  std::string bytes = good();
  bytes[16] = 2;  // an executable
  EXPECT_EQ(code(bytes), "plugin.not_a_library");
  bytes = good();
  bytes[4] = 1;  // 32 bits
  EXPECT_EQ(code(bytes), "plugin.wrong_machine");
  EXPECT_EQ(elf_section(good(), "other", "x.so").error().front().code, "plugin.no_manifest");
}

TEST(Elf, ReadsRegularFilesAlone) {
  EXPECT_EQ(read_library("/no/such/file.so").error().front().code, "plugin.unreadable");
  EXPECT_EQ(read_library("/dev/zero").error().front().code, "plugin.unreadable");
  EXPECT_EQ(read_library("/").error().front().code, "plugin.unreadable");
}

}  // namespace
}  // namespace piper
