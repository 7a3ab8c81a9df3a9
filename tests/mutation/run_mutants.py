#!/usr/bin/env python3
# tests/mutation/run_mutants.py - whether tests fail when legality checks are removed
"""Applies each mutant of tests/mutation/*.json alone, builds and runs the programs that must notice.

usage: run_mutants.py [--dry-run | --self-test] [--lists a,b] [--only TEXT] [--json FILE] [--record]
                      [--kills-hold] [--workers N] [--timeout SECONDS] [--keep FOLDER]

A mutant is killed if a program of its list fails or runs into the timeout. Exit status 1: a mutant
survived that is not marked as equivalent, one that is marked was killed, one does not compile, or a
list is wrong. See README.md beside this file for the lists.

--dry-run    checks the lists only: every `find` occurs exactly once in its file, and results.json
             has every mutant and no other, README.md the table of it
--self-test  runs this script's own tests, on a small tree of its own
--lists      only these lists (names without .json)
--only       only mutants whose name contains TEXT
--json       writes FILE as mutants are judged; what FILE says already and still holds is not redone
--kills-hold what FILE says was killed is not redone while the mutant's own file is the same, though
             tests and other sources have changed
--record     writes what became of the mutants into results.json and README.md; with --dry-run only
             that new ones were not run, and which are gone
--workers    mutants that are judged side by side (and jobs of the first build); default: cores
--timeout    of one program, at most (300); a program gets ten times what it takes unchanged, and 30 s
--keep       works in FOLDER and leaves it, so that the next run builds less
"""
import argparse
import concurrent.futures
import hashlib
import json
import os
import queue
import shutil
import sys
import tempfile
import threading
import time

sys.dont_write_bytecode = True  # before what is imported from this folder
from mutant_tree import Tree, passes, read, write

MUTANT_KEYS = {"name", "file", "find", "replace", "equivalent"}
RESULTS = "results.json"
TABLE = ("| list | mutants | killed | equivalent | not run |", "|---|---|---|---|---|")
NOT_RUN = "not run"


class ListError(Exception):
    """A list that cannot be run as it is."""


def read_lists(root, wanted):
    """[(name of the list, its programs, its mutants)], everything checked against the tree."""
    folder = os.path.join(root, "tests", "mutation")
    names = sorted(f[: -len(".json")] for f in os.listdir(folder)
                   if f.endswith(".json") and f != RESULTS)
    for name in wanted:
        if name not in names:
            raise ListError(f"there is no list {name}; lists: {' '.join(names)}")
    lists, faults = [], []
    for name in wanted or names:
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


class Judge:
    """Judges mutants of lists in a tree that is built, several at a time."""

    def __init__(self, tree, workers, timeout, known, kills_hold=False):
        self.tree, self.workers, self.timeout = tree, workers, timeout
        self.kills_hold = kills_hold
        self.known = {(r["list"], r["change"]): r for r in known if "change" in r}
        self.folders, self.digests, self.limits = queue.Queue(), {}, {}
        self.lock, self.grace = threading.Lock(), 30

    def prepare(self, programs, files):
        said = self.tree.prepare(programs)
        if said is not None:
            raise ListError("the tree does not build without a mutant:\n" + said)
        self.digests = {program: self.tree.digest(program) for program in programs}
        for number in range(self.workers):
            folder = os.path.join(self.tree.work, "mutants", str(number))
            self.tree.mirror(folder, files)
            self.folders.put(folder)

    def change(self, mutant):
        text = read(os.path.join(self.tree.work, mutant["file"])).decode()
        return text.replace(mutant["find"], mutant["replace"]).encode()

    def judged(self, name, programs, mutant):
        """What an earlier run found, if nothing that decides it is different now."""
        change = hashlib.sha256(mutant["file"].encode() + self.change(mutant)).hexdigest()
        row = self.known.get((name, change))
        if row is None or "ran" not in row:
            return None
        if self.kills_hold and row["result"] == "killed":
            return row
        needed = list(row["ran"])[-1:] if row["result"] == "killed" else programs
        same = needed and all(row["ran"].get(p) == self.digests.get(p, "") for p in needed)
        return row if same else None

    def control(self, name, programs, mutants):
        """Files as they are, built as mutants are: the programs must pass. Sets their timeouts."""
        folder = self.folders.get()
        try:
            objects = {}
            for file in sorted({m["file"] for m in mutants}):
                content = read(os.path.join(self.tree.work, file))
                built, said = self.tree.compile(file, content, folder)
                if said is not None:
                    raise ListError(f"{file} does not compile without a mutant:\n{said}")
                for target, path in built.items():  # the next file may compile the same object
                    shutil.move(path, path + ".control")
                    objects[target] = path + ".control"
            for program in programs:
                command, said = self.tree.link(program, objects, folder)
                if said is not None:
                    raise ListError(f"{program} cannot be linked without a mutant:\n{said}")
                start = time.monotonic()
                passed, how, output = passes(command, self.tree.work, self.timeout)
                if not passed:
                    raise ListError(f"{program} {how} without a mutant:\n{output}")
                limit = min(self.timeout, self.grace + 10 * (time.monotonic() - start))
                with self.lock:
                    self.limits[name, program] = limit
        finally:
            self.folders.put(folder)

    def run(self, name, programs, mutant):
        """One row of the results."""
        folder = self.folders.get()
        start = time.monotonic()
        content = self.change(mutant)
        row = {"list": name, "name": mutant["name"], "file": mutant["file"], "result": "survived",
               "by": "", "ran": {},
               "change": hashlib.sha256(mutant["file"].encode() + content).hexdigest()}
        try:
            objects, said = self.tree.compile(mutant["file"], content, folder)
            for program in programs:
                if said is None:
                    command, said = self.tree.link(program, objects, folder)
                if said is not None:
                    row["result"], row["by"] = "does not compile", said
                    break
                row["ran"][program] = self.digests[program]
                passed, how, _ = passes(command, self.tree.work, self.limits[name, program])
                if not passed:
                    row["result"] = "killed"
                    row["by"] = program + (" (timeout)" if how == "timeout" else "")
                    break
        finally:
            self.folders.put(folder)
        row["seconds"] = round(time.monotonic() - start, 1)
        return row


