# tests/python/mock_cuda.py - the driver functions that tinygrad calls, on ptx_run
"""Device memory is memory of this process; a launch is a call of ptx_run."""
import ctypes
import itertools
import os
import time

from tinygrad.runtime.autogen.cuda import *  # noqa: F401,F403 - types and constants

library = ctypes.CDLL(os.environ["PTXGEN_C_LIBRARY"])
library.ptx_run.restype = None
launches = 0
_numbers = itertools.count(1)
_blocks, _modules, _functions, _events = {}, {}, {}, {}


def _put(place, value):
    place._obj.value = value
    return 0


def _address(pointer):
    return pointer if isinstance(pointer, int) else pointer.value


def _nothing(*_):
    return 0


cuInit = cuCtxSetCurrent = cuCtxSynchronize = cuFuncSetAttribute = cuModuleUnload = _nothing
cuEventSynchronize = cuEventDestroy_v2 = cuStreamWaitEvent = _nothing


def cuDeviceGetCount(count):
    return _put(count, 1)


def cuDeviceGet(device, ordinal):
    return _put(device, ordinal)


def cuCtxCreate_v2(context, _flags, _device):
    return _put(context, next(_numbers))


def cuDeviceComputeCapability(major, minor, _device):
    _put(major, 8)
    return _put(minor, 0)


def cuMemAlloc_v2(pointer, size):
    block = ctypes.create_string_buffer(max(size, 1))
    _blocks[ctypes.addressof(block)] = block
    return _put(pointer, ctypes.addressof(block))


def cuMemHostAlloc(pointer, size, _flags):
    return cuMemAlloc_v2(pointer, size)


def cuMemFree_v2(pointer):
    del _blocks[_address(pointer)]
    return 0


cuMemFreeHost = cuMemFree_v2


def cuMemcpyHtoDAsync_v2(to, source, size, _stream):
    ctypes.memmove(_address(to), source, size)
    return 0


def cuMemcpyDtoH_v2(to, source, size):
    ctypes.memmove(to, _address(source), size)
    return 0


def cuModuleLoadData(module, image):
    number = next(_numbers)
    _modules[number] = bytes(image)
    return _put(module, number)


def cuModuleGetFunction(function, module, _name):
    number = next(_numbers)
    _functions[number] = _modules[module.value]
    return _put(function, number)


def cuLaunchKernel(function, gx, gy, gz, lx, ly, lz, shared, _stream, _parameters, arguments):
    global launches
    launches += 1
    names = [field[0] for field in arguments._real_fields_]
    values = [ctypes.cast(getattr(arguments, name), ctypes.c_void_p) for name in names]
    library.ptx_run(_functions[function.value], len(values),
                    (ctypes.c_void_p * len(values))(*values), lx, ly, lz, gx, gy, gz, shared)
    return 0


def cuEventCreate(event, _flags):
    return _put(event, next(_numbers))


def cuEventRecord(event, _stream):
    _events[event.value] = time.perf_counter()
    return 0


def cuEventElapsedTime(milliseconds, first, last):
    return _put(milliseconds, (_events[last.value] - _events[first.value]) * 1e3)
