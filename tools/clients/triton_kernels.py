# tools/clients/triton_kernels.py - kernels through Triton, compiled for sm_80
import ctypes

import numpy as np
import triton
import triton.language as tl
from checks import check, run, same

cuda = ctypes.CDLL("libcuda.so.1")


class Memory:
    """Device memory that Triton takes as a pointer argument."""

    def __init__(self, values, dtype=None):
        self.host = np.ascontiguousarray(values)
        self.dtype = dtype or {"float32": tl.float32, "int32": tl.int32,
                               "float16": tl.float16}[self.host.dtype.name]
        address = ctypes.c_uint64()
        assert cuda.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(self.host.nbytes)) == 0
        self.address = address.value
        cuda.cuMemcpyHtoD_v2(address, self.host.ctypes.data_as(ctypes.c_void_p),
                             ctypes.c_size_t(self.host.nbytes))

    def data_ptr(self):
        return self.address

    def numpy(self):
        assert cuda.cuCtxSynchronize() == 0
        status = cuda.cuMemcpyDtoH_v2(self.host.ctypes.data_as(ctypes.c_void_p),
                                      ctypes.c_uint64(self.address),
                                      ctypes.c_size_t(self.host.nbytes))
        assert status == 0, status
        return self.host


def start():
    context = ctypes.c_void_p()
    assert cuda.cuInit(0) == 0
    assert cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0
    assert cuda.cuCtxSetCurrent(context) == 0


start()
rng = np.random.default_rng(4)


@triton.jit
def add_kernel(x, y, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    tl.store(out + i, tl.load(x + i, mask=mask) + tl.load(y + i, mask=mask), mask=mask)


@check
def vector_add():
    n = 1000
    a, b = rng.random(n, dtype=np.float32), rng.random(n, dtype=np.float32)
    out = Memory(np.zeros(n, np.float32))
    add_kernel[(8,)](Memory(a), Memory(b), out, n, BLOCK=128)
    same(out.numpy(), a + b)


@triton.jit
def softmax_kernel(x, out, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    v = tl.load(x + row * columns + i, mask=i < columns, other=-float("inf"))
    v = tl.exp(v - tl.max(v, axis=0))
    tl.store(out + row * columns + i, v / tl.sum(v, axis=0), mask=i < columns)


@check
def softmax():
    a = rng.standard_normal((16, 100)).astype(np.float32)
    out = Memory(np.zeros_like(a))
    softmax_kernel[(16,)](Memory(a), out, 100, BLOCK=128)
    e = np.exp(a - a.max(axis=1, keepdims=True))
    same(out.numpy(), e / e.sum(axis=1, keepdims=True), 1e-5)


@triton.jit
def layernorm_kernel(x, out, columns, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    v = tl.load(x + row * columns + i, mask=i < columns, other=0.0)
    mean = tl.sum(v, axis=0) / columns
    d = tl.where(i < columns, v - mean, 0.0)
    scale = 1.0 / tl.sqrt(tl.sum(d * d, axis=0) / columns + eps)
    tl.store(out + row * columns + i, d * scale, mask=i < columns)


@check
def layer_norm():
    a = rng.standard_normal((8, 200)).astype(np.float32)
    out = Memory(np.zeros_like(a))
    layernorm_kernel[(8,)](Memory(a), out, 200, 1e-5, BLOCK=256)
    same(out.numpy(), (a - a.mean(1, keepdims=True)) / np.sqrt(a.var(1, keepdims=True) + 1e-5),
         1e-4)


@triton.jit
def matmul_kernel(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    columns = tl.program_id(1) * BN + tl.arange(0, BN)
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, K, BK):
        inner = k + tl.arange(0, BK)
        x = tl.load(a + rows[:, None] * K + inner[None, :])
        y = tl.load(b + inner[:, None] * N + columns[None, :])
        total += tl.dot(x, y)
    tl.store(c + rows[:, None] * N + columns[None, :], total)


@check
def matmul_f16():
    a, b = (rng.standard_normal((64, 64)).astype(np.float16) for _ in range(2))
    c = Memory(np.zeros((64, 64), np.float32))
    matmul_kernel[(2, 2)](Memory(a), Memory(b), c, 64, 64, 64, BM=32, BN=32, BK=32)
    same(c.numpy(), a.astype(np.float32) @ b.astype(np.float32), 2e-2)


@triton.jit
def atomic_kernel(x, bins, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + i, mask=i < n, other=0)
    tl.atomic_add(bins + v, 1, mask=i < n)


@check
def histogram():
    x = rng.integers(0, 16, 1000, dtype=np.int32)
    bins = Memory(np.zeros(16, np.int32))
    atomic_kernel[(8,)](Memory(x), bins, 1000, BLOCK=128)
    same(bins.numpy(), np.bincount(x, minlength=16))


@triton.jit
def scan_kernel(x, out, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out + i, tl.cumsum(tl.load(x + i), axis=0))


@check
def scan():
    x = rng.integers(-100, 100, 256, dtype=np.int32)
    out = Memory(np.zeros(256, np.int32))
    scan_kernel[(1,)](Memory(x), out, BLOCK=256)
    same(out.numpy(), x.cumsum())


@triton.jit
def sort_kernel(x, out, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out + i, tl.sort(tl.load(x + i)))


@check
def sort():
    x = rng.integers(-1000, 1000, 128, dtype=np.int32)
    out = Memory(np.zeros(128, np.int32))
    sort_kernel[(1,)](Memory(x), out, BLOCK=128)
    same(out.numpy(), np.sort(x))


@triton.jit
def math_kernel(x, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + i, mask=i < n)
    tl.store(out + i, tl.sin(v) + tl.exp(-v) * tl.sqrt(v + 4), mask=i < n)


@check
def mathematics():
    x = rng.random(500, dtype=np.float32)
    out = Memory(np.zeros(500, np.float32))
    math_kernel[(4,)](Memory(x), out, 500, BLOCK=128)
    same(out.numpy(), np.sin(x) + np.exp(-x) * np.sqrt(x + 4), 1e-5)


run()
