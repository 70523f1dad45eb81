// Rows of training data: what a data set delivers for the inputs of a model, without tensors.
//
// A row is one sequence. A data set has two parts that share no document: rows to train on, and
// held-out rows, which only evaluation sees. Both depend on the files and the job alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/base/diagnostic.h"
#include "core/base/ids.h"
#include "core/base/label.h"
#include "core/config/config.h"
#include "core/ir/model_graph.h"

namespace piper {

enum class Part : std::uint8_t { training, held_out };

// An input of the model, as one row of it.
struct Field {
  ValueId value = none<ValueId>();
  std::string name;
  DType dtype = DType::int64;
  std::vector<std::int64_t> shape;  // without the rows
  bool labels = false;

  std::int64_t elements() const;
  std::size_t bytes() const { return static_cast<std::size_t>(elements()) * size_of(dtype); }
};

// The inputs of the model, in the order of its values.
std::vector<Field> fields_of(const ModelGraph& model);

// The number of token ids the model knows: [model] vocab, or else the rows of the embedding; 0 =
// not known.
std::int64_t vocabulary(const Config& config, const ModelGraph& model);

class RowSource {
 public:
  virtual ~RowSource() = default;

  virtual std::int64_t rows(Part part) const = 0;
  // Writes `field` of a row, in the field's dtype, to `to`, which has room for field.bytes(). Any
  // thread. Errors name the file: it is no longer the one that the data set was opened with.
  virtual Status read(Part part, std::int64_t row, const Field& field, std::byte* to) const = 0;
  // How many of a row's labels are counted.
  virtual std::int64_t counted_labels(Part part, std::int64_t row) const = 0;
  // The file that a row is in or begins in, and its line where a line is a row.
  virtual Location place_of(Part part, std::int64_t row) const = 0;
  // One line for the log: files, rows, what is held out.
  virtual std::string describe() const = 0;
};

// Opens the job's data set, and checks all of it. Errors have codes data.*.
Expected<std::unique_ptr<RowSource>> load_dataset(const Config& config, const ModelGraph& model);

// data.too_few_rows where `rows` to train on are less than a step needs.
Status enough_rows(const Config& config, std::int64_t rows);

}  // namespace piper
