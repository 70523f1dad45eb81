#include "core/plugin/elf.h"

#include <elf.h>
#include <sys/stat.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <optional>
#include <vector>

namespace piper {
namespace {

constexpr std::uint64_t kMaxSection = std::uint64_t{1} << 20;
constexpr std::uint64_t kMaxFile = std::uint64_t{1} << 30;

#if defined(__x86_64__)
constexpr Elf64_Half kMachine = EM_X86_64;
#elif defined(__aarch64__)
constexpr Elf64_Half kMachine = EM_AARCH64;
#else
#error "this machine has no plugin loader yet"
#endif

std::string machine_name(unsigned machine) {
  switch (machine) {
    case EM_X86_64:
      return "x86-64";
    case EM_AARCH64:
      return "aarch64";
    case EM_386:
      return "i386";
    case EM_ARM:
      return "arm";
    case EM_RISCV:
      return "riscv";
    case EM_PPC64:
      return "ppc64";
    default:
      return "machine " + std::to_string(machine);
  }
}

class Reader {
 public:
  Reader(std::string_view bytes, const std::string& file) : bytes_(bytes), file_(file) {}

  // Copies, because nothing says that a table in the file is aligned.
  template <typename T>
  std::optional<T> at(std::uint64_t offset) const {
    if (!inside(offset, sizeof(T))) {
      return std::nullopt;
    }
    T value;
    std::memcpy(&value, bytes_.data() + offset, sizeof(T));
    return value;
  }

  bool inside(std::uint64_t offset, std::uint64_t count) const {
    return offset <= bytes_.size() && count <= bytes_.size() - offset;
  }

  std::string_view slice(std::uint64_t offset, std::uint64_t count) const {
    return bytes_.substr(offset, count);
  }

  tl::unexpected<Diagnostics> refuse(const char* code, const std::string& why) const {
    return fail(error(code, why, Location{file_, 0, 0}));
  }
  tl::unexpected<Diagnostics> truncated() const {
    return refuse("plugin.truncated", "the file is cut off: its tables point past its end (" +
                                          std::to_string(bytes_.size()) + " bytes)");
  }

