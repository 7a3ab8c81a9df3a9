#!/usr/bin/env python3
# tests/driver/stranger/nvjitlink.py - links with nvJitLink and runs the result
"""usage: nvjitlink.py LIBRARY VERSION. Prints the library's version and, unless its minor version is 99,
what its functions return. VERSION: of the names that nvJitLink.h gives, such as 12_4."""
import ctypes
import sys

CALLER = b""".version 7.0
.target sm_80
.address_size 64
.extern .func (.param .b32 r) twice (.param .b32 a);
.visible .entry put(.param .u64 p) {
  .reg .b64 %rd<3>; .reg .b32 %r<3>;
  ld.param.u64 %rd1, [p];
  cvta.to.global.u64 %rd2, %rd1;
  { .param .b32 a; .param .b32 r;
    st.param.b32 [a], 21;
    call.uni (r), twice, (a);
    ld.param.b32 %r1, [r]; }
  st.global.u32 [%rd2], %r1;
  ret; }
"""
CALLED = b""".version 7.0
.target sm_80
.address_size 64
.visible .func (.param .b32 r) twice (.param .b32 a) {
  .reg .b32 %r<3>;
  ld.param.b32 %r1, [a];
  add.u32 %r2, %r1, %r1;
  st.param.b32 [r], %r2;
  ret; }
"""
PTX, LTO_IR, ANY = 2, 3, 10
library = ctypes.CDLL(sys.argv[1])
cuda = ctypes.CDLL("libcuda.so.1")


def created(*options):
    link = ctypes.c_void_p()
    texts = (ctypes.c_char_p * len(options))(*map(str.encode, options))
    result = getattr(library, "__nvJitLinkCreate_" + sys.argv[2])(ctypes.byref(link), len(options), texts)
    return result, link


def add(link, kind, data, name):
    return library.nvJitLinkAddData(link, kind, data, ctypes.c_size_t(len(data)), name)


def log_of(link):
    size = ctypes.c_size_t()
    assert library.nvJitLinkGetErrorLogSize(link, ctypes.byref(size)) == 0
    text = ctypes.create_string_buffer(size.value + 1)
    assert library.nvJitLinkGetErrorLog(link, text) == 0
    return text.value.decode()


def lto():
    """A kernel in PTX, which calls a function in LTO IR."""
    result, link = created("-arch=sm_90", "-O3", "-lto")
    assert result == 0 and add(link, PTX, CALLER, b"caller") == 0
    result = add(link, ANY, b"\xedCN\x7f of twice", b"twice.lto")
    if result != 0:
        print("LTO IR:", result, log_of(link).splitlines()[0])
    else:
        print("complete:", library.nvJitLinkComplete(link), "LTO IR runs:", run(linked(link)))
    assert library.nvJitLinkDestroy(ctypes.byref(link)) == 0
    result, link = created("-arch=sm_90", "-lto", "-ptx")
    size = ctypes.c_size_t()
    print("PTX:", library.nvJitLinkComplete(link), library.nvJitLinkGetLinkedPtxSize(link, ctypes.byref(size)))
    if add(link, LTO_IR, b"\xedCN\x7f of twice", b"twice.lto") == 0:
        assert library.nvJitLinkComplete(link) == 0
        assert library.nvJitLinkGetLinkedPtxSize(link, ctypes.byref(size)) == 0
        text = ctypes.create_string_buffer(size.value)
        assert library.nvJitLinkGetLinkedPtx(link, text) == 0
        print(text.value.decode().splitlines()[0])
    assert library.nvJitLinkDestroy(ctypes.byref(link)) == 0


def linked(link):
    size = ctypes.c_size_t()
    assert library.nvJitLinkGetLinkedCubinSize(link, ctypes.byref(size)) == 0
    image = ctypes.create_string_buffer(size.value)
    assert library.nvJitLinkGetLinkedCubin(link, image) == 0
    return image


def run(image):
    """The value that the kernel stores."""
    module, function, memory = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_uint64()
    context, value = ctypes.c_void_p(), ctypes.c_uint32()
    assert cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0
    assert cuda.cuCtxSetCurrent(context) == 0
    assert cuda.cuModuleLoadData(ctypes.byref(module), image) == 0
    assert cuda.cuModuleGetFunction(ctypes.byref(function), module, b"put") == 0
    assert cuda.cuMemAlloc_v2(ctypes.byref(memory), ctypes.c_size_t(4)) == 0
    arguments = (ctypes.c_void_p * 1)(ctypes.cast(ctypes.byref(memory), ctypes.c_void_p))
    assert cuda.cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, None, arguments, None) == 0
    assert cuda.cuMemcpyDtoH_v2(ctypes.byref(value), memory, ctypes.c_size_t(4)) == 0
    return value.value


major, minor = ctypes.c_uint(), ctypes.c_uint()
assert library.nvJitLinkVersion(ctypes.byref(major), ctypes.byref(minor)) == 0
print(major.value, minor.value)
if minor.value == 99:  # stands for NVIDIA's
    sys.exit()

for options in ((), ("-arch=sm_90", "-fast"), ("-arch=90",), ("-arch=sm_90", "-ptx"), (None,)):
    print(created(*options)[0] if None not in options else
          library.nvJitLinkCreate(ctypes.byref(ctypes.c_void_p()), 1, None))
result, link = created("-arch=sm_90a", "-O3", "-maxrregcount=32")
assert result == 0
assert library.nvJitLinkGetLinkedCubinSize(link, ctypes.byref(ctypes.c_size_t())) == 3  # not yet
assert add(link, ANY, CALLER, b"caller") == 0
print(add(link, LTO_IR, b"\xedCN\x7f", b"lto.bc"), add(link, 7, b"index", b"index"),
      add(link, 9, b"unknown", b"unknown"), add(link, ANY, b"\x7fELF" + bytes(80), b"object"))
assert add(link, PTX, CALLED, b"called") == 0
assert library.nvJitLinkComplete(link) == 0
image = linked(link)
assert library.nvJitLinkDestroy(ctypes.byref(link)) == 0 and not link.value
print(run(image), library.nvJitLinkDestroy(ctypes.byref(link)))
result, link = created("-arch=sm_90")
assert library.nvJitLinkComplete(link) == 0
assert cuda.cuModuleLoadData(ctypes.byref(ctypes.c_void_p()), linked(link)) == 0  # an empty module
assert library.nvJitLinkDestroy(ctypes.byref(link)) == 0
result, link = created("-arch=sm_90")
print(add(link, PTX, b".version 7.0\n.target sm_80\n.address_size 64\nadd\n", b"wrong"))
print(log_of(link).splitlines()[0])
assert library.nvJitLinkDestroy(ctypes.byref(link)) == 0
lto()
