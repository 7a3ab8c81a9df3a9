# tests/corpus/producers/tinygrad_kernels.py - kernels of tinygrad's PTX back end, without a GPU
import importlib.metadata
import os

# A device without memory: nothing runs. Buffers are kept apart, so that each has its own name.
os.environ.update(DEV="NULL", NO_MEMORY_PLANNER="1", CACHELEVEL="0")

import numpy as np
from tinygrad import Tensor, dtypes
from tinygrad.codegen import to_program
from tinygrad.helpers import Target
from tinygrad.renderer.ptx import PTXRenderer
from tinygrad.uop.ops import Ops

from programs import Program

VERSION = importlib.metadata.version("tinygrad")
TYPES = {"f32": dtypes.float32, "i32": dtypes.int32, "f16": dtypes.float16, "f64": dtypes.float64}
RENDERER = PTXRenderer(Target(device="CUDA", renderer="PTX", arch="sm_80"))


def storage(uop):
    while uop.op is not Ops.BUFFER:
        uop = uop.src[0]
    return uop


def record(program, inputs, result, kind="f32"):
    """Launches that compute `result`, a tensor made of the tensors `inputs` (by buffer name)."""
    linear = result.schedule_linear()
    names = {storage(t.uop): name for name, t in inputs.items()}
    names[storage(result.uop)] = "out"
    program.output("out", tuple(result.shape), kind)
    for call in linear.src:
        made = to_program(call.src[0], RENDERER)
        [text] = [s.arg for s in made.src if s.op is Ops.BINARY]
        args = []
        for slot in made.arg.globals:
            buffer = storage(call.src[1 + slot])
            if buffer not in names:
                name = names[buffer] = f"temporary{len(names)}"
                [known] = [k for k, t in TYPES.items() if t == buffer.dtype]
                program.output(name, int(buffer.max_numel()), known)
            args.append(names[buffer])
        program.launch(text.decode() if isinstance(text, bytes) else text, made.arg.global_size,
                       made.arg.local_size or (1, 1, 1), args)


def tensors(program, **inputs):
    return {name: Tensor.empty(*program.buffers[name].shape, dtype=TYPES[kind])
            for name, kind in inputs.items()}


def one_per_element():
    p = Program("vector_add")
    x, y = p.random("x", 300), p.random("y", 300)
    t = tensors(p, x="f32", y="f32")
    record(p, t, t["x"] + t["y"])
    p.expect("out", x + y)
    yield p

    p = Program("saxpy")
    x, y = p.random("x", 256), p.random("y", 256)
    t = tensors(p, x="f32", y="f32")
    record(p, t, t["x"] * 2.5 + t["y"])
    p.expect("out", 2.5 * x + y)
    yield p

    p = Program("conversions")
    x = p.random("x", 200)
    t = tensors(p, x="f32")
    record(p, t, t["x"].cast(dtypes.float16).cast(dtypes.float64) + t["x"].cast(dtypes.int32),
           "f64")
    p.expect("out", x.astype(np.float64) + x.astype(np.int32))
    yield p

    p = Program("where")
    x = p.random("x", 128, "i32", low=-50, step=1, steps=100)
    t = tensors(p, x="i32")
    odd = t["x"] % 2 != 0
    record(p, t, (odd ^ (t["x"] < 0)).where(t["x"] * 3, -t["x"]), "i32")
    p.expect("out", np.where((x % 2 != 0) ^ (x < 0), x * 3, -x))
    yield p


