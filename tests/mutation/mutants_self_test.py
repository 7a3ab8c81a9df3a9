# tests/mutation/mutants_self_test.py - tests of run_mutants.py on a tree of two files
"""The programs of the tree are Python files; building them is a look at their syntax."""
import contextlib
import io
import json
import os
import py_compile
import sys
import tempfile

import mutant_tree

SOURCE = "def least(a, b):\n    if a < b:\n        return a\n    return b\n\n\nLIMIT = 1\n"
CHECK = """import sys
sys.path.insert(0, sys.argv[1])
sys.dont_write_bytecode = True
import part
assert part.least(1, 2) == 1
assert part.least(2, 1) == 1
while part.LIMIT > 1:
    import time
    time.sleep(1)
"""
PROGRAMS = {"check": CHECK, "broken": "import part_that_is_not_there\n", "blind": "",
            "unlinked": ""}


def mutant(name, find, replace, **more):
    return dict({"name": name, "file": "src/part.py", "find": find, "replace": replace}, **more)


def check_resumed(script, check, results, tree):
    """What is known is not judged again while nothing that decides it has changed."""
    mutants = [mutant("killed", "a < b", "a > b"), mutant("lives", "a < b", "a <= b")]

    def compiled(known, programs, mutants=mutants, **more):
        before = tree.compiled
        rows = results(mutants, programs, known, **more)
        return rows, tree.compiled - before

    first, count = compiled([], ["check"])
    check("compiled at first, and once without a mutant", count, 3)
    again, count = compiled(first, ["check"])
    check("compiled again", count, 0)
    check("found again", again, first)
    _, count = compiled(first, ["check"], [dict(mutants[0], name="other name"), mutants[1]])
    check("compiled under another name", count, 0)
    _, count = compiled(first, ["check"], [mutants[0], mutant("lives", "a < b", "b >= a")])
    check("compiled when a mutant is another", count, 2)
    # One more program can notice what survived; what was killed stays so.
    _, count = compiled(first, ["blind", "check"])
    check("compiled for one more program", count, 2)
    changed = dict(PROGRAMS)
    PROGRAMS["check"] += "# more\n"
    _, count = compiled(first, ["check"])
    check("compiled for a changed program", count, 3)
    _, count = compiled(first, ["check"], kills_hold=True)
    check("compiled for a changed program where kills hold", count, 2)
    PROGRAMS.update(changed)


def check_memory(check):
    """What a program touches is limited, what it reserves is not."""
    if not os.path.isdir("/proc/self"):
        return
    before, mutant_tree.MEMORY = mutant_tree.MEMORY, 256 << 20
    program = "import mmap, time; m = mmap.mmap(-1, 1 << 30, mmap.MAP_PRIVATE); "
    for what, end, expected in [
            ("reserved only", "time.sleep(1)", (True, "passed")),
            ("written", "m.write(bytes(1 << 29)); time.sleep(60)", (False, "too large"))]:
        ended = mutant_tree.passes([sys.executable, "-c", program + end], ".", 60)
        check("memory that is " + what, ended[:2], expected)
    mutant_tree.MEMORY = before


def check_record(script, check):
    """results.json and the table follow the lists, and faults in them are found."""
    mutants = [mutant("one", "a < b", "a > b"),
               mutant("two", "a < b", "a <= b", equivalent="the values are the same then")]
    lists = [("x", ["p", "q"], mutants)]
    rows = [{"list": "x", "name": "one", "result": "killed", "by": "q", "good": True},
            {"list": "x", "name": "two", "result": "survived", "by": "", "good": True}]
    with tempfile.TemporaryDirectory() as root:
        readme = os.path.join(root, "tests", "mutation", "README.md")
        empty = "\n".join(["Before", "", *script.TABLE, "| all | 0 | 0 | 0 | 0 |", "", "After", ""])
        script.write(readme, empty.encode())
        advice = "; run with --record, or --dry-run --record for `not run`"
        check("nothing was run", script.record_faults(root, lists), [
            "results.json: x: one: is not there" + advice,
            "results.json: x: two: is not there" + advice])
        script.record(root, lists, rows[:1])
        check("one was run", script.record_faults(root, lists), [])
        check("the other is said to be open", script.recorded(root)["x"]["two"], "not run")
        script.record(root, lists, rows)
        check("all was run", script.record_faults(root, lists), [])
        check("the record", script.recorded(root), {"x": {"one": "killed by q", "two": "equivalent"}})
        check("the table", script.read(readme).decode(), "\n".join(
            ["Before", "", *script.TABLE, "| x | 2 | 1 | 1 | 0 |", "| all | 2 | 1 | 1 | 0 |", "", "After", ""]))
        script.write(readme, script.read(readme).replace(b"| x | 2", b"| x | 3"))
        check("another table", script.record_faults(root, lists),
              ["README.md: the table is not that of results.json" + advice])
        script.record(root, lists, [dict(rows[1], good=False)])
        check("one survived, one is kept", script.record_faults(root, lists),
              ["results.json: x: two: survived" + advice])
        check("other programs", script.record_faults(root, [("x", ["p"], mutants[:1])]), [
            "results.json: x: one: killed by q" + advice,
            "results.json: x: two: is not in the list" + advice])
        check("another list", script.record_faults(root, []),
              ["results.json: there is no list x" + advice])


