# tests/python/test_devices.py - devices, arrays in their memory, queued launches
import gc
import warnings

import numpy as np
import pytest

import ptxgen
from ptx import RACE, SCALE


@pytest.fixture
def device():
    with ptxgen.Device("emulator") as opened:
        yield opened


def test_the_emulator_is_listed_and_described(device):
    kinds = [each.kind for each in ptxgen.devices()]
    assert "emulator" in kinds
    assert device.info.kind == "emulator" and device.info.target.startswith("sm_")
    assert device.info.threads_per_block == 1024
    free, total = device.memory()
    assert 0 < free <= total
    assert "emulator" in repr(device)
    with pytest.raises(ptxgen.PtxgenError) as raised:
        ptxgen.Device("toaster")
    assert raised.value.code == "bad-device"
    with pytest.raises(ptxgen.PtxgenError, match="there is no setting 'PTXGEN_TOAST'"):
        ptxgen.Device("emulator", settings={"PTXGEN_TOAST": "1"})


def test_arrays_and_queued_launches(device):
    y = device.array([1, 2, 3], np.float32)
    scale = device.load(SCALE)
    assert scale.name == "scale" and "factor: f32" in repr(scale)
    assert [parameter.offset for parameter in scale.parameters] == [0, 8, 12]
    scale(1, 3, y, 2.0, 3)
    scale(1, 3, y, 10.0, 2)
    assert y.numpy().tolist() == [20, 40, 6]
    assert np.asarray(y).tolist() == [20, 40, 6]
    assert device.counters().launches == 2
    scale(1, 3, y, 0.5, 3)
    assert device.array(y).numpy().tolist() == [10, 20, 3]
    y.write([7, 8, 9])
    assert y.numpy().tolist() == [7, 8, 9]
    assert device.zeros((2, 3), np.int64).numpy().tolist() == [[0, 0, 0]] * 2
    with pytest.raises(ValueError, match="an array of shape .2,. does not fit into one of .3,."):
        y.write([1, 2])
    with pytest.raises(ptxgen.PtxgenError, match="is an array of the host: copy it with Device.array"):
        scale(1, 3, np.ones(3, np.float32), 2.0, 3)


def test_types_without_a_buffer_format_and_empty_arrays(device):
    halves = np.arange(4, dtype=np.float16)
    assert device.array(halves).numpy().tolist() == halves.tolist()
    times = np.array(["2026-01-01"], dtype="datetime64[D]")
    assert device.array(times).numpy() == times
    assert device.empty(0).numpy().shape == (0,)
    assert device.array(3.5).numpy() == 3.5
    with pytest.raises(TypeError, match="Python objects"):
        device.empty(3, object)


def test_dlpack_and_the_cuda_array_interface(device):
    y = device.array(np.arange(6, dtype=np.float32).reshape(2, 3))
    assert y.__dlpack_device__() == (1, 0)
    view = np.from_dlpack(y)
    assert view.shape == (2, 3) and view[1, 2] == 5
    device.load(SCALE)(1, 6, y, 2.0, 6)
    device.synchronize()
    assert view[1, 2] == 10  # the memory itself
    interface = y.__cuda_array_interface__
    assert interface["data"] == (y.address, False) and interface["typestr"] == "<f4"
    assert interface["shape"] == (2, 3) and interface["version"] == 3

    class Exporter:
        """Another library's view of the memory."""
        __cuda_array_interface__ = interface

    device.load(SCALE)(1, 6, Exporter(), 2.0, 6)
    assert y.numpy()[1, 2] == 20
    Exporter.__cuda_array_interface__ = dict(interface, strides=(4, 8))
    with pytest.raises(ValueError, match="is not in C order"):
        device.load(SCALE)(1, 6, Exporter(), 2.0, 6)
    with pytest.raises(ptxgen.PtxgenError, match="copy it to the host to make an array of it"):
        device.array(Exporter())


def test_an_array_of_another_gpu_is_refused(device):
    with ptxgen.Device("emulator:rtx4090") as other:
        y = other.zeros(3)
        with pytest.raises(ptxgen.PtxgenError, match="cannot be used on") as raised:
            device.load(SCALE)(1, 3, y, 2.0, 3)
        assert raised.value.code == "wrong-device"


def test_views_keep_the_memory(device):
    view = device.array([1.0, 2.0]).host()
    gc.collect()
    for _ in range(50):
        device.zeros(2)
    assert view.tolist() == [1, 2]


def test_dlpack_of_the_host_is_copied_in_and_out():
    class Exporter:
        """A library that knows DLPack and not NumPy."""

        def __init__(self, values):
            self.values = values

        def __dlpack__(self, **options):
            return self.values.__dlpack__(**options)

        def __dlpack_device__(self):
            return self.values.__dlpack_device__()

    values = np.ones(8, np.float32)
    ptxgen.run(SCALE, 1, 8, [Exporter(values), 3.0, 8])
    assert values.tolist() == [3] * 8


@pytest.mark.ptxgen_findings("shared-race")
def test_a_wait_raises_the_findings_of_queued_launches_once():
    device = ptxgen.Device("emulator")
    out = device.zeros(64, np.uint32)
    race = device.load(RACE)
    race(1, 64, out)
    with pytest.raises(ptxgen.FindingError) as raised:
        out.numpy()
    assert raised.value.code == "shared-race"
    out.numpy()
    race(1, 64, out)
    assert {finding.rule for finding in device.take_findings()} == {"shared-race"}
    race(1, 64, out)
    with pytest.warns(ptxgen.FindingWarning, match="shared-race"):
        device.close()
    with pytest.raises(ptxgen.PtxgenError, match="was closed"):
        device.zeros(1)


@pytest.mark.ptxgen_findings("shared-race")
def test_run_leaves_the_findings_of_earlier_launches():
    with warnings.catch_warnings():
        device = ptxgen.Device("emulator")
        out = device.zeros(64, np.uint32)
        device.load(RACE)(1, 64, out)
        assert ptxgen.run(SCALE, 1, 4, [np.ones(4, np.float32), 2.0, 4], device=device).ok
        with pytest.raises(ptxgen.FindingError):
            device.synchronize()
        device.close()


@pytest.mark.ptxgen_findings("invalid-address")
def test_a_fault_poisons_the_devices_of_a_gpu_until_one_is_reset():
    with ptxgen.Device("emulator") as device, ptxgen.Device("emulator") as neighbour:
        early = neighbour.zeros(2)
        view = early.host()
        device.load(SCALE)(1, 1, None, 2.0, 1)
        with pytest.raises(ptxgen.FindingError) as raised:
            device.synchronize()
        assert raised.value.findings[0].fault and device.poisoned
        with pytest.raises(ptxgen.PtxgenError, match="1 array views memory") as refused:
            device.reset()
        assert refused.value.code == "in-use" and view[0] == 0
        del view
        device.reset()
        assert not device.poisoned and not neighbour.poisoned
        assert neighbour.zeros(2).numpy().tolist() == [0, 0]
        with pytest.raises(ptxgen.PtxgenError, match="this array was made before the device was reset"):
            early.numpy()


@pytest.mark.ptxgen_findings("invalid-address")
def test_the_default_device_is_not_reset_under_its_arrays():
    device = ptxgen.default_device()
    kept = device.zeros(2)
    with pytest.raises(ptxgen.FindingError):
        ptxgen.run(SCALE, 1, 1, [None, 2.0, 1])
    assert device.poisoned
    with pytest.raises(ptxgen.PtxgenError):
        kept.numpy()
    device.reset()
    assert ptxgen.run(SCALE, 1, 1, [np.ones(1, np.float32), 2.0, 1]).ok
