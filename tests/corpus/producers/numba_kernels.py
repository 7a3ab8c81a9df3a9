# tests/corpus/producers/numba_kernels.py - kernels for numba-cuda, compiled without a GPU
import functools
import math
import re

import numba
import numba_cuda
import numpy as np
from numba import cuda, float32, int32, types

from programs import Program

VERSION = f"{numba_cuda.__version__} (numba {numba.__version__})"
SCALARS = {"i32": types.int32, "f32": types.float32}
ELEMENTS = {"f32": types.float32, "i32": types.int32, "f64": types.float64, "f16": types.float16}


def vector_add(x, y, out):
    i = cuda.grid(1)
    if i < out.size:
        out[i] = x[i] + y[i]


def saxpy(a, x, y):
    for i in range(cuda.grid(1), x.size, cuda.gridsize(1)):
        y[i] += a * x[i]


def softmax(x, out):
    row = cuda.blockIdx.x
    lane = cuda.threadIdx.x
    part = cuda.shared.array(64, float32)
    top = float32(-1e30)
    for c in range(lane, x.shape[1], 64):
        top = max(top, x[row, c])
    part[lane] = top
    cuda.syncthreads()
    step = 32
    while step > 0:
        if lane < step:
            part[lane] = max(part[lane], part[lane + step])
        cuda.syncthreads()
        step //= 2
    top = part[0]
    cuda.syncthreads()
    total = float32(0)
    for c in range(lane, x.shape[1], 64):
        total += math.exp(x[row, c] - top)
    part[lane] = total
    cuda.syncthreads()
    step = 32
    while step > 0:
        if lane < step:
            part[lane] += part[lane + step]
        cuda.syncthreads()
        step //= 2
    for c in range(lane, x.shape[1], 64):
        out[row, c] = math.exp(x[row, c] - top) / part[0]


def layer_norm(x, weight, bias, out):
    row = cuda.grid(1)
    if row >= x.shape[0]:
        return
    mean = float32(0)
    for c in range(x.shape[1]):
        mean += x[row, c]
    mean /= float32(x.shape[1])
    squares = float32(0)
    for c in range(x.shape[1]):
        squares += (x[row, c] - mean) ** 2
    scale = float32(1) / math.sqrt(squares / float32(x.shape[1]) + float32(1e-5))
    for c in range(x.shape[1]):
        out[row, c] = (x[row, c] - mean) * scale * weight[c] + bias[c]


def reduce_sum(x, out):
    total = float32(0)
    for i in range(cuda.grid(1), x.size, cuda.gridsize(1)):
        total += x[i]
    for step in (16, 8, 4, 2, 1):
        total += cuda.shfl_down_sync(-1, total, step)
    if cuda.laneid == 0:
        cuda.atomic.add(out, 0, total)


def scan(x, out):
    lane = cuda.threadIdx.x
    part = cuda.shared.array(128, float32)
    part[lane] = x[lane]
    cuda.syncthreads()
    step = 1
    while step < 128:
        before = float32(0)
        if lane >= step:
            before = part[lane - step]
        cuda.syncthreads()
        part[lane] += before
        cuda.syncthreads()
        step *= 2
    out[lane] = part[lane]


