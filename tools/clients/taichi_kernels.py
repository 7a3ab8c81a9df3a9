# tools/clients/taichi_kernels.py - kernels through Taichi's CUDA back end
import numpy as np
import taichi as ti
from checks import check, run, same

ti.init(arch=ti.cuda, log_level=ti.WARN, device_memory_GB=0.5)
N = 1000


@check
def device():
    assert ti.cfg.arch == ti.cuda, ti.cfg.arch


@check
def fields():
    x = ti.field(ti.f32, shape=N)

    @ti.kernel
    def fill():
        for i in x:
            x[i] = i * 2.0 + 1.0

    fill()
    same(x.to_numpy(), np.arange(N, dtype=np.float32) * 2 + 1)


@check
def arrays():
    @ti.kernel
    def saxpy(a: ti.f32, x: ti.types.ndarray(), y: ti.types.ndarray()):
        for i in range(x.shape[0]):
            y[i] += a * x[i]

    x, y = np.arange(N, dtype=np.float32), np.ones(N, dtype=np.float32)
    saxpy(2.0, x, y)
    same(y, 1 + 2 * np.arange(N, dtype=np.float32))


@check
def reduction():
    total = ti.field(ti.i32, shape=())

    @ti.kernel
    def add():
        for i in range(N):
            total[None] += i

    add()
    assert total[None] == N * (N - 1) // 2, total[None]


@check
def atomics():
    bins = ti.field(ti.i32, shape=16)

    @ti.kernel
    def count():
        for i in range(N):
            ti.atomic_add(bins[i * i % 16], 1)

    count()
    same(bins.to_numpy(), np.bincount(np.arange(N) ** 2 % 16, minlength=16))


@check
def stencil():
    a, b = ti.field(ti.f32, shape=(32, 32)), ti.field(ti.f32, shape=(32, 32))
    start = np.random.default_rng(2).random((32, 32), dtype=np.float32)
    a.from_numpy(start)

    @ti.kernel
    def smooth():
        for i, j in ti.ndrange((1, 31), (1, 31)):
            b[i, j] = (a[i - 1, j] + a[i + 1, j] + a[i, j - 1] + a[i, j + 1]) * 0.25

    smooth()
    same(b.to_numpy()[1:-1, 1:-1],
         (start[:-2, 1:-1] + start[2:, 1:-1] + start[1:-1, :-2] + start[1:-1, 2:]) * 0.25, 1e-6)


@check
def matrices():
    m = ti.Matrix.field(3, 3, ti.f32, shape=100)
    r = ti.field(ti.f32, shape=100)

    @ti.kernel
    def determinants():
        for i in m:
            m[i] = ti.Matrix([[1.0 * i, 2.0, 0.0], [0.0, 3.0, 1.0], [1.0, 0.0, 2.0]])
            r[i] = m[i].determinant()

    determinants()
    same(r.to_numpy(), 6 * np.arange(100, dtype=np.float32) + 2, 1e-5)


@check
def branches_and_loops():
    steps = ti.field(ti.i32, shape=200)

    @ti.kernel
    def collatz():
        for i in steps:
            n, count = i + 1, 0
            while n != 1:
                if n % 2 == 0:
                    n //= 2
                else:
                    n = 3 * n + 1
                count += 1
            steps[i] = count

    collatz()

    def length(n):
        count = 0
        while n != 1:
            n, count = (n // 2 if n % 2 == 0 else 3 * n + 1), count + 1
        return count

    same(steps.to_numpy(), [length(n) for n in range(1, 201)])


@check
def mathematics():
    x = ti.field(ti.f32, shape=N)

    @ti.kernel
    def compute():
        for i in x:
            x[i] = ti.sin(i * 0.01) + ti.sqrt(i * 1.0) + ti.exp(-i * 0.01)

    compute()
    i = np.arange(N, dtype=np.float32)
    same(x.to_numpy(), np.sin(i * 0.01) + np.sqrt(i) + np.exp(-i * 0.01), 1e-4)


@check
def sparse():
    root = ti.root.pointer(ti.i, 8)
    y = ti.field(ti.i32)
    root.dense(ti.i, 8).place(y)
    seen = ti.field(ti.i32, shape=())

    @ti.kernel
    def activate():
        y[3] = 5
        y[40] = 6

    @ti.kernel
    def visit():
        for i in y:
            seen[None] += 1 + y[i]

    activate()
    visit()
    assert seen[None] == 16 + 11, seen[None]


run()
