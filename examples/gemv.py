#!/usr/bin/env python3
# examples/gemv.py - y = x^T A through the C API, with ctypes
"""usage: gemv.py [DEVICE]     DEVICE: auto (default), emulator, cuda:0, ...

Needs nothing but the standard library and libptxgen_c, which is looked for in PTXGEN_C_LIBRARY, then by
the system's loader."""
import ctypes
import os
import sys
from ctypes import (CDLL, POINTER, Structure, byref, c_char, c_char_p, c_double, c_float, c_int32, c_size_t,
                    c_uint32, c_uint64, c_void_p, create_string_buffer, sizeof)


class Span(Structure):
    _fields_ = [("address", c_uint64), ("bytes", c_uint64)]


class Parameter(Structure):
    _fields_ = [("name", c_char_p), ("value", c_uint64)]


class Operand(Structure):
    _fields_ = [("name", c_char_p), ("memory", Span), ("number", c_double)]


class Request(Structure):
    _fields_ = [("kernel", c_char_p), ("parameters", POINTER(Parameter)),
                ("parameter_count", c_size_t)]


class Geometry(Structure):
    _fields_ = [("struct_bytes", c_size_t), ("grid", c_uint32 * 3), ("block", c_uint32 * 3),
                ("dynamic_shared_bytes", c_uint32), ("cluster", c_uint32 * 3),
                ("cooperative", c_int32), ("programmatic", c_int32)]


class Record(Structure):
    _fields_ = [("struct_bytes", c_size_t), ("kernel", c_char * 64), ("implementation", c_char * 32),
                ("reason", c_char * 192), ("geometry", Geometry), ("launches", c_uint32),
                ("cached", c_int32)]


class Argument(Structure):
    _fields_ = [("value", c_void_p), ("bytes", c_uint32), ("type", c_int32)]


INTEGER, FLOAT, POINTER_TYPE = 1, 2, 3

SCALE = b"""
.version 7.0
.target sm_75
.address_size 64
.visible .entry scale(.param .u64 .ptr .global .align 4 y, .param .f32 factor)
{
  .reg .b32 %r<2>;
  .reg .f32 %f<3>;
  .reg .b64 %rd<4>;
  ld.param.u64 %rd1, [y];
  ld.param.f32 %f1, [factor];
  mov.u32 %r1, %tid.x;
  mul.wide.u32 %rd2, %r1, 4;
  add.u64 %rd3, %rd1, %rd2;
  ld.global.f32 %f2, [%rd3];
  mul.rn.f32 %f2, %f2, %f1;
  st.global.f32 [%rd3], %f2;
  ret;
}
"""


class PtxgenError(RuntimeError):
    """A status other than 0; the text is the library's."""


class Library:
    """libptxgen_c. Functions are called by their names without the prefix; one that fails raises."""

    # Functions that return a status. The others are called through `c`.
    SIGNATURES = {
        "device_open": (c_char_p, c_void_p, POINTER(c_void_p)),
        "buffer_create": (c_void_p, c_uint64, POINTER(c_void_p)),
        "buffer_write": (c_void_p, c_uint64, c_void_p, c_uint64, c_void_p),
        "buffer_read": (c_void_p, c_uint64, c_void_p, c_uint64, c_void_p),
        "stream_create": (c_void_p, c_int32, c_int32, POINTER(c_void_p)),
        "stream_synchronize": (c_void_p,),
        "prepare": (c_void_p, POINTER(Request), c_size_t, c_void_p, c_void_p),
        "gemv": (c_void_p, Span, Span, Span, c_uint32, c_uint32, c_void_p, POINTER(Record)),
        "launch": (c_void_p, c_char_p, POINTER(Parameter), c_size_t, POINTER(Operand), c_size_t,
                   c_void_p, POINTER(Record)),
        "program_parse": (c_char_p, c_size_t, c_char_p, POINTER(c_void_p)),
        "function_load": (c_void_p, c_void_p, c_char_p, POINTER(c_void_p)),
        "function_launch": (c_void_p, POINTER(Geometry), POINTER(Argument), c_size_t, c_void_p),
    }

    def __init__(self):
        self.c = CDLL(os.environ.get("PTXGEN_C_LIBRARY", "libptxgen_c.so.0"))
        self.c.ptxgen_version_string.restype = c_char_p
        self.c.ptxgen_buffer_span.argtypes = (c_void_p,)
        self.c.ptxgen_buffer_span.restype = Span
        self.c.ptxgen_last_error_text.argtypes = (c_void_p, c_void_p, c_size_t)
        self.c.ptxgen_last_error_text.restype = c_size_t
        for kind in ("device", "buffer", "stream", "program", "function"):
            free = getattr(self.c, f"ptxgen_{kind}_free")
            free.argtypes, free.restype = (c_void_p,), None

    def __getattr__(self, name):
        function = getattr(self.c, f"ptxgen_{name}")
        function.argtypes, function.restype = self.SIGNATURES[name], c_int32
        takes_handle = self.SIGNATURES[name][0] is c_void_p

        def call(*arguments):
            status = function(*arguments)
            if status != 0:
                first = arguments[0] if takes_handle else None
                raise PtxgenError(f"{name}: {self.error_text(first)}")
        return call

    def error_text(self, handle):
        length = self.c.ptxgen_last_error_text(handle, None, 0)
        text = create_string_buffer(length + 1)
        self.c.ptxgen_last_error_text(handle, text, len(text))
        return text.value.decode()


