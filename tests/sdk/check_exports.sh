#!/bin/sh
# check_exports.sh PLUGIN... : each exports its entry, and nothing else.
set -eu
for plugin in "$@"; do
  symbols=$(nm -D --defined-only "$plugin" | awk '{print $3}')
  if [ "$symbols" != piper_plugin_entry_v0 ]; then
    echo "$plugin: expected piper_plugin_entry_v0 alone, got:" "$symbols"
    exit 1
  fi
done
