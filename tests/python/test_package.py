# tests/python/test_package.py - ptxgen.run and the library's kernels on NumPy arrays
import struct

import numpy as np
import pytest

import ptxgen
from ptx import KINDS, RACE, SCALE


def test_arrays_are_copied_in_and_out_and_the_launch_is_counted():
    y = np.arange(100, dtype=np.float32)
    result = ptxgen.run(SCALE, 2, 64, [y, 2.5, 100])
    assert np.array_equal(y, np.arange(100, dtype=np.float32) * np.float32(2.5))
    assert result.ok and result.completed and result.findings == []
    assert result.counters.launches == 1
    assert result.counters.global_load.bytes == 400
    assert result.counters.global_load.coalescing == 1.0
    assert result.counters.global_store.requests == 4  # a warp each


def test_counters_are_those_of_one_launch():
    y = np.ones(32, np.float32)
    first = ptxgen.run(SCALE, 1, 32, [y, 1.0, 32]).counters
    second = ptxgen.run(SCALE, 1, 32, [y, 1.0, 32]).counters
    assert first.warp_instructions == second.warp_instructions > 0


@pytest.mark.ptxgen_findings("out-of-bounds")
def test_a_finding_is_raised_with_its_place():
    y = np.ones(10, np.float32)
    with pytest.raises(ptxgen.FindingError) as raised:
        ptxgen.run(SCALE, 1, 32, [y, 2.0, 32], file="scale.ptx")
    error = raised.value
    assert error.code == "out-of-bounds" and error.kernel == "scale"
    finding = error.findings[0]
    assert finding.severity == "error"
    assert (finding.file, finding.line) == ("scale.ptx", 21)
    assert finding.statement == "ld.global.f32 %f2, [%rd3];"
    assert finding.thread == (10, 0, 0) and finding.block == (32, 1, 1)
    assert str(finding).startswith("scale.ptx:21: error: ")


@pytest.mark.ptxgen_findings("shared-race")
def test_findings_can_be_returned_and_arrays_are_copied_back():
    out = np.zeros(64, np.uint32)
    result = ptxgen.run(RACE, 1, 64, [out], findings="return")
    assert not result.ok and result.completed
    assert [finding.rule for finding in result.errors][0] == "shared-race"
    assert result.errors[0].other_line != 0
    assert out.max() < 64 and out.any()


@pytest.mark.ptxgen_findings("out-of-bounds")
def test_after_a_fault_the_default_device_works_again():
    y = np.ones(10, np.float32)
    result = ptxgen.run(SCALE, 1, 32, [y, 2.0, 32], findings="return")
    assert any(finding.fault for finding in result.findings) is not result.completed
    y = np.ones(32, np.float32)
    assert ptxgen.run(SCALE, 1, 32, [y, 2.0, 32]).ok
    assert y[31] == 2


@pytest.mark.ptxgen_findings("uninitialized-read")
def test_out_is_not_initialised_and_in_is_not_copied_back():
    y = np.ones(32, np.float32)
    ptxgen.run(SCALE, 1, 32, [ptxgen.In(y), 2.0, 32])
    assert y[0] == 1
    with pytest.raises(ptxgen.FindingError) as raised:
        ptxgen.run(SCALE, 1, 32, [ptxgen.Out(y), 2.0, 32])
    assert raised.value.code == "uninitialized-read"


def test_numbers_get_the_type_of_their_parameter():
    out = np.zeros(36, np.uint8)
    ptxgen.run(KINDS, 1, 1, [out, 1.5, 2, 0.25, -3, 255, np.float32(8), struct.pack("ii", 5, 6)])
    raw = out.tobytes()
    assert struct.unpack_from("<f", raw, 0)[0] == 1.5
    assert struct.unpack_from("<d", raw, 8)[0] == 2.0
    assert struct.unpack_from("<e", raw, 16)[0] == 0.25
    assert struct.unpack_from("<hB", raw, 18) == (-3, 255)
    assert struct.unpack_from("<fii", raw, 24) == (8.0, 5, 6)


