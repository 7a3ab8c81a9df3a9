# python/src/ptxgen/_device.py - devices, arrays in their memory, kernels loaded on them
from __future__ import annotations

import atexit
import dataclasses
import math
import os
import threading
import warnings
import weakref
from typing import Any, Mapping, Sequence, Union

import numpy as np

from ._arguments import arguments_of, dim3
from ._findings import (Counters, Finding, FindingError, FindingWarning, read_counters,
                        take_findings)
from ._library import NULL, PtxgenError, check, created, encoded, ffi, lib, struct, text

Dim = Union[int, Sequence[int]]
KINDS = ("cuda", "emulator", "host")


@dataclasses.dataclass(frozen=True)
class DeviceInfo:
    """A device that `Device` can open. Sizes are bytes unless stated otherwise."""

    kind: str  #: "cuda", "emulator" or "host"
    ordinal: int  #: in its driver
    name: str  #: "NVIDIA H200"
    target: str  #: target of generated kernels: "sm_90"
    sm: int  #: 90: compute capability 9.0
    driver_version: int  #: 13000 is 13.0
    newest_ptx: int  #: 10 * major + minor; 0: unknown
    multiprocessors: int
    threads_per_block: int
    threads_per_multiprocessor: int
    block: tuple[int, int, int]  #: maximum threads in x, y, z
    grid: tuple[int, int, int]  #: maximum blocks in x, y, z
    shared_per_block: int
    shared_per_block_opt_in: int
    shared_per_multiprocessor: int
    registers_per_block: int  #: 32-bit registers
    l2_bytes: int
    clock_khz: int
    memory_bytes: int
    cooperative: bool
    clusters: bool


def _info(of: Any) -> DeviceInfo:
    values: dict[str, Any] = {}
    for field in dataclasses.fields(DeviceInfo):
        value = getattr(of, field.name)
        if field.name == "kind":
            value = KINDS[value]
        elif field.name in ("name", "target"):
            value = text(value)
        elif field.name in ("block", "grid"):
            value = (value[0], value[1], value[2])
        elif field.name in ("cooperative", "clusters"):
            value = bool(value)
        values[field.name] = value
    return DeviceInfo(**values)


def devices() -> list[DeviceInfo]:
    """The devices that can be opened, those of the CUDA driver first."""
    count = ffi.new("size_t*")
    check(lib.ptxgen_list_devices(NULL, 0, count))
    infos = ffi.new("ptxgen_device_info[]", max(count[0], 1))
    infos[0].struct_bytes = ffi.sizeof("ptxgen_device_info")
    check(lib.ptxgen_list_devices(infos, count[0], count))
    return [_info(infos[index]) for index in range(min(count[0], len(infos)))]


_open: weakref.WeakSet[Device] = weakref.WeakSet()
# By GPU: its devices share the primary context, and with it faults.
_locks: dict[tuple[bool, int], threading.RLock] = {}
_locks_lock = threading.Lock()


def _gpu_of(info: DeviceInfo) -> tuple[bool, int]:
    """Devices with one context have equal ones."""
    return (info.kind == "cuda", info.ordinal)


