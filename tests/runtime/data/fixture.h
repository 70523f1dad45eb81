// A folder of files, and a model that reads them.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "core/config/config.h"
#include "core/ir/model_graph.h"
#include "runtime/data/dataset.h"

namespace piper::testing {

// Removed with all its files at the end of the test.
class Folder {
 public:
  Folder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "piper_data_XXXXXX").string();
    path_ = std::filesystem::canonical(mkdtemp(pattern.data()));
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  std::string path(const std::string& name = "") const {
    return name.empty() ? path_.string() : (path_ / name).string();
  }
  std::string write(const std::string& name, const std::string& text) const {
    const std::filesystem::path file = path_ / name;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file, std::ios::binary) << text;
    return file.string();
  }

 private:
  std::filesystem::path path_;
};

inline Value input(const std::string& name, DType dtype, std::vector<std::int64_t> shape) {
  Value value;
  value.name = name;
  value.dtype = dtype;
  value.shape.push_back({1, 0});
  for (const std::int64_t size : shape) {
    value.shape.push_back({0, size});
  }
  return value;
}

// Inputs alone: "tokens" and "labels", each [rows, seq_len].
inline ModelGraph model_of_text(std::int64_t seq_len) {
  ModelGraph model;
  model.values = {input("tokens", DType::int64, {seq_len}),
                  input("labels", DType::int64, {seq_len})};
  model.labels = static_cast<ValueId>(1);
  return model;
}

inline Config job_of(std::vector<std::string> paths, std::int64_t seq_len, std::int64_t rows) {
  Config config;
  config.file = "job.toml";
  config.training.dataset_path = std::move(paths);
  config.training.seq_len = seq_len;
  config.training.global_batch_size = rows;
  return config;
}

inline std::vector<std::int64_t> read_row(const RowSource& source, Part part, std::int64_t row,
                                          const Field& field) {
  std::vector<std::int64_t> values(static_cast<std::size_t>(field.elements()));
  const Status read = source.read(part, row, field, reinterpret_cast<std::byte*>(values.data()));
  EXPECT_TRUE(read.has_value()) << to_string(read.error());
  return values;
}

// `code` and, somewhere in the message, `text`.
template <typename T>
void expect_error(const Expected<T>& result, const std::string& code, const std::string& text) {
  ASSERT_FALSE(result.has_value());
  EXPECT_EQ(result.error().front().code, code);
  EXPECT_NE(to_string(result.error()).find(text), std::string::npos) << to_string(result.error());
}

}  // namespace piper::testing
