"""Checks who includes whom: each layer, and the headers it may see, as regular expressions; and in
core and runtime each folder, and the folders below it; and that no two of their types share a name.

usage: check_layers.py [ROOT]
"""

import re
import sys
from pathlib import Path

C_STANDARD = set(
    """assert.h complex.h ctype.h errno.h fenv.h float.h inttypes.h iso646.h limits.h locale.h math.h
    setjmp.h signal.h stdalign.h stdarg.h stdatomic.h stdbool.h stddef.h stdint.h stdio.h stdlib.h
    stdnoreturn.h string.h tgmath.h threads.h time.h uchar.h wchar.h wctype.h""".split())

STD = r"[a-z_0-9]+|cxxabi\.h"  # <vector>, <cstdint>: no folder, no suffix; the demangler
POSIX = r"(elf|dlfcn|fcntl|glob|link|malloc|poll|pthread|sched|unistd)\.h|sys/[a-z]+\.h"
SDK = r"piper/.+"
BOOST_DLL = r"boost/dll(/.+|\.hpp)"
CORE = r"core/.+"
TORCH = r"(torch|ATen|c10)/.+"
CUDA = r"cuda[A-Za-z_]*\.h|c10/cuda/.+"
NCCL = r"nccl\.h"

# What a file may include; the first rule whose pattern matches its path counts. Header names stand
# without brackets or quotes. The C standard headers are allowed everywhere.
RULES = [
    (r"sdk/include/.+\.h", [SDK]),
    (r"sdk/include/.+\.hpp", [SDK, STD]),
    (r"sdk/.+", [SDK, STD]),
    (r"plugins/.+", [SDK, STD, r"[a-z_0-9]+\.h"]),  # and headers of its own folder, or of common
    (r"core/cli/.+", [STD, POSIX, SDK, CORE, BOOST_DLL, r"CLI/.+", r"nlohmann/.+", r"tl/.+"]),
    (r"core/.+", [STD, POSIX, SDK, CORE, r"spdlog/.+", r"toml\+\+/.+", r"nlohmann/.+", r"tl/.+"]),
    (r"runtime/model/.+", [STD, POSIX, CORE, r"runtime/.+", TORCH]),
    (r"runtime/device/cuda/.+", [STD, POSIX, CORE, r"runtime/.+", TORCH, CUDA]),
    (r"runtime/comm/nccl/.+", [STD, POSIX, CORE, r"runtime/.+", TORCH, CUDA, NCCL]),
    (r"runtime/.+", [STD, POSIX, CORE, r"runtime/.+", TORCH, r"nlohmann/.+", r"tl/.+"]),
]
NEVER = {r"runtime/(?!device/cuda/|comm/nccl/).+": r"c10/cuda/.+|torch/.*cuda.*"}

# Folders of core and runtime, from the ground up, and those right below each. A folder may include
# itself and what is below it, at any depth; what lies deeper (core/directives/toml) counts with its
# folder, and a file at the top (core/pipeline.cc) is in "core" or "runtime".
FLOORS = {
    "core/base": [],
    "core/config": ["core/base"],
    "core/ir": ["core/base"],
    "core/directives": ["core/config", "core/ir"],
    "core/plan": ["core/directives"],
    "core/cost": ["core/plan"],
    "core/verify": ["core/plan"],
    "core/lower": ["core/cost"],
    "core": ["core/lower", "core/verify"],
    "core/plugin": ["core/cost"],
    "core/settings": ["core/plan"],
    "core/show": ["core"],
    "core/simulate": ["core/show"],
    "core/cli": ["core/plugin", "core/settings", "core/simulate"],
    "runtime/autograd": [],
    "runtime/device": [],
    "runtime/memory": [],
    "runtime/metrics": [],
    "runtime/optim": [],
    "runtime/comm": ["runtime/device"],
    "runtime/model": ["runtime/autograd"],
    "runtime/models": ["runtime/model"],
    "runtime/checkpoint": ["runtime/models"],
    "runtime/data": ["runtime/metrics", "runtime/model"],
    "runtime/backend": ["runtime/comm", "runtime/memory"],
    "runtime/tasks": ["runtime/comm", "runtime/data", "runtime/memory", "runtime/optim"],
    "runtime/exec": ["runtime/backend", "runtime/models", "runtime/tasks"],
    "runtime/train": ["runtime/checkpoint", "runtime/exec"],
    "runtime": ["runtime/train"],
}