class Device:
    """A GPU, or the emulated one. Usable in a `with` statement.

    `name`: "auto" (the first GPU, else the emulator), "cuda:N", "emulator", "emulator:h200", "host";
    None: PTXGEN_DEVICE, else "auto". `settings`: by the names of their environment variables, which
    they override. The library logs nothing unless PTXGEN_LOG is set: findings are objects here, and
    errors are raised.

    Threads: from any thread; calls on one device wait for each other.
    """

    def __init__(self, name: str | None = None, *, settings: Mapping[str, str] | None = None,
                 gates: bool = True, max_registers: int = 0, line_info: bool = False) -> None:
        self._name = name
        self._settings = dict(settings or {})
        self._gates = gates
        self._max_registers = max_registers
        self._line_info = line_info
        self._pending: list[Finding] = []
        self._children: weakref.WeakSet[Owned] = weakref.WeakSet()
        self._views: weakref.WeakSet[Any] = weakref.WeakSet()
        self._open()
        self._gpu = _gpu_of(self.info)
        with _locks_lock:
            self._lock = _locks.setdefault(self._gpu, threading.RLock())
        _open.add(self)

    def _open(self) -> None:
        settings = dict(self._settings)
        if "PTXGEN_LOG" not in os.environ:
            settings.setdefault("PTXGEN_LOG", "off")
        kept = [(encoded(variable), encoded(value)) for variable, value in settings.items()]
        rows = ffi.new("ptxgen_setting[]", [{"variable": a, "value": b} for a, b in kept])
        options = struct("ptxgen_device_options")
        options.settings, options.setting_count = rows, len(kept)
        options.no_gates = not self._gates
        options.max_registers = self._max_registers
        options.line_info = self._line_info
        self._handle = created("device", lib.ptxgen_device_open, encoded(self._name), options)
        info = struct("ptxgen_device_info")
        check(lib.ptxgen_device_get_info(self._handle, info), self._handle)
        self.info: DeviceInfo = _info(info)
        self._stream = created("stream", lib.ptxgen_stream_create, self._handle,
                               lib.PTXGEN_STREAM_NON_BLOCKING, 0, first=self._handle)

    def __repr__(self) -> str:
        state = "closed" if self._handle is None else self.info.target
        return f"<ptxgen.Device {self.info.kind} '{self.info.name}' {state}>"

    def __enter__(self) -> Device:
        return self

    def __exit__(self, kind: Any, value: Any, trace: Any) -> None:
        try:
            if kind is None:
                self.synchronize()
        finally:
            self.close()

    def __del__(self) -> None:
        try:
            self.close()
        except Exception:  # of a device that was not opened, or at the end of the interpreter
            pass

    @property
    def handle(self) -> Any:
        """The ptxgen_device."""
        if self._handle is None:
            raise PtxgenError(f"the device '{self.info.name}' was closed", code="closed")
        return self._handle

    def close(self) -> None:
        """Releases the device; arrays and kernels on it stay usable until they are released too.
        Warns of errors that no call has raised."""
        with self._lock:
            if self._handle is None:
                return
            failure: PtxgenError | None = None
            try:
                self._wait()
            except PtxgenError as error:
                failure = error
            self._collect()
            errors = [finding for finding in self._pending if finding.severity == "error"]
            if errors:
                warnings.warn("\n".join(finding.text for finding in errors), FindingWarning,
                              stacklevel=2)
            elif failure is not None and not self.poisoned:
                warnings.warn(f"closing {self!r}: {failure}", FindingWarning, stacklevel=2)
            self._pending = []
            self._release()

    def _release(self) -> None:
        ffi.release(self._stream)
        ffi.release(self._handle)
        self._stream = self._handle = None

    def reset(self) -> None:
        """Opens the device again after a fault, and all other devices of this process on the same
        GPU, which the fault has stopped too. Arrays and kernels made from them before cannot be used
        any more. Refused while NumPy or another library views memory of the device."""
        with self._lock:
            of_gpu = [each for each in _open if each._gpu == self._gpu]
            views = sum(len(each._views) for each in of_gpu)
            if views:
                raise PtxgenError(f"{views} {'array views' if views == 1 else 'arrays view'} memory of "
                                  f"'{self.info.name}', which a reset releases; delete them before",
                                  code="in-use")
            # Whatever is released after the reset would be released from the new context.
            for each in of_gpu:
                for child in list(each._children):
                    child.release()
            opened = [each for each in of_gpu if each._handle is not None]
            for each in opened:
                each._release()
            check(lib.ptxgen_device_reset(encoded(self._name), NULL))
            for each in opened:
                each._open()

    def _reset_if_unused(self) -> None:
        """After a fault, unless something would be lost by it."""
        if not any(each._children for each in _open if each._gpu == self._gpu):
            self.reset()

    @property
    def poisoned(self) -> bool:
        """Whether a fault in a kernel has made the device unusable until `reset`."""
        place = ffi.new("int32_t*")
        check(lib.ptxgen_device_poisoned(self.handle, place), self.handle)
        return bool(place[0])

    # ---- memory ----

    def empty(self, shape: Dim, dtype: Any = np.float32) -> Array:
        """Device memory that is not initialised: the emulator reports kernels that read it."""
        return Array(self, shape, dtype)

    def array(self, values: Any, dtype: Any = None) -> Array:
        """A copy of a NumPy array, of what NumPy makes one of, or of what exports DLPack or
        `__cuda_array_interface__`."""
        if not isinstance(values, np.ndarray) and hasattr(values, "__cuda_array_interface__"):
            return self._copy_of(values)
        if not isinstance(values, np.ndarray) and hasattr(values, "__dlpack__"):
            values = np.from_dlpack(values)
        host = np.asarray(values, dtype=dtype, order="C")
        made = Array(self, host.shape, host.dtype)
        made.write(host)
        return made

    def zeros(self, shape: Dim, dtype: Any = np.float32) -> Array:
        """Device memory filled with zeros."""
        made = Array(self, shape, dtype)
        if made.nbytes:
            check(lib.ptxgen_buffer_fill(made.handle, 0, 0, 1, made.nbytes, NULL), made.handle)
        return made

    def _copy_of(self, other: Any) -> Array:
        if not isinstance(other, Array):
            raise PtxgenError(
                f"array of {type(other).__name__}: memory of another library is passed to kernels as it "
                "is, by its address; copy it to the host to make an array of it", code="foreign-memory")
        other.address_on(self)  # raises for another GPU
        with self._lock:
            other._finish()
            copy = Array(self, other.shape, other.dtype)
            if copy.nbytes:
                check(lib.ptxgen_buffer_copy(copy.handle, 0, other.handle, 0, copy.nbytes, NULL),
                      copy.handle)
        return copy

    def memory(self) -> tuple[int, int]:
        """Free bytes and all bytes of the device's memory."""
        sizes = ffi.new("uint64_t[2]")
        check(lib.ptxgen_device_memory(self.handle, sizes, sizes + 1), self.handle)
        return sizes[0], sizes[1]

    # ---- kernels ----

    def load(self, ptx: str | bytes, kernel: str | None = None, *, file: str | None = None) -> Function:
        """Parses, verifies and loads PTX; `kernel` may be None if it has one. `file` is its name in
        messages."""
        return Function(self, ptx, kernel, file)

    def synchronize(self) -> None:
        """Waits for all work. Raises `FindingError` for findings of severity error that no call has
        raised yet, `PtxgenError` for other failures."""
        with self._lock:
            failure: PtxgenError | None = None
            try:
                self._wait()
            except PtxgenError as error:
                failure = error
            self._collect()
            found, self._pending = self._pending, []
            if any(finding.severity == "error" for finding in found):
                raise FindingError(found) from failure
            self._pending = found
            if failure is not None:
                raise failure

    def _wait(self) -> None:
        check(lib.ptxgen_stream_synchronize(self._stream), self._stream)
        check(lib.ptxgen_device_synchronize(self.handle), self.handle)

    def _collect(self) -> None:
        """Takes the findings of launches that have ended."""
        self._pending += take_findings(self.handle)

    def take_findings(self) -> list[Finding]:
        """Waits for all work and returns the findings that no call has raised or returned yet."""
        with self._lock:
            try:
                self._wait()
            except PtxgenError as error:
                self._collect()
                if not any(finding.fault for finding in self._pending):
                    raise error
            self._collect()
            found, self._pending = self._pending, []
            return found

    def counters(self) -> Counters:
        """Sums over the launches since the device was opened; waits for them."""
        with self._lock:
            self._wait()
            return read_counters(self.handle)


