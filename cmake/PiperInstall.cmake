# What an installation has beside the targets:
#   share/piper                     README, licence, docs, examples, the plugins' pages; links among them hold
#   share/man, bash-completion, zsh made from the command line's description by the program itself
#   include/piper-model, lib/cmake  find_package(piper-model), where the runtime is
# Components: sdk, the headers and package of the plugin ABI (sdk/CMakeLists.txt); everything else has none.
include(CMakePackageConfigHelpers)

set(piper_pages "${PROJECT_BINARY_DIR}/pages")
add_custom_command(
  OUTPUT "${piper_pages}/piper.1" "${piper_pages}/piper" "${piper_pages}/_piper"
  COMMAND piper completion man > "${piper_pages}/piper.1"
  COMMAND piper completion bash > "${piper_pages}/piper"
  COMMAND piper completion zsh > "${piper_pages}/_piper"
  DEPENDS piper
  VERBATIM)
file(MAKE_DIRECTORY "${piper_pages}")
add_custom_target(piper_pages ALL DEPENDS "${piper_pages}/piper.1" "${piper_pages}/piper" "${piper_pages}/_piper")
install(FILES "${piper_pages}/piper.1" DESTINATION share/man/man1)
install(FILES "${piper_pages}/piper" DESTINATION share/bash-completion/completions)
install(FILES "${piper_pages}/_piper" DESTINATION share/zsh/site-functions)
install(FILES "${piper_pages}/_piper" DESTINATION share/zsh/vendor-completions)  # Debian's folder

install(FILES README.md LICENSE DESTINATION share/piper)
install(DIRECTORY docs DESTINATION share/piper)
install(DIRECTORY examples DESTINATION share/piper REGEX "/examples/CMakeLists.txt$" EXCLUDE)
install(DIRECTORY plugins DESTINATION share/piper FILES_MATCHING PATTERN "README.md")

if(NOT PIPER_WITH_RUNTIME)
  return()
endif()

# The headers that "runtime/model/build.h" and "runtime/autograd/dropout.h" include, and no more.
foreach(header IN ITEMS
    core/base/diagnostic.h core/base/dtype.h core/base/ids.h core/base/label.h
    core/config/config.h core/config/raw.h
    core/ir/model_graph.h
    runtime/model/build.h runtime/autograd/dropout.h)
  cmake_path(GET header PARENT_PATH folder)
  install(FILES "${header}" DESTINATION "include/piper-model/${folder}")
endforeach()
# Their one dependency beside LibTorch: a header in the public domain.
find_path(PIPER_EXPECTED_INCLUDE tl/expected.hpp REQUIRED)
mark_as_advanced(PIPER_EXPECTED_INCLUDE)
install(FILES "${PIPER_EXPECTED_INCLUDE}/tl/expected.hpp" DESTINATION include/piper-model/tl)

string(REGEX MATCH "^[0-9]+\\.[0-9]+" PIPER_LIBTORCH_SERIES "${PIPER_LIBTORCH_VERSION}")
set(package_dir lib/cmake/piper-model)
configure_file(runtime/cmake/piper-model-config.cmake.in "${PROJECT_BINARY_DIR}/piper-model-config.cmake" @ONLY)
write_basic_package_version_file("${PROJECT_BINARY_DIR}/piper-model-config-version.cmake"
  COMPATIBILITY SameMinorVersion)
install(FILES
  "${PROJECT_BINARY_DIR}/piper-model-config.cmake" "${PROJECT_BINARY_DIR}/piper-model-config-version.cmake"
  runtime/cmake/PiperModel.cmake cmake/PiperFindLibTorch.cmake
  DESTINATION "${package_dir}")
