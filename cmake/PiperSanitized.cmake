# Parts of a build once more under a sanitizer: the share of the presets asan and tsan that is quick
# enough for every build. None of it is for a build that has a sanitizer of its own.
#
# piper_sources_of(RESULT target...): the targets' own sources, as absolute paths.
# piper_sanitize(TARGET address|thread): compiles and links it so.
# piper_add_sanitized_copy(target [FOLDER folder] [ONLY regex] [PRECOMPILE header...]): a target
#   <target>_sanitized under the address sanitizer, with the same output name, in FOLDER. It links
#   the copies of what the original links, where there are copies: make those first. With ONLY,
#   sources that do not match are taken as the original's objects, and cost nothing.
# piper_add_sanitized_run(test [PROGRAM] [FILTER pattern]): the CTest test sanitized.<test>, of the
#   same objects as the test, linked with the copies; with PROGRAM the test itself, which then runs
#   the program's copy.
set(PIPER_SANITIZED_DIR "${PROJECT_BINARY_DIR}/sanitized")  # laid out like an installation

# Leaks are looked for too; leaks.supp has what LibTorch never frees.
set(PIPER_SANITIZER_ENVIRONMENT
  "ASAN_OPTIONS=strict_string_checks=1:detect_stack_use_after_return=1"
  "LSAN_OPTIONS=suppressions=${PROJECT_SOURCE_DIR}/tests/sanitized/leaks.supp:print_suppressions=0"
  "UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1")

function(piper_sources_of result)
  set(all "")
  foreach(target IN LISTS ARGN)
    get_target_property(folder ${target} SOURCE_DIR)
    get_target_property(files ${target} SOURCES)
    foreach(file IN LISTS files)
      cmake_path(ABSOLUTE_PATH file BASE_DIRECTORY "${folder}")
      list(APPEND all "${file}")
    endforeach()
  endforeach()
  set(${result} "${all}" PARENT_SCOPE)
endfunction()

function(piper_sanitize target sanitizer)
  target_compile_options(${target} PRIVATE -fsanitize=${sanitizer} -g1 -fno-omit-frame-pointer)
  target_link_options(${target} PRIVATE -fsanitize=${sanitizer})
endfunction()

# Each of `items` with the names of copied targets in place of their originals'.
function(piper_name_copies result)
  get_property(copied GLOBAL PROPERTY PIPER_SANITIZED_COPIES)
  set(renamed "")
  foreach(item IN LISTS ARGN)
    string(REGEX REPLACE "Piper::Core([,>]|$)" "piper_core\\1" item "${item}")
    string(REGEX REPLACE "Piper::Runtime([,>]|$)" "piper_runtime\\1" item "${item}")
    foreach(target IN LISTS copied)
      string(REGEX REPLACE "(^|[,:])${target}([,>]|$)" "\\1${target}_sanitized\\2" item "${item}")
    endforeach()
    list(APPEND renamed "${item}")
  endforeach()
  set(${result} "${renamed}" PARENT_SCOPE)
endfunction()

function(piper_add_sanitized_copy target)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "FOLDER;ONLY" "PRECOMPILE")
  set(copy ${target}_sanitized)
  get_target_property(type ${target} TYPE)
  if(type STREQUAL "EXECUTABLE")
    add_executable(${copy})
  else()
    string(REPLACE "_LIBRARY" "" kind "${type}")
    add_library(${copy} ${kind})
  endif()

  piper_sources_of(sources ${target})
  if(arg_ONLY)
    list(FILTER sources INCLUDE REGEX "${arg_ONLY}")
  endif()
  target_sources(${copy} PRIVATE ${sources})

  foreach(property IN ITEMS COMPILE_DEFINITIONS COMPILE_OPTIONS COMPILE_FEATURES LINK_OPTIONS
      LINK_LIBRARIES INTERFACE_LINK_LIBRARIES INTERFACE_COMPILE_DEFINITIONS PREFIX
      POSITION_INDEPENDENT_CODE C_VISIBILITY_PRESET CXX_VISIBILITY_PRESET VISIBILITY_INLINES_HIDDEN)
    get_target_property(value ${target} ${property})
    if(NOT value MATCHES "-NOTFOUND$")
      list(REMOVE_ITEM value LINKER:-z,defs)  # the sanitizer's functions are in the program
      piper_name_copies(value ${value})
      set_property(TARGET ${copy} PROPERTY ${property} "${value}")
    endif()
  endforeach()
  if(arg_ONLY)  # linked after what is instrumented: of inline functions the first is taken
    target_link_libraries(${copy} PRIVATE
      "$<FILTER:$<TARGET_OBJECTS:${target}>,EXCLUDE,${arg_ONLY}>")
  endif()
  set_target_properties(${copy} PROPERTIES
    OUTPUT_NAME ${target}
    ARCHIVE_OUTPUT_DIRECTORY "${PIPER_SANITIZED_DIR}/${arg_FOLDER}"
    LIBRARY_OUTPUT_DIRECTORY "${PIPER_SANITIZED_DIR}/${arg_FOLDER}"
    RUNTIME_OUTPUT_DIRECTORY "${PIPER_SANITIZED_DIR}/${arg_FOLDER}")
  piper_sanitize(${copy} address)
  # Not optimised: it compiles in half of the time. Containers check their indices too.
  target_compile_options(${copy} PRIVATE $<$<COMPILE_LANGUAGE:C,CXX>:-O0>)
  target_compile_definitions(${copy} PRIVATE _GLIBCXX_ASSERTIONS)

  if(arg_PRECOMPILE)
    target_precompile_headers(${copy} PRIVATE ${arg_PRECOMPILE})
    target_compile_options(${copy} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-fpch-preprocess>)
    if(PIPER_CCACHE)
      set_target_properties(${copy} PROPERTIES CXX_COMPILER_LAUNCHER
        "${CMAKE_COMMAND};-E;env;CCACHE_BASEDIR=${PROJECT_SOURCE_DIR};CCACHE_SLOPPINESS=pch_defines,time_macros;${PIPER_CCACHE}")
    endif()
  endif()
  set_property(GLOBAL APPEND PROPERTY PIPER_SANITIZED_COPIES ${target})
endfunction()

function(piper_add_sanitized_run test)
  cmake_parse_arguments(PARSE_ARGV 1 arg "PROGRAM" "FILTER" "")
  string(REGEX MATCH "^[a-z]+" label "${test}")
  set(name "sanitized.${test}")
  set(environment ${PIPER_SANITIZER_ENVIRONMENT})
  if(arg_PROGRAM)
    set(command ${test}_test)
    list(APPEND environment "PIPER_TEST_PROGRAM=$<TARGET_FILE:piper_sanitized>")
  else()
    set(command ${test}_sanitized)
    add_executable(${command} $<TARGET_OBJECTS:${test}_test>)
    set_target_properties(${command} PROPERTIES
      LINKER_LANGUAGE CXX
      RUNTIME_OUTPUT_DIRECTORY "${PIPER_SANITIZED_DIR}/tests")
    get_target_property(libraries ${test}_test LINK_LIBRARIES)
    piper_name_copies(libraries ${libraries})
    target_link_libraries(${command} PRIVATE ${libraries})
    piper_sanitize(${command} address)
  endif()
  add_test(NAME ${name} COMMAND ${command} "--gtest_filter=$<IF:$<BOOL:${arg_FILTER}>,${arg_FILTER},*>")
  set_tests_properties(${name} PROPERTIES LABELS "${label}" TIMEOUT 300 ENVIRONMENT "${environment}")
endfunction()
