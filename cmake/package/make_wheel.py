"""Packs an installation of Piper into a Python wheel.

usage: make_wheel.py PREFIX FOLDER [--tag TAG]

PREFIX is what `cmake --install --strip` gave. The wheel holds it whole, as the package `piper`, with
a command `piper` that runs bin/piper; it depends on torch==2.11.*. Shared libraries that it needs
and that neither torch nor every Linux has go in too.

The tag is computed from the versions of glibc's and libstdc++'s symbols that the binaries ask for.
A TAG that promises less is refused.
"""

import argparse
import base64
import hashlib
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

# Of every Linux that a manylinux tag promises, and of torch.
EVERYWHERE = re.compile(r"lib(c|m|dl|pthread|rt|gcc_s|stdc\+\+)\.so\.\d+|ld-linux.*"
                        r"|lib(c10|torch\w*|piper_runtime)\.so")
# The lowest glibc of the distributions whose libstdc++ has these symbols.
GLIBC_OF_LIBSTDCXX = {(3, 4, 28): (2, 31), (3, 4, 29): (2, 34), (3, 4, 30): (2, 35), (3, 4, 31): (2, 38),
                      (3, 4, 32): (2, 38), (3, 4, 33): (2, 39)}
FIXED_TIME = (1980, 1, 1, 0, 0, 0)  # the same installation gives the same bytes

LAUNCHER = '''"""Piper: distributed training, programmed. The program is bin/piper of this folder."""

import os
import sys


def main():
    """Becomes the program; never returns."""
    folder = os.path.dirname(os.path.abspath(__file__))
    program = os.path.join(folder, "bin", "piper")
    beside = os.path.join(os.path.dirname(folder), "torch")
    if not os.path.exists(beside) and not os.environ.get("PIPER_LIBTORCH"):
        import importlib.util
        found = importlib.util.find_spec("torch")
        if found and found.submodule_search_locations:
            os.environ["PIPER_LIBTORCH"] = found.submodule_search_locations[0]
    os.execv(program, [program, *sys.argv[1:]])


if __name__ == "__main__":
    main()
'''


