# tools/clients/tinygrad_kernels.py - kernels through tinygrad's PTX back end
import numpy as np
from checks import check, run, same
from tinygrad import Device, Tensor, dtypes

rng = np.random.default_rng(1)
A = rng.standard_normal((48, 64)).astype(np.float32)
B = rng.standard_normal((64, 32)).astype(np.float32)


@check
def device():
    assert Device.DEFAULT.startswith("CUDA"), Device.DEFAULT


@check
def elementwise():
    x = Tensor(A)
    same((x * 2 + x.relu() - 1).numpy(), A * 2 + np.maximum(A, 0) - 1, 1e-6)


@check
def matmul():
    same((Tensor(A) @ Tensor(B)).numpy(), A @ B, 1e-4)


@check
def reductions():
    same(Tensor(A).sum(axis=1).numpy(), A.sum(axis=1), 1e-4)
    same(Tensor(A).max(axis=0).numpy(), A.max(axis=0))


@check
def softmax():
    e = np.exp(A - A.max(axis=1, keepdims=True))
    same(Tensor(A).softmax(axis=1).numpy(), e / e.sum(axis=1, keepdims=True), 1e-5)


@check
def layernorm():
    mean, var = A.mean(axis=1, keepdims=True), A.var(axis=1, keepdims=True)
    same(Tensor(A).layernorm(eps=1e-5).numpy(), (A - mean) / np.sqrt(var + 1e-5), 1e-4)


@check
def half():
    h = A.astype(np.float16)
    same((Tensor(h) + 1).numpy(), h + np.float16(1), 1e-3)


@check
def integers():
    i = rng.integers(-1000, 1000, 500, dtype=np.int32)
    same((Tensor(i) * 3 // 7).numpy(), i * 3 // 7)
    same((Tensor(i) ^ 0x55).numpy(), i ^ 0x55)


@check
def gather():
    index = rng.integers(0, 48, 20)
    same(Tensor(A)[Tensor(index.astype(np.int32))].numpy(), A[index])


@check
def convolution():
    x = rng.standard_normal((1, 3, 12, 12)).astype(np.float32)
    w = rng.standard_normal((4, 3, 3, 3)).astype(np.float32)
    expected = np.zeros((1, 4, 10, 10), np.float32)
    for r in range(3):
        for c in range(3):
            expected += np.einsum("oi,nihw->nohw", w[:, :, r, c], x[:, :, r:r + 10, c:c + 10])
    same(Tensor(x).conv2d(Tensor(w)).numpy(), expected, 1e-4)


@check
def cumulative_sum():
    same(Tensor(A).cumsum(axis=1).numpy(), A.cumsum(axis=1), 1e-4)


@check
def sort():
    same(Tensor(A[0]).sort()[0].numpy(), np.sort(A[0]))


@check
def jit_graph():
    from tinygrad import TinyJit

    @TinyJit
    def step(x):
        return (x * 2).realize() + 1

    for k in range(4):
        same(step(Tensor(A + k).realize()).realize().numpy(), (A + k) * 2 + 1, 1e-6)


@check
def gradient():
    x = Tensor(A)
    (x * x).sum().backward()
    same(x.grad.numpy(), 2 * A, 1e-6)


@check
def casts():
    same(Tensor(A * 100).cast(dtypes.int32).numpy(), (A * 100).astype(np.int32))


run()
