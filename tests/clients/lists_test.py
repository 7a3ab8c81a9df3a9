#!/usr/bin/env python3
# tests/clients/lists_test.py - lists of clients' tests, and their runner
"""usage: lists_test.py --source DIR

Runs a made-up test file with tests that pass, are refused, crash, take too long and have findings. No
network, no GPU and no stand-in. pytest comes from this interpreter or from build/tools/python."""
import argparse
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--source", type=Path, required=True)
options = parser.parse_args()
tools = options.source.resolve() / "build/tools/python"
clients = options.source.resolve() / "tools/clients"
sys.dont_write_bytecode = True
sys.path.insert(0, str(clients))
from clients import CLIENTS  # noqa: E402
from suite_lists import (Row, Verdicts, details_of, entries, is_finding, judge,  # noqa: E402
                         read_list, row_of)
from suite_runner import Runner  # noqa: E402

ENVIRONMENT = os.environ | {"PYTHONPATH": str(tools), "PYTHONDONTWRITEBYTECODE": "1"}
FINDING = """ptxgen emulated driver: error: line 7: race on shared memory
    st.shared.f32 [%r1], %f1
    in a launch of kernel 'k', grid (1, 1, 1), block (32, 1, 1)
"""
TESTS = f'''
import os, random, sys, time
import pytest
def test_right(): pass
def test_seeded(): assert random.random() == random.Random(0).random()
def test_skipped(): pytest.skip("no")
def test_refused(): raise RuntimeError("CUDA_ERROR_NOT_SUPPORTED")
def test_refused_in_log():
    os.write(2, b"..ptxgen emulated driver: error: cuArrayCreate: no arrays\\n")
    assert False
def test_other(): raise AttributeError("module 'torch' has no attribute 'x'")
def test_wrong(): assert 1 == 2
def test_crash(): os.abort()
def test_late(): time.sleep(60)
def test_left(): assert False
def test_true_finding(): os.write(2, {FINDING!r}.encode())
@pytest.mark.parametrize("n", [1])
def test_false_finding(n): os.write(2, {FINDING!r}.encode())
'''
LIST = """# a list
run      test_them.py
leave    *::test_left | would only fail
refused  *::test_refused* | NOT_SUPPORTED | arrays
refused  *::test_refused_in_log | cuArrayCreate: no arrays | arrays
refused  *::test_right | never | stale
other    *::test_other | has no attribute | an old torch
true     *::test_true_finding | race on shared | it has a race
"""


def list_of(text):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "made_up.txt"
        path.write_text(text)
        return read_list(path)


class Lists(unittest.TestCase):
    def refused(self, text, why):
        with self.assertRaises(ValueError) as caught:
            list_of(text)
        self.assertEqual(str(caught.exception), why)

    def test_names(self):
        row = Row("*::test_a[*-f32]")
        self.assertTrue(row.names("x.py::test_a[1-f32]"))
        self.assertFalse(row.names("x.py::test_a1"))
        self.assertFalse(row.names("x.py::test_a[1-f32]b"))

    def test_what_is_wrong_with_a_list(self):
        self.refused("run a.py\nskip b | why\n",
                     "made_up.txt:2: 'skip' is none of run, script, leave, refused, other, true")
        self.refused("refused a | b\n",
                     "made_up.txt:1: 'refused' has 3 columns between ' | ', here are 2")
        self.refused("leave a | \n", "made_up.txt:1: 'leave' has 2 columns between ' | ', here are 1")
        self.refused("other a | ( | b\n", "made_up.txt:1: '(' is no regular expression: missing ), "
                     "unterminated subpattern at position 0")
        self.refused("# nothing\n", "made_up.txt: no line 'run' or 'script': nothing would be tested")

    def test_entries_of_a_log(self):
        log = f"..{FINDING}.ptxgen emulated driver: error: cuArrayCreate: no arrays\nE  other\n"
        finding, refusal = entries(log)
        self.assertEqual(finding, FINDING.rstrip("\n"))
        self.assertTrue(is_finding(finding))
        self.assertFalse(is_finding(refusal))

    def test_that_every_client_with_tests_has_a_list(self):
        lists = {path.stem: read_list(path) for path in clients.glob("suites/*.txt")}
        self.assertEqual(sorted(lists), sorted(name for name in CLIENTS if CLIENTS[name].tests))
        for name, client in CLIENTS.items():
            kernels = (clients / f"{name}_kernels.py").exists()
            self.assertTrue(client.tests or kernels, f"nothing runs through {name}")

    def test_that_nothing_run_is_not_good(self):
        self.assertFalse(Verdicts().good)
        self.assertTrue(Verdicts(right=["a"]).good)
        self.assertFalse(Verdicts(right=["a"], wrong={"b": ""}).good)
        self.assertFalse(Verdicts(right=["a"], false=[("b", "")]).good)


