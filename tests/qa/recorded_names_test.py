#!/usr/bin/env python3
# tests/qa/recorded_names_test.py - lines name tests that exist
"""usage: recorded_names_test.py PTXGEN BUILD_FOLDER | --self-test

Every `case` and `label` of a line that a record of scripts/test decides must be that of a test in
BUILD_FOLDER: a test that is renamed must not leave a line undecided for ever. Steps of scripts/test
--full, and presets other than the folder's, are not looked at."""
import json
import re
import subprocess
import sys

OTHER_PRESETS = ("release: ", "clang: ")
# Tests of a package or of examples that a build may leave out.
MISSING = "SKIP: not every test program is built"


def names_case(name, text):
    """As results_of in src/qa/record.cpp."""
    words, _, number = text.rpartition(" ")
    if not number.isdigit():
        return text in name
    found = re.search(re.escape(words) + r" ([\d, ]+)", name)
    return bool(found) and number in re.findall(r"\d+", found.group(1))


def unknown(lines, names, labels):
    """(line, piece) of pieces that name no test."""
    for line in lines:
        for piece in filter(None, line["record"].split(";")):
            kind, _, text = piece.partition(" ")
            if kind == "step" or text.startswith(OTHER_PRESETS):
                continue
            if kind == "label" and text not in labels:
                yield line["id"], piece
            if kind == "case" and not any(names_case(name, text) for name in names):
                yield line["id"], piece


def self_test():
    lines = [{"id": "1", "record": "case falsification 37;label gemv;step mutants"},
             {"id": "2", "record": "case falsification 3"}, {"id": "3", "record": ""},
             {"id": "4", "record": "label none;case release: "}]
    names = ["tile/falsification 33, 37: strides"]
    found = list(unknown(lines, names, {"gemv"}))
    assert found == [("2", "case falsification 3"), ("4", "label none")], found
    print("known and unknown names are told apart")


if sys.argv[1:] == ["--self-test"]:
    self_test()
    sys.exit(0)
if len(sys.argv) != 3:
    sys.exit(__doc__)
sections = [part for name in ("A", "G", "hypotheses", "gates", "claims") for part in ("--section", name)]
document = json.loads(subprocess.run([sys.argv[1], "qa", "--device", "emulator", "--json", *sections],
                                     capture_output=True, text=True, check=True).stdout)
listing = json.loads(subprocess.run(["ctest", "--test-dir", sys.argv[2], "--show-only=json-v1"],
                                    capture_output=True, text=True, check=True).stdout)
names = [test["name"] for test in listing["tests"]]
if any(name.endswith("NOT_BUILT") for name in names):
    print(MISSING)
    sys.exit(77)
labels = {label for test in listing["tests"] for each in test.get("properties", [])
          if each["name"] == "LABELS" for label in each["value"]}
found = list(unknown(document["lines"], names, labels))
for line, piece in found:
    print(f"line {line}: no test is named by '{piece}'")
print(f"{len(document['lines'])} lines, {len(names)} tests, {len(found)} unknown names")
sys.exit(1 if found else 0)
