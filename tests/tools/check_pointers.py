"""Checks that docs/devices.md lists the sources of the runtime that reach memory by its address.

usage: check_pointers.py [ROOT]
"""

import re
import sys
from pathlib import Path

PAGE = "docs/devices.md"
ADDRESS = re.compile(r"\b(const_|mutable_)?data_ptr\b|\baccessor<")
FREE = ("runtime/backend/", "runtime/comm/", "runtime/device/")  # below what tasks see
ROW = re.compile(r"^\| `(runtime/[^`]+)` \|", re.MULTILINE)


def check(root):
    """Returns one message for each file that is missing in the list, or should not be in it."""
    listed = ROW.findall((root / PAGE).read_text())
    found = {path for file in (root / "runtime").rglob("*.*")
             if file.suffix in (".h", ".cc") and ADDRESS.search(file.read_text())
             and not (path := file.relative_to(root).as_posix()).startswith(FREE)}
    return ([f"{path}: error: it reaches memory by its address: list it in {PAGE}, with the reason"
             for path in sorted(found - set(listed))] +
            [f"{PAGE}: error: '{path}' reaches no memory by its address"
             for path in sorted(set(listed) - found)])


if __name__ == "__main__":
    messages = check(Path(sys.argv[1] if len(sys.argv) > 1 else "."))
    print("\n".join(messages) or "the list of addresses is that of the sources")
    sys.exit(bool(messages))
