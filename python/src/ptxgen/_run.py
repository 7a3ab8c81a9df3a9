# python/src/ptxgen/_run.py - one launch on arrays of the host
from __future__ import annotations

import dataclasses
from typing import Any, Callable, Sequence

import numpy as np

from . import _device
from ._device import Array, Device, default_device
from ._findings import Counters, Finding, FindingError, read_counters
from ._library import PtxgenError

RAISE, RETURN = "raise", "return"


@dataclasses.dataclass(frozen=True)
class RunResult:
    """A launch that has ended."""

    findings: list[Finding]  #: of all severities, in the order in which they were made
    counters: Counters  #: of this launch; zeros on a GPU
    completed: bool  #: False: a fault stopped the kernel, and arrays were not copied back
    implementation: str = ""  #: of a kernel of the library: "direct", "coalesced", "cublas", ...
    reason: str = ""  #: why it was chosen

    @property
    def errors(self) -> list[Finding]:
        """Findings of severity error."""
        return [finding for finding in self.findings if finding.severity == "error"]

    @property
    def ok(self) -> bool:
        """No finding of severity error."""
        return not self.errors


class Out:
    """An array that the kernel only writes: its memory is not initialised before the launch, so that
    a read of it is a finding."""

    def __init__(self, array: np.ndarray) -> None:
        self.array = array


class In:
    """An array that is not copied back."""

    def __init__(self, array: Any) -> None:
        self.array = array


class Transfers:
    """Arrays of the host in device memory during one launch. Equal arrays share it."""

    def __init__(self, device: Device) -> None:
        self._device = device
        self._made: dict[tuple[int, int], tuple[Array, np.ndarray]] = {}
        self._back: dict[tuple[int, int], tuple[Array, np.ndarray]] = {}

    def argument(self, value: Any) -> Any:
        """`value` with an array of the host replaced by one of the device."""
        wrapped = value.array if isinstance(value, (In, Out)) else value
        if isinstance(wrapped, Array) or isinstance(wrapped, np.generic):
            return wrapped
        if not isinstance(wrapped, np.ndarray):
            if hasattr(wrapped, "__cuda_array_interface__") or not hasattr(wrapped, "__dlpack__"):
                return wrapped
            wrapped = np.from_dlpack(wrapped)
        return self._moved(wrapped, copy_in=not isinstance(value, Out),
                           copy_out=not isinstance(value, In))

    def _moved(self, host: np.ndarray, copy_in: bool, copy_out: bool) -> Array:
        if not host.flags.c_contiguous:
            raise ValueError(f"an array of shape {host.shape} and strides {host.strides} is not in C "
                             "order; pass numpy.ascontiguousarray of it")
        if not copy_in and not host.flags.writeable:
            raise ValueError("an array for output is read-only")
        key = (host.ctypes.data, host.nbytes)
        if key not in self._made:
            made = self._device.empty(host.shape, host.dtype)
            if copy_in:
                made.write(host)
            self._made[key] = (made, host)
        made = self._made[key][0]
        if copy_out and host.flags.writeable:
            self._back[key] = (made, host)
        return made

    def release(self) -> None:
        """Before the device is reset."""
        for made, _ in self._made.values():
            made.release()

    def copy_back(self) -> None:
        for made, host in self._back.values():
            if host.nbytes:
                host[...] = made.numpy().view(host.dtype).reshape(host.shape)


def _one_launch(device: Device, launch: Callable[[Transfers], tuple[str, str]]
                ) -> tuple[RunResult, PtxgenError | None]:
    before = read_counters(device.handle)
    transfers = Transfers(device)
    implementation, reason = launch(transfers)
    failure: PtxgenError | None = None
    try:
        device._wait()
    except PtxgenError as error:
        failure = error
    device._collect()
    found, device._pending = device._pending, []
    counters = read_counters(device.handle) - before
    faulted = any(finding.fault for finding in found)
    if failure is not None and not faulted:
        raise failure
    if not faulted:
        transfers.copy_back()
    elif device is _device._default:
        transfers.release()
        device._reset_if_unused()
    return RunResult(found, counters, not faulted, implementation, reason), failure


def observed(device: Device, findings: str, launch: Callable[[Transfers], tuple[str, str]]) -> RunResult:
    """Runs `launch`, waits for it, copies arrays back and makes its result. The default device is
    opened again after a fault, unless arrays or kernels on it are still used."""
    if findings not in (RAISE, RETURN):
        raise ValueError(f"findings is {findings!r}; it is 'raise' or 'return'")
    with device._lock:
        earlier = device.take_findings()
        try:
            result, failure = _one_launch(device, launch)
        finally:
            device._pending = earlier + device._pending
    if findings == RAISE and result.errors:
        raise FindingError(result.findings, result) from failure
    return result


def run(ptx: str | bytes, grid: Any, block: Any, args: Sequence[Any] = (), *,
        kernel: str | None = None, shared_bytes: int = 0, cluster: Any = 1,
        cooperative: bool = False, device: Device | None = None, findings: str = RAISE,
        file: str | None = None) -> RunResult:
    """Runs a kernel of PTX text once and waits for it.

    `grid` and `block`: a number or up to three. `args`, in the order of the parameters: NumPy arrays
    and what exports DLPack on the CPU are copied in, and back after the launch unless they are
    read-only (`In` and `Out` copy one way only); arrays of the device and what exports
    `__cuda_array_interface__` are passed as they are; numbers as `Function` takes them.

    `findings`: "raise" raises `FindingError` if the emulator finds an error, after arrays were copied
    back; "return" leaves it to `RunResult.findings`. `device`: None for the default one.

    Raises `PtxgenError` for PTX or arguments that are refused.
    """
    on = device or default_device()

    def launch(transfers: Transfers) -> tuple[str, str]:
        function = on.load(ptx, kernel, file=file)
        function(grid, block, *(transfers.argument(value) for value in args),
                 shared_bytes=shared_bytes, cluster=cluster, cooperative=cooperative)
        return "", ""

    return observed(on, findings, launch)
