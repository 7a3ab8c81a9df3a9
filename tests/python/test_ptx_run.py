# tests/python/test_ptx_run.py - ptx_run through ctypes, and tinygrad on it
import ctypes
import os
import subprocess
import sys
from pathlib import Path

import pytest

from ptx import SCALE

TINYGRAD = """
import sys, types
import mock_cuda
module = types.ModuleType("test.mockgpu.cuda")
module.cuda = mock_cuda
for name in ("test", "test.mockgpu"):
    sys.modules[name] = types.ModuleType(name)
sys.modules["test.mockgpu.cuda"] = module
import numpy as np
from tinygrad import Tensor
rng = np.random.default_rng(5)
a, b = rng.standard_normal((37, 65), np.float32), rng.standard_normal((65, 41), np.float32)
product = (Tensor(a) @ Tensor(b)).relu().numpy()
np.testing.assert_allclose(product, np.maximum(a @ b, 0), rtol=1e-4, atol=1e-4)
row = Tensor(a).softmax(axis=1).numpy()
np.testing.assert_allclose(row.sum(axis=1), np.ones(37), rtol=1e-5)
integers = Tensor(np.arange(1000, dtype=np.int32)).flip(0).cumsum(0).numpy()
np.testing.assert_array_equal(integers, np.arange(1000)[::-1].cumsum())
print("launches:", mock_cuda.launches)
"""


def test_ctypes_passes_values_as_pointers():
    library = ctypes.CDLL(os.environ["PTXGEN_C_LIBRARY"])
    # Parameters are 8 bytes at most: the bits of a float are a number.
    values = (ctypes.c_float * 100)(*range(100))
    bits = ctypes.c_uint32.from_buffer(ctypes.c_float(0.5)).value
    arguments = (ctypes.c_void_p * 3)(ctypes.addressof(values), bits, 80)
    library.ptx_run(SCALE.encode(), 3, arguments, 32, 1, 1, 3, 1, 1, 0)
    assert list(values) == [i * 0.5 if i < 80 else i for i in range(100)]


def test_tinygrad_computes_on_it(tmp_path):
    pytest.importorskip("tinygrad", reason="the Python package tinygrad is not there; scripts/setup "
                                           "installs it")
    path = os.pathsep.join([str(Path(__file__).parent), os.environ["PYTHONPATH"]])
    done = subprocess.run([sys.executable, "-c", TINYGRAD], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, universal_newlines=True,
                          env=dict(os.environ, PYTHONPATH=path, DEV="MOCK+CUDA:PTX", CACHELEVEL="0",
                                   CACHEDB=str(tmp_path / "cache.db")))
    assert done.returncode == 0, done.stdout
    assert int(done.stdout.split("launches:")[1]) >= 5
    assert "error" not in done.stdout, done.stdout
