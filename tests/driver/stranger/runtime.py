#!/usr/bin/env python3
# tests/driver/stranger/runtime.py - the CUDA runtime through ctypes, standard library only
"""usage: runtime.py 12 | 13. A program that knows libcudart.so.12 or .13 and nothing else: does what
nvcc's host code does, with a fat binary of its own. Prints `passed` at the end."""
import array
import ctypes
import struct
import sys
from ctypes import byref, c_char_p, c_int, c_size_t, c_uint, c_void_p

major = int(sys.argv[1])
cuda = ctypes.CDLL(f"libcudart.so.{major}")
cuda.cudaGetErrorName.restype = cuda.cudaGetErrorString.restype = c_char_p

PTX = b"""
.version 7.8
.target sm_75
.address_size 64
.visible .global .align 4 .u32 offset = 5;
.visible .global .attribute(.managed) .align 4 .b32 seen;
.visible .entry shift(.param .u64 values)
{
  .reg .b32 %r<4>;
  .reg .b64 %d<4>;
  ld.param.u64 %d0, [values];
  cvta.to.global.u64 %d1, %d0;
  mov.u32 %r0, %tid.x;
  mul.wide.u32 %d2, %r0, 4;
  add.u64 %d1, %d1, %d2;
  ld.global.u32 %r1, [%d1];
  ld.global.u32 %r2, [offset];
  add.u32 %r1, %r1, %r2;
  st.global.u32 [%d1], %r1;
  atom.global.add.u32 %r3, [seen], 1;
  ret;
}
"""


class Dim3(ctypes.Structure):
    _fields_ = [("x", c_uint), ("y", c_uint), ("z", c_uint)]


def check(condition, reason):
    if not condition:
        sys.exit("FAILED: " + reason)


def call(name, *arguments, expected=0):
    result = getattr(cuda, name)(*arguments)
    check(result == expected, f"{name} gives {cuda.cudaGetErrorName(result)} ({result}), "
          f"expected {expected}")


def fat_binary(text):
    """A container with one uncompressed PTX part, as nvcc --no-compress writes it."""
    padded = text + b"\0" * (8 - len(text) % 8)
    part = struct.pack("<HHIQIIHHIIQQQQ", 1, 0x101, 80, len(padded), 0, 64, 0, 9, 75, 0, 0x11, 0, 0,
                       72).ljust(80, b"\0") + padded
    return struct.pack("<IHHQ", 0xba55ed50, 1, 16, len(part)) + part


# What nvcc's code does before main.
container = ctypes.create_string_buffer(fat_binary(PTX))
wrapper = ctypes.create_string_buffer(struct.pack("<IIQQ", 0x466243b1, 1,
                                                  ctypes.addressof(container), 0))
register = getattr(cuda, "__cudaRegisterFatBinary")
register.restype = c_void_p
handle = c_void_p(register(wrapper))
host_kernel, host_variable = ctypes.create_string_buffer(8), ctypes.create_string_buffer(8)
seen = c_void_p()
register_function = getattr(cuda, "__cudaRegisterFunction")
register_function(handle, host_kernel, host_kernel, b"shift", -1, None, None, None, None, None)
getattr(cuda, "__cudaRegisterVar")(handle, host_variable, b"offset", b"offset", 0, c_size_t(4), 0, 0)
getattr(cuda, "__cudaRegisterManagedVar")(handle, byref(seen), b"seen", b"seen", 0, c_size_t(4), 0, 0)
getattr(cuda, "__cudaRegisterFatBinaryEnd")(handle)
check(getattr(cuda, "__cudaInitModule")(handle) == 1, "__cudaInitModule fails")
check(seen.value is not None, "the managed variable has no address")

