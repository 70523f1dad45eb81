# Piper::Paths: where tests and benchmarks find the source folder, the program and the plugins;
# absolute paths, as macros.
add_library(piper_paths INTERFACE)
add_library(Piper::Paths ALIAS piper_paths)
target_compile_definitions(piper_paths INTERFACE
  PIPER_SOURCE_DIR="${PROJECT_SOURCE_DIR}"
  PIPER_BINARY_DIR="${PROJECT_BINARY_DIR}"
  PIPER_PROGRAM="${CMAKE_RUNTIME_OUTPUT_DIRECTORY}/piper"
  PIPER_PLUGIN_DIR="${PIPER_PLUGIN_OUTPUT_DIRECTORY}")
