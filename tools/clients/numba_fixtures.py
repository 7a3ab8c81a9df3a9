# tools/clients/numba_fixtures.py - the fixture that numba-cuda's tests expect of its repository
import pytest


@pytest.fixture(scope="class")
def initialize_from_pytest_config(request):
    request.cls._dump_failed_filechecks = False
