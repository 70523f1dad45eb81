#!/bin/bash
# installation.sh SOURCE BUILD WORK [LIBTORCH]
#
# Installs what was built, moves it, and uses it as who has never seen the checkout: with an empty environment. LIBTORCH is
# there where the build has a runtime.
set -euo pipefail
source=$1 build=$2 work=$3 libtorch=${4:-}
umask 022
rm -rf "$work"
mkdir -p "$work/built" "$work/elsewhere/bin" "$work/empty"
say() { echo "== $*"; }
fail() { echo "installation: error: $*"; exit 1; }

say "install, then move"
cmake --install "$build" --strip --prefix "$work/built/piper" >"$work/install.log"
mv "$work/built/piper" "$work/elsewhere/piper"
prefix=$work/elsewhere/piper
piper=$prefix/bin/piper
# The tools of the system, and nothing of who runs the tests.
alone() { env -i PATH=/usr/bin:/bin PIPER_CACHE="$work/cache" OMP_NUM_THREADS=1 "$@"; }

files=(share/piper/README.md share/piper/LICENSE share/piper/docs/commands.md share/piper/docs/plan.schema.json
  share/piper/examples/quickstart.toml share/piper/examples/outside_plugin/CMakeLists.txt
  share/piper/examples/outside_plugin/README.md share/man/man1/piper.1
  share/bash-completion/completions/piper share/zsh/site-functions/_piper
  include/piper/piper.h lib/cmake/piper-sdk/piper-sdk-config.cmake lib/piper/plugins/zero.so)
[ -z "$libtorch" ] || files+=(lib/libpiper_runtime.so include/piper-model/runtime/model/build.h
  lib/cmake/piper-model/piper-model-config.cmake share/piper/examples/two_tower/CMakeLists.txt)
for file in "${files[@]}"; do [ -s "$prefix/$file" ] || fail "not installed: $file"; done
find "$prefix" -perm /022 ! -type l | grep . && fail "others may write these"
find "$prefix" -name '*.a' | grep . && fail "static libraries are installed"

say "nothing names where it was built"
grep -rlF -e "$source" -e "$build" -e "$work/built" "$prefix" && fail "these do"
while read -r file; do
  paths=$(readelf -d "$file" 2>/dev/null | sed -n 's/.*R\(UN\)\?PATH).*\[\(.*\)\]/\2/p')
  case $paths in '' | '$ORIGIN' | '$ORIGIN/../lib') ;; *) fail "$file looks for libraries in $paths" ;; esac
done < <(find "$prefix" -type f \( -name '*.so' -o -path '*/bin/*' \))

say "every link of a page leads to an installed page"
python3 - "$prefix/share/piper/docs" <<'PYTHON'
import re, sys
from pathlib import Path
gone = [f"{page.name}: {link}" for page in Path(sys.argv[1]).glob("*.md")
        for link in re.findall(r"\]\(([^)#:\s]+)[^):\s]*\)", page.read_text()) if not (page.parent / link).exists()]
gone = [link for link in gone if not re.search(r"\.\./(CONTRIBUTING\.md|core/|sdk/|runtime/|tests/|bench/|plugins/[^/]*/[^R])", link)]
sys.exit("\n".join(gone) or 0)
PYTHON

say "version, prefix, completion, manual"
[ "$(alone "$piper" --prefix)" = "$prefix" ] || fail "--prefix"
alone "$piper" --version | tee "$work/version"
grep -q '^plugin ABI  [0-9]*\.[0-9]*$' "$work/version" && grep -q '^build       ' "$work/version" || fail "--version"
complete() { # WORD... the words that bash offers for the last one
  bash -c 'source "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _piper; printf "%s\n" "${COMPREPLY[@]}"' \
    - "$prefix/share/bash-completion/completions/piper" piper "$@"
}
[ "$(complete tr | sort | tr '\n' ' ')" = "trace train " ] || fail "completion of commands: $(complete tr)"
complete train --no | grep -qx -- --no-progress || fail "completion of options"
complete simulate job.toml --costs anal | grep -qx analytical || fail "completion of values"
complete trace com | grep -qx compare || fail "completion of a command's commands"
complete check job.toml --training.st | grep -qx -- --training.steps= || fail "completion of keys"
! command -v zsh >/dev/null || zsh -n "$prefix/share/zsh/site-functions/_piper" || fail "completion for zsh"
for words in '\-\-no\-progress' '\-\-costs' 'piper trace compare' 'Exit status' 'PIPER_LIBTORCH'; do
  grep -qF -- "$words" "$prefix/share/man/man1/piper.1" || fail "the manual page lacks $words"
done