def run(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def elf_files(folder):
    for file in sorted(folder.rglob("*")):
        if file.is_file() and not file.is_symlink() and file.open("rb").read(4) == b"\x7fELF":
            yield file


def needed(file):
    return re.findall(r"\(NEEDED\).*\[(.+)\]", run("readelf", "-d", str(file)))


def licence_of(library):
    """Debian's copyright file of a library, or of a header; "" elsewhere."""
    for path in (library, library.resolve()):
        owner = subprocess.run(["dpkg", "-S", str(path)], capture_output=True, text=True)
        if owner.returncode == 0:
            return Path("/usr/share/doc", owner.stdout.split(":")[0], "copyright")
    return None


def bundle(root):
    """Copies the libraries that others may lack into lib/, beside the runtime."""
    paths = {}
    for file in elf_files(root):
        for name, path in re.findall(r"^\s+(\S+) => (/\S+)", run("ldd", str(file)), re.MULTILINE):
            paths[name] = Path(path)
    wanted = [name for file in elf_files(root) for name in needed(file)]
    while wanted:
        name = wanted.pop()
        if EVERYWHERE.fullmatch(name) or (root / "lib" / name).exists():
            continue
        if name not in paths:
            sys.exit(f"make_wheel: error: {name} is needed, and is not on this machine")
        shutil.copyfile(paths[name].resolve(), root / "lib" / name)
        licence = licence_of(paths[name])
        if licence and licence.exists():
            target = root / "share/piper/third_party" / f"{name}.txt"
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(licence, target)
        wanted += needed(root / "lib" / name)
    # A library that was bundled finds the ones that it needs beside it.
    for file in elf_files(root / "lib"):
        if file.parent == root / "lib" and not EVERYWHERE.fullmatch(file.name):
            run("patchelf", "--set-rpath", "$ORIGIN", str(file))


def lowest_glibc(files):
    """What the files ask for, as a version of glibc: (2, 35)."""
    glibc, libstdcxx = (0,), (0,)
    for file in files:
        versions = run("objdump", "-T", str(file))
        for kind, version in re.findall(r"\b(GLIBC|GLIBCXX)_([0-9.]+)\b", versions):
            value = tuple(int(part) for part in version.split("."))
            if kind == "GLIBC":
                glibc = max(glibc, value)
            else:
                libstdcxx = max(libstdcxx, value)
    if libstdcxx > max(GLIBC_OF_LIBSTDCXX):
        sys.exit(f"make_wheel: error: GLIBCXX_{'.'.join(map(str, libstdcxx))} is newer than this script")
    implied = max((g for v, g in GLIBC_OF_LIBSTDCXX.items() if v <= libstdcxx), default=(2, 17))
    print(f"make_wheel: the binaries ask for GLIBC_{'.'.join(map(str, glibc))} and "
          f"GLIBCXX_{'.'.join(map(str, libstdcxx))}")
    return max(glibc, implied)


def tag_for(files, wanted):
    glibc = lowest_glibc(files)
    tag = f"py3-none-manylinux_{glibc[0]}_{glibc[1]}_x86_64"
    if wanted:
        promised = re.fullmatch(r"py3-none-manylinux_(\d+)_(\d+)_x86_64", wanted)
        if not promised or tuple(map(int, promised.groups())) < glibc:
            sys.exit(f"make_wheel: error: expected at least the tag {tag}, which is what the binaries "
                     f"ask for, got {wanted}")
        return wanted
    return tag


def pages(root):
    """What goes to the environment's own share folder: (place in the wheel, file)."""
    for place in ("share/man/man1/piper.1", "share/bash-completion/completions/piper",
                  "share/zsh/site-functions/_piper"):
        if (root / place).exists():
            yield place, root / place


def metadata(version, torch, readme):
    return (f"Metadata-Version: 2.1\nName: piper\nVersion: {version}\n"
            "Summary: Programmable distributed training: a strategy is a plugin, a job is a TOML file\n"
            "License: Apache-2.0\nLicense-File: LICENSE\nRequires-Python: >=3.8\n"
            f"Requires-Dist: torch (=={torch}.*)\nDescription-Content-Type: text/markdown\n\n{readme}")


def contents(root, version, torch, tag):
    """Every file of the wheel: (name, bytes, mode)."""
    info = f"piper-{version}.dist-info"
    yield "piper/__init__.py", LAUNCHER.encode(), 0o644
    yield "piper/__main__.py", b"from piper import main\n\nmain()\n", 0o644
    for file in sorted(root.rglob("*")):
        if file.is_file():
            mode = 0o755 if file.stat().st_mode & 0o100 else 0o644
            yield f"piper/{file.relative_to(root).as_posix()}", file.read_bytes(), mode
    for place, file in pages(root):
        yield f"piper-{version}.data/data/{place}", file.read_bytes(), 0o644
    readme = (root / "share/piper/README.md").read_text()
    yield f"{info}/METADATA", metadata(version, torch, readme).encode(), 0o644
    yield f"{info}/LICENSE", (root / "share/piper/LICENSE").read_bytes(), 0o644
    yield f"{info}/entry_points.txt", b"[console_scripts]\npiper = piper:main\n", 0o644
    yield (f"{info}/WHEEL", "Wheel-Version: 1.0\nGenerator: piper make_wheel\n"
           f"Root-Is-Purelib: false\nTag: {tag}\n".encode(), 0o644)


def write_wheel(root, target, version, torch, tag):
    record = f"piper-{version}.dist-info/RECORD"
    rows = []
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as wheel:
        def add(name, data, mode):
            entry = zipfile.ZipInfo(name, FIXED_TIME)
            entry.external_attr = (0o100000 | mode) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            wheel.writestr(entry, data)
        for name, data, mode in contents(root, version, torch, tag):
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            rows.append(f"{name},sha256={digest},{len(data)}\n")
            add(name, data, mode)
        add(record, ("".join(rows) + f"{record},,\n").encode(), 0o644)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("prefix", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--tag")
    arguments = parser.parse_args()
    said = run(str(arguments.prefix / "bin/piper"), "--version")
    version = re.match(r"piper (\S+)", said)[1]
    torch = re.search(r"built with (\d+\.\d+)", said)[1]
    with tempfile.TemporaryDirectory() as scratch:
        root = Path(scratch) / "piper"
        shutil.copytree(arguments.prefix, root, symlinks=False)
        bundle(root)
        tag = tag_for(list(elf_files(root)), arguments.tag)
        arguments.folder.mkdir(parents=True, exist_ok=True)
        target = arguments.folder / f"piper-{version}-{tag}.whl"
        write_wheel(root, target, version, torch, tag)
    print(f"make_wheel: {target} ({target.stat().st_size / 1e6:.1f} MB)")


if __name__ == "__main__":
    main()
