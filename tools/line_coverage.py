#!/usr/bin/env python3
# tools/line_coverage.py - lines of the C++ sources that tests execute
"""usage: line_coverage.py BUILD_FOLDER [--min PERCENT] [--jobs N] [--worst N] | --self-test

BUILD_FOLDER was built by g++ with --coverage (the preset `coverage`) and its tests were run. Adds
up what gcov says of every object: a line of src or include/ptxgen counts as executed if it is in
one of them. Prints a row for each module, the files with the most lines that are not executed, and
as its last line `P % of N lines`. Exit status 1: less than PERCENT, 2: nothing was measured."""
import argparse
import json
import subprocess
import sys
import tempfile
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

SOURCE = Path(__file__).resolve().parent.parent
MEASURED = ("src/", "include/ptxgen/")


def relative_name(name, folder, source):
    """The path of a source in the tree, or None for a file that is not measured."""
    path = (Path(folder) / name).resolve()
    try:
        inside = path.relative_to(source).as_posix()
    except ValueError:
        return None
    return inside if inside.startswith(MEASURED) else None


def add_document(document, lines, source=SOURCE):
    """Adds one document of gcov to `lines`: file -> line -> executions."""
    for file in document["files"]:
        name = relative_name(file["file"], document["current_working_directory"], source)
        if name is None:
            continue
        counts = lines[name]
        for line in file["lines"]:
            counts[line["line_number"]] = counts.get(line["line_number"], 0) + line["count"]


def gcov(notes):
    """The documents of one object. An object that no program has run has no counts: all are 0."""
    run = subprocess.run(["gcov", "--json-format", "--stdout", str(notes)], capture_output=True,
                         text=True, check=True)
    return [json.loads(line) for line in run.stdout.splitlines() if line.startswith("{")]


def measure(build, jobs):
    lines = defaultdict(dict)
    notes = sorted(Path(build).rglob("*.gcno"))
    with ThreadPoolExecutor(jobs) as pool:
        for documents in pool.map(gcov, notes):
            for document in documents:
                add_document(document, lines)
    return lines


def module_of(name):
    """src/qa/lines/x.cpp -> src/qa; include/ptxgen/ptx/ir.hpp -> include/ptxgen/ptx"""
    parts = name.split("/")
    depth = 3 if parts[0] == "include" else 2
    return "/".join(parts[:min(depth, len(parts) - 1)])


def shares(lines, key):
    """key of a file -> [executed, all]"""
    sums = defaultdict(lambda: [0, 0])
    for name, counts in lines.items():
        sums[key(name)][0] += sum(1 for count in counts.values() if count)
        sums[key(name)][1] += len(counts)
    return sums


def percent(executed, total):
    return 100 * executed / total if total else 0.0


def report(lines, worst):
    for module, (executed, total) in sorted(shares(lines, module_of).items()):
        print(f"{percent(executed, total):6.1f} %  {executed:7} of {total:7}  {module}")
    files = shares(lines, lambda name: name)
    print("most lines that no test executes:")
    for name, (executed, total) in sorted(files.items(), key=lambda row: row[1][0] - row[1][1])[:worst]:
        first = [str(line) for line, count in sorted(lines[name].items()) if not count][:5]
        if first:
            print(f"  {total - executed:5}  {name}:{','.join(first)}")
    executed, total = shares(lines, lambda _: "all")["all"]
    return executed, total


def self_test():
    """Compiles a program of three functions, runs one of them, and counts its lines."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name).resolve()
        (folder / "src").mkdir()
        (folder / "src" / "a.cpp").write_text(
            "int once(int x) {\n  return x + 1;\n}\nint never(int x) {\n  return x - 1;\n}\n"
            "int main() {\n  return once(-1);\n}\n")
        subprocess.run(["g++", "--coverage", "-O0", "src/a.cpp", "-o", "a"], cwd=folder, check=True)
        lines = defaultdict(dict)
        (before,) = gcov(next(folder.glob("*.gcno")))
        add_document(before, lines, folder)
        unrun = shares(lines, lambda _: "all")["all"]
        subprocess.run(["./a"], cwd=folder, check=True)
        (after,) = gcov(next(folder.glob("*.gcno")))
        add_document(after, lines, folder)
        executed = {line for line, count in lines["src/a.cpp"].items() if count}
        if unrun[0] != 0 or set(lines) != {"src/a.cpp"} or not {2, 8} <= executed or 5 in executed:
            sys.exit(f"executed lines of {sorted(lines)}: {executed}; before the run: {unrun}")
        assert module_of("src/qa/lines/x.cpp") == "src/qa"
        assert module_of("include/ptxgen/ptx/ir.hpp") == "include/ptxgen/ptx"
        assert module_of("include/ptxgen/version.hpp") == "include/ptxgen"
        assert relative_name("/usr/include/stdio.h", folder, folder) is None
    print("executed and other lines are told apart")


if sys.argv[1:] == ["--self-test"]:
    self_test()
    sys.exit(0)
parser = argparse.ArgumentParser(usage=__doc__)
parser.add_argument("build")
parser.add_argument("--min", type=float, default=0)
parser.add_argument("--jobs", type=int, default=2)
parser.add_argument("--worst", type=int, default=20)
options = parser.parse_args()
executed, total = report(measure(options.build, options.jobs), options.worst)
if total == 0:
    print(f"{options.build} has no object with counters: build it with the preset coverage")
    sys.exit(2)
print(f"{percent(executed, total):.1f} % of {total} lines")
sys.exit(1 if percent(executed, total) < options.min else 0)
