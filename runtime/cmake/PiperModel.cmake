# piper_add_model(NAME SOURCES source... [OUTPUT_DIRECTORY folder])
#
# Builds NAME.so, a model library, from C++ sources that include "runtime/model/build.h" and LibTorch's headers. It is
# for the Piper and the LibTorch that it is built with: the interface is C++.
#
# It lands in lib/ of the build folder, or in OUTPUT_DIRECTORY; a job names it with [model] library.
function(piper_add_model name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "OUTPUT_DIRECTORY" "SOURCES")
  if(arg_UNPARSED_ARGUMENTS OR NOT arg_SOURCES)
    message(FATAL_ERROR "piper_add_model(${name}): expected SOURCES, got: ${ARGN}")
  endif()
  if(NOT arg_OUTPUT_DIRECTORY)
    set(arg_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/lib")
  endif()
  add_library(${name} MODULE ${arg_SOURCES})
  target_link_libraries(${name} PRIVATE Piper::Model)
  target_compile_features(${name} PRIVATE cxx_std_20)
  # What it links to is loaded before it, by name: no run path.
  set_target_properties(${name} PROPERTIES
    PREFIX ""
    CXX_EXTENSIONS OFF
    SKIP_BUILD_RPATH ON
    LIBRARY_OUTPUT_DIRECTORY "${arg_OUTPUT_DIRECTORY}")
endfunction()
