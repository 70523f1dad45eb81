"""Runs what docs/data.md shows: the script that tokenises, and the job that reads its rows.

usage: data_docs_test.py ROOT PIPER
"""

import json
import os
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT, PIPER = Path(sys.argv[1]), sys.argv[2]
PAGE = (ROOT / "docs/data.md").read_text()
STAND_IN = Path(__file__).parent / "stand_in"


def blocks(language):
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


class DataDocs(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def piper(self, *arguments):
        environment = {**os.environ, "PIPER_CACHE": str(self.folder / "cache")}
        return subprocess.run([PIPER, *arguments], cwd=self.folder, env=environment,
                              capture_output=True, text=True)

    def tokenise(self, *arguments):
        [script] = blocks("python")
        (self.folder / "tokenise.py").write_text(script)
        run = subprocess.run([sys.executable, "-B", "tokenise.py", *arguments], cwd=self.folder,
                             env={**os.environ, "PYTHONPATH": str(STAND_IN)},
                             capture_output=True, text=True)
        self.assertEqual(run.returncode, 0, run.stderr)
        return run.stdout

    def test_the_script_is_the_one_that_is_installed(self):
        [script] = blocks("python")
        self.assertEqual(script, "# examples/tokenise.py\n" +
                         (ROOT / "examples/tokenise.py").read_text())

    def test_its_rows_have_the_next_token_as_label_and_end_with_labels_that_do_not_count(self):
        (self.folder / "a.txt").write_text("abc")
        (self.folder / "b.txt").write_text("de")

        rows = [json.loads(line) for line in
                self.tokenise("stand-in", "4", "a.txt", "b.txt").splitlines()]

        end = 256
        self.assertEqual(rows, [
            {"tokens": [97, 98, 99, end], "labels": [98, 99, end, 100]},
            {"tokens": [100, 101, end, end], "labels": [101, end, -100, -100]}])

    def test_the_job_trains_on_its_rows(self):
        (self.folder / "a.txt").write_text("some text of a document. " * 20)
        (self.folder / "rows.jsonl").write_text(self.tokenise("stand-in", "16", "a.txt"))
        [job] = [block for block in blocks("toml") if "rows.jsonl" in block]
        (self.folder / "job.toml").write_text(job)

        checked = self.piper("check", "job.toml")
        trained = self.piper("train", "job.toml", "--no-progress")

        self.assertEqual((checked.returncode, checked.stderr), (0, ""), checked)
        self.assertIn("data: looked at all of 32 rows\n", checked.stdout)
        self.assertEqual(trained.returncode, 0, trained)
        self.assertIn("jsonl: 29 rows, 464 tokens; held out: 3 rows, 48 tokens\n", trained.stdout)

    def test_the_rows_that_it_shows_are_read(self):
        [rows] = blocks("json")
        (self.folder / "rows.jsonl").write_text(rows)
        [job] = [block for block in blocks("toml") if "rows.jsonl" in block]
        (self.folder / "job.toml").write_text(job)

        checked = self.piper("check", "job.toml", "--training.seq_len=4", "--validation.fraction=0")

        self.assertEqual((checked.returncode, checked.stderr), (0, ""), checked)

    def test_the_line_about_what_is_held_out_is_what_is_printed(self):
        (self.folder / "two").mkdir()
        (self.folder / "two/big.txt").write_text("many words here " * 10000)
        (self.folder / "two/small.txt").write_text("few words here " * 100)
        [job] = [block for block in blocks("toml") if "rows.jsonl" in block]
        (self.folder / "job.toml").write_text(job)

        trained = self.piper("train", "job.toml", "--no-progress", "--training.dataset=text",
                             "--training.dataset_path=two", "--validation.steps=1")

        [line] = re.findall(r"^text: .*", trained.stdout, re.MULTILINE)
        self.assertIn(line, PAGE)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