def matmul(a, b, c):
    left = cuda.shared.array((8, 8), float32)
    right = cuda.shared.array((8, 8), float32)
    row, column = cuda.grid(2)
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    total = float32(0)
    for tile in range(a.shape[1] // 8):
        left[tx, ty] = a[row, ty + tile * 8]
        right[tx, ty] = b[tx + tile * 8, column]
        cuda.syncthreads()
        for k in range(8):
            total += left[tx, k] * right[k, ty]
        cuda.syncthreads()
    c[row, column] = total


def transpose(x, out):
    tile = cuda.shared.array((16, 17), float32)
    column, row = cuda.grid(2)
    tile[cuda.threadIdx.y, cuda.threadIdx.x] = x[row, column]
    cuda.syncthreads()
    out[cuda.blockIdx.x * 16 + cuda.threadIdx.y,
        cuda.blockIdx.y * 16 + cuda.threadIdx.x] = tile[cuda.threadIdx.x, cuda.threadIdx.y]


def histogram(x, counts):
    local = cuda.shared.array(16, int32)
    lane = cuda.threadIdx.x
    if lane < 16:
        local[lane] = 0
    cuda.syncthreads()
    i = cuda.grid(1)
    if i < x.size:
        cuda.atomic.add(local, x[i], 1)
    cuda.syncthreads()
    if lane < 16:
        cuda.atomic.add(counts, lane, local[lane])


def attention(q, k, v, out):
    row = cuda.grid(1)
    if row >= q.shape[0]:
        return
    result = cuda.local.array(16, float32)
    for d in range(16):
        result[d] = float32(0)
    top = float32(-1e30)
    total = float32(0)
    for n in range(k.shape[0]):
        score = float32(0)
        for d in range(16):
            score += q[row, d] * k[n, d]
        score *= float32(0.25)
        new_top = max(top, score)
        shrink = math.exp(top - new_top)
        p = math.exp(score - new_top)
        total = total * shrink + p
        for d in range(16):
            result[d] = result[d] * shrink + p * v[n, d]
        top = new_top
    for d in range(16):
        out[row, d] = result[d] / total


def sort_step(x, size, step):
    i = cuda.grid(1)
    other = i ^ step
    if other > i and other < x.size:
        rising = (i & size) == 0
        if (x[i] > x[other]) == rising:
            x[i], x[other] = x[other], x[i]


def conversions(x, half, whole, wide):
    i = cuda.grid(1)
    if i < x.size:
        half[i] = types.float16(x[i])
        whole[i] = int32(x[i])
        wide[i] = math.sqrt(types.float64(abs(x[i])))


def divergent(x, out):
    i = cuda.grid(1)
    if i < x.size:
        n = x[i]
        steps = 0
        while n != 1:
            if n % 2 == 0:
                n //= 2
            else:
                n = 3 * n + 1
            steps += 1
        out[i] = steps


@functools.cache
def compiled(kernel, signature):
    text, _ = cuda.compile_ptx(kernel, signature, cc=(8, 0))
    # The mangled name says nothing to a reader, and is long.
    mangled = re.search(r"\.entry\s+([\w$]+)", text).group(1)
    return text.replace(mangled, kernel.__name__)


def launch(program, kernel, grid, block, args):
    """`args`: names of buffers and (type, value) pairs, as the kernel's own parameters."""
    signature, flat = [], []
    for arg in args:
        if isinstance(arg, str):
            buffer = program.buffers[arg]
            element = ELEMENTS[buffer.kind]
            signature.append(types.Array(element, len(buffer.shape), "C"))
            size = element.bitwidth // 8
            count = int(np.prod(buffer.shape))
            # An array is: owner, parent, elements, bytes of one, data, shape, strides.
            strides = [size * int(np.prod(buffer.shape[d + 1:])) for d in range(len(buffer.shape))]
            flat += [("u64", 0), ("u64", 0), ("i64", count), ("i64", size), arg]
            flat += [("i64", n) for n in buffer.shape] + [("i64", n) for n in strides]
        else:
            signature.append(SCALARS[arg[0]])
            flat.append(arg)
    program.launch(compiled(kernel, tuple(signature)), grid, block, flat)


def one_per_thread():
    p = Program("vector_add")
    x, y = p.random("x", 300), p.random("y", 300)
    p.output("out", 300)
    launch(p, vector_add, (3,), (128,), ["x", "y", "out"])
    p.expect("out", x + y)
    yield p

    p = Program("saxpy")
    x, y = p.random("x", 500), p.random("y", 500)
    launch(p, saxpy, (2,), (64,), [("f32", 2.5), "x", "y"])
    p.expect("y", 2.5 * x + y)
    yield p

    p = Program("conversions")
    x = p.random("x", 200)
    p.output("half", 200, "f16")
    p.output("whole", 200, "i32")
    p.output("wide", 200, "f64")
    launch(p, conversions, (2,), (128,), ["x", "half", "whole", "wide"])
    p.expect("half", x)
    p.expect("whole", x.astype(np.int32))
    p.expect("wide", np.sqrt(np.abs(x).astype(np.float64)))
    yield p

    p = Program("divergent")
    x = p.random("x", 100, "i32", low=1, step=1, steps=200)
    p.output("out", 100, "i32")
    launch(p, divergent, (1,), (128,), ["x", "out"])
    counts = []
    for n in x:
        steps = 0
        while n != 1:
            n = n // 2 if n % 2 == 0 else 3 * n + 1
            steps += 1
        counts.append(steps)
    p.expect("out", np.array(counts, np.int32))
    yield p


def rows():
    p = Program("softmax")
    x = p.random("x", (4, 100))
    p.output("out", (4, 100))
    launch(p, softmax, (4,), (64,), ["x", "out"])
    e = np.exp(x.astype(np.float64) - x.max(axis=1, keepdims=True))
    p.expect("out", e / e.sum(axis=1, keepdims=True))
    yield p

    p = Program("layer_norm")
    x, w, b = p.random("x", (20, 24)), p.random("weight", 24), p.random("bias", 24)
    p.output("out", (20, 24))
    launch(p, layer_norm, (1,), (32,), ["x", "weight", "bias", "out"])
    wide = x.astype(np.float64)
    d = wide - wide.mean(axis=1, keepdims=True)
    p.expect("out", d / np.sqrt((d * d).mean(axis=1, keepdims=True) + 1e-5) * w + b)
    yield p

    p = Program("reduce_sum")
    x = p.random("x", 1000)
    p.filled("out", 1)
    launch(p, reduce_sum, (2,), (64,), ["x", "out"])
    p.expect("out", x.astype(np.float64).sum())
    yield p

    p = Program("scan")
    x = p.random("x", 128)
    p.output("out", 128)
    launch(p, scan, (1,), (128,), ["x", "out"])
    p.expect("out", np.cumsum(x.astype(np.float64)))
    yield p

    p = Program("sort")
    x = p.random("x", 128, "i32", low=0, step=1, steps=1000)
    size = 2
    while size <= 128:
        step = size // 2
        while step > 0:
            launch(p, sort_step, (1,), (128,), ["x", ("i32", size), ("i32", step)])
            step //= 2
        size *= 2
    p.expect("x", np.sort(x))
    yield p


def matrices():
    p = Program("matmul")
    a, b = p.random("a", (16, 32)), p.random("b", (32, 24))
    p.output("c", (16, 24))
    launch(p, matmul, (2, 3), (8, 8), ["a", "b", "c"])
    p.expect("c", a.astype(np.float64) @ b.astype(np.float64))
    yield p

    p = Program("transpose")
    x = p.random("x", (16, 32))
    p.output("out", (32, 16))
    launch(p, transpose, (2, 1), (16, 16), ["x", "out"])
    p.expect("out", x.T)
    yield p

    p = Program("attention")
    q, k, v = p.random("q", (32, 16)), p.random("k", (24, 16)), p.random("v", (24, 16))
    p.output("out", (32, 16))
    launch(p, attention, (1,), (32,), ["q", "k", "v", "out"])
    s = q.astype(np.float64) @ k.astype(np.float64).T * 0.25
    e = np.exp(s - s.max(axis=1, keepdims=True))
    p.expect("out", e / e.sum(axis=1, keepdims=True) @ v.astype(np.float64))
    yield p

    p = Program("histogram")
    x = p.random("x", 300, "i32", low=0, step=1, steps=16)
    p.filled("counts", 16, "i32")
    launch(p, histogram, (3,), (128,), ["x", "counts"])
    p.expect("counts", np.bincount(x, minlength=16))
    yield p


def programs():
    for group in (one_per_thread, rows, matrices):
        yield from group()
