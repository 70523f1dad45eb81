"""Checks that what the Markdown pages say is there: relative links, `./dev` verbs, presets, the
commands in ```console blocks, and the TOML in ```toml blocks.

usage: check_docs.py [ROOT [PIPER_PROGRAM]]

With the program, the subcommands and options of `$ piper ...` lines are looked up in its --help.
A toml block whose first line is `# PATH` must say the same as that file.
"""

import json
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
FENCE = re.compile(r"^ {0,3}```+ *(\w*)[^\n]*\n(.*?)^ {0,3}```+ *$", re.MULTILINE | re.DOTALL)
VERB = re.compile(r"(?<![\w/])\./dev ([a-z][a-z-]*)")
PIPER = re.compile(r"(\S*/)?piper$")


def anchors(text):
    """The fragment names that a page's headings have."""
    headings = re.findall(r"^#+ +(.*?)\s*$", FENCE.sub("", text), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


class Checker:
    def __init__(self, root, program=None):
        self.root = root
        self.program = program
        self.messages = []
        self.help_texts = {}
        dev = root / "dev"
        self.verbs = re.findall(r"^#   ([a-z]+)", dev.read_text(), re.MULTILINE) if dev.exists() else []
        presets = root / "CMakePresets.json"
        self.presets = presets.exists() and {
            preset["name"] for preset in json.loads(presets.read_text())["configurePresets"]}

    def report(self, page, line, message):
        self.messages.append(f"{page.relative_to(self.root)}:{line}: error: {message}")

    def help(self, *subcommand):
        if subcommand not in self.help_texts:
            run = subprocess.run([self.program, *subcommand, "--help"], capture_output=True, text=True)
            self.help_texts[subcommand] = run.stdout if run.returncode == 0 else None
        return self.help_texts[subcommand]

    def check_page(self, page):
        text = page.read_text()
        line_of = lambda position: text.count("\n", 0, position) + 1
        prose = FENCE.sub(lambda block: "\n" * block[0].count("\n"), text)
        for link in LINK.finditer(prose):
            self.check_link(page, prose.count("\n", 0, link.start()) + 1, link[1])
        for verb in VERB.finditer(text):
            if verb[1] not in self.verbs:
                self.report(page, line_of(verb.start()), f"./dev has no verb '{verb[1]}'")
        for block in FENCE.finditer(text):
            line = line_of(block.start(2))
            if block[1] == "console":
                self.check_console(page, line, block[2])
            elif block[1] == "toml":
                self.check_toml(page, line, block[2])

    def check_link(self, page, line, target):
        if re.match(r"[a-z]+:", target):
            return
        path, _, fragment = target.partition("#")
        file = page.parent / path if path else page
        if not file.exists():
            self.report(page, line, f"the link leads nowhere: {target}")
        elif fragment and file.suffix == ".md" and fragment not in anchors(file.read_text()):
            self.report(page, line, f"no heading '#{fragment}' in {path or page.name}")

    def check_console(self, page, line, block):
        for text in block.replace("\\\n", "  ").split("\n"):
            if text.startswith("$ "):
                try:
                    words = shlex.split(text[2:], comments=True)
                except ValueError as error:
                    self.report(page, line, f"not a shell command ({error}): {text}")
                else:
                    self.check_command(page, line, words)
            line += 1

    def check_command(self, page, line, words):
        for word in words:
            if re.match(r"(examples|docs|plugins|sdk)/", word) and not (self.root / word).exists():
                self.report(page, line, f"no such file: {word}")
        for flag, name in zip(words, words[1:]):
            if words[0] in ("cmake", "ctest") and flag == "--preset" and name not in self.presets:
                self.report(page, line, f"no preset '{name}'")
        arguments = words[1:]
        if not self.program or not arguments or not PIPER.match(words[0]):
            return
        subcommand = []
        while arguments and re.fullmatch(r"[a-z]+", arguments[0]):
            if f" {arguments[0]}" not in (self.help(*subcommand) or ""):
                break
            subcommand.append(arguments.pop(0))
        if not subcommand and not arguments[0].startswith("-"):
            self.report(page, line, f"piper has no command '{arguments[0]}'")
            return
        for word in arguments:
            option = word.split("=")[0]
            if not re.match(r"--?[a-z]", option) or "." in option:
                continue  # --section.key overrides a value of the job file
            if not re.search(rf"(?<![\w-]){re.escape(option)}(?![\w-])", self.help(*subcommand) or ""):
                self.report(page, line, f"piper {' '.join(subcommand)} has no option '{option}'")

    def check_toml(self, page, line, block):
        try:
            value = tomllib.loads(block)
        except tomllib.TOMLDecodeError as error:
            self.report(page, line, f"not TOML: {error}")
            return
        named = re.match(r"# (\S+\.toml)\n", block)
        if not named:
            return
        file = self.root / named[1]
        if not file.exists():
            self.report(page, line, f"no such file: {named[1]}")
        elif tomllib.loads(file.read_text()) != value:
            self.report(page, line, f"differs from {named[1]}")


def pages(root):
    for page in sorted(root.rglob("*.md")):
        parts = page.relative_to(root).parts
        if parts[0] != "build" and not any(part.startswith(".") for part in parts):
            yield page


def check(root, program=None):
    """Returns one message for each statement that does not hold."""
    checker = Checker(root, program)
    for page in pages(root):
        checker.check_page(page)
    return checker.messages


if __name__ == "__main__":
    given_program = sys.argv[2] if len(sys.argv) > 2 and Path(sys.argv[2]).exists() else None
    found = check(Path(sys.argv[1] if len(sys.argv) > 1 else ".").resolve(), given_program)
    print("\n".join(found) or "every page tells the truth")
    sys.exit(bool(found))
