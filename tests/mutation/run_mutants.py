#!/usr/bin/env python3
# tests/mutation/run_mutants.py - whether tests fail when legality checks are removed
"""Applies each mutant of tests/mutation/*.json alone, builds and runs the programs that must notice.

usage: run_mutants.py [--dry-run | --self-test] [--lists a,b] [--only TEXT] [--json FILE]
                      [--jobs N] [--timeout SECONDS] [--keep FOLDER]

A mutant is killed if a program of its list fails or runs into the timeout. Exit status 1: a mutant
survived that is not marked as equivalent, one that is marked was killed, one does not compile, or a
list is wrong. See README.md beside this file for the lists.

--dry-run    checks the lists only: every `find` occurs exactly once in its file
--self-test  runs this script's own tests, on a small tree of its own
--lists      only these lists (names without .json)
--only       only mutants whose name contains TEXT
--keep       works in FOLDER and leaves it, so that the next run builds less
"""
import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

MUTANT_KEYS = {"name", "file", "find", "replace", "equivalent"}


class ListError(Exception):
    """A list that cannot be run as it stands."""


def read_lists(root, wanted):
    """[(name of the list, its programs, its mutants)], everything checked against the tree."""
    folder = os.path.join(root, "tests", "mutation")
    names = sorted(f[: -len(".json")] for f in os.listdir(folder) if f.endswith(".json"))
    for name in wanted:
        if name not in names:
            raise ListError(f"there is no list {name}; lists: {' '.join(names)}")
    lists, faults = [], []
    for name in names:
        if wanted and name not in wanted:
            continue
        path = os.path.join(folder, name + ".json")
        with open(path, encoding="utf-8") as file:
            try:
                content = json.load(file)
            except ValueError as error:
                faults.append(f"{name}: no JSON: {error}")
                continue
        faults += [f"{name}: {fault}" for fault in faults_of(root, content)]
        if not faults:
            lists.append((name, content["programs"], content["mutants"]))
    if not names:
        faults.append("there is no list")
    if faults:
        raise ListError("\n".join(faults))
    return lists


def faults_of(root, content):
    if not isinstance(content, dict) or set(content) != {"programs", "mutants"}:
        return ["a list has `programs` and `mutants`, and nothing else"]
    faults = []
    if not content["programs"]:
        faults.append("no programs")
    if not content["mutants"]:
        faults.append("no mutants")
    names = set()
    for mutant in content["mutants"]:
        name = mutant.get("name", "?")
        missing = {"name", "file", "find", "replace"} - set(mutant)
        if missing or set(mutant) - MUTANT_KEYS:
            keys = sorted(missing | (set(mutant) - MUTANT_KEYS))
            faults.append(f"{name}: keys missing or unknown: {', '.join(keys)}")
            continue
        if name in names:
            faults.append(f"{name}: two mutants of that name")
        names.add(name)
        path = os.path.join(root, mutant["file"])
        if not os.path.isfile(path):
            faults.append(f"{name}: no file {mutant['file']}")
            continue
        with open(path, encoding="utf-8") as file:
            found = file.read().count(mutant["find"])
        if found != 1:
            faults.append(f"{name}: `find` occurs {found} times in {mutant['file']}, not once")
        if mutant["find"] == mutant["replace"]:
            faults.append(f"{name}: `replace` changes nothing")
        if mutant.get("equivalent") == "":
            faults.append(f"{name}: `equivalent` says why no test can see it")
    return faults


class Tree:
    """A copy of the project with one build, in which files are changed one at a time."""

    def __init__(self, root, work, jobs):
        self.root, self.work, self.jobs = root, work, jobs
        self.build_folder = os.path.join(work, "build", "dev")

    def files(self):
        """What belongs to the project, by git where it is one of its checkouts."""
        call = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
        listed = subprocess.run(call, cwd=self.root, capture_output=True)
        if listed.returncode == 0:
            return [name for name in listed.stdout.decode().split("\0") if name]
        names = []
        for folder, folders, files in os.walk(self.root):
            folders[:] = [f for f in folders if f != "build" and not f.startswith(".")]
            names += [os.path.relpath(os.path.join(folder, f), self.root) for f in files]
        return sorted(names)

    def prepare(self):
        for name in self.files():
            source = os.path.join(self.root, name)
            if os.path.isfile(source):
                self.write(name, read(source))
                shutil.copymode(source, os.path.join(self.work, name))
        # What a mutant leaves unused is no reason not to run it.
        call = ["cmake", "--preset", "dev", "-DPTXGEN_BUILD_CLI=OFF", "-DPTXGEN_BUILD_EXAMPLES=OFF",
                "-DPTXGEN_WERROR=OFF"]
        run = subprocess.run(call, cwd=self.work, capture_output=True, text=True)
        return run.stdout + run.stderr if run.returncode else None

    def write(self, name, content):
        """Leaves a file alone that is already so, so that it is not built again."""
        path = os.path.join(self.work, name)
        if os.path.isfile(path) and read(path) == content:
            return
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(content)

    def build(self, programs):
        """None, or what the compiler said."""
        call = ["cmake", "--build", self.build_folder, "--parallel", str(self.jobs), "--target"]
        run = subprocess.run(call + programs, capture_output=True, text=True)
        return run.stdout + run.stderr if run.returncode else None

    def command(self, program):
        return [os.path.join(self.build_folder, "tests", program)]


