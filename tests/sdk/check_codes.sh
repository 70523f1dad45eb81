#!/bin/sh
# check_codes.sh SOURCE: docs/plugins.md names every code that the plugin host reports, and no other.
set -eu
cd "$1"
areas='(plugin|option|manifest|abi|mesh|directive)'
# In the sources a code is a whole string literal; in the page, code in the first column of the table.
reported=$(grep -hoE "\"$areas\.[a-z_]+\"" core/plugin/*.cc core/plugin/*.h core/directives/mesh_ranks.cc | tr -d '"' | sort -u | grep -v '^piper')
documented=$(sed -n '/^## Codes/,$p' docs/plugins.md | grep '^|' | grep -oE "\`$areas\.[a-z_]+\`" | tr -d '`' | sort -u |
  grep -vxE 'manifest\.(syntax|too_long)') # of the TOML reader
if [ "$reported" != "$documented" ]; then
  echo "docs/plugins.md and core/plugin differ (< reported, > documented):"
  printf '%s\n' "$reported" >"${TMPDIR:-/tmp}/reported.$$"
  printf '%s\n' "$documented" | diff "${TMPDIR:-/tmp}/reported.$$" - || true
  rm -f "${TMPDIR:-/tmp}/reported.$$"
  exit 1
fi
