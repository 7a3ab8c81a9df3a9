# tests/corpus/producers/halide_kernels.py - pipelines for Halide, compiled without a GPU
import importlib.metadata
import os
import re
import tempfile

import halide as hl
import numpy as np

from programs import Program

VERSION = importlib.metadata.version("halide")
TARGET = "x86-64-linux-cuda-cuda_capability_80-no_runtime-no_asserts-no_bounds_query"
TYPES = {"f32": hl.Float(32), "i32": hl.Int(32), "f64": hl.Float(64), "u8": hl.UInt(8)}
x, y, i = hl.Var("x"), hl.Var("y"), hl.Var("i")
bx, by, tx, ty = hl.Var("bx"), hl.Var("by"), hl.Var("tx"), hl.Var("ty")


def images(program, **kinds):
    """Inputs of fixed size, the last dimension of an array being Halide's first."""
    made = []
    for name, kind in kinds.items():
        shape = program.buffers[name].shape[::-1]
        image = hl.ImageParam(TYPES[kind], len(shape), name)
        stride = 1
        for d, extent in enumerate(shape):
            image.dim(d).set_bounds(0, extent)
            image.dim(d).set_stride(stride)
            stride *= extent
        made.append(image)
    return made


def ptx_of(func, inputs):
    with tempfile.TemporaryDirectory() as folder:
        file = os.path.join(folder, "a.ll")
        func.compile_to_llvm_assembly(file, inputs, func.name(), hl.Target(TARGET))
        with open(file) as text:
            constants = re.findall(r'c"((?:[^"\\]|\\[0-9A-Fa-f]{2})*)"', text.read())
    [ptx] = [c for c in constants if ".version" in c]
    return re.sub(r"\\([0-9A-Fa-f]{2})", lambda m: chr(int(m.group(1), 16)), ptx)


def record(program, func, inputs, shape, grid, block, kind="f32", shared=0):
    """One kernel. With all sizes fixed its parameters are the buffers."""
    size = 1
    for d, extent in enumerate(shape[::-1]):
        func.output_buffer().dim(d).set_bounds(0, extent).set_stride(size)
        size *= extent
    program.output("out", shape, kind)
    text = ptx_of(func, inputs)
    # By size of the elements, the largest first, then by name.
    sizes = {image.name(): TYPES[program.buffers[image.name()].kind].bytes() for image in inputs}
    sizes[func.name()] = TYPES[kind].bytes()
    names = sorted(sizes, key=lambda name: (-sizes[name], name))
    program.launch(text, grid, block, ["out" if n == func.name() else n for n in names],
                   shared=shared)


def pointwise():
    p = Program("vector_add")
    a, b = p.random("a", 256), p.random("b", 256)
    ia, ib = images(p, a="f32", b="f32")
    f = hl.Func("vector_add")
    f[x] = ia[x] + ib[x]
    f.gpu_tile(x, bx, tx, 64)
    record(p, f, [ia, ib], (256,), (4,), (64,))
    p.expect("out", a + b)
    yield p

    p = Program("saxpy")
    a, b = p.random("a", 250), p.random("b", 250)
    ia, ib = images(p, a="f32", b="f32")
    f = hl.Func("saxpy")
    f[x] = 2.5 * ia[x] + ib[x]
    f.gpu_tile(x, bx, tx, 64, tail=hl.TailStrategy.GuardWithIf)
    record(p, f, [ia, ib], (250,), (4,), (64,))
    p.expect("out", 2.5 * a + b)
    yield p

    p = Program("conversions")
    a = p.random("a", 256)
    [ia] = images(p, a="f32")
    f = hl.Func("conversions")
    f[x] = hl.f64(hl.i32(ia[x])) + hl.sqrt(hl.f64(hl.abs(ia[x])))
    f.gpu_tile(x, bx, tx, 64)
    record(p, f, [ia], (256,), (4,), (64,), "f64")
    p.expect("out", a.astype(np.int32) + np.sqrt(np.abs(a).astype(np.float64)))
    yield p

    p = Program("bytes")
    a = p.random("a", 256, "u8", low=0, step=1, steps=256)
    [ia] = images(p, a="u8")
    f = hl.Func("bytes")
    f[x] = hl.u8(hl.clamp(hl.i32(ia[x]) * 3 - 200, 0, 255))
    f.gpu_tile(x, bx, tx, 64)
    record(p, f, [ia], (256,), (4,), (64,), "u8")
    p.expect("out", np.clip(a.astype(np.int32) * 3 - 200, 0, 255))
    yield p

    p = Program("transpose")
    a = p.random("a", (16, 32))
    [ia] = images(p, a="f32")
    f = hl.Func("transpose")
    f[x, y] = ia[y, x]
    f.gpu_tile(x, y, bx, by, tx, ty, 8, 8)
    record(p, f, [ia], (32, 16), (2, 4), (8, 8))
    p.expect("out", a.T)
    yield p


