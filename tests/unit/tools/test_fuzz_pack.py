"""The packs of fuzz seeds: every byte comes back, and what is no pack is refused."""

import random
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

TESTS = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TESTS))
from tools import fuzz_pack  # noqa: E402


class FuzzPack(unittest.TestCase):
    def test_every_byte_comes_back(self):
        chosen = random.Random(7)
        hard = [b"", b"\n", b"\n\n", b"a", b"a\n", b"a \nb ", b"=== x\n===", b"\\", b"\\\\\n\\", b"a\\\n", b"\r\n\t", bytes(range(256))]
        hard += [bytes(chosen.choice(b"\\=\nx \xff0") for _ in range(chosen.randrange(20))) for _ in range(2000)]
        seeds = {f"s{i}": seed for i, seed in enumerate(hard)}
        text = fuzz_pack.write(seeds)
        self.assertEqual(fuzz_pack.read(text), seeds)
        self.assertTrue(text.isascii())
        self.assertNotRegex(text, r"(?m)[ \t\r]$")

    def test_text_stays_readable(self):
        self.assertEqual(fuzz_pack.write({"b": b"x", "a": b"k: v\n\nl: \xff\n"}), "=== a\nk: v\n\nl: \\xff\n=== b\nx\\\n")

    def test_what_is_no_pack_is_refused_with_its_line(self):
        for text, where in (("a\n", "line 1"), ("=== a\n=== a\n", "line 2"), ("=== a b\n", "line 1"), ("=== a\n\\q\n", "line 2"),
                            ("=== a\n\u00e9\n", "line 2"), ("===a\n", "line 1"), ("=== a\nx\t\n", "line 2")):
            with self.assertRaisesRegex(fuzz_pack.BadPack, where):
                fuzz_pack.read(text)

    def test_the_kept_packs_are_as_they_are_written(self):
        packs = sorted((TESTS / "fuzz/corpus").glob("*.pack"))
        targets = sorted(path.stem.removeprefix("fuzz_") for path in (TESTS / "fuzz").glob("fuzz_*.c"))
        self.assertEqual([pack.stem for pack in packs], targets)
        for pack in packs:
            text = pack.read_text(encoding="ascii")
            self.assertEqual(fuzz_pack.write(fuzz_pack.read(text)), text, pack)

    def test_each_seed_becomes_a_file(self):
        with tempfile.TemporaryDirectory() as folder:
            pack = Path(folder) / "t.pack"
            pack.write_text("=== a\n1\n=== b\n")
            self.assertEqual(fuzz_pack.unpack(pack, Path(folder) / "corpus"), 2)
            self.assertEqual((Path(folder) / "corpus/a").read_bytes(), b"1\n")
            self.assertEqual((Path(folder) / "corpus/b").read_bytes(), b"")


class FuzzSeed(unittest.TestCase):
    """The tool, in a copy of its own so that the kept packs stay as they are."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = Path(folder.name)
        for name in ("tools/__init__.py", "tools/fuzz_pack.py", "tools/fuzz-seed"):
            (self.root / name).parent.mkdir(exist_ok=True)
            (self.root / name).write_bytes((TESTS / name).read_bytes())
        (self.root / "fuzz/corpus").mkdir(parents=True)
        (self.root / "fuzz/fuzz_t.c").touch()
        (self.root / "crash-1").write_bytes(b"\x00\n")

    def run_tool(self, *words):
        return subprocess.run([sys.executable, str(self.root / "tools/fuzz-seed"), *words], cwd=self.root, capture_output=True)

    def test_a_file_becomes_a_seed_once(self):
        for count in (1, 1):
            self.assertEqual(self.run_tool("add", "t", "crash-1").returncode, 0)
            self.assertEqual(len(fuzz_pack.read((self.root / "fuzz/corpus/t.pack").read_text())), count)
        self.assertEqual(self.run_tool("show", "t", "crash-1").stdout, b"\x00\n")

    def test_another_seed_of_the_same_name_is_refused(self):
        self.run_tool("add", "t", "crash-1")
        (self.root / "crash-1").write_bytes(b"other")
        self.assertIn(b"t has another seed crash-1", self.run_tool("add", "t", "crash-1").stderr)
        self.assertEqual(self.run_tool("add", "t", "crash-1", "other").returncode, 0)

    def test_a_target_that_is_not_there_is_refused(self):
        done = self.run_tool("add", "nosuch", "crash-1")
        self.assertEqual((done.returncode, done.stderr), (1, b"there is no tests/fuzz/fuzz_nosuch.c\n"))


if __name__ == "__main__":
    unittest.main()