class Processes(unittest.TestCase):
    """A failure may leave a context that cannot be used: what follows runs in a new process."""

    def outcomes(self, together):
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "test_them.py").write_text(
                "begun = []\n"
                "def test_first(): begun.append(1); assert False\n"
                "def test_second(): assert not begun\n")
            runner = Runner(Path(sys.executable), ENVIRONMENT, Path(folder) / "them.jsonl",
                            together=together, folder=Path(folder))
            runner.begin()
            self.assertTrue(runner.run("test_them.py"))
            return [step["outcome"] for step in runner.ended().values()]

    def test_that_a_failure_ends_the_process(self):
        self.assertEqual(self.outcomes(together=False), ["failed", "passed"])
        self.assertEqual(self.outcomes(together=True), ["failed", "failed"])


class Run(unittest.TestCase):
    """The made-up tests, run once; what the table and the lines below it say."""

    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory()
        folder = Path(cls.temporary.name)
        (folder / "test_them.py").write_text(TESTS)
        (folder / "them.txt").write_text(LIST)
        cls.suite = read_list(folder / "them.txt")
        settings = ENVIRONMENT | {"PTXGEN_SUITE_LIST": str(folder / "them.txt")}
        cls.runner = Runner(Path(sys.executable), settings, folder / "them.jsonl", seconds=2,
                            together=True, folder=folder)
        cls.runner.begin()
        (folder / "script.py").write_text("import numbers")
        (folder / "bad_script.py").write_text("raise ValueError('it is wrong')")
        cls.done = all([cls.runner.run("test_them.py"), cls.runner.run_script("script.py"),
                        cls.runner.run_script("bad_script.py")])
        cls.verdicts = judge(cls.suite, cls.runner.ended(), cls.runner.logs())

    @classmethod
    def tearDownClass(cls):
        cls.temporary.cleanup()

    def test_the_table(self):
        self.assertTrue(self.done)
        self.assertEqual(row_of(self.verdicts), [12, 5, 2, 1, 1, 4, 2, 1])
        self.assertFalse(self.verdicts.good)

    def test_the_lines_below_it(self):
        lines = list(details_of("them", self.suite, self.verdicts, ["test_more.py"]))
        self.assertIn("them: refused 2: arrays", lines)
        self.assertIn("them: other 1: an old torch", lines)
        self.assertIn("them: WRONG test_them.py::test_wrong: assert 1 == 2", lines)
        self.assertIn("them: WRONG test_them.py::test_crash: crash: SIGABRT", lines)
        self.assertIn("them: WRONG test_them.py::test_late: too long: not done after 2 s", lines)
        self.assertTrue(any(line.startswith("them: WRONG bad_script.py: the process ended with 1: ")
                            and line.endswith("ValueError: it is wrong") for line in lines))
        self.assertIn("them: no longer fails, take it off the list: *::test_right", lines)
        self.assertIn("them: UNFINISHED test_more.py: the time for this client is over", lines)
        false = [line for line in lines if "FALSE FINDING" in line]
        self.assertEqual(len(false), 1)
        self.assertIn("in test_them.py::test_false_finding[1]: ptxgen emulated driver: error: "
                      "line 7: race", false[0])

    def test_that_a_limit_ends_it(self):
        self.runner.deadline = 0.0
        self.assertFalse(self.runner.run("test_them.py"))
        self.runner.deadline = float("inf")


found = subprocess.run([sys.executable, "-c", "import pytest"], env=ENVIRONMENT, capture_output=True)
if found.returncode != 0:
    print("SKIP: the Python package pytest cannot be imported; scripts/setup installs it")
    sys.exit(77)
unittest.main(argv=[sys.argv[0]])
