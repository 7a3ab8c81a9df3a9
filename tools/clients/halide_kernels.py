# tools/clients/halide_kernels.py - pipelines of Halide, scheduled for the GPU
import halide as hl
import numpy as np
from checks import check, run, same

target = hl.get_jit_target_from_environment()
assert target.has_feature(hl.TargetFeature.CUDA), f"{target} is no target for CUDA"
x, y, xo, yo, xi, yi = (hl.Var(name) for name in ("x", "y", "xo", "yo", "xi", "yi"))


def realized(function, *sizes):
    result = function.realize(list(sizes), target)
    result.copy_to_host()
    return np.asarray(result)  # the last dimension is the innermost


@check
def blur_in_two_stages():
    image = np.random.default_rng(1).integers(0, 256, (40, 70), dtype=np.uint16)
    source = hl.BoundaryConditions.repeat_edge(hl.Buffer(image))
    across, blurred = hl.Func("across"), hl.Func("blurred")
    across[x, y] = (source[x - 1, y] + source[x, y] + source[x + 1, y]) / 3
    blurred[x, y] = (across[x, y - 1] + across[x, y] + across[x, y + 1]) / 3
    blurred.gpu_tile(x, y, xo, yo, xi, yi, 16, 8)
    across.compute_at(blurred, xo).gpu_threads(x, y)
    wide = np.pad(image, 1, mode="edge")
    first = (wide[:, :-2] + wide[:, 1:-1] + wide[:, 2:]) // 3
    same(realized(blurred, 70, 40), (first[:-2] + first[1:-1] + first[2:]) // 3)


@check
def matrix_product():
    random = np.random.default_rng(2)
    a, b = random.random((24, 32), np.float32), random.random((32, 40), np.float32)
    left, right = hl.Buffer(a), hl.Buffer(b)
    k, product = hl.RDom([(0, 32)]), hl.Func("product")
    product[x, y] = hl.f32(0)
    product[x, y] += left[k, y] * right[x, k]
    product.gpu_tile(x, y, xo, yo, xi, yi, 8, 8)
    product.update().gpu_tile(x, y, xo, yo, xi, yi, 8, 8)
    same(realized(product, 40, 24), a @ b, 1e-5)


@check
def functions_of_floats():
    values = np.linspace(0.1, 3, 200, dtype=np.float32)
    source, result = hl.Buffer(values), hl.Func("result")
    result[x] = hl.sqrt(source[x]) + hl.exp(source[x]) * hl.sin(source[x])
    result.gpu_tile(x, xo, xi, 64)
    same(realized(result, 200), np.sqrt(values) + np.exp(values) * np.sin(values), 1e-5)


@check
def histogram_by_atomics():
    values = np.random.default_rng(3).integers(0, 16, 500, dtype=np.uint8)
    source, counts, r = hl.Buffer(values), hl.Func("counts"), hl.RDom([(0, 500)])
    counts[x] = hl.i32(0)
    counts[hl.i32(source[r])] += 1
    outer, inner = hl.RVar("outer"), hl.RVar("inner")
    counts.gpu_tile(x, xo, xi, 16)
    counts.update().atomic().split(r, outer, inner, 64, hl.TailStrategy.GuardWithIf)
    counts.update().gpu_blocks(outer).gpu_threads(inner)
    same(realized(counts, 16), np.bincount(values, minlength=16))


run()
