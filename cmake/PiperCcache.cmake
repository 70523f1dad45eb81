# Compiles through ccache where it is installed. Paths below the source folder are hashed relative
# to it, so a second clone of the project finds what the first one compiled.
find_program(PIPER_CCACHE ccache)
mark_as_advanced(PIPER_CCACHE)

if(PIPER_CCACHE)
  foreach(language IN ITEMS C CXX)
    if(NOT DEFINED CMAKE_${language}_COMPILER_LAUNCHER)
      set(CMAKE_${language}_COMPILER_LAUNCHER
        "${CMAKE_COMMAND}" -E env "CCACHE_BASEDIR=${PROJECT_SOURCE_DIR}" "${PIPER_CCACHE}")
    endif()
  endforeach()
endif()
