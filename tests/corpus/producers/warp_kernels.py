# tests/corpus/producers/warp_kernels.py - kernels for NVIDIA Warp, compiled without a GPU
import functools
import os
import re
import tempfile

import numpy as np
import warp as wp

from programs import Program

VERSION = wp.__version__
wp.config.quiet = True
wp.config.enable_backward = False

array = wp.array(dtype=float)
array2 = wp.array2d(dtype=float)


@wp.kernel
def vector_add(x: array, y: array, out: array):
    i = wp.tid()
    out[i] = x[i] + y[i]


@wp.kernel
def saxpy(a: float, x: array, y: array):
    i = wp.tid()
    y[i] = a * x[i] + y[i]


@wp.kernel
def softmax(x: array2, out: array2):
    row = wp.tid()
    top = float(-1.0e30)
    for c in range(x.shape[1]):
        top = wp.max(top, x[row, c])
    total = float(0.0)
    for c in range(x.shape[1]):
        total += wp.exp(x[row, c] - top)
    for c in range(x.shape[1]):
        out[row, c] = wp.exp(x[row, c] - top) / total


@wp.kernel
def layer_norm(x: array2, weight: array, bias: array, out: array2):
    row = wp.tid()
    columns = x.shape[1]
    mean = float(0.0)
    for c in range(columns):
        mean += x[row, c]
    mean = mean / float(columns)
    squares = float(0.0)
    for c in range(columns):
        d = x[row, c] - mean
        squares += d * d
    scale = 1.0 / wp.sqrt(squares / float(columns) + 1.0e-5)
    for c in range(columns):
        out[row, c] = (x[row, c] - mean) * scale * weight[c] + bias[c]


@wp.kernel
def reduce_sum(x: array, out: array):
    wp.atomic_add(out, 0, x[wp.tid()])


@wp.kernel
def reduce_extremes(x: array, lowest: array, highest: array):
    v = x[wp.tid()]
    wp.atomic_min(lowest, 0, v)
    wp.atomic_max(highest, 0, v)


@wp.kernel
def scan_step(x: array, out: array, step: int):
    i = wp.tid()
    if i >= step:
        out[i] = x[i] + x[i - step]
    else:
        out[i] = x[i]


@wp.kernel
def matmul(a: array2, b: array2, c: array2):
    row, column = wp.tid()
    total = float(0.0)
    for k in range(a.shape[1]):
        total += a[row, k] * b[k, column]
    c[row, column] = total


@wp.kernel
def transpose(x: array2, out: array2):
    row, column = wp.tid()
    out[column, row] = x[row, column]


@wp.kernel
def histogram(x: wp.array(dtype=int), counts: wp.array(dtype=int)):
    wp.atomic_add(counts, x[wp.tid()], 1)


@wp.kernel
def sort_step(x: wp.array(dtype=int), size: int, step: int):
    i = wp.tid()
    other = i ^ step
    if other > i:
        a = x[i]
        b = x[other]
        rising = (i & size) == 0
        if (a > b) == rising:
            x[i] = b
            x[other] = a


@wp.kernel
def conversions(x: array, half: wp.array(dtype=wp.float16), whole: wp.array(dtype=int),
                wide: wp.array(dtype=wp.float64)):
    i = wp.tid()
    half[i] = wp.float16(x[i])
    whole[i] = int(x[i])
    wide[i] = wp.sqrt(wp.float64(wp.abs(x[i])))


@wp.kernel
def rotate(q: wp.quat, points: wp.array(dtype=wp.vec3), out: wp.array(dtype=wp.vec3)):
    i = wp.tid()
    out[i] = wp.quat_rotate(q, points[i])


@wp.kernel
def invert(m: wp.array(dtype=wp.mat33), out: wp.array(dtype=wp.mat33)):
    i = wp.tid()
    # Far from singular: the diagonal is large.
    out[i] = wp.inverse(m[i] + 4.0 * wp.identity(n=3, dtype=float))


SIZES = {"f32": 4, "i32": 4, "f16": 2, "f64": 8}


@functools.cache
def compiled():
    """The text of the module that holds all kernels."""
    with tempfile.TemporaryDirectory() as folder:
        wp.init()
        wp.compile_aot_module(vector_add.module, arch=80, module_dir=folder, use_ptx=True)
        file = [f for f in os.listdir(folder) if f.endswith(".ptx")][0]
        with open(os.path.join(folder, file)) as text:
            return text.read()


