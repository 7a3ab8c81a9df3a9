# tools/clients/checks.py - runs checks of one client, a line each
import sys
import traceback

_checks = []


def check(function):
    """Registers a check: a function that asserts, named by what it runs."""
    _checks.append(function)
    return function


def same(got, expected, tolerance=0.0):
    """Both arrays hold equal values, to a relative tolerance."""
    import numpy as np
    got, expected = np.asarray(got), np.asarray(expected)
    assert got.shape == expected.shape, f"shape {got.shape}, expected {expected.shape}"
    if tolerance == 0.0:
        wrong = np.flatnonzero(got.ravel() != expected.ravel())
    else:
        near = np.isclose(got, expected, rtol=tolerance, atol=tolerance)
        wrong = np.flatnonzero(~near.ravel())
    if wrong.size:
        first = wrong[0]
        raise AssertionError(f"{wrong.size} of {got.size} values differ, the first at {first}: "
                             f"{got.ravel()[first]}, expected {expected.ravel()[first]}")


def run():
    """Runs all checks; exit status 1 if one failed or there are none."""
    failed = 0
    for function in _checks:
        try:
            function()
            print(f"PASS {function.__name__}", flush=True)
        except Exception as error:  # noqa: BLE001: any error of a client is a result
            failed += 1
            reason = " ".join(str(error).split())[:300] or type(error).__name__
            print(f"FAIL {function.__name__}: {reason}", flush=True)
            traceback.print_exc()
    sys.exit(1 if failed or not _checks else 0)