class Owned:
    """What is made from a device and has a handle of the library."""

    def __init__(self, device: Device, handle: Any) -> None:
        self.device = device
        self._handle = handle
        device._children.add(self)

    @property
    def handle(self) -> Any:
        """The handle of the C API."""
        if self._handle is None:
            raise PtxgenError(f"this {type(self).__name__.lower()} was made before the device was reset",
                              code="reset")
        return self._handle

    def release(self) -> None:
        """Frees it now and not with the object, which cannot be used afterwards."""
        if self._handle is not None:
            ffi.release(self._handle)
            self._handle = None


class Array(Owned):
    """An array in a device's memory, in C order."""

    def __init__(self, device: Device, shape: Dim, dtype: Any) -> None:
        self.shape: tuple[int, ...] = ((int(shape),) if isinstance(shape, (int, np.integer))
                                       else tuple(int(extent) for extent in shape))
        self.dtype = np.dtype(dtype)
        if self.dtype.hasobject:
            raise TypeError(f"elements of {self.dtype} are Python objects; a device has numbers")
        self.nbytes = math.prod(self.shape) * self.dtype.itemsize
        super().__init__(device, created("buffer", lib.ptxgen_buffer_create, device.handle,
                                         self.nbytes, first=device.handle))

    def address_on(self, device: Device) -> int:
        """The address for a kernel on a device, which must be the array's own or the same GPU."""
        own, other = self.device.info, device.info
        if _gpu_of(own) != _gpu_of(other):
            raise PtxgenError(f"an array on '{own.name}' ({own.kind}) cannot be used on '{other.name}' "
                              f"({other.kind})", code="wrong-device")
        return self.address

    @property
    def address(self) -> int:
        """The address in device memory."""
        return int(lib.ptxgen_buffer_span(self.handle).address)

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def ndim(self) -> int:
        return len(self.shape)

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of an array without dimensions")
        return self.shape[0]

    def __repr__(self) -> str:
        return f"<ptxgen.Array {self.shape} {self.dtype} on {self.device!r}>"

    def write(self, values: Any) -> None:
        """Copies from the host; the shape must be the same, elements are converted as by
        `numpy.asarray`."""
        host = np.asarray(values, dtype=self.dtype, order="C")
        if host.shape != self.shape:
            raise ValueError(f"an array of shape {host.shape} does not fit into one of {self.shape}")
        with self.device._lock:
            self._finish()
            if host.nbytes:
                check(lib.ptxgen_buffer_write(self.handle, 0, ffi.from_buffer(_bytes_of(host)),
                                              host.nbytes, NULL), self.handle)

    def _finish(self) -> None:
        """Waits for launches that use the array; those of a closed device have ended."""
        if self.device._handle is not None:
            self.device.synchronize()

    def numpy(self) -> np.ndarray:
        """A copy on the host, after all work of the device; raises what `Device.synchronize` does."""
        host = np.empty(self.shape, self.dtype)
        with self.device._lock:
            self._finish()
            if host.nbytes:
                to = ffi.from_buffer(_bytes_of(host), require_writable=True)
                check(lib.ptxgen_buffer_read(self.handle, 0, to, host.nbytes, NULL), self.handle)
        return host

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        if copy is False:
            raise ValueError("an array in device memory is copied to the host; use host() for a view")
        host = self.numpy()
        return host if dtype is None else host.astype(dtype, copy=False)

    def host(self) -> np.ndarray:
        """The memory of an emulated device itself, without a copy. Waits for all work. The array
        counts as initialised from then on, because the emulator does not see writes of the host.
        BufferError on a GPU."""
        with self.device._lock:
            self._finish()
            place = lib.ptxgen_buffer_host(self.handle)
        if place == NULL:
            if self.nbytes == 0:
                return np.empty(self.shape, self.dtype)
            raise BufferError(f"the memory of '{self.device.info.name}' is not the host's: use "
                              "numpy() for a copy, or __cuda_array_interface__")
        handle = self.handle
        # The view keeps the buffer: its base is this pointer, whose destructor refers to the handle.
        owned = ffi.gc(ffi.cast("char*", place), lambda _: handle and None)
        self.device._views.add(owned)
        view = np.frombuffer(ffi.buffer(owned, self.nbytes), dtype=self.dtype)
        return view.reshape(self.shape)

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return {"shape": self.shape, "typestr": self.dtype.str, "version": 3, "strides": None,
                "data": (self.address if self.nbytes else 0, False), "stream": None}

    def __dlpack__(self, **options: Any) -> Any:
        given = {name: value for name, value in options.items() if value is not None}
        return self.host().__dlpack__(**given)

    def __dlpack_device__(self) -> tuple[int, int]:
        cpu, cuda = 1, 2  # kDLCPU, kDLCUDA
        return (cuda, self.device.info.ordinal) if self.device.info.kind == "cuda" else (cpu, 0)


