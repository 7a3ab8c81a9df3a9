#!/usr/bin/env python3
# tests/driver/stranger/strict.py - a kernel that reads uninitialised shared memory, through ctypes
"""Prints what the launch, two synchronising calls and an allocation return."""
import ctypes
from ctypes import byref, c_int, c_void_p

cuda = ctypes.CDLL("libcuda.so.1")
PTX = b"""
.version 7.8
.target sm_75
.address_size 64
.visible .entry reads()
{
  .reg .b32 %r<3>;
  .reg .pred %p;
  .shared .align 4 .b32 tile[32];
  mov.u32 %r1, tile;
  ld.shared.b32 %r2, [%r1+4];
  setp.eq.u32 %p, %r2, 0;
  @%p st.shared.b32 [%r1+8], %r2;
  ret;
}
"""
device, context, module, function = c_int(), c_void_p(), c_void_p(), c_void_p()
assert cuda.cuInit(0) == 0
assert cuda.cuDeviceGet(byref(device), 0) == 0
assert cuda.cuDevicePrimaryCtxRetain(byref(context), device) == 0
assert cuda.cuCtxPushCurrent_v2(context) == 0
assert cuda.cuModuleLoadData(byref(module), PTX) == 0
assert cuda.cuModuleGetFunction(byref(function), module, b"reads") == 0
launched = cuda.cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, None, None, None)
waited = [cuda.cuCtxSynchronize(), cuda.cuCtxSynchronize()]
memory = ctypes.c_uint64()
print(launched, *waited, cuda.cuMemAlloc_v2(byref(memory), ctypes.c_size_t(4)))
