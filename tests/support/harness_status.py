#!/usr/bin/env python3
# tests/support/harness_status.py - checks what the test harness reports
"""usage: harness_status.py PROBE

Runs the cases of harness_probe one by one and compares exit status and output."""
import os
import re
import subprocess
import sys

probe = sys.argv[1]
failures = []


def run(case, **environment):
    done = subprocess.run([probe, case], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          universal_newlines=True, env=dict(os.environ, **environment))
    return done.returncode, done.stdout


def expect(case, status, pattern="", **environment):
    found, output = run(case, **environment)
    if found != status or not re.search(pattern, output, re.MULTILINE):
        failures.append(f"{case}: expected status {status} and /{pattern}/, got {found}:\n{output}")


expect("passes", 0, r"^seed \d+")
expect("fails", 1)
expect("skips", 77, r"^SKIP: nothing to run it on$")
expect(r"skips\, \[then] fails", 1, r"^SKIP: ")
expect("skips a part", 0, r"^SKIP: the second half$")
expect("checks nothing", 1)
expect("succeeds without a comparison", 1, r"^FAILED: the case compares nothing; if it cannot run here")
expect("skips its only part", 77, r"^SKIP: the only part$")
expect("there is no such case", 1, "No test cases matched")
expect("passes", 0, r"^seed 7, rapidcheck seed=7 ", PTXGEN_TEST_SEED="7")
expect("passes", 2, "not a decimal number", PTXGEN_TEST_SEED="seven")


def drawn(**environment):
    return re.search(r"^drew \d+$", run("draws", **environment)[1], re.MULTILINE).group()


if drawn() != drawn():
    failures.append("two runs with the default seed draw different numbers")
if drawn(PTXGEN_TEST_SEED="1") == drawn(PTXGEN_TEST_SEED="2"):
    failures.append("PTXGEN_TEST_SEED does not change what is drawn")

print("\n".join(failures) or "the harness reports passes, failures and skips as they are")
sys.exit(1 if failures else 0)