@pytest.mark.parametrize("arguments, message", [
    ([None, 1.0], "scale takes 3 arguments (y, factor, n), not 2"),
    ([None, 1.0, 2.5], "scale: argument 3 (parameter n, u32) is no floating-point parameter: 2.5 "
                       "needs a type, such as numpy.float32(2.5)"),
    ([None, 1.0, -1], "scale: argument 3 (parameter n, u32) is -1; it may be 0 to 4294967295"),
    ([None, "x", 1], "scale: argument 2 (parameter factor, f32) cannot be a str; pass an array, a "
                     "number, bytes or None"),
])
def test_arguments_that_do_not_fit_are_refused(arguments, message):
    with pytest.raises(ptxgen.PtxgenError) as raised:
        ptxgen.run(SCALE, 1, 1, arguments)
    assert str(raised.value) == message
    assert raised.value.code == "arguments"


def test_the_library_refuses_what_does_not_fit_too():
    with pytest.raises(ptxgen.PtxgenError) as raised:
        ptxgen.run(SCALE, 1, 1, [None, np.int32(1), 1])
    assert raised.value.status == "launch" and raised.value.code == "arguments"
    with pytest.raises(ptxgen.PtxgenError) as raised:
        ptxgen.run(SCALE, 1, 2000, [None, 1.0, 0])
    assert raised.value.code == "launch-limits"
    with pytest.raises(ptxgen.PtxgenError) as raised:
        ptxgen.run("nonsense", 1, 1)
    assert raised.value.status == "verify" and raised.value.line == 1
    with pytest.raises(ValueError, match="grid is 0; it is one to three numbers of at least 1"):
        ptxgen.run(SCALE, 0, 1, [None, 1.0, 0])
    with pytest.raises(ValueError, match="is not in C order"):
        ptxgen.run(SCALE, 1, 1, [np.ones((4, 4), np.float32).T, 1.0, 0])


def test_a_kernel_of_the_library_by_name():
    a, b = np.arange(50, dtype=np.float32), np.ones(50, np.float32)
    c = np.zeros(50, np.float32)
    result = ptxgen.kernels.vadd(a, b, c, n=50)
    assert np.array_equal(c, a + b)
    assert result.counters.launches >= 1
    x, m = np.array([1, 10, 100], np.float32), np.arange(1, 7, dtype=np.float32).reshape(3, 2)
    y = np.zeros(2, np.float32)
    ptxgen.kernels.gemv(y=y, a=m, x=x, k=3, n=2)
    assert y.tolist() == [531, 642]


def test_every_kernel_of_the_catalog_is_described():
    names = ptxgen.kernels.names()
    assert len(names) >= 20 and names == sorted(names)
    for name in names:
        kernel = getattr(ptxgen.kernels, name)
        assert kernel.name == name and kernel.doc in kernel.__doc__
        assert kernel.operands, name
        assert any(one.role in ("output", "in-out") for one in kernel.operands), name
        assert kernel.__signature__.parameters["findings"].default == "raise"
    assert "vadd" in dir(ptxgen.kernels)
    copy = ptxgen.kernels.copy
    assert list(copy.__signature__.parameters)[:2] == ["in_", "out"]
    assert ".target sm_90" in ptxgen.kernels.gemv.build("sm_90", k=64, n=64)
    with pytest.raises(AttributeError, match="the library has no kernel 'vsub'"):
        ptxgen.kernels.vsub


def test_calls_of_kernels_that_do_not_fit_are_refused():
    a = np.ones(4, np.float32)
    with pytest.raises(TypeError, match="vadd has no operand or parameter m; it has a, b, c, n, type"):
        ptxgen.kernels.vadd(a, a, a, m=4)
    with pytest.raises(TypeError, match="vadd got the operand c twice"):
        ptxgen.kernels.vadd(a, a, a, c=a)
    with pytest.raises(ptxgen.PtxgenError) as raised:
        ptxgen.kernels.vadd(a, a, np.zeros(4, np.float32), n=5)
    assert raised.value.code == "buffer-size"
    with pytest.raises(ptxgen.PtxgenError) as raised:
        ptxgen.kernels.gemv(a, a, a, k=2, n=2, dtype="f8")
    assert "dtype is 'f8'; it may be f32, " in str(raised.value)