def rows():
    p = Program("row_sums")
    a = p.random("a", (64, 40))
    [ia] = images(p, a="f32")
    f, r = hl.Func("row_sums"), hl.RDom([(0, 40)])
    f[y] = hl.sum(ia[r, y])
    f.gpu_tile(y, by, ty, 32)
    record(p, f, [ia], (64,), (2,), (32,))
    p.expect("out", a.astype(np.float64).sum(axis=1))
    yield p

    p = Program("row_maxima")
    a = p.random("a", (64, 24), "i32", low=-500, step=1, steps=1000)
    [ia] = images(p, a="i32")
    f, r = hl.Func("row_maxima"), hl.RDom([(0, 24)])
    f[y] = hl.maximum(ia[r, y])
    f.gpu_tile(y, by, ty, 32)
    record(p, f, [ia], (64,), (2,), (32,), "i32")
    p.expect("out", a.max(axis=1))
    yield p

    p = Program("softmax")
    a = p.random("a", (32, 16))
    [ia] = images(p, a="f32")
    f, top, total = hl.Func("softmax"), hl.Func("top"), hl.Func("total")
    r = hl.RDom([(0, 16)])
    top[y] = hl.maximum(ia[r, y])
    total[y] = hl.sum(hl.exp(ia[r, y] - top[y]))
    f[x, y] = hl.exp(ia[x, y] - top[y]) / total[y]
    f.split(y, by, ty, 8).reorder(x, ty, by).gpu_blocks(by).gpu_threads(ty)
    top.compute_at(f, ty)
    total.compute_at(f, ty)
    record(p, f, [ia], (32, 16), (4,), (8,))
    e = np.exp(a.astype(np.float64) - a.max(axis=1, keepdims=True))
    p.expect("out", e / e.sum(axis=1, keepdims=True))
    yield p

    p = Program("layer_norm")
    a = p.random("a", (32, 16))
    [ia] = images(p, a="f32")
    f, mean, squares = hl.Func("layer_norm"), hl.Func("mean"), hl.Func("squares")
    mean[y] = hl.sum(ia[r, y]) / 16
    d = ia[r, y] - mean[y]
    squares[y] = hl.sum(d * d) / 16
    f[x, y] = (ia[x, y] - mean[y]) / hl.sqrt(squares[y] + hl.f32(1e-5))
    f.split(y, by, ty, 8).reorder(x, ty, by).gpu_blocks(by).gpu_threads(ty)
    mean.compute_at(f, ty)
    squares.compute_at(f, ty)
    record(p, f, [ia], (32, 16), (4,), (8,))
    wide = a.astype(np.float64)
    d = wide - wide.mean(axis=1, keepdims=True)
    p.expect("out", d / np.sqrt((d * d).mean(axis=1, keepdims=True) + 1e-5))
    yield p


def stencils():
    p = Program("matmul")
    a, b = p.random("a", (16, 32)), p.random("b", (32, 24))
    ia, ib = images(p, a="f32", b="f32")
    f, r = hl.Func("matmul"), hl.RDom([(0, 32)])
    f[x, y] = hl.sum(ia[r, y] * ib[x, r])
    f.gpu_tile(x, y, bx, by, tx, ty, 8, 8)
    record(p, f, [ia, ib], (16, 24), (3, 2), (8, 8))
    p.expect("out", a.astype(np.float64) @ b.astype(np.float64))
    yield p

    p = Program("blur")
    a = p.random("a", (18, 34))
    [ia] = images(p, a="f32")
    f, across = hl.Func("blur"), hl.Func("across")
    across[x, y] = (ia[x, y] + ia[x + 1, y] + ia[x + 2, y]) / 3
    f[x, y] = (across[x, y] + across[x, y + 1] + across[x, y + 2]) / 3
    f.gpu_tile(x, y, bx, by, tx, ty, 8, 8)
    # In shared memory: 10 rows of 8 for each block.
    across.compute_at(f, bx).gpu_threads(x, y)
    record(p, f, [ia], (16, 32), (4, 2), (8, 10), shared=320)
    wide = a.astype(np.float64)
    h = (wide[:, :-2] + wide[:, 1:-1] + wide[:, 2:]) / 3
    p.expect("out", (h[:-2] + h[1:-1] + h[2:]) / 3)
    yield p

    p = Program("scan_columns")
    a = p.random("a", (20, 64))
    [ia] = images(p, a="f32")
    f, r = hl.Func("scan_columns"), hl.RDom([(0, 20)])
    f[x, y] = hl.sum(hl.select(r <= y, ia[x, r], 0.0))
    f.gpu_tile(x, y, bx, by, tx, ty, 32, 4)
    record(p, f, [ia], (20, 64), (2, 5), (32, 4))
    p.expect("out", np.cumsum(a.astype(np.float64), axis=0))
    yield p


def programs():
    for group in (pointwise, rows, stencils):
        yield from group()
