# piper_find_libtorch(FOLDER VERSION [FIRST folder...] [LAST folder...] [PYTHON] [SERIES 2.11])
#
# Sets FOLDER to a LibTorch, which holds include/ and lib/libtorch_cpu.so, and VERSION to what it says it is (2.11.0).
# Looked for in this order; with SERIES, those of another are passed over:
#   1. PIPER_LIBTORCH, of CMake or the environment: nothing else where it is set
#   2. FIRST
#   3. CMAKE_PREFIX_PATH and Torch_DIR, as for find_package(Torch)
#   4. LAST
#   5. with PYTHON: the package torch of the python3 that is first on PATH
# Without one, FOLDER is empty and VERSION says where it was looked for.
set(PIPER_LIBTORCH "" CACHE PATH "LibTorch: the folder that holds include/ and lib/libtorch_cpu.so")

function(piper_libtorch_version folder result)
  set(version "")
  foreach(file IN ITEMS version.py build-version)  # of a wheel, of an archive
    if(NOT version AND EXISTS "${folder}/${file}")
      file(STRINGS "${folder}/${file}" line REGEX "^(__version__ = ')?[0-9]+\\.[0-9]+" LIMIT_COUNT 1)
      string(REGEX MATCH "[0-9]+\\.[0-9]+\\.[0-9]+" version "${line}")
    endif()
  endforeach()
  set(${result} "${version}" PARENT_SCOPE)
endfunction()

function(piper_find_libtorch folder_result version_result)
  cmake_parse_arguments(PARSE_ARGV 2 arg "PYTHON" "SERIES" "FIRST;LAST")
  set(candidates "${PIPER_LIBTORCH}")
  if(NOT candidates)
    cmake_path(CONVERT "$ENV{PIPER_LIBTORCH}" TO_CMAKE_PATH_LIST candidates)
  endif()
  if(NOT candidates)
    set(candidates ${arg_FIRST})
    cmake_path(CONVERT "$ENV{CMAKE_PREFIX_PATH}" TO_CMAKE_PATH_LIST from_environment)
    foreach(prefix IN LISTS CMAKE_PREFIX_PATH from_environment)
      list(APPEND candidates "${prefix}" "${prefix}/../..")  # the wheel's prefix is share/cmake
    endforeach()
    if(Torch_DIR)
      list(APPEND candidates "${Torch_DIR}/../../..")
    endif()
    list(APPEND candidates ${arg_LAST})
    find_program(PIPER_PYTHON_WITH_TORCH NAMES python3 python)
    mark_as_advanced(PIPER_PYTHON_WITH_TORCH)
    if(arg_PYTHON AND PIPER_PYTHON_WITH_TORCH)
      execute_process(
        COMMAND "${PIPER_PYTHON_WITH_TORCH}" -c
          "import importlib.util as u\ns = u.find_spec('torch')\nprint(s.submodule_search_locations[0] if s else '')"
        OUTPUT_VARIABLE package OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
      list(APPEND candidates ${package})
    endif()
  endif()
  set(looked_in "")
  foreach(candidate IN LISTS candidates)
    if(EXISTS "${candidate}/lib/libtorch_cpu.so" AND
       EXISTS "${candidate}/include/torch/csrc/api/include/torch/torch.h")
      file(REAL_PATH "${candidate}" candidate)
      piper_libtorch_version("${candidate}" version)
      if(NOT arg_SERIES OR version MATCHES "^${arg_SERIES}\\.")
        set(${folder_result} "${candidate}" PARENT_SCOPE)
        set(${version_result} "${version}" PARENT_SCOPE)
        return()
      endif()
      string(APPEND looked_in "\n  ${candidate} (LibTorch ${version})")
    else()
      string(APPEND looked_in "\n  ${candidate}")
    endif()
  endforeach()
  set(${folder_result} "" PARENT_SCOPE)
  set(${version_result} "Looked in:${looked_in}" PARENT_SCOPE)
endfunction()
