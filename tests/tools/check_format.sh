#!/bin/bash
# Checks that every tracked source is formatted; `./dev format` formats them.
# usage: check_format.sh [ROOT]
set -euo pipefail
cd "${1:-.}"

formatter=$(command -v clang-format-14 clang-format | head -1)
if ! "$formatter" --version | grep -q 'version 14\.'; then
  echo "skipped: clang-format 14 is not here, and other versions format otherwise"
  exit 77
fi

unformatted=$(git ls-files -z -- '*.h' '*.hpp' '*.c' '*.cc' |
  xargs -0r -n 32 -P 2 "$formatter" --dry-run 2>&1 | sed -n 's/: warning: .*//p' | cut -d: -f1,2 | sort -Vu)
[ -n "$unformatted" ] || exit 0
echo "not formatted; run ./dev format:"
echo "$unformatted"
exit 1
