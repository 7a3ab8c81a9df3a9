# tools/clients/numba_kernels.py - kernels through numba-cuda
import math

import numpy as np
from checks import check, run, same
from numba import cuda, float32, int32

N = 1000


@check
def elementwise():
    @cuda.jit
    def double(x):
        i = cuda.grid(1)
        if i < x.size:
            x[i] *= 2

    x = np.arange(N, dtype=np.float32)
    double[4, 256](x)
    same(x, np.arange(N, dtype=np.float32) * 2)


@check
def device_arrays():
    @cuda.jit
    def saxpy(a, x, y):
        i = cuda.grid(1)
        if i < x.size:
            y[i] += a * x[i]

    x, y = cuda.to_device(np.arange(N, dtype=np.float64)), cuda.to_device(np.ones(N))
    saxpy[8, 128](3.0, x, y)
    same(y.copy_to_host(), 1 + 3.0 * np.arange(N))


@check
def shared_memory():
    @cuda.jit
    def block_sums(x, out):
        part = cuda.shared.array(128, float32)
        t = cuda.threadIdx.x
        part[t] = x[cuda.grid(1)]
        cuda.syncthreads()
        width = 64
        while width > 0:
            if t < width:
                part[t] += part[t + width]
            cuda.syncthreads()
            width //= 2
        if t == 0:
            out[cuda.blockIdx.x] = part[0]

    x = np.arange(512, dtype=np.float32)
    out = np.zeros(4, np.float32)
    block_sums[4, 128](x, out)
    same(out, x.reshape(4, 128).sum(axis=1))


@check
def matmul():
    @cuda.jit
    def multiply(a, b, c):
        i, j = cuda.grid(2)
        if i < c.shape[0] and j < c.shape[1]:
            total = 0.0
            for k in range(a.shape[1]):
                total += a[i, k] * b[k, j]
            c[i, j] = total

    rng = np.random.default_rng(3)
    a, b = rng.random((20, 30)), rng.random((30, 25))
    c = np.zeros((20, 25))
    multiply[(2, 2), (16, 16)](a, b, c)
    same(c, a @ b, 1e-12)


@check
def atomics():
    @cuda.jit
    def count(bins):
        cuda.atomic.add(bins, cuda.grid(1) % 7, 1)

    bins = np.zeros(7, np.int32)
    count[10, 70](bins)
    same(bins, np.full(7, 100))


@check
def warp_shuffle():
    @cuda.jit
    def rotate(x):
        i = cuda.grid(1)
        x[i] = cuda.shfl_sync(0xffffffff, x[i], (i + 1) % 32)

    x = np.arange(32, dtype=np.int32)
    rotate[1, 32](x)
    same(x, np.roll(np.arange(32), -1))


@check
def device_function():
    @cuda.jit(device=True)
    def cube(x):
        return x * x * x

    @cuda.jit
    def kernel(x):
        x[cuda.grid(1)] = cube(x[cuda.grid(1)])

    x = np.arange(64, dtype=np.int64)
    kernel[2, 32](x)
    same(x, np.arange(64) ** 3)


@check
def mathematics():
    @cuda.jit
    def kernel(x, y):
        i = cuda.grid(1)
        if i < x.size:
            y[i] = math.sin(x[i]) + math.exp(-x[i]) + math.sqrt(x[i])

    x = np.linspace(0, 10, N)
    y = np.zeros(N)
    kernel[8, 128](x, y)
    same(y, np.sin(x) + np.exp(-x) + np.sqrt(x), 1e-12)


@check
def pinned_and_streams():
    @cuda.jit
    def add(x):
        i = cuda.grid(1)
        if i < x.size:
            x[i] += 1

    stream = cuda.stream()
    host = cuda.pinned_array(N, np.float32)
    host[:] = 0
    device = cuda.to_device(host, stream=stream)
    add[4, 256, stream](device)
    device.copy_to_host(host, stream=stream)
    stream.synchronize()
    same(host, np.ones(N, np.float32))


@check
def mapped_memory():
    @cuda.jit
    def add(x):
        x[cuda.grid(1)] += 1

    host = cuda.mapped_array(64, np.int32)
    host[:] = 41
    add[1, 64](host)
    cuda.synchronize()
    same(host, np.full(64, 42))


@check
def register_limit():
    @cuda.jit(max_registers=32)
    def kernel(x):
        x[0] = 1

    x = np.zeros(1, np.int32)
    kernel[1, 1](x)
    assert all(count <= 32 for count in kernel.get_regs_per_thread().values())


@check
def reduce_and_vectorize():
    total = cuda.reduce(lambda a, b: a + b)
    same(total(np.arange(500, dtype=np.float64)), np.float64(124750))


run()
