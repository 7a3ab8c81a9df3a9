# tests/mutation/mutants_self_test.py - tests of run_mutants.py on a tree of two files
"""The programs of the tree are Python files; building them is a look at their syntax."""
import contextlib
import io
import json
import os
import py_compile
import sys
import tempfile

SOURCE = "def least(a, b):\n    if a < b:\n        return a\n    return b\n\n\nLIMIT = 1\n"
CHECK = """import sys
sys.path.insert(0, 'src')
sys.dont_write_bytecode = True
import part
assert part.least(1, 2) == 1
assert part.least(2, 1) == 1
while part.LIMIT > 1:
    pass
"""
SLEEPS = "import part_that_is_not_there\n"


def mutant(name, find, replace, **more):
    return dict({"name": name, "file": "src/part.py", "find": find, "replace": replace}, **more)


def run(script):
    class PythonTree(script.Tree):
        def prepare(self):
            self.write("src/part.py", SOURCE.encode())
            self.write("tests/check.py", CHECK.encode())
            self.write("tests/broken.py", SLEEPS.encode())
            return None

        def build(self, programs):
            try:
                source = os.path.join(self.work, "src", "part.py")
                with tempfile.TemporaryDirectory() as folder:
                    py_compile.compile(source, os.path.join(folder, "part.pyc"), doraise=True)
            except py_compile.PyCompileError as error:
                return str(error)
            return None

        def command(self, program):
            return [sys.executable, os.path.join("tests", program + ".py")]

    failures = []

    def check(what, got, expected):
        if got != expected:
            failures.append(f"{what}: got {got!r}, expected {expected!r}")

    def results(mutants, programs=("check",)):
        with tempfile.TemporaryDirectory() as work, contextlib.redirect_stdout(io.StringIO()):
            tree = PythonTree(work, work, 1)
            rows = script.run_lists(tree, [("list", list(programs), mutants)], "", 5)
            check("the file afterwards", script.read(os.path.join(work, "src", "part.py")).decode(),
                  SOURCE)
            return [(r["name"], r["result"], r["good"]) for r in rows]

    check("what becomes of mutants", results([
        mutant("other way round", "a < b", "a > b"),
        mutant("or equal", "a < b", "a <= b"),
        mutant("or equal, known", "a < b", "a <= b", equivalent="the values are the same then"),
        mutant("no syntax", "a < b", "a < <"),
        mutant("never ends", "LIMIT = 1", "LIMIT = 2"),
        mutant("not equivalent at all", "return b", "return 7", equivalent="so it is said"),
    ]), [
        ("other way round", "killed", True),
        ("or equal", "survived", False),
        ("or equal, known", "survived", True),
        ("no syntax", "does not compile", False),
        ("never ends", "killed", True),
        ("not equivalent at all", "killed", False),
    ])
    try:
        results([mutant("any", "a < b", "a > b")], ["broken"])
        failures.append("a program that fails without a mutant was not refused")
    except script.ListError as error:
        check("the refusal", "broken failed without a mutant" in str(error), True)

    def faults(content, files=True):
        with tempfile.TemporaryDirectory() as root:
            for folder in ("src", "tests/mutation"):
                os.makedirs(os.path.join(root, folder))
            if files:
                with open(os.path.join(root, "src", "part.py"), "w", encoding="utf-8") as file:
                    file.write(SOURCE)
            with open(os.path.join(root, "tests/mutation/x.json"), "w", encoding="utf-8") as file:
                file.write(content if isinstance(content, str) else json.dumps(content))
            try:
                return str(len(script.read_lists(root, [])))
            except script.ListError as error:
                return str(error)

    good = mutant("m", "a < b", "a > b")
    check("a good list", faults({"programs": ["p"], "mutants": [good]}), "1")
    for what, content, expected in [
            ("find missing", {"programs": ["p"], "mutants": [mutant("m", "a == b", "a > b")]},
             "x: m: `find` occurs 0 times in src/part.py, not once"),
            ("find twice", {"programs": ["p"], "mutants": [mutant("m", "return", "yield")]},
             "x: m: `find` occurs 2 times in src/part.py, not once"),
            ("no change", {"programs": ["p"], "mutants": [mutant("m", "a < b", "a < b")]},
             "x: m: `replace` changes nothing"),
            ("twice", {"programs": ["p"], "mutants": [good, good]}, "x: m: two mutants of that name"),
            ("key", {"programs": ["p"], "mutants": [dict(good, other=1)]},
             "x: m: keys missing or unknown: other"),
            ("no reason", {"programs": ["p"], "mutants": [dict(good, equivalent="")]},
             "x: m: `equivalent` says why no test can see it"),
            ("no programs", {"programs": [], "mutants": [good]}, "x: no programs"),
            ("no mutants", {"programs": ["p"], "mutants": []}, "x: no mutants"),
            ("keys", {"programs": ["p"]}, "x: a list has `programs` and `mutants`, and nothing else"),
    ]:
        check(what, faults(content), expected)
    check("no file", faults({"programs": ["p"], "mutants": [good]}, files=False),
          "x: m: no file src/part.py")
    check("no JSON", faults("{").startswith("x: no JSON: "), True)

    for failure in failures:
        print("FAILED", failure)
    print("self-test:", "failed" if failures else "passed")
    return 1 if failures else 0
