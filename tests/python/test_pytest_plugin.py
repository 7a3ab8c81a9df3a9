# tests/python/test_pytest_plugin.py - the plugin fails tests with error findings
import os
import subprocess
import sys
from pathlib import Path

INNER = '''
import numpy as np
import pytest
import ptxgen
from ptx import RACE, SCALE


def race(**options):
    return ptxgen.run(RACE, 1, 64, [np.zeros(64, np.uint32)], **options)


def test_right():
    ptxgen.run(SCALE, 1, 4, [np.ones(4, np.float32), 2.0, 4])


def test_returned():
    race(findings="return")


def test_swallowed():
    try:
        race()
    except Exception:
        pass


def test_never_waited_for():
    device = ptxgen.default_device()
    device.load(RACE)(1, 64, device.zeros(64, np.uint32))


@pytest.fixture
def racing():
    race(findings="return")


def test_in_a_fixture(racing):
    pass


@pytest.mark.ptxgen_findings("shared-race")
def test_allowed():
    race(findings="return")


@pytest.mark.ptxgen_findings("out-of-bounds")
def test_another_rule_is_allowed():
    race(findings="return")


@pytest.mark.ptxgen_findings
def test_all_are_allowed():
    race(findings="return")


def test_raised():
    race()


def test_after_the_others():
    ptxgen.run(SCALE, 1, 4, [np.ones(4, np.float32), 2.0, 4])
'''


def pytest_in(folder, *options):
    path = os.pathsep.join([str(Path(__file__).parent), os.environ["PYTHONPATH"]])
    done = subprocess.run([sys.executable, "-m", "pytest", "-rA", "-p", "no:cacheprovider",
                           "--strict-markers", *options, str(folder)],
                          env=dict(os.environ, PYTHONPATH=path), stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, universal_newlines=True)
    return done.stdout


def test_tests_fail_for_the_findings_of_their_launches(tmp_path):
    (tmp_path / "test_inner.py").write_text(INNER)
    printed = pytest_in(tmp_path, "-p", "ptxgen_pytest")
    passed = {line.split("::")[1] for line in printed.splitlines() if line.startswith("PASSED")}
    failed = {line.split("::")[1].split()[0] for line in printed.splitlines()
              if line.startswith("FAILED")}
    assert passed == {"test_right", "test_allowed", "test_all_are_allowed", "test_after_the_others"}
    assert failed == {"test_returned", "test_swallowed", "test_never_waited_for", "test_in_a_fixture",
                      "test_another_rule_is_allowed", "test_raised"}
    assert "1 error finding of ptxgen:" in printed or "error findings of ptxgen:" in printed
    assert "[shared-race]" in printed


def test_tests_that_do_not_import_it_do_not_load_it(tmp_path):
    (tmp_path / "test_inner.py").write_text("import sys\n\n\ndef test_it():\n"
                                            "    assert 'ptxgen' not in sys.modules\n")
    assert "1 passed" in pytest_in(tmp_path, "-p", "ptxgen_pytest")