def _bytes_of(host: np.ndarray) -> np.ndarray:
    """The bytes of an array in C order, for types that have no buffer format too."""
    return host.reshape(-1).view(np.uint8)


class Foreign:
    """Memory of another library that exports `__cuda_array_interface__`."""

    def __init__(self, owner: Any) -> None:
        interface = owner.__cuda_array_interface__
        self.owner = owner
        self.shape: tuple[int, ...] = tuple(interface["shape"])
        self.dtype = np.dtype(interface["typestr"])
        self.address: int = interface["data"][0] or 0
        self.nbytes = math.prod(self.shape) * self.dtype.itemsize
        strides = interface.get("strides")
        if strides is not None and tuple(strides) != _strides_of(self.shape, self.dtype.itemsize):
            raise ValueError(f"an array of {type(owner).__name__} with strides {tuple(strides)} is not "
                             "in C order; make a contiguous copy of it")


def _strides_of(shape: Sequence[int], itemsize: int) -> tuple[int, ...]:
    strides = [itemsize]
    for extent in reversed(shape[1:]):
        strides.insert(0, strides[0] * extent)
    return tuple(strides[len(strides) - len(shape):])


@dataclasses.dataclass(frozen=True)
class Parameter:
    """A declared parameter of a kernel."""

    name: str
    type: str  #: "u64", "f32", "b16"; "" for a structure
    bytes: int
    offset: int  #: in the argument block
    pointer: bool  #: declared as `.ptr`