 private:
  std::string_view bytes_;
  const std::string& file_;
};

Expected<Elf64_Ehdr> read_header(const Reader& elf) {
  const auto ident = elf.at<std::array<unsigned char, EI_NIDENT>>(0);
  if (!ident || std::memcmp(ident->data(), ELFMAG, SELFMAG) != 0) {
    return elf.refuse("plugin.not_a_library",
                      "expected a shared library (ELF), got something else");
  }
  if ((*ident)[EI_CLASS] != ELFCLASS64 || (*ident)[EI_DATA] != ELFDATA2LSB) {
    return elf.refuse("plugin.wrong_machine", "expected a library for " + machine_name(kMachine) +
                                                  ", got one that is not 64-bit little-endian");
  }
  const auto header = elf.at<Elf64_Ehdr>(0);
  if (!header) {
    return elf.truncated();
  }
  if (header->e_machine != kMachine) {
    return elf.refuse("plugin.wrong_machine", "expected a library for " + machine_name(kMachine) +
                                                  ", got one for " +
                                                  machine_name(header->e_machine));
  }
  if (header->e_type != ET_DYN) {
    return elf.refuse("plugin.not_a_library",
                      "expected a shared library, got ELF type " + std::to_string(header->e_type));
  }
  return *header;
}

// Every byte that the loader will map must exist: touching one that does not ends the process with
// SIGBUS.
Status check_segments(const Reader& elf, const Elf64_Ehdr& header) {
  if (header.e_phentsize != sizeof(Elf64_Phdr) || header.e_phnum == 0) {
    return elf.refuse("plugin.not_a_library",
                      "expected program headers, got none that can be read");
  }
  if (!elf.inside(header.e_phoff, std::uint64_t{header.e_phnum} * sizeof(Elf64_Phdr))) {
    return elf.truncated();
  }
  for (std::uint64_t i = 0; i < header.e_phnum; ++i) {
    const auto segment = elf.at<Elf64_Phdr>(header.e_phoff + i * sizeof(Elf64_Phdr));
    if (!segment ||
        (segment->p_type == PT_LOAD && !elf.inside(segment->p_offset, segment->p_filesz))) {
      return elf.truncated();
    }
  }
  return {};
}

Expected<std::vector<Elf64_Shdr>> read_sections(const Reader& elf, const Elf64_Ehdr& header) {
  if (header.e_shnum == 0 || header.e_shentsize != sizeof(Elf64_Shdr) ||
      header.e_shstrndx >= header.e_shnum) {
    return elf.refuse(
        "plugin.no_manifest",
        "the library has no section table, so no manifest can be read; was it stripped of it?");
  }
  if (!elf.inside(header.e_shoff, std::uint64_t{header.e_shnum} * sizeof(Elf64_Shdr))) {
    return elf.truncated();
  }
  std::vector<Elf64_Shdr> sections;
  for (std::uint64_t i = 0; i < header.e_shnum; ++i) {
    sections.push_back(*elf.at<Elf64_Shdr>(header.e_shoff + i * sizeof(Elf64_Shdr)));
  }
  return sections;
}

}  // namespace

Expected<std::string> elf_section(std::string_view bytes, std::string_view name,
                                  const std::string& file) {
  const Reader elf(bytes, file);
  PIPER_ASSIGN(const Elf64_Ehdr header, read_header(elf));
  PIPER_TRY(check_segments(elf, header));
  PIPER_ASSIGN(const std::vector<Elf64_Shdr> sections, read_sections(elf, header));
  const Elf64_Shdr& strings = sections[header.e_shstrndx];
  if (strings.sh_type == SHT_NOBITS || !elf.inside(strings.sh_offset, strings.sh_size)) {
    return elf.truncated();
  }
  const std::string_view names = elf.slice(strings.sh_offset, strings.sh_size);
  for (const Elf64_Shdr& section : sections) {
    if (section.sh_name >= names.size()) {
      continue;
    }
    const std::string_view rest = names.substr(section.sh_name);
    if (rest.substr(0, rest.find('\0')) != name) {
      continue;
    }
    if (section.sh_type == SHT_NOBITS || (section.sh_flags & SHF_COMPRESSED) != 0 ||
        section.sh_size > kMaxSection) {
      return elf.refuse("plugin.no_manifest", "section '" + std::string(name) +
                                                  "' is empty, compressed or larger than 1 MiB");
    }
    if (!elf.inside(section.sh_offset, section.sh_size)) {
      return elf.truncated();
    }
    return std::string(elf.slice(section.sh_offset, section.sh_size));
  }
  return elf.refuse("plugin.no_manifest",
                    "the library has no section '" + std::string(name) +
                        "': it is no Piper plugin, or was built without piper_add_strategy");
}

Expected<std::string> read_library(const std::string& file) {
  const auto refuse = [&](const std::string& why) {
    return fail(error("plugin.unreadable", why, Location{file, 0, 0}));
  };
  struct stat status {};
  if (::stat(file.c_str(), &status) != 0) {
    return refuse(std::strerror(errno));
  }
  if (!S_ISREG(status.st_mode)) {
    return refuse("expected a regular file");
  }
  if (static_cast<std::uint64_t>(status.st_size) > kMaxFile) {
    return refuse("expected at most 1 GiB, got " + std::to_string(status.st_size) + " bytes");
  }
  std::ifstream stream(file, std::ios::binary);
  std::string bytes(static_cast<std::size_t>(status.st_size), '\0');
  if (!stream.read(bytes.data(), static_cast<std::streamsize>(bytes.size()))) {
    return refuse("cannot read it whole");
  }
  return bytes;
}

}  // namespace piper