INCLUDE = re.compile(r'^\s*#\s*include\s*[<"]([^>"]+)[>"]', re.MULTILINE)


def allowed(path, header):
    if any(re.fullmatch(p, path) and re.fullmatch(n, header) for p, n in NEVER.items()):
        return False
    if header in C_STANDARD:
        return True
    for pattern, headers in RULES:
        if re.fullmatch(pattern, path):
            return any(re.fullmatch(h, header) for h in headers)
    return True


def folder_of(path):
    parts = path.split("/")
    return "/".join(parts[:2]) if len(parts) > 2 else parts[0]


def below(folder, floors, above=()):
    """The folders below one, at any depth. Raises ValueError where they lead back to it."""
    if folder in above:
        raise ValueError("a circle of folders: " + " -> ".join([*above[above.index(folder):], folder]))
    found = set()
    for other in floors[folder]:
        found |= {other} | below(other, floors, (*above, folder))
    return found


def keeps_to_floors(path, header, floors):
    """Whether a file of core or runtime includes no folder beside or above its own. Both layers
    have floors of their own: all of core is below runtime, which RULES see to."""
    folder, other = folder_of(path), folder_of(header)
    if path.split("/")[0] != header.split("/")[0] or other == folder:
        return True
    return folder in floors and other in below(folder, floors)


# A type that other files can name: at the first column, outside of unnamed namespaces.
TYPE = re.compile(r"^(?:class|struct|union|enum class) (?:\[\[\w+\]\] |alignas\(\w+\) )?(\w+)(?!\w|::)[^;{]*\{",
                  re.MULTILINE)
UNNAMED = re.compile(r"^namespace \{$.*?^\}  // namespace$", re.MULTILINE | re.DOTALL)


def check_names(root):
    """Returns one message for each type of namespace piper that two files define: libpiper_runtime.so
    holds core and runtime, so that one of the two would be used for both."""
    first, messages = {}, []
    for folder in ("core", "runtime"):
        for file in sorted((root / folder).rglob("*")):
            if file.suffix not in (".h", ".cc"):
                continue
            path = file.relative_to(root).as_posix()
            for match in TYPE.finditer(UNNAMED.sub("", file.read_text())):
                if first.setdefault(match[1], path) != path:
                    messages.append(f"{path}: error: '{match[1]}' is a type of {first[match[1]]}, too")
    return messages


def check(root, floors=FLOORS):
    """Returns one message for each include that crosses a layer, or goes up from a folder."""
    messages = []
    for folder in floors:
        try:
            below(folder, floors)
        except ValueError as circle:
            return [f"check_layers.py: error: {circle}"]
    for folder in ("sdk", "core", "plugins", "runtime"):
        for file in sorted((root / folder).rglob("*")):
            if file.suffix not in (".h", ".hpp", ".c", ".cc"):
                continue
            path = file.relative_to(root).as_posix()
            text = file.read_text()
            if folder in ("core", "runtime") and folder_of(path) not in floors:
                messages.append(f"{path}: error: no floor is given for '{folder_of(path)}'")
                continue
            for match in INCLUDE.finditer(text):
                line = text.count("\n", 0, match.start(1)) + 1
                if not allowed(path, match[1]):
                    messages.append(f"{path}:{line}: error: this layer may not include '{match[1]}'")
                elif not keeps_to_floors(path, match[1], floors):
                    messages.append(f"{path}:{line}: error: '{folder_of(path)}' may not include "
                                    f"'{match[1]}': it is not below it")
    return messages


if __name__ == "__main__":
    root = Path(sys.argv[1] if len(sys.argv) > 1 else ".")
    found = check(root) + check_names(root)
    print("\n".join(found) or "every include keeps to its layer")
    sys.exit(bool(found))