version = c_int()
call("cudaRuntimeGetVersion", byref(version))
check(version.value // 1000 == major, f"the version is {version.value}")
memory = c_void_p()
count = 32
numbers = array.array("I", range(count))
data = (c_uint * count).from_buffer(numbers)
call("cudaMalloc", byref(memory), c_size_t(4 * count))
call("cudaMemcpy", memory, data, c_size_t(4 * count), 1)

# shift<<<1, 32>>>(memory), then cudaLaunchKernel.
arguments = (c_void_p * 1)(ctypes.addressof(memory))
push, pop = getattr(cuda, "__cudaPushCallConfiguration"), getattr(cuda, "__cudaPopCallConfiguration")
push(Dim3(1, 1, 1), Dim3(count, 1, 1), c_size_t(0), c_void_p())
grid, block, shared, stream = Dim3(), Dim3(), c_size_t(7), c_void_p(7)
pop(byref(grid), byref(block), byref(shared), byref(stream))
check((grid.x, block.x, shared.value, stream.value) == (1, count, 0, None), "the configuration changes")
kernel = c_void_p()
call("__cudaGetKernel", byref(kernel), host_kernel)
call("__cudaLaunchKernel", kernel, grid, block, arguments, shared, stream)
eight = c_uint(8)
call("cudaMemcpyToSymbol", host_variable, byref(eight), c_size_t(4), c_size_t(0), 1)
call("cudaLaunchKernel", host_kernel, grid, block, arguments, shared, stream)
call("cudaMemcpy", data, memory, c_size_t(4 * count), 2)
check(list(numbers) == [i + 13 for i in range(count)], f"the kernel computes {list(numbers)}")
check(c_uint.from_address(seen.value).value == 64, "the managed variable is not counted")

# Managed memory reports where it was prefetched to (attribute 4); streams have ids.
managed, place = c_void_p(), c_int(7)
call("cudaMallocManaged", byref(managed), c_size_t(64), 1)
call("cudaMemRangeGetAttribute", byref(place), c_size_t(4), 4, managed, c_size_t(64))
check(place.value == -2, f"memory that was never prefetched is at {place.value}")
stream_id, created = ctypes.c_ulonglong(0), c_void_p()
call("cudaStreamCreateWithFlags", byref(created), 1)
call("cudaStreamGetId", created, byref(stream_id))
check(stream_id.value != 0, "the stream has no id")
if major == 13:
    addresses, sizes = (c_void_p * 1)(managed.value), (c_size_t * 1)(64)
    host_location, first = (c_int * 2)(2, 0), (c_size_t * 1)(0)
    call("cudaMemPrefetchBatchAsync", addresses, sizes, c_size_t(1), host_location, first, c_size_t(1),
         ctypes.c_ulonglong(0), created)
    call("cudaMemRangeGetAttribute", byref(place), c_size_t(4), 4, managed, c_size_t(64))
    check(place.value == -1, f"memory prefetched to the host is at {place.value}")
    call("cudaMemDiscardBatchAsync", addresses, sizes, c_size_t(1), ctypes.c_ulonglong(0), created)
call("cudaStreamDestroy", created)
call("cudaFree", managed)

# Errors: kept until they are asked for.
call("cudaLaunchKernel", data, grid, block, arguments, shared, stream, expected=98)
check(cuda.cudaPeekAtLastError() == 98 and cuda.cudaGetLastError() == 98, "no last error")
check(cuda.cudaGetLastError() == 0, "the last error is not reset")
call("cudaLaunchKernel", host_kernel, grid, Dim3(2048, 1, 1), arguments, shared, stream, expected=9)
call("cudaMemcpy", memory, data, c_size_t(4 * count + 4), 1, expected=1)
call("cudaMemcpy", memory, data, c_size_t(4), 2, expected=1)
call("cudaMallocMipmappedArray", byref(c_void_p()), None, c_size_t(4), 0, 0, expected=801)
check(cuda.cudaGetErrorName(c_int(700)) == b"cudaErrorIllegalAddress", "a name is wrong")
check(cuda.cudaGetErrorString(c_int(1)) == b"invalid argument", "the driver's words are not used")
check(cuda.cudaGetErrorString(c_int(98)) == b"invalid device function", "the words are wrong")
properties = ctypes.create_string_buffer(2048)
call("cudaGetDeviceProperties" if major == 13 else "cudaGetDeviceProperties_v2", properties, 0)
print(f"libcudart.so.{major} on", properties.value.decode())
call("cudaFree", memory)
getattr(cuda, "__cudaUnregisterFatBinary")(handle)
call("cudaLaunchKernel", host_kernel, grid, block, arguments, shared, stream, expected=98)
# Adjacent bytes from an array with rows of 10 into one with rows of 7.
channels = (c_int * 5)(8, 0, 0, 0, 1)  # one unsigned of 8 bits
wide, narrow = c_void_p(), c_void_p()
call("cudaMallocArray", byref(wide), channels, c_size_t(10), c_size_t(5), 0)
call("cudaMallocArray", byref(narrow), channels, c_size_t(7), c_size_t(8), 0)
source = bytes(range(50))
call("cudaMemcpyToArray", wide, c_size_t(0), c_size_t(0), source, c_size_t(50), 1)
call("cudaMemcpyToArray", narrow, c_size_t(0), c_size_t(0), bytes(56), c_size_t(56), 1)
call("cudaMemcpyArrayToArray", narrow, c_size_t(5), c_size_t(1), wide, c_size_t(8), c_size_t(0),
     c_size_t(37), 3)
copied = ctypes.create_string_buffer(56)
call("cudaMemcpyFromArray", copied, narrow, c_size_t(0), c_size_t(0), c_size_t(56), 2)
check(copied.raw == bytes(12) + source[8:45] + bytes(7), f"the array has {list(copied.raw)}")
call("cudaMemcpyArrayToArray", narrow, c_size_t(8), c_size_t(0), wide, c_size_t(0), c_size_t(0),
     c_size_t(1), 3, expected=1)
call("cudaFreeArray", wide)
call("cudaFreeArray", narrow)
print("passed")