def launch(program, kernel, shape, args, block=128):
    """`shape`: of the launch; `args`: names of buffers, (type, value) pairs and lists of them."""
    text = compiled()
    [entry] = re.findall(r"\.entry\s+(" + kernel.key + r"_[0-9a-f]+_cuda_kernel_forward)\(", text)
    count = int(np.prod(shape))
    # The bounds of a launch: shape, threads, threads for each coordinate.
    flat = [[("u32", n) for n in shape] + [("u64", count), ("u64", 1)]]
    for arg in args:
        if not isinstance(arg, str):
            flat.append(arg)
            continue
        # An array is: data, gradient, shape, strides, dimensions.
        buffer = program.buffers[arg]
        extents = list(buffer.shape)
        size = SIZES[buffer.kind]
        if arg in program.grouped:  # vectors and matrices are elements
            size *= program.grouped[arg]
            extents = extents[:1]
        strides = [size * int(np.prod(extents[d + 1:])) for d in range(len(extents))]
        pad = [0] * (4 - len(extents))
        flat.append([arg, ("u64", 0)] + [("i32", n) for n in extents + pad] +
                    [("i32", n) for n in strides + pad] + [("i32", len(extents)), ("i32", 0)])
    program.launch(text, ((count + block - 1) // block,), (block,), flat, entry=entry,
                   file="warp_kernels.ptx")


def new(name):
    program = Program(name)
    program.grouped = {}
    return program


def one_per_thread():
    p = new("vector_add")
    x, y = p.random("x", 300), p.random("y", 300)
    p.output("out", 300)
    launch(p, vector_add, (300,), ["x", "y", "out"])
    p.expect("out", x + y)
    yield p

    p = new("saxpy")
    x, y = p.random("x", 300), p.random("y", 300)
    launch(p, saxpy, (300,), [("f32", 2.5), "x", "y"])
    p.expect("y", 2.5 * x + y)
    yield p

    p = new("conversions")
    x = p.random("x", 200)
    p.output("half", 200, "f16")
    p.output("whole", 200, "i32")
    p.output("wide", 200, "f64")
    launch(p, conversions, (200,), ["x", "half", "whole", "wide"])
    p.expect("half", x)
    p.expect("whole", x.astype(np.int32))
    p.expect("wide", np.sqrt(np.abs(x).astype(np.float64)))
    yield p

    p = new("rotate")
    points = p.random("points", (100, 3))
    p.output("out", (100, 3))
    p.grouped = {"points": 3, "out": 3}
    # A quarter turn around z: x becomes y, y becomes -x.
    half = 0.5 ** 0.5
    launch(p, rotate, (100,), [[("f32", 0), ("f32", 0), ("f32", half), ("f32", half)],
                               "points", "out"])
    p.expect("out", np.stack([-points[:, 1], points[:, 0], points[:, 2]], axis=1))
    yield p

    p = new("invert")
    m = p.random("m", (50, 9), low=0.25, step=1 / 64, steps=64)
    p.output("out", (50, 9))
    p.grouped = {"m": 9, "out": 9}
    launch(p, invert, (50,), ["m", "out"])
    shifted = m.reshape(50, 3, 3).astype(np.float64) + 4 * np.eye(3)
    p.expect("out", np.linalg.inv(shifted), tolerance=1e-5)
    yield p


def rows():
    p = new("softmax")
    x = p.random("x", (20, 16))
    p.output("out", (20, 16))
    launch(p, softmax, (20,), ["x", "out"], block=32)
    e = np.exp(x.astype(np.float64) - x.max(axis=1, keepdims=True))
    p.expect("out", e / e.sum(axis=1, keepdims=True))
    yield p

    p = new("layer_norm")
    x, w, b = p.random("x", (20, 24)), p.random("weight", 24), p.random("bias", 24)
    p.output("out", (20, 24))
    launch(p, layer_norm, (20,), ["x", "weight", "bias", "out"], block=32)
    wide = x.astype(np.float64)
    d = wide - wide.mean(axis=1, keepdims=True)
    p.expect("out", d / np.sqrt((d * d).mean(axis=1, keepdims=True) + 1e-5) * w + b)
    yield p

    p = new("reduce_sum")
    x = p.random("x", 1000)
    p.filled("out", 1)
    launch(p, reduce_sum, (1000,), ["x", "out"])
    p.expect("out", x.astype(np.float64).sum())
    yield p

    p = new("reduce_extremes")
    x = p.random("x", 500)
    p.filled("lowest", 1)
    p.filled("highest", 1)
    launch(p, reduce_extremes, (500,), ["x", "lowest", "highest"])
    p.expect("lowest", x.min())
    p.expect("highest", x.max())
    yield p

    p = new("scan")
    x = p.random("x", 128)
    p.output("even", 128)
    source, target, step = "x", "even", 1
    p.output("odd", 128)
    while step < 128:
        launch(p, scan_step, (128,), [source, target, ("i32", step)])
        source, target = target, ("odd" if target == "even" else "even")
        step *= 2
    p.expect(source, np.cumsum(x.astype(np.float64)))
    yield p

    p = new("sort")
    x = p.random("x", 64, "i32", low=0, step=1, steps=1000)
    size = 2
    while size <= 64:
        step = size // 2
        while step > 0:
            launch(p, sort_step, (64,), ["x", ("i32", size), ("i32", step)], block=64)
            step //= 2
        size *= 2
    p.expect("x", np.sort(x))
    yield p


def matrices():
    p = new("matmul")
    a, b = p.random("a", (16, 32)), p.random("b", (32, 24))
    p.output("c", (16, 24))
    launch(p, matmul, (16, 24), ["a", "b", "c"])
    p.expect("c", a.astype(np.float64) @ b.astype(np.float64))
    yield p

    p = new("transpose")
    x = p.random("x", (16, 32))
    p.output("out", (32, 16))
    launch(p, transpose, (16, 32), ["x", "out"])
    p.expect("out", x.T)
    yield p

    p = new("histogram")
    x = p.random("x", 300, "i32", low=0, step=1, steps=16)
    p.filled("counts", 16, "i32")
    launch(p, histogram, (300,), ["x", "counts"])
    p.expect("counts", np.bincount(x, minlength=16))
    yield p


def programs():
    for group in (one_per_thread, rows, matrices):
        yield from group()
