# piper_add_fuzzer(NAME SOURCE): with -DPIPER_FUZZ=ON and clang, tests/bin/fuzz_NAME, a libFuzzer
# program over an instrumented core.
#
#   cmake -B build/fuzz -G Ninja -DPIPER_FUZZ=ON -DPIPER_WITH_RUNTIME=OFF -DCMAKE_CXX_COMPILER=clang++
#   build/fuzz/tests/bin/fuzz_plan [CORPUS...] -max_total_time=60
option(PIPER_FUZZ "Build the libFuzzer targets; needs clang" OFF)

# Core of a build for fuzzing shows the fuzzer its branches, and stops at what a sanitizer finds.
function(piper_instrument_for_fuzzing target)
  if(PIPER_FUZZ)
    target_compile_options(${target} PRIVATE -g1 -fsanitize=fuzzer-no-link,address,undefined
      -fno-sanitize-recover=undefined)
    target_link_options(${target} PUBLIC -fsanitize=address,undefined)
  endif()
endfunction()

function(piper_add_fuzzer name source)
  if(NOT PIPER_FUZZ)
    return()
  endif()
  add_executable(fuzz_${name} ${source} ${ARGN})
  set_target_properties(fuzz_${name} PROPERTIES
    RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/tests/bin")
  target_link_libraries(fuzz_${name} PRIVATE Piper::Core Piper::Paths piper_warnings)
  target_compile_options(fuzz_${name} PRIVATE -g1 -fsanitize=fuzzer,address,undefined)
  target_link_options(fuzz_${name} PRIVATE -fsanitize=fuzzer,address,undefined)
endfunction()