def main():
    ptxgen = Library()
    device, stream = c_void_p(), c_void_p()
    name = sys.argv[1].encode() if len(sys.argv) > 1 else None
    ptxgen.device_open(name, None, byref(device))
    ptxgen.stream_create(device, 0, 0, byref(stream))

    k, n = 40, 70
    a = (c_float * (k * n))(*[(i % 11 - 5) / 4 for i in range(k * n)])
    x = (c_float * k)(*[(i % 7 - 3) / 2 for i in range(k)])
    y = (c_float * n)()
    buffers = []
    for values in (a, x, y):
        buffer = c_void_p()
        ptxgen.buffer_create(device, sizeof(values), byref(buffer))
        ptxgen.buffer_write(buffer, 0, values, sizeof(values), None)
        buffers.append(buffer)
    a_span, x_span, y_span = (ptxgen.c.ptxgen_buffer_span(buffer) for buffer in buffers)

    shape = (Parameter * 2)(Parameter(b"k", k), Parameter(b"n", n))
    ptxgen.prepare(device, Request(b"gemv", shape, 2), 1, None, None)
    record = Record(struct_bytes=sizeof(Record))
    ptxgen.gemv(device, y_span, a_span, x_span, k, n, stream, byref(record))

    # Any kernel of the catalog by name, after it in the same stream: y = y + y.
    size = Parameter(b"n", n)
    operands = (Operand * 3)(Operand(b"out", y_span), Operand(b"a", y_span), Operand(b"b", y_span))
    ptxgen.launch(device, b"residual_add", byref(size), 1, operands, 3, stream, None)

    # A user-defined kernel as text.
    program, scale = c_void_p(), c_void_p()
    ptxgen.program_parse(SCALE, len(SCALE), b"scale.ptx", byref(program))
    ptxgen.function_load(device, program, None, byref(scale))
    address, factor = c_uint64(y_span.address), c_float(2)
    arguments = (Argument * 2)(
        Argument(ctypes.cast(byref(address), c_void_p), 8, POINTER_TYPE),
        Argument(ctypes.cast(byref(factor), c_void_p), 4, FLOAT))
    geometry = Geometry(struct_bytes=sizeof(Geometry))
    geometry.grid[0], geometry.block[0] = 1, n
    ptxgen.function_launch(scale, byref(geometry), arguments, 2, stream)
    ptxgen.buffer_read(buffers[2], 0, y, sizeof(y), stream)
    ptxgen.stream_synchronize(stream)

    expected = [4 * sum(a[i * n + j] * x[i] for i in range(k)) for j in range(n)]
    wrong = sum(abs(got - want) > 1e-3 for got, want in zip(y, expected))
    print(f"ptxgen {ptxgen.c.ptxgen_version_string().decode()}: {record.kernel.decode()}, "
          f"y[0] = {y[0]}, {wrong} of {n} wrong")

    # An error.
    try:
        ptxgen.gemv(device, y_span, a_span, x_span, k + 1, n, stream, None)
        print("a buffer that is too small was not noticed")
        wrong += 1
    except PtxgenError as error:
        print(str(error).splitlines()[0])

    for buffer in buffers:
        ptxgen.c.ptxgen_buffer_free(buffer)
    ptxgen.c.ptxgen_function_free(scale)
    ptxgen.c.ptxgen_program_free(program)
    ptxgen.c.ptxgen_stream_free(stream)
    ptxgen.c.ptxgen_device_free(device)
    return 1 if wrong else 0


sys.exit(main())
