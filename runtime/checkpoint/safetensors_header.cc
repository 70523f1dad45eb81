#include "runtime/checkpoint/safetensors_header.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "core/base/json_reason.h"

namespace piper {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;

static_assert(std::endian::native == std::endian::little, "the format is little endian");

constexpr std::uint64_t kLongestHeader = 100'000'000;  // as in the format's own reader
constexpr std::size_t kMistakesShown = 8;

struct ElementType {
  std::string_view name;
  std::uint64_t bytes;
};
constexpr std::array<ElementType, 14> kTypes{{{"F64", 8},
                                              {"F32", 4},
                                              {"F16", 2},
                                              {"BF16", 2},
                                              {"I64", 8},
                                              {"I32", 4},
                                              {"I16", 2},
                                              {"I8", 1},
                                              {"U64", 8},
                                              {"U32", 4},
                                              {"U16", 2},
                                              {"U8", 1},
                                              {"BOOL", 1},
                                              {"F8_E4M3", 1}}};
constexpr std::array<std::string_view, 4> kConvertible{"F64", "F32", "F16", "BF16"};

Diagnostic mistake(const std::string& file, std::string message) {
  return error("checkpoint.safetensors", std::move(message), {file});
}

std::string print_shape(const std::vector<std::int64_t>& shape) {
  return json(shape).dump();
}

// The entry `name` of a header; offsets still count from the first tensor byte.
Expected<StoredTensor> read_entry(const std::string& file, const std::string& name,
                                  const json& entry) {
  const auto bad = [&](const std::string& what) {
    return fail(mistake(file, "tensor '" + name + "': " + what));
  };
  if (!entry.is_object() || !entry.contains("dtype") || !entry["dtype"].is_string() ||
      !entry.contains("shape") || !entry["shape"].is_array() || !entry.contains("data_offsets") ||
      !entry["data_offsets"].is_array() || entry["data_offsets"].size() != 2) {
    return bad("expected dtype, shape and two data_offsets, got " + entry.dump().substr(0, 80));
  }
  StoredTensor tensor;
  tensor.file = file;
  tensor.dtype = entry["dtype"].get<std::string>();
  std::uint64_t elements = 1;
  for (const json& size : entry["shape"]) {
    constexpr std::uint64_t limit = std::uint64_t{1} << 60;
    if (!size.is_number_unsigned() || size.get<std::uint64_t>() > limit ||
        (size != 0 && elements > limit / size.get<std::uint64_t>())) {
      return bad("expected a shape of counts, got " + entry["shape"].dump().substr(0, 80));
    }
    tensor.shape.push_back(size.get<std::int64_t>());
    elements *= size.get<std::uint64_t>();
  }
  for (const json& offset : entry["data_offsets"]) {
    if (!offset.is_number_unsigned()) {
      return bad("expected data_offsets of counts, got " + entry["data_offsets"].dump());
    }
  }
  tensor.begin = entry["data_offsets"][0].get<std::uint64_t>();
  tensor.end = entry["data_offsets"][1].get<std::uint64_t>();
  const auto* type = std::find_if(kTypes.begin(), kTypes.end(), [&](const ElementType& known) {
    return known.name == tensor.dtype;
  });
  if (tensor.begin > tensor.end ||
      (type != kTypes.end() && tensor.end - tensor.begin != elements * type->bytes)) {
    return bad("expected " + (type == kTypes.end() ? "a" : std::to_string(elements * type->bytes)) +
               " bytes for " + tensor.dtype + " " + print_shape(tensor.shape) +
               ", got data_offsets " + entry["data_offsets"].dump());
  }
  return tensor;
}

Expected<json> parse_header(const std::string& file, const std::string& text) {
  std::set<std::string> names;
  std::string twice;
  const auto notice = [&](int depth, json::parse_event_t event, json& parsed) {
    if (event == json::parse_event_t::key && depth == 1 &&
        !names.insert(parsed.get<std::string>()).second) {
      twice = parsed.get<std::string>();
    }
    return true;
  };
  json header;
  try {
    header = json::parse(text, notice);
  } catch (const json::parse_error& failure) {
    return fail(
        mistake(file, "expected a header that is a JSON object: " + json_reason(failure.what())));
  }
  if (!header.is_object()) {
    return fail(mistake(file, "expected a header that is a JSON object"));
  }
  if (!twice.empty()) {
    return fail(mistake(file, "tensor '" + twice + "' is there twice"));
  }
  return header;
}

Status check_overlaps(const std::string& file, const StoredTensors& tensors) {
  std::vector<std::pair<const StoredTensor*, const std::string*>> by_place;
  for (const auto& [name, tensor] : tensors) {
    if (tensor.begin != tensor.end) {
      by_place.emplace_back(&tensor, &name);
    }
  }
  std::stable_sort(by_place.begin(), by_place.end(),
                   [](const auto& a, const auto& b) { return a.first->begin < b.first->begin; });
  for (std::size_t i = 1; i < by_place.size(); ++i) {
    if (by_place[i].first->begin < by_place[i - 1].first->end) {
      return fail(mistake(file, "tensors '" + *by_place[i - 1].second + "' and '" +
                                    *by_place[i].second + "' overlap"));
    }
  }
  return {};
}

Expected<StoredTensors> read_file(const std::string& file) {
  std::ifstream stream(file, std::ios::binary);
  std::error_code failure;
  const std::uint64_t size = fs::file_size(file, failure);
  if (!stream || failure) {
    return fail(mistake(file, "cannot read the file"));
  }
  std::array<char, 8> prefix{};
  if (size < prefix.size() || !stream.read(prefix.data(), prefix.size())) {
    return fail(mistake(file, "truncated: expected at least 8 bytes, got " + std::to_string(size)));
  }
  std::uint64_t length = 0;
  std::memcpy(&length, prefix.data(), prefix.size());
  if (length > kLongestHeader) {
    return fail(mistake(file, "expected a header of at most " + std::to_string(kLongestHeader) +
                                  " bytes, got " + std::to_string(length) +
                                  "; is it a .safetensors file?"));
  }
  if (length > size - prefix.size()) {
    return fail(mistake(file, "truncated: expected a header of " + std::to_string(length) +
                                  " bytes, got " + std::to_string(size - prefix.size())));
  }
  std::string text(length, '\0');
  stream.read(text.data(), static_cast<std::streamsize>(length));
  PIPER_ASSIGN(const json header, parse_header(file, text));

  StoredTensors tensors;
  const std::uint64_t data_start = prefix.size() + length;
  for (const auto& [name, entry] : header.items()) {
    if (name == "__metadata__") {
      continue;
    }
    PIPER_ASSIGN(StoredTensor tensor, read_entry(file, name, entry));
    if (tensor.end > size - data_start) {
      return fail(mistake(file, "truncated: tensor '" + name + "' ends at byte " +
                                    std::to_string(tensor.end) + " of " +
                                    std::to_string(size - data_start) + " bytes of tensors"));
    }
    tensor.begin += data_start;
    tensor.end += data_start;
    tensors.emplace(name, std::move(tensor));
  }
  PIPER_TRY(check_overlaps(file, tensors));
  return tensors;
}

// Several files: the index says which tensor is in which.
Expected<StoredTensors> read_indexed(const fs::path& index) {
  std::ifstream stream(index, std::ios::binary);
  const json parsed = json::parse(stream, nullptr, /*allow_exceptions=*/false);
  if (parsed.is_discarded() || !parsed.is_object() || !parsed.contains("weight_map") ||
      !parsed["weight_map"].is_object()) {
    return fail(mistake(index.string(), "expected a JSON object with a weight_map"));
  }
  std::map<std::string, StoredTensors> files;
  StoredTensors tensors;
  for (const auto& [name, file] : parsed["weight_map"].items()) {
    if (!file.is_string() || fs::path(file.get<std::string>()).has_parent_path()) {
      return fail(
          mistake(index.string(),
                  "tensor '" + name + "': expected a file of the same folder, got " + file.dump()));
    }
    const std::string path = (index.parent_path() / file.get<std::string>()).string();
    if (!files.contains(path)) {
      PIPER_ASSIGN(files[path], read_file(path));
    }
    const auto found = files[path].find(name);
    if (found == files[path].end()) {
      return fail(mistake(path, "tensor '" + name + "' is missing; the index says it is here"));
    }
    tensors.insert(*found);
  }
  return tensors;
}

}  // namespace

