"""Checks that a directive stays in its own files: how many production files name its type.

usage: check_directives.py [ROOT]
"""

import re
import sys
from pathlib import Path

MOST = 7  # CONTRIBUTING.md lists them
REGISTRY = "core/directives/directive.h"


def registered(root):
    """The types of the registry, in its order."""
    alternatives = re.search(r"std::variant<(.*?)>", (root / REGISTRY).read_text(), re.DOTALL)
    return re.findall(r"\w+", alternatives[1]) if alternatives else []


def check(root):
    """Returns one message for each directive that too many production files name."""
    sources = {}
    for folder in ("core", "sdk", "plugins", "runtime"):
        for file in sorted((root / folder).rglob("*")):
            if file.suffix in (".h", ".hpp", ".c", ".cc"):
                sources[file.relative_to(root).as_posix()] = file.read_text()
    messages = []
    if not registered(root):
        messages.append(f"{REGISTRY}: error: expected the registry of directives, a std::variant")
    for directive in registered(root):
        files = [path for path, text in sources.items() if re.search(rf"\b{directive}\b", text)]
        if len(files) > MOST:
            messages.append(f"{REGISTRY}: error: {directive} is named in {len(files)} files, "
                            f"expected at most {MOST}: {', '.join(files)}")
    return messages


if __name__ == "__main__":
    found = check(Path(sys.argv[1] if len(sys.argv) > 1 else "."))
    print("\n".join(found) or "every directive stays in its own files")
    sys.exit(bool(found))
