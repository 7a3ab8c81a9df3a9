# python/src/ptxgen_pytest.py - pytest: an error finding during a test fails it
"""A plugin of its own module: a pytest run whose tests do not import ptxgen does not load it either.

A test fails if a launch that it or its fixtures made had a finding of severity error, also where the
program under test swallowed the exception or asked for none. `@pytest.mark.ptxgen_findings("RULE", ..)`
allows findings of these rules in a test, without rules all; `-p no:ptxgen` switches the plugin off.
"""
from __future__ import annotations

import sys
from typing import Any, Generator

import pytest

MARKER = "ptxgen_findings"
_before = pytest.StashKey[int]()


def _total() -> int:
    """The error findings of the process, those of work that is still queued among them."""
    if "ptxgen._device" not in sys.modules:
        return 0
    sys.modules["ptxgen._device"].collect_all()
    return int(sys.modules["ptxgen._findings"].history.total)


def pytest_configure(config: Any) -> None:
    config.addinivalue_line("markers", f"{MARKER}(*rules): findings of these rules, or of all, do not "
                                       "fail the test")


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: Any) -> None:
    item.stash[_before] = _total()


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_call(item: Any) -> Generator[None, Any, None]:
    outcome = yield
    total = _total()
    if total == item.stash.get(_before, total) or outcome.excinfo is not None:
        return
    errors = sys.modules["ptxgen._findings"].history.since(item.stash[_before])
    allowed = [set(mark.args) for mark in item.iter_markers(MARKER)]
    errors = [finding for finding in errors
              if not any(not rules or finding.rule in rules for rules in allowed)]
    if errors:
        texts = "\n".join(finding.text for finding in errors)
        outcome.force_exception(pytest.fail.Exception(
            f"{len(errors)} error {'finding' if len(errors) == 1 else 'findings'} of ptxgen:\n{texts}",
            pytrace=False))
