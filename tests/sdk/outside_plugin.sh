#!/bin/sh
# outside_plugin.sh SOURCE BUILD WORK [RUNTIME]
#
# What a stranger does: installs the SDK, builds plugins against it, drops them into a folder, and names them in jobs.
# With the file RUNTIME there, the jobs train; in any case they are planned from a captured graph.
set -eu
source=$1 build=$2 work=$3 runtime=${4:-}
umask 022
rm -rf "$work"
mkdir -p "$work/drop"
piper_of_build="$build/bin/piper"
say() { echo "== $*"; }
fail() { echo "outside_plugin: $*"; exit 1; }

say "install the SDK"
cmake --install "$build" --component sdk --prefix "$work/prefix" >"$work/install.log"
for file in include/piper/piper.h include/piper/strategy.hpp lib/cmake/piper-sdk/piper-sdk-config.cmake; do
  [ -f "$work/prefix/$file" ] || fail "not installed: $file"
done

say "build against it alone"
cp -r "$source/examples/outside_plugin" "$work/source"
cmake -S "$work/source" -B "$work/build" -DCMAKE_PREFIX_PATH="$work/prefix" -DCMAKE_BUILD_TYPE=Release \
  -DCMAKE_C_FLAGS=-Werror -DCMAKE_CXX_FLAGS=-Werror >"$work/configure.log"
cmake --build "$work/build" >"$work/build.log" || { cat "$work/build.log"; exit 1; }
"$source/tests/sdk/check_exports.sh" "$work/build/lib/piper/plugins/"*.so

say "a project in C alone"
mkdir "$work/c_only"
cp "$work/source"/everywhere.* "$work/c_only"
cat >"$work/c_only/CMakeLists.txt" <<'CMAKE'
cmake_minimum_required(VERSION 3.23)
project(c_only LANGUAGES C)
find_package(piper-sdk 0.3 REQUIRED)
piper_add_strategy(everywhere SOURCES everywhere.c MANIFEST everywhere.manifest.toml)
CMAKE
cmake -S "$work/c_only" -B "$work/c_build" -DCMAKE_PREFIX_PATH="$work/prefix" \
  -DCMAKE_C_FLAGS="-flto -ffunction-sections -Wl,--gc-sections" >>"$work/configure.log"
cmake --build "$work/c_build" >>"$work/build.log" || { cat "$work/build.log"; exit 1; }
strip "$work/c_build/lib/piper/plugins/everywhere.so" # the manifest stays

say "a project in C++ alone, with warnings as errors"
mkdir "$work/cxx_only"
cp "$work/source"/halves.* "$work/cxx_only"
cat >"$work/cxx_only/CMakeLists.txt" <<'CMAKE'
cmake_minimum_required(VERSION 3.23)
project(cxx_only LANGUAGES CXX)
find_package(piper-sdk 0.3 REQUIRED)
piper_add_strategy(halves SOURCES halves.cc action.cc MANIFEST halves.manifest.toml)
CMAKE
cat >"$work/cxx_only/action.cc" <<'SOURCE'
#include <piper/strategy.hpp>
piper_action action(std::uint32_t stage, std::uint32_t microbatch, piper_pass pass);
piper_action action(std::uint32_t stage, std::uint32_t microbatch, piper_pass pass) {
  return {stage, microbatch, pass, 0};
}
SOURCE
for compiler in g++ clang++; do
  if command -v "$compiler" >/dev/null; then
    cmake -S "$work/cxx_only" -B "$work/cxx_$compiler" -DCMAKE_PREFIX_PATH="$work/prefix" -DCMAKE_BUILD_TYPE=Release \
      -DCMAKE_CXX_COMPILER="$compiler" -DCMAKE_CXX_FLAGS="-Wall -Wextra -Wconversion -pedantic -Werror" >>"$work/configure.log"
    cmake --build "$work/cxx_$compiler" >"$work/build.log" 2>&1 || { cat "$work/build.log"; fail "$compiler warns"; }
    "$piper_of_build" plugins --plugin-dir "$work/cxx_$compiler/lib/piper/plugins" | grep -q "^halves 1.0.0: " ||
      fail "the manifest that $compiler has written is not read"
  fi
done

say "another version is refused"
cat >"$work/c_only/CMakeLists.txt" <<'CMAKE'
cmake_minimum_required(VERSION 3.23)
project(c_only LANGUAGES C)
find_package(piper-sdk 1 REQUIRED)
CMAKE
if cmake -S "$work/c_only" -B "$work/refused" -DCMAKE_PREFIX_PATH="$work/prefix" >"$work/refused.log" 2>&1; then
  fail "find_package(piper-sdk 1) took the SDK 0.3"
fi

say "drop them into a folder"
cp "$work/build/lib/piper/plugins/halves.so" "$work/c_build/lib/piper/plugins/everywhere.so" "$work/drop"
piper=$piper_of_build
"$piper" plugins --plugin-dir "$work/drop" >"$work/plugins.txt"
cat "$work/plugins.txt"
for id in halves everywhere; do
  grep -q "^$id 1.0.0: " "$work/plugins.txt" || fail "$id is not listed"
done
"$piper" plugins --json --plugin-dir "$work/drop" | grep -q '"name": "eager"' || fail "no option in the JSON"

say "plan with them"
for id in halves everywhere; do
  sed "s|^\[model\]|&\ngraph = \"$source/tests/sdk/toy.graph\"|; /^name = \|^flavor = /d" "$work/source/$id.toml" >"$work/$id.toml"
  "$piper" plan "$work/$id.toml" --plugin-dir "$work/drop" >"$work/$id.plan" || fail "piper plan $id"
done
grep -q "order_chain\|backward" "$work/halves.plan" || fail "the plan has no backward"
if "$piper" check "$work/halves.toml" >"$work/missing.txt" 2>&1; then
  fail "a job ran without its plugin"
fi
grep -q "plugin.not_found" "$work/missing.txt" || fail "not told that the plugin is missing"

if [ -n "$runtime" ] && [ -f "$runtime" ]; then
  for id in halves everywhere; do
    say "train with $id"
    "$piper" train "$work/source/$id.toml" --plugin-dir "$work/drop" >"$work/$id.train" || { cat "$work/$id.train"; fail "piper train $id"; }
    grep "^done steps=3 " "$work/$id.train" || fail "$id did not finish"
  done
fi
