#!/bin/sh
# check_exports.sh PLUGIN... : each exports its entry and nothing else, and is linked as the SDK says.
set -eu
for plugin in "$@"; do
  symbols=$(nm -D --defined-only "$plugin" | awk '{print $3}')
  if [ "$symbols" != piper_plugin_entry_v0 ]; then
    echo "$plugin: expected piper_plugin_entry_v0 alone, got:" "$symbols"
    exit 1
  fi
  for flag in NOW NODELETE; do
    readelf -dW "$plugin" | grep "(FLAGS_1)" | grep -qw "$flag" || {
      echo "$plugin: expected the flag $flag"
      exit 1
    }
  done
done
