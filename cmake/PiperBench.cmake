# piper_add_bench(NAME SOURCES source... [LIBS target...] [TORCH])
#
# Builds bin/piper_bench_NAME with Google Benchmark, for `./dev bench NAME`; the sources hold main.
# It links Piper::Core, or, with TORCH, Piper::Runtime, and is left out where the runtime is.
function(piper_add_bench name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "TORCH" "" "SOURCES;LIBS")
  if(arg_UNPARSED_ARGUMENTS OR NOT arg_SOURCES)
    message(FATAL_ERROR "piper_add_bench(${name}): expected SOURCES, got: ${ARGN}")
  endif()
  if(arg_TORCH AND NOT PIPER_WITH_RUNTIME)
    return()
  endif()

  set(target "piper_bench_${name}")
  add_executable(${target} ${arg_SOURCES} "${PROJECT_SOURCE_DIR}/bench/report.cc")
  target_link_libraries(${target} PRIVATE
    ${arg_LIBS} benchmark::benchmark CLI11::CLI11 $<IF:$<BOOL:${arg_TORCH}>,Piper::Runtime,Piper::Core>
    Piper::Paths piper_warnings)
endfunction()
