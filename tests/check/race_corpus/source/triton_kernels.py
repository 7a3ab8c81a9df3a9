# tests/check/race_corpus/source/triton_kernels.py - kernels that Triton prints
"""Kernels whose PTX the race corpus stores.

Prints triton_NAME.ptx of each into the current folder, without a GPU:
TRITON_DISABLE_LINE_INFO=1 python triton_kernels.py
"""

import triton, triton.language as tl
from triton.compiler import ASTSource
from triton.backends.compiler import GPUTarget

@triton.jit
def softmax(out, inp, stride, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offs = tl.arange(0, BLOCK)
    x = tl.load(inp + row * stride + offs, mask=offs < cols, other=-float('inf'))
    x = x - tl.max(x, axis=0)
    e = tl.exp(x)
    tl.store(out + row * stride + offs, e / tl.sum(e, axis=0), mask=offs < cols)

@triton.jit
def layer_norm(x, y, w, b, stride, n, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    v = tl.load(x + row * stride + cols, mask=cols < n, other=0.0)
    mean = tl.sum(v, axis=0) / n
    d = tl.where(cols < n, v - mean, 0.0)
    var = tl.sum(d * d, axis=0) / n
    r = 1 / tl.sqrt(var + eps)
    tl.store(y + row * stride + cols, d * r * tl.load(w + cols, mask=cols < n) + tl.load(b + cols, mask=cols < n), mask=cols < n)

@triton.jit
def argmax(inp, out, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offs = tl.arange(0, BLOCK)
    v = tl.load(inp + row * n + offs, mask=offs < n, other=-float('inf'))
    tl.store(out + row, tl.argmax(v, axis=0))

@triton.jit
def sort(inp, out, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    tl.store(out + offs, tl.sort(tl.load(inp + offs)))

@triton.jit
def scan(inp, out, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    tl.store(out + offs, tl.cumsum(tl.load(inp + offs), axis=0))

@triton.jit
def transpose(inp, out, M: tl.constexpr, N: tl.constexpr):
    r = tl.arange(0, M); c = tl.arange(0, N)
    x = tl.load(inp + r[:, None] * N + c[None, :])
    tl.store(out + c[:, None] * M + r[None, :], tl.trans(x))

@triton.jit
def sum_loop(inp, out, n, BLOCK: tl.constexpr):
    acc = tl.zeros((BLOCK,), dtype=tl.float32)
    for i in range(0, n, BLOCK):
        offs = i + tl.arange(0, BLOCK)
        acc += tl.load(inp + offs, mask=offs < n, other=0.0)
    tl.store(out, tl.sum(acc, axis=0))

@triton.jit
def histogram(inp, out, BLOCK: tl.constexpr, BINS: tl.constexpr):
    v = tl.load(inp + tl.arange(0, BLOCK))
    tl.store(out + tl.arange(0, BINS), tl.histogram(v, BINS))

jobs = [
 (softmax, {'out':'*fp32','inp':'*fp32','stride':'i32','cols':'i32','BLOCK':'constexpr'}, {'BLOCK':1024}),
 (layer_norm, {'x':'*fp32','y':'*fp32','w':'*fp32','b':'*fp32','stride':'i32','n':'i32','eps':'fp32','BLOCK':'constexpr'}, {'BLOCK':1024}),
 (argmax, {'inp':'*fp32','out':'*i32','n':'i32','BLOCK':'constexpr'}, {'BLOCK':1024}),
 (sort, {'inp':'*i32','out':'*i32','BLOCK':'constexpr'}, {'BLOCK':256}),
 (scan, {'inp':'*fp32','out':'*fp32','BLOCK':'constexpr'}, {'BLOCK':1024}),
 (transpose, {'inp':'*fp32','out':'*fp32','M':'constexpr','N':'constexpr'}, {'M':64,'N':32}),
 (sum_loop, {'inp':'*i32','out':'*fp32','n':'i32','BLOCK':'constexpr'}, {'BLOCK':512}),
 (histogram, {'inp':'*i32','out':'*i32','BLOCK':'constexpr','BINS':'constexpr'}, {'BLOCK':512,'BINS':64}),
]
for fn, sig, cst in jobs:
    compiled = triton.compile(ASTSource(fn=fn, signature=sig, constexprs=cst),
                              target=GPUTarget("cuda", 80, 32), options={"num_warps": 4})
    with open(f"triton_{fn.__name__}.ptx", "w") as out:
        out.write(compiled.asm["ptx"])
