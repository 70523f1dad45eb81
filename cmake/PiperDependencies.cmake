# Found once, at the root, so that every folder sees the imported targets. All are Debian packages;
# `./dev setup` installs them.
find_package(Threads REQUIRED)
find_package(Boost 1.74 REQUIRED)  # Boost.DLL, headers only
find_package(CLI11 REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(spdlog REQUIRED)
find_package(tl-expected REQUIRED)
find_package(tomlplusplus REQUIRED)
if(PIPER_BUILD_TESTS)
  find_package(GTest 1.12 REQUIRED)
endif()
if(PIPER_BUILD_BENCH)
  find_package(benchmark REQUIRED)
endif()
