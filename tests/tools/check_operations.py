#!/usr/bin/env python3
"""Checks that operations are told apart in one table: core/plan/op.h.

usage: check_operations.py [ROOT]

An operation that communicates is named (`Op::x`) in few production files, so that another one costs little. Nobody
compares enumerators that mean kinds by their place, or lets a `default:` stand for operations to come.
"""

import re
import sys
from pathlib import Path

MOST_FILES = 10
TABLE = "core/plan/op.h"

ROW = re.compile(r"\{Op::(\w+),[^{}]*?Work::(\w+)")
KIND = r"(?:Op|Buffer::Kind|BufferKind|Kind|Paint|Address)::\w+"
ORDINAL = re.compile(rf"(?<=\s)[<>]=?\s+{KIND}|{KIND}\s+[<>]=?\s")
SWITCH = re.compile(r"\bswitch\s*\(")


def sources(root):
    for folder in ("core", "runtime"):
        for file in sorted((root / folder).rglob("*")):
            if file.suffix in (".h", ".hpp", ".c", ".cc"):
                yield file.relative_to(root).as_posix(), without_comments(file.read_text())


def without_comments(text):
    return re.sub(r"//[^\n]*", "", text)


def body_of(text, start):
    """The braces after `start`, with what is in them."""
    begin = text.find("{", start)
    depth = 0
    for at in range(begin, len(text)):
        depth += {"{": 1, "}": -1}.get(text[at], 0)
        if depth == 0:
            return text[begin:at]
    return text[begin:]


def check(root):
    """Returns one message for each violation."""
    messages = []
    files = dict(sources(root))
    rows = ROW.findall(files.get(TABLE, ""))
    if not rows:
        return [f"{TABLE}: error: expected a table of operations, got none"]
    for op in (name for name, work in rows if work == "communicate"):
        naming = [path for path, text in files.items() if re.search(rf"\bOp::{op}\b", text)]
        if len(naming) > MOST_FILES:
            messages.append(f"{TABLE}: error: expected at most {MOST_FILES} files that name Op::{op}, "
                            f"got {len(naming)}: {', '.join(naming)}")
    for path, text in files.items():
        for match in ORDINAL.finditer(text):
            line = text.count("\n", 0, match.start()) + 1
            messages.append(f"{path}:{line}: error: '{match[0].strip()}' makes the order of an enumeration an interface")
        for match in SWITCH.finditer(text):
            body = body_of(text, match.end())
            if re.search(r"\bcase Op::", body) and re.search(r"\bdefault:", body):
                line = text.count("\n", 0, match.start()) + 1
                messages.append(f"{path}:{line}: error: a switch over operations has a default")
    return messages


if __name__ == "__main__":
    found = check(Path(sys.argv[1] if len(sys.argv) > 1 else "."))
    print("\n".join(found) or "operations are told apart in one table")
    sys.exit(bool(found))
