// piper_writes_model FOLDER CONFIG WEIGHTS: puts a model with these texts, and a tokenizer, into
// the folder. For model_crash_test.cc.
#include <cstdio>

#include "runtime/checkpoint/model_folder.h"

int main(int count, char** arguments) {
  if (count != 4) {
    return 2;
  }
  const piper::ModelFiles files{arguments[2],
                                {{"generation_config.json", "{}"}, {"tokenizer.json", "{}"}}};
  const auto write = [&](piper::OutputFile& file) { return file.write(arguments[3]); };
  const piper::Status status =
      piper::replace_model(arguments[1], files, write, {.code = "checkpoint.write"});
  if (!status) {
    std::fprintf(stderr, "%s\n", piper::to_string(status.error()).c_str());
  }
  return status ? 0 : 1;
}
