"""Compares docs/commands.md with the sources: every diagnostic code and every environment variable
is there, and none that is not; and, with the program, every command and option.

usage: check_commands.py [ROOT [PIPER_PROGRAM]]

In the sources a code is a string literal "area.name" in core/ or runtime/. So are paths of keys;
those count where error(), warning() or a remark() or refuse() of that file takes them.
"""

import re
import subprocess
import sys
from pathlib import Path

LITERAL = re.compile(r'"([a-z][a-z0-9]*\.[a-z][a-z0-9_]*)"')
COMMENT = re.compile(r"//[^\n]*")
TABLES_OF_KEYS = ("core/config/schema.cc", "core/directives/toml/keys.cc")
REPORTED = re.compile(r"(?<![\w.])(?:error|warning|remark|refuse)\(\s*$")
WRITTEN = re.compile(r"\[([a-z]+\.[a-z_]+)\]\\n")  # a message that is printed by hand
VARIABLE = re.compile(r'getenv\(\s*"(\w+)"')
NAMES = re.compile(r'"((?:PIPER|XDG)_[A-Z_]+|HOME|PATH|LD_LIBRARY_PATH|WORLD_SIZE)"')

# Literals of that form that are neither codes nor keys.
OTHERS = {
    "piper.manifest",  # a section of a library
    "mlp.gate_proj", "mlp.up_proj", "mlp.down_proj",  # parameters
    "ranks.at", "ranks.along", "ranks.of", "ranks.group", "ranks.list",  # functions of the ABI
    "strategy.name", "strategy.plugin", "mesh.dp", "mesh.ep", "mesh.order", "optimizer.group",  # paths in messages
    "where.self", "std.correction", "var.correction",  # overloads of operators
}
FILE = re.compile(r".*\.(json|model|py|safetensors|txt)$")  # likewise, and not a code either
# Paths of keys that are codes too, and that a helper is given.
KEYS_AND_CODES = {"checkpoint.initial_load_path", "model.hf_assets_path"}
# Read by LibTorch, or by the shell, and said in the page.
READ_BY_OTHERS = {"OMP_NUM_THREADS", "PATH"}


def sources(root):
    for folder in ("core", "runtime"):
        for file in sorted((root / folder).rglob("*")):
            if file.suffix in (".cc", ".h"):
                yield file.relative_to(root).as_posix(), COMMENT.sub("", file.read_text())


def codes_of(root):
    """The codes that the sources report, each with a place."""
    texts = dict(sources(root))
    keys = {key for file in TABLES_OF_KEYS for key in LITERAL.findall(texts.get(file, ""))}
    found = {}
    for file, text in texts.items():
        if file in TABLES_OF_KEYS:
            continue
        for literal in LITERAL.finditer(text):
            name = literal[1]
            reported = REPORTED.search(text[max(0, literal.start() - 80):literal.start()])
            named = name not in keys and name not in OTHERS and not FILE.match(name)
            if reported or named or name in KEYS_AND_CODES:
                found.setdefault(name, f"{file}:{text.count(chr(10), 0, literal.start()) + 1}")
        for message in WRITTEN.finditer(text):
            found.setdefault(message[1], file)
    return found


def variables_of(root):
    found = {}
    for file, text in sources(root):
        for match in list(VARIABLE.finditer(text)) + list(NAMES.finditer(text)):
            found.setdefault(match[1], file)
    return found


def section(text, heading):
    """The text under `## heading`, to the next one of its level."""
    match = re.search(rf"^## {heading}$(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)
    return match[1] if match else ""


def first_columns(text):
    return {name for row in re.findall(r"^\|([^|]*)\|", text, re.MULTILINE)
            for name in re.findall(r"`([^`]+)`", row)}


def compare(what, documented, found):
    messages = [f"{place}: error: {what} '{name}' is not in docs/commands.md"
                for name, place in sorted(found.items()) if name not in documented]
    return messages + [f"docs/commands.md: error: {what} '{name}' is in no source"
                       for name in sorted(documented - set(found))]


def help_of(program, *command):
    return subprocess.run([program, *command, "--help"], capture_output=True, text=True,
                          check=True).stdout


def check_options(page, program):
    commands = section(page, "Commands")
    messages = []
    names = re.findall(r"^  ([a-z]+) ", help_of(program).split("Subcommands:")[1], re.MULTILINE)
    paths = [["trace", "compare"] if name == "trace" else [name] for name in names]
    for path in paths:
        command = "piper " + " ".join(path)
        row = re.search(rf"^\| `{command}[ `].*$", commands, re.MULTILINE)
        if not row:
            messages.append(f"docs/commands.md: error: no row for `{command}`")
            continue
        there = set(re.findall(r"--[a-z][a-z-]*", row[0]))
        everywhere = {"--help", "--plugin-dir", "--allow-unsafe-plugins", "--log-level"}
        real = set(re.findall(r"(?<![\w-])--[a-z][a-z-]*(?![\w.-])", help_of(program, *path)))
        options = set(re.findall(r"^  (?:-\w,)?(--[a-z][a-z-]*)", help_of(program, *path), re.MULTILINE))
        messages += [f"docs/commands.md: error: `{command}` has no option {name}"
                     for name in sorted(there - real)]
        messages += [f"docs/commands.md: error: `{command}` has {name}, which is not in its row"
                     for name in sorted(options - there - everywhere)]
    return messages


def check(root, program=None):
    """Returns one message for each thing that is not where it should be."""
    page = (root / "docs/commands.md").read_text()
    messages = compare("code", first_columns(section(page, "Codes")), codes_of(root))
    variables = {**{name: "" for name in READ_BY_OTHERS}, **variables_of(root)}
    messages += compare("variable", first_columns(section(page, "Environment")), variables)
    if program:
        messages += check_options(page, program)
    return messages


if __name__ == "__main__":
    found = check(Path(sys.argv[1] if len(sys.argv) > 1 else "."), *sys.argv[2:3])
    print("\n".join(found) or "docs/commands.md has every code, variable and option")
    sys.exit(bool(found))
