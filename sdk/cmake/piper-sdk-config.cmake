# find_package(piper-sdk): Piper::SDK, the headers, and piper_add_strategy(), which builds a plugin from them.
include("${CMAKE_CURRENT_LIST_DIR}/piper-sdk-targets.cmake")
include("${CMAKE_CURRENT_LIST_DIR}/PiperStrategy.cmake")
