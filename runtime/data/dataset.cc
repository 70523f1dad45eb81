#include "runtime/data/dataset.h"

#include "runtime/data/jsonl.h"
#include "runtime/data/text.h"

namespace piper {

std::int64_t Field::elements() const {
  std::int64_t product = 1;
  for (const std::int64_t size : shape) {
    product *= size;
  }
  return product;
}

std::vector<Field> fields_of(const ModelGraph& model) {
  std::vector<Field> fields;
  for (std::uint32_t i = 0; i < model.values.size(); ++i) {
    const Value& value = model.values[i];
    if (!value.is_input()) {
      continue;
    }
    Field field;
    field.value = static_cast<ValueId>(i);
    field.name = value.name;
    field.dtype = value.dtype;
    field.labels = field.value == model.labels;
    for (std::size_t d = 1; d < value.shape.size(); ++d) {
      field.shape.push_back(value.shape[d].fixed);
    }
    fields.push_back(std::move(field));
  }
  return fields;
}

std::int64_t vocabulary(const Config& config, const ModelGraph& model) {
  if (config.model.vocab > 0) {
    return config.model.vocab;
  }
  for (const Parameter& parameter : model.parameters) {
    if (parameter.name == "model.embed_tokens.weight" && parameter.shape.size() == 2) {
      return parameter.shape[0];
    }
  }
  return 0;
}

Expected<std::unique_ptr<RowSource>> load_dataset(const Config& config, const ModelGraph& model) {
  PIPER_ASSIGN(std::unique_ptr<RowSource> source, config.training.dataset == Dataset::text
                                                      ? load_text(config, model)
                                                      : load_jsonl(config, model));
  PIPER_TRY(enough_rows(config, source->rows(Part::training)));
  return source;
}

Status enough_rows(const Config& config, std::int64_t rows) {
  if (rows < config.training.global_batch_size) {
    return fail(error("data.too_few_rows",
                      "the data to train on has " + std::to_string(rows) +
                          (rows == 1 ? " row" : " rows") +
                          " of seq_len = " + std::to_string(config.training.seq_len) +
                          ", expected at least global_batch_size = " +
                          std::to_string(config.training.global_batch_size),
                      config.where("training.dataset_path")));
  }
  return {};
}

}  // namespace piper
