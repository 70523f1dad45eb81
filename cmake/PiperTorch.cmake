# Piper::Torch: LibTorch's CPU half (libtorch_cpu and libc10), without find_package(Torch), which
# would ask for nvcc.
# Piper::FmtFirst: for a target whose sources see both spdlog and Torch. Torch ships another fmt
# in its include folder, and spdlog does not compile with that one.
#
# LibTorch is where PiperFindLibTorch finds it; last in .piper/libtorch, made by `./dev setup`.
include(PiperFindLibTorch)
piper_find_libtorch(piper_libtorch PIPER_LIBTORCH_VERSION LAST "${PROJECT_SOURCE_DIR}/.piper/libtorch")
if(NOT piper_libtorch)
  message(FATAL_ERROR
    "LibTorch not found. Run `./dev setup` to fetch it, or set PIPER_LIBTORCH to the folder that "
    "holds include/ and lib/libtorch_cpu.so, or build without the runtime "
    "(-DPIPER_WITH_RUNTIME=OFF, preset `planner`). ${PIPER_LIBTORCH_VERSION}")
endif()
if(NOT PIPER_LIBTORCH_VERSION)
  message(FATAL_ERROR "${piper_libtorch}: expected version.py or build-version, which say which LibTorch it is")
endif()
set(PIPER_LIBTORCH_LIBDIR "${piper_libtorch}/lib")
message(STATUS "LibTorch: ${piper_libtorch} (${PIPER_LIBTORCH_VERSION})")

# Where the program looks for it: the build tree has what an installation may have.
file(MAKE_DIRECTORY "${CMAKE_LIBRARY_OUTPUT_DIRECTORY}")
file(CREATE_LINK "${piper_libtorch}" "${CMAKE_LIBRARY_OUTPUT_DIRECTORY}/torch" SYMBOLIC)

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