def run_lists(judge, lists, only, keep_rows):
    """[{list, name, file, result, by, good, seconds, ...}], in the order of the lists.

    `keep_rows` is called with all rows so far whenever there is a new one."""
    wanted = [(name, programs, [m for m in mutants if only in m["name"]])
              for name, programs, mutants in lists]
    judge.prepare(sorted({p for _, listed, mutants in wanted if mutants for p in listed}),
                  sorted({m["file"] for _, _, mutants in wanted for m in mutants}))
    rows = {}

    def add(name, mutant, row):
        row = dict(row, name=mutant["name"], good=is_good(mutant, row["result"]))
        row.pop("equivalent", None)
        if "equivalent" in mutant:
            row["equivalent"] = mutant["equivalent"]
        rows[name, mutant["name"]] = row
        print(as_line(row), flush=True)

    for name, programs, mutants in wanted:
        left = []
        for mutant in mutants:
            row = judge.judged(name, programs, mutant)
            if row is None:
                left.append(mutant)
            else:
                add(name, mutant, row)
        if not left:
            continue
        judge.control(name, programs, left)
        with concurrent.futures.ThreadPoolExecutor(judge.workers) as pool:
            running = {pool.submit(judge.run, name, programs, m): m for m in left}
            try:
                for done in concurrent.futures.as_completed(running):
                    add(name, running[done], done.result())
                    keep_rows(list(rows.values()))
            except BaseException:
                pool.shutdown(cancel_futures=True)
                raise
    results = [rows[name, m["name"]] for name, _, mutants in wanted for m in mutants]
    keep_rows(results)
    return results


def is_good(mutant, result):
    """Whether the result is as it should be."""
    return result == ("survived" if "equivalent" in mutant else "killed")


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


def recorded(root):
    """{list: {mutant: what became of it}} as results.json has it."""
    path = os.path.join(root, "tests", "mutation", RESULTS)
    return json.loads(read(path)) if os.path.isfile(path) else {}


def table(record):
    """The lines of README.md's table."""
    lines, sums = list(TABLE), [0, 0, 0, 0]
    for name, mutants in sorted(record.items()):
        said = list(mutants.values())
        numbers = [len(said), sum(s.startswith("killed by ") for s in said),
                   said.count("equivalent"), said.count(NOT_RUN)]
        sums = [a + b for a, b in zip(sums, numbers)]
        lines.append(f"| {name} | " + " | ".join(map(str, numbers)) + " |")
    return lines + ["| all | " + " | ".join(map(str, sums)) + " |"]


