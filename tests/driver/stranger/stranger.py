#!/usr/bin/env python3
# tests/driver/stranger/stranger.py - the Driver API through ctypes, standard library only
"""A program that knows libcuda.so.1 and nothing else. Prints `passed` at the end."""
import array
import ctypes
import sys
from ctypes import POINTER, byref, c_char_p, c_float, c_int, c_size_t, c_uint, c_uint64, c_void_p

cuda = ctypes.CDLL("libcuda.so.1")

PTX = b"""
.version 7.8
.target sm_75
.address_size 64
.visible .entry square(.param .u64 values, .param .u32 count)
{
  .reg .pred %p;
  .reg .b32 %r<6>;
  .reg .b64 %d<4>;
  mov.u32 %r0, %ctaid.x;
  mov.u32 %r1, %ntid.x;
  mov.u32 %r2, %tid.x;
  mad.lo.u32 %r3, %r0, %r1, %r2;
  ld.param.u32 %r4, [count];
  setp.ge.u32 %p, %r3, %r4;
  @%p bra END;
  ld.param.u64 %d0, [values];
  cvta.to.global.u64 %d1, %d0;
  mul.wide.u32 %d2, %r3, 4;
  add.u64 %d1, %d1, %d2;
  ld.global.u32 %r5, [%d1];
  mul.lo.u32 %r5, %r5, %r5;
  st.global.u32 [%d1], %r5;
END:
  ret;
}
"""


def call(name, *arguments, expected=0):
    result = getattr(cuda, name)(*arguments)
    if result != expected:
        text = c_char_p()
        cuda.cuGetErrorName(result, byref(text))
        sys.exit(f"FAILED: {name} gives {text.value} ({result}), expected {expected}")


call("cuInit", 0)
device, context, module, function = c_int(), c_void_p(), c_void_p(), c_void_p()
call("cuDeviceGet", byref(device), 0)
name = ctypes.create_string_buffer(100)
call("cuDeviceGetName", name, 100, device)
print("device 0:", name.value.decode())
call("cuDevicePrimaryCtxRetain", byref(context), device)
call("cuCtxPushCurrent_v2", context)

# CU_JIT_ERROR_LOG_BUFFER and its size: what is wrong with PTX is said there.
log = ctypes.create_string_buffer(4096)
options = (c_int * 2)(5, 6)
values = (c_void_p * 2)(ctypes.addressof(log), 4096)
call("cuModuleLoadDataEx", byref(module), PTX.replace(b"mul.lo.u32", b"mul.low.u32"), 2, options,
     values, expected=218)
if b"22" not in log.value:
    sys.exit(f"FAILED: the log does not name the line: {log.value}")
call("cuModuleLoadDataEx", byref(module), PTX, 0, None, None)
call("cuModuleGetFunction", byref(function), module, b"square")
call("cuModuleGetFunction", byref(c_void_p()), module, b"cube", expected=500)

count = 1000
numbers = array.array("I", range(count))
size, nowhere = c_uint(count), c_uint64(16)
memory, stream, start, stop = c_uint64(), c_void_p(), c_void_p(), c_void_p()
call("cuMemAlloc_v2", byref(memory), c_size_t(4 * count))
call("cuStreamCreate", byref(stream), 1)
call("cuEventCreate", byref(start), 0)
call("cuEventCreate", byref(stop), 0)
call("cuMemcpyHtoD_v2", memory, (c_uint * count).from_buffer(numbers), c_size_t(4 * count))
arguments = (c_void_p * 2)(ctypes.addressof(memory), ctypes.addressof(size))
call("cuEventRecord", start, stream)
for _ in range(2):
    call("cuLaunchKernel", function, 8, 1, 1, 128, 1, 1, 0, stream, arguments, None)
call("cuEventRecord", stop, stream)
call("cuStreamSynchronize", stream)
milliseconds = c_float(-1)
call("cuEventElapsedTime", byref(milliseconds), start, stop)
call("cuMemcpyDtoH_v2", (c_uint * count).from_buffer(numbers), memory, c_size_t(4 * count))
if list(numbers) != [i ** 4 % 2 ** 32 for i in range(count)] or milliseconds.value <= 0:
    sys.exit("FAILED: wrong numbers")

# CU_LOGS: what the driver says about a fault. The callback is called in any thread.
said = []
Callback = ctypes.CFUNCTYPE(None, c_void_p, c_int, c_void_p, c_size_t)
callback = Callback(lambda user, level, text, length: said.append(ctypes.string_at(text, length)))
cuda.cuLogsRegisterCallback.argtypes = [Callback, c_void_p, POINTER(c_void_p)]
handle = c_void_p()
call("cuLogsRegisterCallback", callback, None, byref(handle))
arguments = (c_void_p * 2)(ctypes.addressof(nowhere), ctypes.addressof(size))
call("cuLaunchKernel", function, 1, 1, 1, 32, 1, 1, 0, stream, arguments, None)
call("cuStreamSynchronize", stream, expected=700)
call("cuMemFree_v2", memory, expected=700)
call("cuLogsUnregisterCallback", handle)
if not any(b"square" in text for text in said):
    sys.exit(f"FAILED: the log does not tell which kernel faulted: {said}")
call("cuDevicePrimaryCtxRelease_v2", device)
print("passed")
