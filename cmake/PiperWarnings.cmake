# Piper::Warnings: the warnings that our own sources are held to; link it PRIVATE.
# Whether a warning is an error is the presets' choice (CMAKE_COMPILE_WARNING_AS_ERROR).
add_library(piper_warnings INTERFACE)
add_library(Piper::Warnings ALIAS piper_warnings)
target_compile_options(piper_warnings INTERFACE
  $<$<COMPILE_LANGUAGE:C,CXX>:-Wall>
  $<$<COMPILE_LANGUAGE:C,CXX>:-Wextra>
  $<$<COMPILE_LANGUAGE:C,CXX>:-Wshadow>)
# g++ 12 warns falsely of `"literal" + std::string` (GCC bug 105651).
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  target_compile_options(piper_warnings INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Wno-restrict>)
endif()

# __FILE__ starts at the repository root, as in core/ir/graph.cc, however the compiler was called.
cmake_path(RELATIVE_PATH PROJECT_SOURCE_DIR BASE_DIRECTORY "${PROJECT_BINARY_DIR}"
  OUTPUT_VARIABLE source_from_binary)
target_compile_options(piper_warnings INTERFACE
  $<$<COMPILE_LANGUAGE:C,CXX>:-fmacro-prefix-map=${PROJECT_SOURCE_DIR}/=>
  $<$<COMPILE_LANGUAGE:C,CXX>:-fmacro-prefix-map=${source_from_binary}/=>)