def _uncached(device: Device, program: Any, kernel: str | None) -> Any:
    """The function of a module of its own: one from the cache has the file name of the first load."""
    if kernel is None and lib.ptxgen_program_entry_count(program) == 1:
        kernel = text(lib.ptxgen_program_entry(program, 0))
    if kernel is None:  # the call that refuses an ambiguous name has the message
        return created("function", lib.ptxgen_function_load, device.handle, program, NULL,
                       first=device.handle)
    module = created("module", lib.ptxgen_module_load, device.handle, program, first=device.handle)
    return created("function", lib.ptxgen_module_function, module, encoded(kernel), first=module)


class Function(Owned):
    """A kernel that is loaded on a device."""

    def __init__(self, device: Device, ptx: str | bytes, kernel: str | None,
                 file: str | None) -> None:
        source = ptx.encode() if isinstance(ptx, str) else ptx
        program = created("program", lib.ptxgen_program_parse, source, len(source), encoded(file))
        super().__init__(device, created("function", lib.ptxgen_function_load, device.handle, program,
                                         encoded(kernel), first=device.handle) if file is None
                         else _uncached(device, program, kernel))
        info = struct("ptxgen_function_info")
        check(lib.ptxgen_function_get_info(self.handle, info), self.handle)
        self.name = text(info.name)
        self.registers: int = info.registers  #: of a thread; on the emulator the declared ones
        self.static_shared: int = info.static_shared  #: bytes of a block
        self.max_threads: int = info.max_threads  #: of a block
        self.parameters = tuple(self._parameter(index) for index in range(info.argument_count))

    def _parameter(self, index: int) -> Parameter:
        one = struct("ptxgen_argument_info")
        check(lib.ptxgen_function_get_argument(self.handle, index, one), self.handle)
        return Parameter(text(one.name), text(one.type), one.bytes, one.offset, bool(one.pointer))

    def __repr__(self) -> str:
        declared = ", ".join(f"{each.name}: {each.type or 'structure'}" for each in self.parameters)
        return f"<ptxgen.Function {self.name}({declared})>"

    def __call__(self, grid: Dim, block: Dim, *arguments: Any, shared_bytes: int = 0,
                 cluster: Dim = 1, cooperative: bool = False) -> None:
        """Queues a launch. Arguments: arrays of the device, what exports `__cuda_array_interface__`,
        numbers (typed ones of NumPy, or those of Python for typed parameters), bytes for a structure,
        None for a null pointer. `Device.synchronize` raises what the launch finds."""
        with self.device._lock:
            values, keep = arguments_of(self, arguments)
            geometry = struct("ptxgen_geometry")
            geometry.grid, geometry.block = dim3("grid", grid), dim3("block", block)
            geometry.cluster = dim3("cluster", cluster)
            geometry.dynamic_shared_bytes = shared_bytes
            geometry.cooperative = cooperative
            check(lib.ptxgen_function_launch(self.handle, geometry, values, len(keep),
                                             self.device._stream), self.handle)


_default: Device | None = None
_default_lock = threading.Lock()


def default_device() -> Device:
    """The device of calls that name none: opened at its first use, by PTXGEN_DEVICE or "auto"."""
    global _default
    with _default_lock:
        if _default is None or _default._handle is None:
            _default = Device()
        return _default


def collect_all() -> None:
    """Waits for every open device and takes its findings into the history, for a test runner: its
    errors are not raised again. The default device works again after a fault."""
    for device in list(_open):
        with device._lock:
            if device._handle is None:
                continue
            try:
                device._wait()
            except PtxgenError:
                pass  # a fault: its finding is taken next
            device._collect()
            device._pending = [each for each in device._pending if each.severity != "error"]
            if device is _default and device.poisoned:
                device._reset_if_unused()


@atexit.register
def _close_default() -> None:
    if _default is not None:
        _default.close()
