#!/usr/bin/env python3
# tools/test_summary.py - sums up what scripts/test ran
"""usage: test_summary.py FOLDER [BUILD_FOLDER...]

Reads ctest's JUnit reports (one for each build), steps.tsv (results of scripts/test itself) and
seconds.tsv (how long its steps took) in FOLDER, and what Ninja logged in each BUILD_FOLDER. Prints
the steps' times, the slowest tests and translation units, failures, every reason for a skip, and
`N passed, N failed, N skipped`. Exit status 1 when something failed or nothing passed."""
import sys
import xml.etree.ElementTree as ElementTree
from collections import defaultdict
from pathlib import Path

SLOWEST = 10


def translation_units(build):
    """Seconds and object of each translation unit that Ninja has logged for a build folder."""
    log = build / ".ninja_log"
    latest = {}
    for line in log.read_text().splitlines()[1:] if log.exists() else []:
        begin, end, _, output, _ = line.split("\t")
        if output.endswith((".o", ".gch", ".pch")):
            latest[output] = (int(end) - int(begin)) / 1000
    return [(seconds, f"{build.name}: {name}") for name, seconds in latest.items()]


def print_slowest(what, timed):
    if timed:
        print(f"SLOWEST {what}:")
    for seconds, name in sorted(timed, reverse=True)[:SLOWEST]:
        print(f"  {seconds:7.1f} s  {name}")


folder = Path(sys.argv[1])
passed = 0
failed = []  # where
skipped = 0
reasons = defaultdict(list)  # reason -> where
tests = []  # (seconds, name)

for report in sorted(folder.glob("*.xml")):
    try:
        cases = list(ElementTree.parse(report).getroot().iter("testcase"))
    except ElementTree.ParseError as error:
        failed.append(f"{report.name} cannot be read: {error}")
        continue
    for case in cases:
        name = f"{report.stem}: {case.get('name')}"
        tests.append((float(case.get("time") or 0), name))
        output = case.findtext("system-out") or ""
        given = [line[len("SKIP: "):].strip() for line in output.splitlines()
                 if line.startswith("SKIP: ")]
        status = case.get("status")
        skip = case.find("skipped")
        if status == "run":
            passed += 1
        elif status == "notrun" and skip is not None and "SKIP" in skip.get("message", ""):
            skipped += 1
            given = given or ["no reason given"]
        else:
            failed.append(name)
        for reason in given:
            reasons[reason].append(name + (" in part" if status == "run" else ""))

steps = folder / "steps.tsv"
for line in steps.read_text().splitlines() if steps.exists() else []:
    status, name, reason = line.split("\t")
    if status == "passed":
        passed += 1
    elif status == "skipped":
        skipped += 1
        reasons[reason].append(name)
    else:
        failed.append(f"{name}: {reason}")

timed_steps = folder / "seconds.tsv"
if timed_steps.exists():
    print("STEPS:")
    for line in timed_steps.read_text().splitlines():
        seconds, name = line.split("\t")
        print(f"  {int(seconds):7} s  {name}")
print_slowest("tests", tests)
print_slowest("translation units",
              [unit for build in sys.argv[2:] for unit in translation_units(Path(build))])
if failed:
    print("FAILED:")
    print("\n".join("  " + name for name in failed))
if reasons:
    print("SKIPPED, because something is missing on this machine:")
    for reason, where in reasons.items():
        more = f" and {len(where) - 3} more" if len(where) > 3 else ""
        print(f"  {reason}\n      ({', '.join(where[:3])}{more})")
if passed == 0:
    print("nothing passed: a run that checks nothing is a failure")
print(f"{passed} passed, {len(failed)} failed, {skipped} skipped")
sys.exit(1 if failed or passed == 0 else 0)
