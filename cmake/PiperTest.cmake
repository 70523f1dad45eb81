# piper_add_test(NAME LABEL label SOURCES source... [LIBS target...] [TORCH] [WHOLE] [TIMEOUT seconds])
#
# Builds tests/bin/LABEL_NAME_test with GoogleTest's main and registers it with CTest under LABEL
# (core, sdk, runtime, parity, gpu or tools). It links Piper::Core, or, with TORCH, Piper::Runtime,
# which holds core: never name both. Of tests/support it takes what it uses.
#
# Each TEST is a CTest test of its own. With WHOLE the binary is one, called LABEL.NAME; with TORCH too,
# since loading LibTorch costs 0.2 s a process. TORCH tests are left out where the runtime is.
#
# The sources see the macros of Piper::Paths (PIPER_SOURCE_DIR and so on).
include(GoogleTest)

set(PIPER_TEST_TIMEOUT_FACTOR 1 CACHE STRING
  "How many times its timeout a test may take; the presets of sanitizers allow more")

function(piper_add_test name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "TORCH;WHOLE" "LABEL;TIMEOUT" "SOURCES;LIBS")
  if(arg_UNPARSED_ARGUMENTS OR NOT arg_LABEL OR NOT arg_SOURCES)
    message(FATAL_ERROR "piper_add_test(${name}): expected LABEL and SOURCES, got: ${ARGN}")
  endif()
  if(arg_TORCH AND NOT PIPER_WITH_RUNTIME)
    return()
  endif()
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 120)
  endif()

  math(EXPR timeout "${arg_TIMEOUT} * ${PIPER_TEST_TIMEOUT_FACTOR}")

  set(target "${arg_LABEL}_${name}_test")
  add_executable(${target} ${arg_SOURCES})
  set_target_properties(${target} PROPERTIES
    RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/tests/bin")
  target_link_libraries(${target} PRIVATE
    ${arg_LIBS} piper_test_support GTest::gtest_main $<IF:$<BOOL:${arg_TORCH}>,Piper::Runtime,Piper::Core>
    Piper::Paths piper_warnings)

  # One label only: gtest_discover_tests flattens a list, and loses the timeout after it.
  if(arg_TORCH OR arg_WHOLE)
    set(test "${arg_LABEL}.${name}")
    add_test(NAME ${test} COMMAND ${target})
    set_tests_properties(${test} PROPERTIES LABELS ${arg_LABEL} TIMEOUT ${timeout})
    if(arg_LABEL STREQUAL "gpu")
      set_tests_properties(${test} PROPERTIES SKIP_REGULAR_EXPRESSION "\\[  SKIPPED \\]")
    endif()
  else()
    gtest_discover_tests(${target}
      DISCOVERY_TIMEOUT 60
      PROPERTIES LABELS ${arg_LABEL} TIMEOUT ${timeout})
  endif()
endfunction()
