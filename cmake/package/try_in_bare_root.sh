#!/bin/bash
# try_in_bare_root.sh WHEEL DEB WHEELS CACHE
#
# Tries both packages as a newcomer would, in a bare Debian root. WHEELS is a folder with the wheels of LibTorch, CACHE
# keeps the root for the next time. Needs root, debootstrap, and a network for Debian packages.
#
#   1. Without a compiler: pip installs the wheel, and the quick start makes its first step within 60 s.
#   2. An outside plugin and a model of one's own are built against it, and train.
#   3. The Debian package is installed beside it, finds pip's LibTorch, and trains.
set -euo pipefail
wheel=$(realpath "$1") deb=$(realpath "$2") wheels=$(realpath "$3") cache=$4
limit=60
say() { printf '\n== %s\n' "$*"; }

mkdir -p "$cache"
cache=$(realpath "$cache")
if [ ! -e "$cache/ready" ]; then
  release=$(. /etc/os-release && echo "$VERSION_CODENAME")
  mirror=$(apt-get indextargets --format '$(REPO_URI)' "Codename: $release" | sed -n 1p)
  say "Making a bare root of Debian $release in $cache"
  rm -rf --one-file-system "$cache/base"
  debootstrap --variant=minbase --include=ca-certificates,python3,python3-venv "$release" "$cache/base" "$mirror"
  touch "$cache/ready"
fi

root=$(mktemp -d "$cache/run.XXXXXX")
cleanup() {
  for place in dev sys proc var/cache/apt/archives; do umount -l "$root/$place" 2>/dev/null || true; done
  rm -rf --one-file-system "$root"
}
trap cleanup EXIT
chmod 755 "$root"
cp -a --reflink=auto "$cache/base/." "$root/"
# This machine's package sources and its way into the network.
rm -f "$root/etc/apt/sources.list"
cp -a /etc/apt/sources.list* "$root/etc/apt/"
cp /etc/resolv.conf /etc/hosts "$root/etc/" 2>/dev/null || true
cp -L /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/"
find /etc/apt/apt.conf.d -name '*proxy*' -exec cp {} "$root/etc/apt/apt.conf.d/" \;
mkdir -p "$cache/archives/partial" "$root/wheels"
for place in proc sys dev; do mount --rbind "/$place" "$root/$place" && mount --make-rslave "$root/$place"; done
mount --bind "$cache/archives" "$root/var/cache/apt/archives"
cp "$wheel" "$deb" "$wheels"/*.whl "$root/wheels/"

inside() {
  env -i HOME=/root PATH=/root/venv/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
    LANG=C.UTF-8 DEBIAN_FRONTEND=noninteractive \
    $(env | grep -iE '^(https?|no)_proxy=' || true) chroot "$root" /bin/bash -euc "cd /root; umask 022; $1"
}

say "From the wheel to the first step"
inside 'if command -v cc || command -v g++ || command -v cmake; then exit 1; fi'
began=$(date +%s.%N)
inside '
  python3 -m venv venv
  # Piper never imports torch: compiling its Python would be for nothing.
  pip install --quiet --disable-pip-version-check --no-index --no-deps --no-compile /wheels/*.whl
  piper --version
  piper train "$(piper --prefix)/share/piper/examples/quickstart.toml" >training &
  until grep -s "^step 1 " training; do
    kill -0 $! 2>/dev/null || { cat training; exit 1; }
    sleep 0.2
  done
  kill $!
  wait $! || true'
seconds=$(echo "$(date +%s.%N) $began" | awk '{printf "%.0f", $1 - $2}')
echo "from the wheel to the first step: $seconds s"
[ "$seconds" -le "$limit" ] || { echo "error: expected at most $limit s"; exit 1; }

say "A plugin and a model of one's own"
inside 'apt-get update -q >/dev/null && apt-get install -q -y --no-install-recommends g++ cmake make >/dev/null'
inside '
  cp -r "$(piper --prefix)/share/piper/examples" .
  for example in outside_plugin two_tower; do
    cmake -S examples/$example -B examples/$example/build -DCMAKE_PREFIX_PATH="$(piper --prefix)" >/dev/null
    cmake --build examples/$example/build
  done
  cd examples/outside_plugin
  piper train halves.toml --plugin-dir build/lib/piper/plugins | grep "^done steps=3 "
  cd ../two_tower
  piper train two_tower.toml --training.steps=3 | grep "^done steps=3 "'

say "The Debian package"
inside '
  apt-get install -q -y --no-install-recommends /wheels/*.deb >/dev/null
  /usr/bin/piper --version
  /usr/bin/piper train /usr/share/piper/examples/quickstart.toml --training.steps=2 | grep "^done steps=2 "
  pip uninstall --quiet --yes torch piper
  if /usr/bin/piper train /usr/share/piper/examples/quickstart.toml 2>without; then exit 1; fi
  cat without
  grep -q "pip install torch==" without'
say "Both packages work in a bare root; the wheel in $seconds s"
