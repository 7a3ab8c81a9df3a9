# tools/clients/suite_plugin.py - tells run_suite of every test as it begins and ends
"""A plugin of pytest. PTXGEN_SUITE_REPORT names a file that gets one line of JSON for each step. Tests
that the file already tells of are left out. After a failure the session ends, so that the test which
follows begins in a new process, with a new context, unless PTXGEN_SUITE_TOGETHER is set. Random numbers
of Python and NumPy are the same in each run of a test. PTXGEN_SUITE_LIST names a list
(suite_lists.py) of tests that are left out."""
import json
import os
import random
import sys
from pathlib import Path

import pytest

from suite_lists import SuiteList, read_list

REPORT = os.environ["PTXGEN_SUITE_REPORT"]
LIST = os.environ.get("PTXGEN_SUITE_LIST")
os.environ.pop("LD_PRELOAD", None)  # libraries that only the interpreter can load
failed = False


def told():
    with open(REPORT, encoding="utf-8") as lines:
        return {json.loads(line)["test"] for line in lines}


def tell(**step):
    with open(REPORT, "a", encoding="utf-8") as report:
        report.write(json.dumps(step) + "\n")


def reason_of(report):
    if isinstance(report.longrepr, tuple):
        return str(report.longrepr[2])
    crash = getattr(report.longrepr, "reprcrash", None)
    return crash.message if crash is not None else str(report.longrepr)


def pytest_collection_modifyitems(items):
    before = told()
    suite = read_list(Path(LIST)) if LIST else SuiteList()
    items[:] = [item for item in items
                if item.nodeid not in before and suite.why_left(item.nodeid) is None]


def pytest_collectreport(report):
    if report.failed:
        tell(test=report.nodeid, outcome="failed", reason="collection: " + reason_of(report))


def pytest_runtest_logstart(nodeid):
    sys.stdout.flush()
    os.write(2, f"\n@@ptxgen test {nodeid}\n".encode())
    tell(test=nodeid, outcome="began")


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup():
    random.seed(0)
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed(0)


@pytest.hookimpl(trylast=True)
def pytest_runtest_logreport(report):
    global failed
    outcome = "xfailed" if hasattr(report, "wasxfail") and report.skipped else report.outcome
    if report.when == "call" or outcome != "passed":
        tell(test=report.nodeid, outcome=outcome, when=report.when, seconds=report.duration,
             reason="" if outcome == "passed" else reason_of(report))
    failed = failed or report.failed


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_protocol(item, nextitem):
    yield
    if failed and not os.environ["PTXGEN_SUITE_TOGETHER"]:
        item.session.shouldstop = "a test failed; the rest runs in a new process"
