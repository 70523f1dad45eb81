#include "runtime/data/inspect.h"

#include <algorithm>
#include <array>

#include "runtime/data/json_scanner.h"

namespace piper {
namespace {

using namespace std::string_view_literals;

struct Format {
  std::string_view start, name;
};

// First bytes as file(1) knows them; formats that hold text or stand beside it in data folders.
constexpr std::array kFormats = {
    Format{"\x1f\x8b"sv, "gzip data"},
    Format{"\x28\xb5\x2f\xfd"sv, "zstd data"},
    Format{"\xfd"
           "7zXZ\0"sv,
           "xz data"},
    Format{"BZh"sv, "bzip2 data"},
    Format{"\x04\x22\x4d\x18"sv, "lz4 data"},
    Format{"7z\xbc\xaf\x27\x1c"sv, "a 7z archive"},
    Format{"Rar!\x1a\x07"sv, "a RAR archive"},
    Format{"PK\x03\x04"sv, "a zip archive (docx, xlsx, epub and npz are such)"},
    Format{"PAR1"sv, "a Parquet file"},
    Format{"ARROW1\0"sv, "an Arrow file"},
    Format{"%PDF-"sv, "a PDF document"},
    Format{"\x89PNG\r\n\x1a\n"sv, "a PNG image"},
    Format{"\xff\xd8\xff"sv, "a JPEG image"},
    Format{"GIF8"sv, "a GIF image"},
    Format{"\x7f"
           "ELF"sv,
           "an ELF program"},
    Format{"SQLite format 3\0"sv, "an SQLite database"},
    Format{"\x93NUMPY"sv, "a NumPy array"},
    Format{"\x80\x02"sv, "a Python pickle"},
    Format{"\x80\x04\x95"sv, "a Python pickle"},
    Format{"\xff\xfe"sv, "UTF-16 text"},
    Format{"\xfe\xff"sv, "UTF-16 text"},
};

}  // namespace

std::string not_text(std::string_view start) {
  start = start.substr(0, kInspected);
  for (const Format& format : kFormats) {
    if (start.starts_with(format.start)) {
      return std::string(format.name);
    }
  }
  if (start.find('\0') != std::string_view::npos) {
    return "binary data (bytes of 0 are in it)";
  }
  std::size_t wrong = 0;
  for (std::size_t at = 0; at < start.size();) {
    const std::size_t length = utf8_length(start.substr(at));
    wrong += length == 0 ? 1 : 0;
    at += std::max<std::size_t>(length, 1);
  }
  return wrong * 10 > start.size() ? "bytes of another encoding than UTF-8" : "";
}

}  // namespace piper