say "plan without LibTorch"
cd "$work/empty"
sed "s|^\[model\]|&\ngraph = \"$source/tests/sdk/toy.graph\"|; /^name = \|^flavor = /d" \
  "$prefix/share/piper/examples/outside_plugin/everywhere.toml" | sed '/^\[\[strategy/,$d' >"$work/graph.toml"
alone "$piper" plan "$work/graph.toml" >"$work/graph.plan" || fail "piper plan"
[ -n "$libtorch" ] || { say "no runtime in this build"; exit 0; }
job=$prefix/share/piper/examples/quickstart.toml

say "LibTorch: what is said where there is none, and where it is the wrong one"
mkdir -p "$work/none"
printf '#!/bin/sh\n' >"$work/none/python3"
cp "$work/none/python3" "$work/none/python"
chmod +x "$work/none/"*
nowhere() { alone PATH="$work/none:/usr/bin:/bin" "$@"; }
refused() { # CODE TEXT COMMAND...
  local code=$1 text=$2 status=0
  shift 2
  "$@" >"$work/refused" 2>&1 || status=$?
  cat "$work/refused"
  [ $status = 2 ] && grep -qF "[$code]" "$work/refused" && grep -qF "$text" "$work/refused" || fail "expected $code, $text"
}
refused libtorch.missing "Piper needs LibTorch" nowhere "$piper" check "$job"
nowhere "$piper" --version | grep "not found: Piper needs LibTorch .*pip install torch==" || fail "--version does not say so"
refused libtorch.missing "PIPER_LIBTORCH='/nowhere'" alone PIPER_LIBTORCH=/nowhere "$piper" check "$job"
mkdir -p "$work/old/lib"
echo "__version__ = '1.13.1'" >"$work/old/version.py"
touch "$work/old/lib/libtorch_cpu.so"
refused libtorch.version "this is LibTorch 1.13.1" alone PIPER_LIBTORCH="$work/old" "$piper" check "$job"
sed -i 's/1.13.1/2.11.0/' "$work/old/version.py"
refused runtime.load "file too short" alone PIPER_LIBTORCH="$work/old" "$piper" check "$job"

say "LibTorch: each place of the rule"
finds() { # BECAUSE COMMAND...
  local because=$1
  shift
  "$@" --version | grep -F "$because: " || fail "expected LibTorch by $because"
  "$@" check "$job" | grep -qx ok || fail "piper check with LibTorch by $because"
}
printf '#!/bin/sh\necho %s\n' "$libtorch" >"$work/elsewhere/bin/python3"
chmod +x "$work/elsewhere/bin/python3"
finds "Python on PATH" alone PATH="$work/elsewhere/bin:/usr/bin:/bin" "$piper"
finds LD_LIBRARY_PATH nowhere LD_LIBRARY_PATH="/nothere:$libtorch/lib" "$piper"
ln -s "$libtorch" "$work/elsewhere/torch"
finds "beside the installation" nowhere "$piper"
ln -s "$libtorch" "$prefix/lib/torch"
finds "beside the runtime" nowhere "$piper"
finds PIPER_LIBTORCH nowhere PIPER_LIBTORCH="$libtorch" "$piper"

say "train"
alone "$piper" train "$job" --training.steps=2 >"$work/train" 2>&1 || { cat "$work/train"; fail "piper train"; }
grep "^done steps=2 " "$work/train" || fail "did not finish"

say "build both examples against it"
cp -r "$prefix/share/piper/examples/outside_plugin" "$prefix/share/piper/examples/two_tower" "$work/empty"
for example in outside_plugin two_tower; do
  alone cmake -S $example -B $example/build -DCMAKE_PREFIX_PATH="$(alone "$piper" --prefix)" \
    -DCMAKE_CXX_FLAGS=-Werror >"$work/configure.log" || { cat "$work/configure.log"; fail "$example is not configured"; }
  alone cmake --build $example/build >"$work/build.log" 2>&1 || { cat "$work/build.log"; fail "$example is not built"; }
done
cd two_tower
alone "$piper" train two_tower.toml --training.steps=3 | grep "^done steps=3 " || fail "the model does not train"
cd ../outside_plugin
alone "$piper" train halves.toml --plugin-dir build/lib/piper/plugins | grep "^done steps=3 " ||
  fail "the plugin does not train"

say "another LibTorch is refused when building, too"
alone PIPER_LIBTORCH=/nowhere cmake -S ../two_tower -B "$work/refused_build" -DCMAKE_PREFIX_PATH="$prefix" \
  >"$work/configure.log" 2>&1 && fail "find_package(piper-model) took no LibTorch"
tr -s '\n ' ' ' <"$work/configure.log" | grep -q "Piper needs LibTorch" || { cat "$work/configure.log"; fail "not told why"; }
