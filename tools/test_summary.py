#!/usr/bin/env python3
# tools/test_summary.py - sums up what scripts/test ran
"""usage: test_summary.py FOLDER

Reads ctest's JUnit reports (one for each build) and steps.tsv (results of scripts/test itself) in
FOLDER. Prints failures, then every reason for a skip, then `N passed, N failed, N skipped`. Exit
status 1 when something failed or nothing passed."""
import sys
import xml.etree.ElementTree as ElementTree
from collections import defaultdict
from pathlib import Path

folder = Path(sys.argv[1])
passed = 0
failed = []  # where
skipped = 0
reasons = defaultdict(list)  # reason -> where

for report in sorted(folder.glob("*.xml")):
    try:
        cases = list(ElementTree.parse(report).getroot().iter("testcase"))
    except ElementTree.ParseError as error:
        failed.append(f"{report.name} cannot be read: {error}")
        continue
    for case in cases:
        name = f"{report.stem}: {case.get('name')}"
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
