#!/bin/sh
# check_headers.sh INCLUDE_DIR COMPILER STANDARD
#
# Compiles each header alone, as a user of COMPILER in that language standard would, with warnings as errors.
set -eu
include=$1 compiler=$2 standard=$3
command -v "$compiler" >/dev/null || { echo "skipped: no $compiler here"; exit 77; }
case $standard in
  c++*) language=c++ headers="$include/piper/*.h $include/piper/*.hpp" ;;
  *) language=c headers="$include/piper/*.h" ;;
esac
for header in $headers; do
  warnings="-Wall -Wextra -pedantic -Werror -Wshadow -Wconversion"
  # Padding that nobody named is a field that nobody can use later.
  case $header in *.h) warnings="$warnings -Wpadded" ;; esac
  printf '#include <piper/%s>\n' "$(basename "$header")" |
    "$compiler" -std="$standard" $warnings -I"$include" -x "$language" -fsyntax-only \
      -DPIPER_PLUGIN_ID='"x"' -DPIPER_PLUGIN_VERSION='"1.0.0"' -DPIPER_MIN_HOST_MINOR=1u - ||
    { echo "$header does not compile as $standard with $compiler"; exit 1; }
done
