# piper_add_strategy(NAME SOURCES source... [MANIFEST file] [OUTPUT_DIRECTORY folder])
#
# Builds NAME.so, a Piper plugin, from C or C++ sources that see the SDK alone. The manifest (NAME.toml where none is
# given) goes into the library's section "piper.manifest", where Piper reads it before it loads the library. Its id,
# version and abi are passed to the sources as PIPER_PLUGIN_ID, PIPER_PLUGIN_VERSION and PIPER_MIN_HOST_MINOR, so that
# the entry agrees with it. The library exports its entry and nothing else.
#
# It lands in lib/piper/plugins of the build folder, or in OUTPUT_DIRECTORY.
function(piper_add_strategy name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "MANIFEST;OUTPUT_DIRECTORY" "SOURCES")
  if(arg_UNPARSED_ARGUMENTS OR NOT arg_SOURCES)
    message(FATAL_ERROR "piper_add_strategy(${name}): expected SOURCES, got: ${ARGN}")
  endif()
  if(NOT arg_MANIFEST)
    set(arg_MANIFEST "${name}.toml")
  endif()
  file(REAL_PATH "${arg_MANIFEST}" manifest BASE_DIRECTORY "${CMAKE_CURRENT_SOURCE_DIR}")
  if(NOT EXISTS "${manifest}")
    message(FATAL_ERROR "piper_add_strategy(${name}): no manifest ${manifest}")
  endif()
  if(NOT arg_OUTPUT_DIRECTORY)
    set(arg_OUTPUT_DIRECTORY "${PIPER_PLUGIN_OUTPUT_DIRECTORY}")
    if(NOT arg_OUTPUT_DIRECTORY)
      set(arg_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/lib/piper/plugins")
    endif()
  endif()
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${manifest}")

  piper_embed_manifest("${manifest}" "${name}" embedded)
  add_library(${name} MODULE ${arg_SOURCES} "${embedded}")
  target_link_libraries(${name} PRIVATE Piper::SDK)
  piper_manifest_definitions("${manifest}" definitions)
  target_compile_definitions(${name} PRIVATE ${definitions})
  set_target_properties(${name} PROPERTIES
    PREFIX ""
    C_VISIBILITY_PRESET hidden
    CXX_VISIBILITY_PRESET hidden
    VISIBILITY_INLINES_HIDDEN ON
    LIBRARY_OUTPUT_DIRECTORY "${arg_OUTPUT_DIRECTORY}"
    LINK_DEPENDS "${CMAKE_CURRENT_FUNCTION_LIST_DIR}/plugin.map")
  get_property(languages GLOBAL PROPERTY ENABLED_LANGUAGES)
  if("CXX" IN_LIST languages)
    target_compile_features(${name} PRIVATE cxx_std_17)
  endif()
  # The version script is what matters: without it, what the plugin links statically is exported, and other copies of it
  # in the process are taken for it. Nothing of the plugin may be missing when it is linked, nor be looked up later.
  target_link_options(${name} PRIVATE
    "LINKER:--version-script=${CMAKE_CURRENT_FUNCTION_LIST_DIR}/plugin.map"
    LINKER:--exclude-libs,ALL LINKER:-z,now LINKER:-z,nodelete)
  piper_has_sanitizer(sanitizer)
  if(NOT sanitizer)  # a sanitizer's runtime is in the program
    target_link_options(${name} PRIVATE LINKER:-z,defs)
  endif()
  # Piper refuses what others could have written, whatever the umask was.
  add_custom_command(TARGET ${name} POST_BUILD
    COMMAND chmod go-w "$<TARGET_FILE:${name}>" "$<TARGET_FILE_DIR:${name}>" VERBATIM)
endfunction()

# A source that puts the manifest's bytes into the section; kept by --gc-sections, strip and -flto.
function(piper_embed_manifest manifest name result)
  file(READ "${manifest}" hex HEX)
  if(hex STREQUAL "")
    message(FATAL_ERROR "piper_add_strategy(${name}): ${manifest} is empty")
  endif()
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${hex}")
  string(REGEX REPLACE "((0x[0-9a-f][0-9a-f],){20})" "\\1\n  " bytes "${bytes}")
  get_property(languages GLOBAL PROPERTY ENABLED_LANGUAGES)
  set(extension cc)
  if("C" IN_LIST languages)
    set(extension c)
  endif()
  set(source "${CMAKE_CURRENT_BINARY_DIR}/${name}_manifest.${extension}")
  file(CONFIGURE OUTPUT "${source}" @ONLY CONTENT
"#ifdef __cplusplus
extern \"C\" {
#endif
#if defined(__has_attribute)
#if __has_attribute(retain)
#define PIPER_KEPT used, retain,
#endif
#endif
#ifndef PIPER_KEPT
#define PIPER_KEPT used,
#endif
extern const unsigned char piper_manifest[];
__attribute__((PIPER_KEPT section(\"piper.manifest\"))) const unsigned char piper_manifest[] = {
  @bytes@
};
#ifdef __cplusplus
}
#endif
")
  set(${result} "${source}" PARENT_SCOPE)
endfunction()

function(piper_manifest_definitions manifest result)
  foreach(key IN ITEMS id version abi)
    file(STRINGS "${manifest}" ${key} REGEX "^${key} *= *\"[^\"]*\"" LIMIT_COUNT 1)
    string(REGEX REPLACE "^${key} *= *\"([^\"]*)\".*" "\\1" ${key} "${${key}}")
    if(${key} STREQUAL "")
      message(FATAL_ERROR "${manifest}: expected a line '${key} = \"...\"'")
    endif()
  endforeach()
  string(REGEX REPLACE "^[0-9]+\\.([0-9]+).*" "\\1" minor "${abi}")
  set(${result} "PIPER_PLUGIN_ID=\"${id}\"" "PIPER_PLUGIN_VERSION=\"${version}\"" "PIPER_MIN_HOST_MINOR=${minor}u" PARENT_SCOPE)
endfunction()

function(piper_has_sanitizer result)
  string(TOUPPER "${CMAKE_BUILD_TYPE}" config)
  get_directory_property(options COMPILE_OPTIONS)
  set(flags "${CMAKE_C_FLAGS} ${CMAKE_CXX_FLAGS} ${CMAKE_C_FLAGS_${config}} ${CMAKE_CXX_FLAGS_${config}} ${options}")
  string(FIND "${flags}" "-fsanitize" at)
  if(at EQUAL -1)
    set(${result} OFF PARENT_SCOPE)
  else()
    set(${result} ON PARENT_SCOPE)
  endif()
endfunction()