def record(root, lists, results):
    """Puts the results in the place of what results.json and README.md say about these mutants."""
    new = {}
    for row in results:
        said = {"killed": "killed by " + row["by"], "survived": "survived"}.get(row["result"])
        said = "equivalent" if row["good"] and said == "survived" else said or row["result"]
        new[row["list"], row["name"]] = said
    old = recorded(root)
    merged = {}
    for name, _, mutants in lists:
        before = old.get(name, {})
        merged[name] = {m["name"]: new.get((name, m["name"]), before.get(m["name"], NOT_RUN))
                        for m in mutants}
    folder = os.path.join(root, "tests", "mutation")
    write(os.path.join(folder, RESULTS), (json.dumps(merged, indent=1) + "\n").encode())
    readme = read(os.path.join(folder, "README.md")).decode().splitlines()
    start = readme.index(TABLE[0])
    end = next((i for i in range(start, len(readme)) if not readme[i].startswith("|")), len(readme))
    readme[start:end] = table(merged)
    write(os.path.join(folder, "README.md"), ("\n".join(readme) + "\n").encode())


def record_faults(root, lists):
    """Whether results.json has every mutant of the lists and no other, and README.md its table."""
    record_, faults = recorded(root), []
    for name in sorted(set(record_) - {name for name, _, _ in lists}):
        faults.append(f"{RESULTS}: there is no list {name}")
    for name, programs, mutants in lists:
        said = dict(record_.get(name, {}))
        for mutant in mutants:
            text = said.pop(mutant["name"], "is not there")
            by = [f"killed by {program}{how}" for program in programs for how in ("", " (timeout)")]
            if text != NOT_RUN and text not in (["equivalent"] if "equivalent" in mutant else by):
                faults.append(f"{RESULTS}: {name}: {mutant['name']}: {text}")
        faults += [f"{RESULTS}: {name}: {gone}: is not in the list" for gone in said]
    text = read(os.path.join(root, "tests", "mutation", "README.md")).decode()
    if "\n".join(table(record_)) not in text:
        faults.append(f"README.md: the table is not that of {RESULTS}")
    return [f"{fault}; run with --record, or --dry-run --record for `{NOT_RUN}`" for fault in faults]


def parsed():
    parser = argparse.ArgumentParser()
    parser.add_argument("--dry-run", action="store_true")
    parser.add_argument("--self-test", action="store_true")
    parser.add_argument("--record", action="store_true")
    parser.add_argument("--kills-hold", action="store_true")
    parser.add_argument("--lists", default="")
    parser.add_argument("--only", default="")
    parser.add_argument("--json", default="")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--timeout", type=float, default=300)
    parser.add_argument("--keep", default="")
    return parser.parse_args()


def main():
    options = parsed()
    here = os.path.dirname(os.path.abspath(__file__))
    if options.self_test:
        import mutants_self_test
        return mutants_self_test.run(sys.modules["__main__"])
    root = os.path.dirname(os.path.dirname(here))
    work = ""
    try:
        every = read_lists(root, [])
        lists = read_lists(root, [n for n in options.lists.split(",") if n])
        if options.dry_run:
            if options.record:
                record(root, every, [])
            faults = record_faults(root, every)
            if faults:
                raise ListError("\n".join(faults))
            print(f"{len(lists)} lists, {sum(len(m) for _, _, m in lists)} mutants: all can be applied")
            return 0
        work = os.path.abspath(options.keep) if options.keep else tempfile.mkdtemp(prefix="mutants-")
        results = run_kept(options, Tree(root, work, options.workers), lists)
        if options.record:
            record(root, every, results)
    except ListError as error:
        print(error, file=sys.stderr)
        return 1
    finally:
        if work and not options.keep:
            shutil.rmtree(work, ignore_errors=True)
    print(summary(results))
    return 0 if results and all(r["good"] for r in results) else 1


def run_kept(options, tree, lists):
    """The lists' results, which are in the file of --json as soon as they are known."""
    known = []
    if options.json and os.path.isfile(options.json):
        known = json.loads(read(options.json) or b"[]")

    def keep_rows(rows):
        if options.json:
            have = {(r["list"], r["change"]) for r in rows}
            others = [r for r in known if (r["list"], r["change"]) not in have]
            text = json.dumps(rows + others, indent=1) + "\n"
            write(options.json + ".new", text.encode())
            os.replace(options.json + ".new", options.json)

    judge = Judge(tree, options.workers, options.timeout, known, options.kills_hold)
    return run_lists(judge, lists, options.only, keep_rows)


if __name__ == "__main__":
    sys.exit(main())
