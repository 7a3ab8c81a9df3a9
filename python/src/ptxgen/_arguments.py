# python/src/ptxgen/_arguments.py - arguments of a launch from Python values
from __future__ import annotations

from typing import Any, Sequence

import numpy as np

from ._library import PtxgenError, ffi, lib

FLOATS = {"f16": np.float16, "f32": np.float32, "f64": np.float64}


def dim3(name: str, size: Any) -> tuple[int, int, int]:
    """A size of one to three dimensions."""
    given = (size,) if isinstance(size, (int, np.integer)) else tuple(size)
    if not 1 <= len(given) <= 3 or any(int(extent) < 1 for extent in given):
        raise ValueError(f"{name} is {size!r}; it is one to three numbers of at least 1")
    x, y, z = (*(int(extent) for extent in given), 1, 1)[:3]
    return x, y, z


def bf16_bits(value: float) -> int:
    """The bits of the nearest bf16, ties to even."""
    bits = int(np.float32(value).view(np.uint32))
    if bits & 0x7fffffff > 0x7f800000:
        return bits >> 16 | 0x40  # a quiet NaN
    return bits + 0x7fff + (bits >> 16 & 1) >> 16


def _wrong(function: Any, index: int, reason: str) -> PtxgenError:
    parameter = function.parameters[index]
    return PtxgenError(f"{function.name}: argument {index + 1} (parameter {parameter.name}, "
                       f"{parameter.type or f'{parameter.bytes} bytes'}) {reason}",
                       code="arguments", kernel=function.name)


def _of_python_float(function: Any, index: int, value: float) -> tuple[bytes, int]:
    declared = function.parameters[index].type
    if declared == "bf16":
        return bf16_bits(value).to_bytes(2, "little"), lib.PTXGEN_ANY
    if declared in FLOATS:
        made = FLOATS[declared](value).tobytes()
        return made, lib.PTXGEN_FLOAT if len(made) > 2 else lib.PTXGEN_ANY
    what = "is untyped" if declared.startswith("b") else "is no floating-point parameter"
    raise _wrong(function, index, f"{what}: {value!r} needs a type, such as numpy.float32({value!r})")


def _of_python_int(function: Any, index: int, value: int) -> tuple[bytes, int]:
    parameter = function.parameters[index]
    if parameter.type in FLOATS or parameter.type == "bf16":
        return _of_python_float(function, index, float(value))
    if parameter.type == "" or parameter.bytes > 8:
        raise _wrong(function, index, "is a structure; pass its bytes")
    low, high = -(1 << parameter.bytes * 8 - 1), (1 << parameter.bytes * 8) - 1
    if parameter.type.startswith("u"):
        low = 0
    elif parameter.type.startswith("s"):
        high = -low - 1
    if not low <= value <= high:
        raise _wrong(function, index, f"is {value}; it may be {low} to {high}")
    return value.to_bytes(parameter.bytes, "little", signed=value < 0), lib.PTXGEN_INTEGER


def _value_of(function: Any, index: int, value: Any) -> tuple[bytes, int]:
    """The bytes of an argument and its kind."""
    if value is None:
        return bytes(8), lib.PTXGEN_POINTER
    if hasattr(value, "__cuda_array_interface__"):
        from ._device import Array, Foreign
        address = (value.address_on(function.device) if isinstance(value, Array)
                   else Foreign(value).address)
        return address.to_bytes(8, "little"), lib.PTXGEN_POINTER
    if isinstance(value, np.generic):
        kind = {"f": lib.PTXGEN_FLOAT, "i": lib.PTXGEN_INTEGER, "u": lib.PTXGEN_INTEGER}.get(
            value.dtype.kind, lib.PTXGEN_ANY)
        is_half = value.dtype.kind == "f" and value.dtype.itemsize == 2
        return value.tobytes(), lib.PTXGEN_ANY if is_half else kind
    if isinstance(value, (bool, int)):
        return _of_python_int(function, index, int(value))
    if isinstance(value, float):
        return _of_python_float(function, index, value)
    if isinstance(value, (bytes, bytearray, memoryview)):
        return bytes(value), lib.PTXGEN_ANY
    if isinstance(value, np.ndarray):
        raise _wrong(function, index, "is an array of the host: copy it with Device.array, or call "
                                      "ptxgen.run, which copies it in and out")
    raise _wrong(function, index, f"cannot be a {type(value).__name__}; pass an array, a number, "
                                  "bytes or None")


def arguments_of(function: Any, given: Sequence[Any]) -> tuple[Any, list[Any]]:
    """The ptxgen_arguments, and what they refer to."""
    if len(given) != len(function.parameters):
        names = ", ".join(parameter.name for parameter in function.parameters)
        raise PtxgenError(f"{function.name} takes {len(function.parameters)} arguments ({names}), "
                          f"not {len(given)}", code="arguments", kernel=function.name)
    keep = []
    rows = ffi.new("ptxgen_argument[]", max(len(given), 1))
    for index, value in enumerate(given):
        content, kind = _value_of(function, index, value)
        place = ffi.new("char[]", content)
        keep.append(place)
        rows[index].value, rows[index].bytes, rows[index].type = place, len(content), kind
    return rows, keep
