"""Checks who includes whom: each layer, and the headers it may see, as regular expressions.

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


def check(root):
    """Returns one message for each include that crosses a layer."""
    messages = []
    for folder in ("sdk", "core", "plugins", "runtime"):
        for file in sorted((root / folder).rglob("*")):
            if file.suffix not in (".h", ".hpp", ".c", ".cc"):
                continue
            path = file.relative_to(root).as_posix()
            text = file.read_text()
            for match in INCLUDE.finditer(text):
                if not allowed(path, match[1]):
                    line = text.count("\n", 0, match.start(1)) + 1
                    messages.append(f"{path}:{line}: error: this layer may not include '{match[1]}'")
    return messages


if __name__ == "__main__":
    found = check(Path(sys.argv[1] if len(sys.argv) > 1 else "."))
    print("\n".join(found) or "every include keeps to its layer")
    sys.exit(bool(found))