def read(path):
    with open(path, "rb") as file:
        return file.read()


def passes(command, folder, timeout):
    """(whether the program passes, how it ended, the end of what it printed)"""
    process = subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT, start_new_session=True)
    try:
        output, _ = process.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        return False, "timeout", ""
    if process.returncode in (0, 77):  # 77: a case was skipped, none failed
        return True, "passed", ""
    return False, "failed", output.decode(errors="replace")[-2000:]


def run_mutant(tree, mutant, programs, timeout):
    """(result, the program that noticed or the compiler's text)"""
    original = read(os.path.join(tree.work, mutant["file"]))
    changed = original.decode().replace(mutant["find"], mutant["replace"]).encode()
    tree.write(mutant["file"], changed)
    try:
        said = tree.build(programs)
        if said is not None:
            return "does not compile", said[-2000:]
        for program in programs:
            passed, how, _ = passes(tree.command(program), tree.work, timeout)
            if not passed:
                return "killed", program + (" (timeout)" if how == "timeout" else "")
        return "survived", ""
    finally:
        tree.write(mutant["file"], original)


def judge(mutant, result):
    """Whether the result is as it should be."""
    return result == ("survived" if "equivalent" in mutant else "killed")


def run_lists(tree, lists, only, timeout):
    """[{list, name, file, result, by, good, seconds}], in the order of the lists."""
    said = tree.prepare()
    if said is not None:
        raise ListError("the build cannot be configured:\n" + said)
    wanted = [(name, programs, [m for m in mutants if only in m["name"]])
              for name, programs, mutants in lists]
    programs = sorted({p for _, listed, mutants in wanted if mutants for p in listed})
    said = tree.build(programs)
    if said is not None:
        raise ListError("the tree does not build without a mutant:\n" + said[-4000:])
    for program in programs:
        passed, how, output = passes(tree.command(program), tree.work, timeout)
        if not passed:
            raise ListError(f"{program} {how} without a mutant:\n{output}")
    results = []
    for name, listed, mutants in wanted:
        for mutant in mutants:
            start = time.monotonic()
            result, by = run_mutant(tree, mutant, listed, timeout)
            row = {"list": name, "name": mutant["name"], "file": mutant["file"], "result": result,
                   "by": by, "good": judge(mutant, result),
                   "seconds": round(time.monotonic() - start, 1)}
            if "equivalent" in mutant:
                row["equivalent"] = mutant["equivalent"]
            results.append(row)
            print(as_line(row), flush=True)
    return results


def as_line(row):
    said = row["by"] if row["result"] == "killed" else row.get("equivalent", "")
    line = f"{row['list']:<18} {row['name']:<44} {row['result']:<10} {row['seconds']:>6.1f} s"
    if said:
        line += "  " + said
    if row["result"] == "does not compile":
        line += "\n" + row["by"]
    return line if row["good"] else line + "   <-- wrong"


def summary(results):
    killed = sum(r["result"] == "killed" for r in results)
    equivalent = sum(r["result"] == "survived" and r["good"] for r in results)
    wrong = sum(not r["good"] for r in results)
    return f"{len(results)} mutants: {killed} killed, {equivalent} equivalent, {wrong} wrong"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--dry-run", action="store_true")
    parser.add_argument("--self-test", action="store_true")
    parser.add_argument("--lists", default="")
    parser.add_argument("--only", default="")
    parser.add_argument("--json", default="")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--timeout", type=float, default=300)
    parser.add_argument("--keep", default="")
    options = parser.parse_args()
    here = os.path.dirname(os.path.abspath(__file__))
    if options.self_test:
        sys.path.insert(0, here)
        sys.dont_write_bytecode = True
        import mutants_self_test
        return mutants_self_test.run(sys.modules["__main__"])
    root = os.path.dirname(os.path.dirname(here))
    work = ""
    try:
        lists = read_lists(root, [n for n in options.lists.split(",") if n])
        if options.dry_run:
            print(f"{len(lists)} lists, {sum(len(m) for _, _, m in lists)} mutants: all can be applied")
            return 0
        work = os.path.abspath(options.keep) if options.keep else tempfile.mkdtemp(prefix="mutants-")
        results = run_lists(Tree(root, work, options.jobs), lists, options.only, options.timeout)
    except ListError as error:
        print(error, file=sys.stderr)
        return 1
    finally:
        if work and not options.keep:
            shutil.rmtree(work, ignore_errors=True)
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(results, file, indent=1)
            file.write("\n")
    print(summary(results))
    return 0 if results and all(r["good"] for r in results) else 1


if __name__ == "__main__":
    sys.exit(main())