Expected<StoredTensors> read_safetensors_headers(const std::string& path) {
  std::error_code failure;
  if (!fs::is_directory(path, failure)) {
    return read_file(path);
  }
  const fs::path single = fs::path(path) / "model.safetensors";
  const fs::path index = fs::path(path) / "model.safetensors.index.json";
  if (fs::exists(single, failure)) {
    return read_file(single.string());
  }
  if (fs::exists(index, failure)) {
    return read_indexed(index);
  }
  return fail(mistake(path, "expected model.safetensors or model.safetensors.index.json in it"));
}

Status check_stored(const StoredTensors& stored, const ModelGraph& model, const std::string& path) {
  std::vector<std::string> names;
  for (const auto& [name, tensor] : stored) {
    names.push_back(name);
  }
  Diagnostics mistakes;
  for (const Parameter& parameter : model.parameters) {
    const auto found = stored.find(parameter.name);
    if (found == stored.end()) {
      const std::string near = nearest(parameter.name, names);
      mistakes.push_back(error("checkpoint.missing_tensor",
                               "tensor '" + parameter.name + "' is missing" +
                                   (near.empty() ? "" : " (did you mean '" + near + "'?)"),
                               {path}));
      continue;
    }
    const StoredTensor& tensor = found->second;
    if (tensor.shape != parameter.shape) {
      mistakes.push_back(error("checkpoint.shape",
                               "tensor '" + parameter.name + "': expected shape " +
                                   print_shape(parameter.shape) + ", got " +
                                   print_shape(tensor.shape),
                               {tensor.file}));
    } else if (std::find(kConvertible.begin(), kConvertible.end(), tensor.dtype) ==
               kConvertible.end()) {
      mistakes.push_back(error(
          "checkpoint.dtype",
          "tensor '" + parameter.name + "': expected F64, F32, F16 or BF16, got " + tensor.dtype,
          {tensor.file}));
    }
  }
  if (mistakes.size() > kMistakesShown) {
    const std::size_t more = mistakes.size() - kMistakesShown;
    mistakes.resize(kMistakesShown);
    mistakes.back().note("and " + std::to_string(more) + " more such tensors");
  }
  return mistakes.empty() ? Status{} : fail(std::move(mistakes));
}

std::string print_safetensors_header(const StoredTensors& tensors) {
  nlohmann::ordered_json header;
  header["__metadata__"] = {{"format", "pt"}};
  std::vector<std::pair<std::uint64_t, std::string>> order;
  for (const auto& [name, tensor] : tensors) {
    order.emplace_back(tensor.begin, name);
  }
  std::sort(order.begin(), order.end());
  for (const auto& [begin, name] : order) {
    const StoredTensor& tensor = tensors.at(name);
    header[name] = {{"dtype", tensor.dtype},
                    {"shape", tensor.shape},
                    {"data_offsets", {tensor.begin, tensor.end}}};
  }
  std::string text = header.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');
  return text;
}

std::string_view safetensors_name(DType dtype) {
  switch (dtype) {
    case DType::float32:
      return "F32";
    case DType::float64:
      return "F64";
    case DType::bfloat16:
      return "BF16";
    case DType::int64:
      return "I64";
    case DType::boolean:
      return "BOOL";
  }
  return "";
}

}  // namespace piper
