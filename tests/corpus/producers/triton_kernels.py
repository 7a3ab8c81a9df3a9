# tests/corpus/producers/triton_kernels.py - kernels for Triton, compiled without a GPU
import os

import numpy as np
import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from programs import Program

VERSION = triton.__version__


@triton.jit
def vector_add(x, y, out, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    mask = i < n
    tl.store(out + i, tl.load(x + i, mask=mask) + tl.load(y + i, mask=mask), mask=mask)


@triton.jit
def saxpy(x, y, a, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    mask = i < n
    tl.store(y + i, a * tl.load(x + i, mask=mask) + tl.load(y + i, mask=mask), mask=mask)


@triton.jit
def softmax(x, out, columns, B: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, B)
    v = tl.load(x + row * columns + i, mask=i < columns, other=-float("inf"))
    e = tl.exp(v - tl.max(v, axis=0))
    tl.store(out + row * columns + i, e / tl.sum(e, axis=0), mask=i < columns)


@triton.jit
def layer_norm(x, weight, bias, out, columns, eps, B: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, B)
    mask = i < columns
    v = tl.load(x + row * columns + i, mask=mask, other=0.0)
    mean = tl.sum(v, axis=0) / columns
    d = tl.where(mask, v - mean, 0.0)
    scale = 1 / tl.sqrt(tl.sum(d * d, axis=0) / columns + eps)
    w = tl.load(weight + i, mask=mask)
    b = tl.load(bias + i, mask=mask)
    tl.store(out + row * columns + i, d * scale * w + b, mask=mask)


@triton.jit
def reduce_sum(x, out, n, B: tl.constexpr):
    total = tl.zeros((B,), dtype=tl.float32)
    for start in range(0, n, B):
        i = start + tl.arange(0, B)
        total += tl.load(x + i, mask=i < n, other=0.0)
    tl.store(out, tl.sum(total, axis=0))


@triton.jit
def arg_max(x, out, columns, B: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, B)
    v = tl.load(x + row * columns + i, mask=i < columns, other=-1000)
    tl.store(out + row, tl.argmax(v, axis=0))


@triton.jit
def scan(x, out, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(out + i, tl.cumsum(tl.load(x + i), axis=0))


@triton.jit
def matmul(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    n = tl.program_id(1) * BN + tl.arange(0, BN)
    k = tl.arange(0, BK)
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for start in range(0, K, BK):
        left = tl.load(a + m[:, None] * K + (start + k)[None, :])
        right = tl.load(b + (start + k)[:, None] * N + n[None, :])
        total += tl.dot(left, right)
    tl.store(c + m[:, None] * N + n[None, :], total)


@triton.jit
def transpose(x, out, M: tl.constexpr, N: tl.constexpr):
    m = tl.arange(0, M)
    n = tl.arange(0, N)
    v = tl.load(x + m[:, None] * N + n[None, :])
    tl.store(out + n[:, None] * M + m[None, :], tl.trans(v))


@triton.jit
def histogram(x, counts, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    mask = i < n
    tl.atomic_add(counts + tl.load(x + i, mask=mask, other=0), 1, mask=mask)


@triton.jit
def block_histogram(x, counts, B: tl.constexpr, BINS: tl.constexpr):
    found = tl.histogram(tl.load(x + tl.arange(0, B)), BINS)
    tl.store(counts + tl.arange(0, BINS), found)


@triton.jit
def attention(q, k, v, out, L, scale, BM: tl.constexpr, BN: tl.constexpr, D: tl.constexpr):
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    d = tl.arange(0, D)
    query = tl.load(q + m[:, None] * D + d[None, :])
    top = tl.full((BM,), -float("inf"), dtype=tl.float32)
    total = tl.zeros((BM,), dtype=tl.float32)
    result = tl.zeros((BM, D), dtype=tl.float32)
    for start in range(0, L, BN):
        n = start + tl.arange(0, BN)
        keys = tl.load(k + n[None, :] * D + d[:, None])
        scores = tl.dot(query, keys) * scale
        new_top = tl.maximum(top, tl.max(scores, axis=1))
        p = tl.exp(scores - new_top[:, None])
        shrink = tl.exp(top - new_top)
        total = total * shrink + tl.sum(p, axis=1)
        values = tl.load(v + n[:, None] * D + d[None, :])
        result = result * shrink[:, None] + tl.dot(p.to(tl.float16), values)
        top = new_top
    tl.store(out + m[:, None] * D + d[None, :], result / total[:, None])


@triton.jit
def sort(x, out, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(out + i, tl.sort(tl.load(x + i)))


@triton.jit
def conversions(x, half, brain, whole, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    v = tl.load(x + i)
    tl.store(half + i, v.to(tl.float16))
    tl.store(brain + i, v.to(tl.bfloat16))
    tl.store(whole + i, v.to(tl.int32))


@triton.jit
def gelu(x, out, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    v = tl.load(x + i, mask=i < n)
    tl.store(out + i, 0.5 * v * (1 + tl.erf(v * 0.7071067811865476)), mask=i < n)


def compiled(kernel, signature, constants, arch=80, warps=4):
    source = ASTSource(fn=kernel, signature=signature, constexprs=constants)
    made = triton.compile(source, target=GPUTarget("cuda", arch, 32),
                          options={"num_warps": warps})
    return made.asm["ptx"], made.metadata


def launch(program, kernel, signature, constants, grid, args, warps=4, arch=80):
    text, meta = compiled(kernel, signature, constants, arch, warps)
    # Behind a kernel's own parameters Triton has two for scratch memory.
    program.launch(text, grid, (32 * warps,), list(args) + [("u64", 0), ("u64", 0)],
                   shared=meta.shared)


def elementwise():
    p = Program("vector_add")
    x, y = p.random("x", 1000), p.random("y", 1000)
    p.output("out", 1000)
    launch(p, vector_add, {"x": "*fp32", "y": "*fp32", "out": "*fp32", "n": "i32"}, {"B": 256},
           (4,), ["x", "y", "out", ("i32", 1000)])
    p.expect("out", x + y)
    yield p

    p = Program("saxpy")
    x, y = p.random("x", 777), p.random("y", 777)
    launch(p, saxpy, {"x": "*fp32", "y": "*fp32", "a": "fp32", "n": "i32"}, {"B": 128}, (7,),
           ["x", "y", ("f32", 2.5), ("i32", 777)], warps=2)
    p.expect("y", 2.5 * x + y)
    yield p

    p = Program("conversions")
    x = p.random("x", 256)
    for name, kind in (("half", "f16"), ("brain", "bf16"), ("whole", "i32")):
        p.output(name, 256, kind)
    launch(p, conversions, {"x": "*fp32", "half": "*fp16", "brain": "*bf16", "whole": "*i32"},
           {"B": 256}, (1,), ["x", "half", "brain", "whole"])
    p.expect("half", x)
    p.expect("brain", x)
    p.expect("whole", x.astype(np.int32))
    yield p

    p = Program("gelu")
    x = p.random("x", 500)
    p.output("out", 500)
    launch(p, gelu, {"x": "*fp32", "out": "*fp32", "n": "i32"}, {"B": 256}, (2,),
           ["x", "out", ("i32", 500)])
    erf = np.vectorize(__import__("math").erf)
    p.expect("out", 0.5 * x * (1 + erf(x / np.sqrt(2.0))))
    yield p


def rows():
    p = Program("softmax")
    x = p.random("x", (8, 100))
    p.output("out", (8, 100))
    launch(p, softmax, {"x": "*fp32", "out": "*fp32", "columns": "i32"}, {"B": 128}, (8,),
           ["x", "out", ("i32", 100)])
    e = np.exp(x.astype(np.float64) - x.max(axis=1, keepdims=True))
    p.expect("out", e / e.sum(axis=1, keepdims=True))
    yield p

    p = Program("layer_norm")
    x, w, b = p.random("x", (4, 200)), p.random("weight", 200), p.random("bias", 200)
    p.output("out", (4, 200))
    launch(p, layer_norm, {"x": "*fp32", "weight": "*fp32", "bias": "*fp32", "out": "*fp32",
                           "columns": "i32", "eps": "fp32"}, {"B": 256}, (4,),
           ["x", "weight", "bias", "out", ("i32", 200), ("f32", 1e-5)])
    wide = x.astype(np.float64)
    d = wide - wide.mean(axis=1, keepdims=True)
    p.expect("out", d / np.sqrt((d * d).mean(axis=1, keepdims=True) + 1e-5) * w + b)
    yield p

    p = Program("reduce_sum")
    x = p.random("x", 3000)
    p.output("out", 1)
    launch(p, reduce_sum, {"x": "*fp32", "out": "*fp32", "n": "i32"}, {"B": 512}, (1,),
           ["x", "out", ("i32", 3000)])
    p.expect("out", x.astype(np.float64).sum())
    yield p

    p = Program("arg_max")
    x = p.random("x", (8, 100), "i32", low=-500, step=1, steps=1000)
    p.output("out", 8, "i32")
    launch(p, arg_max, {"x": "*i32", "out": "*i32", "columns": "i32"}, {"B": 128}, (8,),
           ["x", "out", ("i32", 100)])
    p.expect("out", x.argmax(axis=1).astype(np.int32))
    yield p

    p = Program("scan")
    x = p.random("x", 512)
    p.output("out", 512)
    launch(p, scan, {"x": "*fp32", "out": "*fp32"}, {"B": 512}, (1,), ["x", "out"])
    p.expect("out", np.cumsum(x.astype(np.float64)))
    yield p

    p = Program("sort")
    x = p.random("x", 256)
    p.output("out", 256)
    launch(p, sort, {"x": "*fp32", "out": "*fp32"}, {"B": 256}, (1,), ["x", "out"])
    p.expect("out", np.sort(x))
    yield p


def matrices():
    for name, arch in (("matmul", 80), ("matmul_sm90", 90)):
        p = Program(name)
        a = p.random("a", (64, 64), "f16", low=-1, step=1 / 16, steps=32)
        b = p.random("b", (64, 32), "f16", low=-1, step=1 / 16, steps=32)
        p.output("c", (64, 32))
        launch(p, matmul, {"a": "*fp16", "b": "*fp16", "c": "*fp32", "M": "i32", "N": "i32",
                           "K": "i32"}, {"BM": 64 if arch == 90 else 32, "BN": 32, "BK": 32},
               (1 if arch == 90 else 2, 1),
               ["a", "b", "c", ("i32", 64), ("i32", 32), ("i32", 64)], arch=arch)
        p.expect("c", a.astype(np.float64) @ b.astype(np.float64))
        yield p

    p = Program("transpose")
    x = p.random("x", (32, 16))
    p.output("out", (16, 32))
    launch(p, transpose, {"x": "*fp32", "out": "*fp32"}, {"M": 32, "N": 16}, (1,), ["x", "out"])
    p.expect("out", x.T)
    yield p

    p = Program("attention")
    q = p.random("q", (32, 16), "f16", low=-1, steps=32)
    k = p.random("k", (64, 16), "f16", low=-1, steps=32)
    v = p.random("v", (64, 16), "f16", low=-1, steps=32)
    p.output("out", (32, 16))
    launch(p, attention, {"q": "*fp16", "k": "*fp16", "v": "*fp16", "out": "*fp32", "L": "i32",
                          "scale": "fp32"}, {"BM": 16, "BN": 16, "D": 16}, (2,),
           ["q", "k", "v", "out", ("i32", 64), ("f32", 0.25)])
    s = q.astype(np.float64) @ k.astype(np.float64).T * 0.25
    e = np.exp(s - s.max(axis=1, keepdims=True))
    p.expect("out", e / e.sum(axis=1, keepdims=True) @ v.astype(np.float64), tolerance=2e-3)
    yield p


def counting():
    p = Program("histogram")
    x = p.random("x", 700, "i32", low=0, step=1, steps=16)
    p.filled("counts", 16, "i32")
    launch(p, histogram, {"x": "*i32", "counts": "*i32", "n": "i32"}, {"B": 256}, (3,),
           ["x", "counts", ("i32", 700)])
    p.expect("counts", np.bincount(x, minlength=16))
    yield p

    p = Program("block_histogram")
    x = p.random("x", 512, "i32", low=0, step=1, steps=16)
    p.output("counts", 16, "i32")
    launch(p, block_histogram, {"x": "*i32", "counts": "*i32"}, {"B": 512, "BINS": 16}, (1,),
           ["x", "counts"])
    p.expect("counts", np.bincount(x, minlength=16))
    yield p


def programs():
    # Line tables are half of a text, and name the folder of the source.
    os.environ["TRITON_DISABLE_LINE_INFO"] = "1"
    for group in (elementwise, rows, matrices, counting):
        yield from group()
