# tools/clients/drjit_kernels.py - kernels through Dr.Jit's CUDA back end
import drjit as dr
import numpy as np
from checks import check, run, same
from drjit.cuda import Array3f, Float, Float64, Int, TensorXf, UInt, UInt64
from drjit.cuda.ad import Float as ADFloat

X = np.linspace(-3, 3, 1000, dtype=np.float32)


@check
def elementwise():
    x = Float(X)
    same((x * 2 + dr.sin(x)).numpy(), X * 2 + np.sin(X), 1e-5)


@check
def transcendental():
    x = Float(np.abs(X) + 0.5)
    same(dr.exp(dr.log(x)).numpy(), np.abs(X) + 0.5, 1e-5)
    same(dr.sqrt(x).numpy(), np.sqrt(np.abs(X) + 0.5), 1e-6)


@check
def sums():
    x = dr.arange(Float, 10000)
    same(dr.sum(x).numpy(), [np.arange(10000, dtype=np.float64).sum()], 1e-5)
    same(dr.max(x).numpy(), [9999.0])
    same(dr.min(x).numpy(), [0.0])


@check
def prefix_sum():
    x = dr.arange(UInt, 5000)
    same(dr.cumsum(x).numpy(), np.arange(5000, dtype=np.uint32).cumsum())


@check
def gather_and_scatter():
    x = dr.arange(Int, 100)
    same(dr.gather(Int, x * x, 99 - dr.arange(UInt, 100)).numpy(), (np.arange(100) ** 2)[::-1])
    target = dr.zeros(Int, 10)
    dr.scatter_reduce(dr.ReduceOp.Add, target, Int(1), dr.arange(UInt, 100) % 10)
    same(target.numpy(), np.full(10, 10))


@check
def compress():
    x = dr.arange(UInt, 1000)
    same(dr.compress(x % 7 == 3).numpy(), np.flatnonzero(np.arange(1000) % 7 == 3))


@check
def while_loop():
    n, steps = dr.arange(UInt, 1, 50), dr.zeros(UInt, 49)
    n, steps = dr.while_loop(
        (n, steps), lambda n, s: n != 1,
        lambda n, s: (dr.select(n % 2 == 0, n // 2, 3 * n + 1), s + 1))
    expected = []
    for k in range(1, 50):
        count = 0
        while k != 1:
            k, count = (k // 2 if k % 2 == 0 else 3 * k + 1), count + 1
        expected.append(count)
    same(steps.numpy(), expected)


@check
def vectors():
    v = Array3f(Float(X), Float(X * 2), Float(X * 3))
    same(dr.norm(v).numpy(), np.sqrt(14) * np.abs(X), 1e-5)


@check
def double_and_wide():
    x = dr.arange(Float64, 100)
    same((x / 3).numpy(), np.arange(100) / 3.0, 1e-15)
    big = dr.arange(UInt64, 100) * UInt64(1 << 33)
    same(big.numpy(), np.arange(100, dtype=np.uint64) << np.uint64(33))


@check
def tensors():
    t = TensorXf(X[:60].reshape(3, 20))
    same(dr.sum(t, axis=1).numpy(), X[:60].reshape(3, 20).sum(axis=1), 1e-5)


@check
def gradient():
    x = ADFloat(X)
    dr.enable_grad(x)
    dr.backward(dr.sum(dr.sin(x)))
    same(dr.grad(x).numpy(), np.cos(X), 1e-5)


@check
def block_sum():
    x = dr.arange(UInt, 1024)
    same(dr.block_sum(x, 32).numpy(), np.arange(1024).reshape(-1, 32).sum(axis=1))


run()
