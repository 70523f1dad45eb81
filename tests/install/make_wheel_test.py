"""The wheel as pip reads it: names, modes, hashes, and a tag that promises no more than is there."""

import base64
import contextlib
import hashlib
import io
import shutil
import sys
import tempfile
import unittest
import zipfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "cmake/package"))
import make_wheel  # noqa: E402


class MakeWheel(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = Path(folder.name) / "prefix"
        for name, mode in (("bin/piper", 0o755), ("share/piper/README.md", 0o644), ("share/piper/LICENSE", 0o644),
                           ("share/man/man1/piper.1", 0o644), ("share/piper/examples/make.py", 0o644)):
            file = self.root / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(f"{name}\n")
            file.chmod(mode)
        self.wheel = Path(folder.name) / "piper.whl"
        make_wheel.write_wheel(self.root, self.wheel, "0.1.0", "2.11", "py3-none-manylinux_2_35_x86_64")

    def test_records_every_file_with_its_hash(self):
        with zipfile.ZipFile(self.wheel) as wheel:
            rows = dict(row.split(",", 1) for row in wheel.read("piper-0.1.0.dist-info/RECORD").decode().split())
            self.assertEqual(set(rows), set(wheel.namelist()))
            for name, row in rows.items():
                if not name.endswith("RECORD"):
                    data = wheel.read(name)
                    digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
                    self.assertEqual(row, f"sha256={digest},{len(data)}")

    def test_holds_the_installation_as_a_package_with_a_command(self):
        with zipfile.ZipFile(self.wheel) as wheel:
            self.assertEqual(wheel.getinfo("piper/bin/piper").external_attr >> 16, 0o100755)
            self.assertEqual(wheel.getinfo("piper/share/piper/LICENSE").external_attr >> 16, 0o100644)
            self.assertIn("piper-0.1.0.data/data/share/man/man1/piper.1", wheel.namelist())
            self.assertIn(b"piper = piper:main", wheel.read("piper-0.1.0.dist-info/entry_points.txt"))
            self.assertIn(b"Requires-Dist: torch (==2.11.*)\n", wheel.read("piper-0.1.0.dist-info/METADATA"))
            self.assertIn(b"Tag: py3-none-manylinux_2_35_x86_64\n", wheel.read("piper-0.1.0.dist-info/WHEEL"))

    def test_gives_the_same_bytes_again(self):
        again = self.wheel.with_name("again.whl")
        make_wheel.write_wheel(self.root, again, "0.1.0", "2.11", "py3-none-manylinux_2_35_x86_64")
        self.assertEqual(again.read_bytes(), self.wheel.read_bytes())

    def test_the_launcher_becomes_the_program_and_names_a_torch_that_is_elsewhere(self):
        package = self.root.parent / "site/piper"
        shutil.copytree(self.root, package)
        (package / "__init__.py").write_text(make_wheel.LAUNCHER)
        (package / "bin/piper").write_text("#!/bin/sh\necho \"$1 $PIPER_LIBTORCH\"\n")
        torch = self.root.parent / "elsewhere/torch"
        torch.mkdir(parents=True)
        (torch / "__init__.py").write_text("raise ImportError('torch is not to be imported')\n")
        environment = {"PYTHONPATH": f"{package.parent}:{torch.parent}", "PATH": "/usr/bin:/bin"}
        import subprocess
        said = subprocess.run([sys.executable, "-c", "import sys, piper\nsys.argv = ['piper', 'train']\npiper.main()"],
                              env=environment, capture_output=True, text=True, check=True).stdout
        self.assertEqual(said, f"train {torch}\n")

    def test_computes_the_tag_from_the_binaries_and_refuses_a_lower_one(self):
        binaries = [Path(sys.executable).resolve()]
        with contextlib.redirect_stdout(io.StringIO()):
            tag = make_wheel.tag_for(binaries, None)
            self.assertRegex(tag, r"^py3-none-manylinux_2_\d+_x86_64$")
            self.assertEqual(make_wheel.tag_for(binaries, "py3-none-manylinux_2_99_x86_64"),
                             "py3-none-manylinux_2_99_x86_64")
            for lower in ("py3-none-manylinux_2_5_x86_64", "py3-none-any"):
                with self.assertRaisesRegex(SystemExit, "expected at least the tag"):
                    make_wheel.tag_for(binaries, lower)


if __name__ == "__main__":
    unittest.main()