def run(script):
    class PythonTree(script.Tree):
        """Compiling is a look at the syntax, linking puts the file where the program looks for it."""
        compiled = 0

        def prepare(self, programs):
            script.write(os.path.join(self.work, "src", "part.py"), SOURCE.encode())
            for name in programs:
                script.write(os.path.join(self.work, name), PROGRAMS[name].encode())
            return None

        def files(self):
            return ["src/part.py"]

        def precompile(self, folder, files):
            pass

        def digest(self, program):
            return PROGRAMS[program]

        def compile(self, file, content, folder):
            PythonTree.compiled += 1
            source = os.path.join(folder, "part.py")
            script.write(source, content)
            try:
                py_compile.compile(source, os.path.join(folder, "part.pyc"), doraise=True)
            except py_compile.PyCompileError as error:
                return {}, str(error)
            return {"part": source}, None

        def link(self, program, objects, folder):
            if program == "unlinked":
                return None, "no such symbol"
            (source,) = objects.values()
            script.write(os.path.join(folder, "linked", "part.py"), script.read(source))
            call = [sys.executable, os.path.join(self.work, program), os.path.join(folder, "linked")]
            return call, None

    failures = []

    def check(what, got, expected):
        if got != expected:
            failures.append(f"{what}: got {got!r}, expected {expected!r}")

    def results(mutants, programs=("check",), known=(), grace=60, kills_hold=False):
        with tempfile.TemporaryDirectory() as work, contextlib.redirect_stdout(io.StringIO()):
            tree, kept = PythonTree(work, work, 1), []
            judge = script.Judge(tree, 2, 60, known, kills_hold)
            judge.grace = grace
            rows = script.run_lists(judge, [("list", list(programs), mutants)], "",
                                    lambda rows: kept.append(len(rows)))
            check("the file afterwards", script.read(os.path.join(work, "src", "part.py")).decode(),
                  SOURCE)
            check("the last rows that were kept", kept[-1:], [len(rows)])
            return rows

    def ends(*arguments, **more):
        return [(r["name"], r["result"], r["good"]) for r in results(*arguments, **more)]

    check("what becomes of mutants", ends([
        mutant("other way round", "a < b", "a > b"),
        mutant("or equal", "a < b", "a <= b"),
        mutant("or equal, known", "a < b", "a <= b", equivalent="the values are the same then"),
        mutant("no syntax", "a < b", "a < <"),
        mutant("not equivalent at all", "return b", "return 7", equivalent="so it is said"),
    ]), [
        ("other way round", "killed", True),
        ("or equal", "survived", False),
        ("or equal, known", "survived", True),
        ("no syntax", "does not compile", False),
        ("not equivalent at all", "killed", False),
    ])
    never_ends = results([mutant("never ends", "LIMIT = 1", "LIMIT = 2")], grace=1)[0]
    check("a mutant that never ends", [never_ends["result"], never_ends["by"]],
          ["killed", "check (timeout)"])
    for program, expected in [("broken", "broken failed without a mutant"),
                              ("unlinked", "unlinked cannot be linked without a mutant")]:
        try:
            results([mutant("any", "a < b", "a > b")], [program])
            failures.append(f"{program} was not refused")
        except script.ListError as error:
            check("the refusal", expected in str(error), True)
    check("who noticed", results([mutant("any", "a < b", "a > b")], ["blind", "check"])[0]["by"],
          "check")
    check_memory(check)
    check_resumed(script, check, results, PythonTree)
    check_record(script, check)

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
