# Piper::Torch: LibTorch's CPU half (libtorch_cpu and libc10), without find_package(Torch), which
# would ask for nvcc.
# Piper::FmtFirst: for a target whose sources see both spdlog and Torch. Torch ships another fmt
# in its include folder, and spdlog does not compile with that one.
#
# LibTorch is looked for in this order:
#   1. PIPER_LIBTORCH, a folder that holds include/ and lib/
#   2. CMAKE_PREFIX_PATH and Torch_DIR, as for find_package(Torch)
#   3. .piper/libtorch, made by `./dev setup`
set(PIPER_LIBTORCH "" CACHE PATH "LibTorch: the folder that holds include/ and lib/libtorch_cpu.so")

function(piper_find_libtorch result)
  set(candidates "${PIPER_LIBTORCH}")
  if(NOT PIPER_LIBTORCH)
    cmake_path(CONVERT "$ENV{CMAKE_PREFIX_PATH}" TO_CMAKE_PATH_LIST from_environment)
    foreach(prefix IN LISTS CMAKE_PREFIX_PATH from_environment)
      list(APPEND candidates "${prefix}" "${prefix}/../..")  # the wheel's prefix is share/cmake
    endforeach()
    if(Torch_DIR)
      list(APPEND candidates "${Torch_DIR}/../../..")
    endif()
    list(APPEND candidates "${PROJECT_SOURCE_DIR}/.piper/libtorch")
  endif()
  foreach(candidate IN LISTS candidates)
    if(EXISTS "${candidate}/lib/libtorch_cpu.so" AND
       EXISTS "${candidate}/include/torch/csrc/api/include/torch/torch.h")
      file(REAL_PATH "${candidate}" candidate)
      set(${result} "${candidate}" PARENT_SCOPE)
      return()
    endif()
  endforeach()
  list(JOIN candidates "\n  " looked_in)
  message(FATAL_ERROR
    "LibTorch not found. Run `./dev setup` to fetch it, or set PIPER_LIBTORCH to the folder that "
    "holds include/ and lib/libtorch_cpu.so, or build without the runtime "
    "(-DPIPER_WITH_RUNTIME=OFF, preset `planner`). Looked in:\n  ${looked_in}")
endfunction()

piper_find_libtorch(piper_libtorch)
set(PIPER_LIBTORCH_LIBDIR "${piper_libtorch}/lib")
message(STATUS "LibTorch: ${piper_libtorch}")

foreach(library IN ITEMS torch_cpu c10)
  add_library(piper_${library} SHARED IMPORTED)
  set_target_properties(piper_${library} PROPERTIES
    IMPORTED_LOCATION "${PIPER_LIBTORCH_LIBDIR}/lib${library}.so")
endforeach()

# Torch's kernels register themselves in static constructors: keep the library even where no symbol
# of it is used.
set(CMAKE_LINK_LIBRARY_USING_piper_needed
  "LINKER:--push-state,--no-as-needed" "<LINK_ITEM>" "LINKER:--pop-state")
set(CMAKE_LINK_LIBRARY_USING_piper_needed_SUPPORTED TRUE)

add_library(piper_torch INTERFACE)
add_library(Piper::Torch ALIAS piper_torch)
target_include_directories(piper_torch SYSTEM INTERFACE
  "${piper_libtorch}/include"
  "${piper_libtorch}/include/torch/csrc/api/include")
# The libraries are built with NDEBUG, and asserts inlined from headers fire falsely without it.
target_compile_definitions(piper_torch INTERFACE NDEBUG)
target_link_libraries(piper_torch INTERFACE
  $<LINK_LIBRARY:piper_needed,piper_torch_cpu> piper_c10 Threads::Threads)
# libtorch_cpu names CUDA libraries that a CPU machine lacks in part.
target_link_options(piper_torch INTERFACE LINKER:--allow-shlib-undefined)

# A folder with nothing but the system's fmt in it. -I comes before every -isystem.
find_package(fmt REQUIRED)
get_target_property(fmt_include fmt::fmt INTERFACE_INCLUDE_DIRECTORIES)
file(MAKE_DIRECTORY "${PROJECT_BINARY_DIR}/fmt_first")
file(CREATE_LINK "${fmt_include}/fmt" "${PROJECT_BINARY_DIR}/fmt_first/fmt" SYMBOLIC)
add_library(piper_fmt_first INTERFACE)
add_library(Piper::FmtFirst ALIAS piper_fmt_first)
target_include_directories(piper_fmt_first INTERFACE "${PROJECT_BINARY_DIR}/fmt_first")