def rows():
    p = Program("softmax")
    x = p.random("x", (8, 48))
    t = tensors(p, x="f32")
    record(p, t, t["x"].softmax(axis=1))
    e = np.exp(x.astype(np.float64) - x.max(axis=1, keepdims=True))
    p.expect("out", e / e.sum(axis=1, keepdims=True))
    yield p

    p = Program("layer_norm")
    x, w, b = p.random("x", (4, 64)), p.random("weight", 64), p.random("bias", 64)
    t = tensors(p, x="f32", weight="f32", bias="f32")
    record(p, t, t["x"].layernorm() * t["weight"] + t["bias"])
    wide = x.astype(np.float64)
    d = wide - wide.mean(axis=1, keepdims=True)
    p.expect("out", d / np.sqrt((d * d).mean(axis=1, keepdims=True) + 1e-5) * w + b)
    yield p

    p = Program("reduce_sum")
    x = p.random("x", (4, 512))
    t = tensors(p, x="f32")
    record(p, t, t["x"].sum(axis=1))
    p.expect("out", x.astype(np.float64).sum(axis=1))
    yield p

    p = Program("reduce_max")
    x = p.random("x", (16, 20), "i32", low=-500, step=1, steps=1000)
    t = tensors(p, x="i32")
    record(p, t, t["x"].max(axis=0), "i32")
    p.expect("out", x.max(axis=0))
    yield p

    p = Program("arg_max")
    x = p.random("x", (8, 40))
    t = tensors(p, x="f32")
    record(p, t, t["x"].argmax(axis=1), "i32")
    p.expect("out", x.argmax(axis=1).astype(np.int32))
    yield p

    p = Program("scan")
    x = p.random("x", 100)
    t = tensors(p, x="f32")
    record(p, t, t["x"].cumsum(axis=0))
    p.expect("out", np.cumsum(x.astype(np.float64)))
    yield p

    p = Program("sort")
    x = p.random("x", 32, "i32", low=0, step=1, steps=1000)
    t = tensors(p, x="i32")
    record(p, t, t["x"].sort()[0], "i32")
    p.expect("out", np.sort(x))
    yield p


def matrices():
    p = Program("matmul")
    a, b = p.random("a", (32, 48)), p.random("b", (48, 24))
    t = tensors(p, a="f32", b="f32")
    record(p, t, t["a"] @ t["b"])
    p.expect("out", a.astype(np.float64) @ b.astype(np.float64))
    yield p

    p = Program("matmul_half")
    a = p.random("a", (32, 32), "f16", low=-1, steps=32)
    b = p.random("b", (32, 32), "f16", low=-1, steps=32)
    t = tensors(p, a="f16", b="f16")
    record(p, t, t["a"].matmul(t["b"], dtype=dtypes.float32))
    p.expect("out", a.astype(np.float64) @ b.astype(np.float64), tolerance=1e-3)
    yield p

    p = Program("transpose")
    x = p.random("x", (16, 24))
    t = tensors(p, x="f32")
    record(p, t, t["x"].transpose(0, 1).contiguous())
    p.expect("out", x.T)
    yield p

    p = Program("convolution")
    x, w = p.random("x", (1, 3, 10, 10)), p.random("w", (4, 3, 3, 3))
    t = tensors(p, x="f32", w="f32")
    record(p, t, t["x"].conv2d(t["w"]))
    out = np.zeros((1, 4, 8, 8))
    for i in range(3):
        for j in range(3):
            out += np.einsum("bchw,oc->bohw", x[:, :, i:i + 8, j:j + 8].astype(np.float64),
                             w[:, :, i, j])
    p.expect("out", out)
    yield p

    p = Program("attention")
    q, k, v = p.random("q", (8, 16)), p.random("k", (24, 16)), p.random("v", (24, 16))
    t = tensors(p, q="f32", k="f32", v="f32")
    record(p, t, t["q"].scaled_dot_product_attention(t["k"], t["v"]))
    s = q.astype(np.float64) @ k.astype(np.float64).T * 0.25
    e = np.exp(s - s.max(axis=1, keepdims=True))
    p.expect("out", e / e.sum(axis=1, keepdims=True) @ v.astype(np.float64))
    yield p

    p = Program("histogram")
    x = p.random("x", 128, "i32", low=0, step=1, steps=16)
    t = tensors(p, x="i32")
    record(p, t, (t["x"].reshape(1, 128) == Tensor.arange(16).reshape(16, 1)).sum(axis=1), "i32")
    p.expect("out", np.bincount(x, minlength=16))
    yield p


def programs():
    for group in (one_per_element, rows, matrices):
        yield from group()
