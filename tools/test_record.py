#!/usr/bin/env python3
# tools/test_record.py - writes what scripts/test ran, for lines of ptxgen qa
"""usage: test_record.py FOLDER BUILD_FOLDER MODE | --self-test

Reads ctest's JUnit reports and steps.tsv in FOLDER and the labels of the tests in BUILD_FOLDER, and
writes FOLDER/record.json:

    {"commit", "mode", "results": {NAME: "passed"|"failed"|"skipped"}, "labels": {LABEL: [NAME]},
     "notes": {NAME: TEXT}}

A test's NAME is `PRESET: TEST`, a step's its own. A result that occurs twice is the worse one. A
note is what a step says of its result, such as `91.3 % of 50000 lines`.
MODE is day, ci or full. A tree with changes has no record: a line must not pass by another tree."""
import json
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree
from pathlib import Path

WORST = ("passed", "skipped", "failed")


def add(results, name, result):
    before = results.get(name, "passed")
    results[name] = max(before, result, key=WORST.index)


def result_of(case):
    if case.get("status") == "run":
        return "passed"
    skip = case.find("skipped")
    if case.get("status") == "notrun" and skip is not None and "SKIP" in skip.get("message", ""):
        return "skipped"
    return "failed"


def read_steps(folder):
    """(result, name, note) of each step that scripts/test has noted."""
    steps = folder / "steps.tsv"
    for line in steps.read_text().splitlines() if steps.exists() else []:
        result, name, *rest = line.split("\t")
        yield result, name, rest[0] if rest else ""


def read_notes(folder):
    return {name: note for _, name, note in read_steps(folder) if note}


def read_results(folder):
    results = {}
    for report in sorted(folder.glob("*.xml")):
        try:
            cases = list(ElementTree.parse(report).getroot().iter("testcase"))
        except ElementTree.ParseError:
            add(results, f"{report.stem}: report", "failed")
            continue
        for case in cases:
            add(results, f"{report.stem}: {case.get('name')}", result_of(case))
    for result, name, _ in read_steps(folder):
        add(results, name, result)
    return results


def read_labels(build, results):
    """The tests of each label, as ctest lists them, under the names of `results`."""
    listing = subprocess.run(["ctest", "--test-dir", str(build), "--show-only=json-v1"],
                             capture_output=True, text=True, check=True).stdout
    labels = {}
    for test in json.loads(listing)["tests"]:
        name = f"{Path(build).name}: {test['name']}"
        for each in test.get("properties", []):
            if each["name"] == "LABELS" and name in results:
                for label in each["value"]:
                    labels.setdefault(label, []).append(name)
    return labels


def git(*arguments):
    return subprocess.run(["git", *arguments], capture_output=True, text=True,
                          check=True).stdout.strip()


def self_test():
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "test.xml").write_text(
            "<testsuite>"
            "<testcase name='a/b' status='run'/>"
            "<testcase name='a/c' status='notrun'><skipped message='SKIP_RETURN_CODE=77'/></testcase>"
            "<testcase name='a/d' status='fail'/>"
            "<testcase name='a/e' status='notrun'><skipped message='not found'/></testcase>"
            "</testsuite>")
        (folder / "clang.xml").write_text("<testsuite")
        (folder / "steps.tsv").write_text("passed\tmutants\t\nskipped\tclients\tnone\n"
                                          "passed\tclients\t\n")
        expected = {"test: a/b": "passed", "test: a/c": "skipped", "test: a/d": "failed",
                    "test: a/e": "failed", "clang: report": "failed", "mutants": "passed",
                    "clients": "skipped"}
        found = read_results(folder)
        if found != expected:
            sys.exit(f"read_results gives {found}, not {expected}")
        if read_notes(folder) != {"clients": "none"}:
            sys.exit(f"read_notes gives {read_notes(folder)}")
    print("7 results as expected")


if sys.argv[1:] == ["--self-test"]:
    self_test()
    sys.exit(0)
if len(sys.argv) != 4:
    sys.exit(__doc__)
folder, build, mode = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]
if git("status", "--porcelain", "--untracked-files=no"):
    print("no record: the tree has changes since its commit")
    sys.exit(0)
results = read_results(folder)
record = {"commit": git("rev-parse", "HEAD"), "mode": mode, "results": results,
          "labels": read_labels(build, results), "notes": read_notes(folder)}
(folder / "record.json").write_text(json.dumps(record, indent=1, sort_keys=True) + "\n")
print(f"record of {len(results)} results at {record['commit'][:12]}: {folder / 'record.json'}")
