# python/src/ptxgen/_library.py - libptxgen_c: found, declared, loaded; its errors
"""The C API through cffi in ABI mode: the header is the declaration, no compiler is needed."""
from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

from cffi import FFI

SONAME = "libptxgen_c.so.0"
_HERE = Path(__file__).resolve().parent
_TREE = _HERE.parents[2]  # of a checkout: python/src/ptxgen


class PtxgenError(RuntimeError):
    """A call that the library refused, or that failed. `str(error)` has everything it knows."""

    def __init__(self, text: str, *, status: str = "usage", code: str = "", message: str = "",
                 kernel: str = "", target: str = "", file: str = "", line: int = 0, column: int = 0,
                 excerpt: str = "", driver_status: int = 0, log: str = "") -> None:
        super().__init__(text)
        self.status = status  #: the kind of failure: "verify", "launch", "usage", ...
        self.code = code  #: a stable short name: "syntax", "buffer-size", "device-fault", ...
        self.message = message or text  #: one sentence
        self.kernel = kernel
        self.target = target
        self.file = file
        self.line = line
        self.column = column
        self.excerpt = excerpt  #: the lines of PTX around `line`
        self.driver_status = driver_status
        self.log = log  #: the complete log of the driver or tool


def declarations(header: str) -> str:
    """The declarations of ptxgen.h in the form that cffi reads."""
    text = re.sub(r"//[^\n]*", "", header)
    text = re.sub(r"\bPTXGEN_(API|NOEXCEPT)\b", "", re.sub(r"^\s*#.*$", "", text, flags=re.M))
    text = text.replace('extern "C" {', "")
    return re.sub(r"^\}\s*$", "", text, flags=re.M)


def _header() -> str:
    for path in (_HERE / "ptxgen.h", _TREE / "include" / "ptxgen" / "ptxgen.h"):
        if path.is_file():
            return path.read_text(encoding="utf-8")
    raise ImportError(f"ptxgen: there is no ptxgen.h in {_HERE}; install the package again")


def _candidates() -> list[str]:
    chosen = os.environ.get("PTXGEN_C_LIBRARY")
    if chosen:
        return [chosen]
    inside = _HERE / "lib" / SONAME
    return [str(inside)] if inside.is_file() else [SONAME]


def _load() -> Any:
    tried = []
    for path in _candidates():
        try:
            found = ffi.dlopen(path)
        except OSError as error:
            tried.append(str(error))
            continue
        # Functions are only looked up when they are used: an old library would fail later.
        for name in ("ptxgen_check", "ptxgen_device_get_counters"):
            if not hasattr(found, name):
                version = ffi.string(found.ptxgen_version_string()).decode()
                raise ImportError(f"ptxgen: the library {path} is {version} and has no {name}; "
                                  "this package needs a newer one")
        return found
    raise ImportError(
        f"ptxgen: {'; '.join(tried)}; set PTXGEN_C_LIBRARY to the file {SONAME}, or install the "
        "wheel, which has it inside")


ffi = FFI()
ffi.cdef(declarations(_header()))
lib = _load()
NULL = ffi.NULL


def text(pointer: Any) -> str:
    """A C string; "" for NULL."""
    return "" if pointer == NULL else ffi.string(pointer).decode("utf-8", "replace")


def struct(name: str) -> Any:
    """A zeroed structure of the header with its `struct_bytes`."""
    made = ffi.new(f"{name}*")
    made.struct_bytes = ffi.sizeof(name)
    return made


def encoded(value: str | None) -> Any:
    """A C string that the caller must keep, or NULL."""
    return NULL if value is None else ffi.new("char[]", value.encode())


def _error(handle: Any) -> PtxgenError:
    error = ffi.gc(lib.ptxgen_last_error(handle), lib.ptxgen_error_free)
    return PtxgenError(
        text(lib.ptxgen_error_text(error)),
        status=text(lib.ptxgen_status_name(lib.ptxgen_error_status(error))),
        code=text(lib.ptxgen_error_code(error)),
        message=text(lib.ptxgen_error_message(error)),
        kernel=text(lib.ptxgen_error_kernel(error)),
        target=text(lib.ptxgen_error_target(error)),
        file=text(lib.ptxgen_error_file(error)),
        line=lib.ptxgen_error_line(error),
        column=lib.ptxgen_error_column(error),
        excerpt=text(lib.ptxgen_error_excerpt(error)),
        driver_status=lib.ptxgen_error_driver_status(error),
        log=text(lib.ptxgen_error_log(error)))


def check(status: int, handle: Any = NULL) -> None:
    """Raises the error of a call; `handle` is its first handle."""
    if status != lib.PTXGEN_OK:
        raise _error(handle)


def created(kind: str, function: Any, *arguments: Any, first: Any = NULL) -> Any:
    """The handle that a call creates, freed with the object. `first`: the call's first handle."""
    place = ffi.new(f"ptxgen_{kind}**")
    check(function(*arguments, place), first)
    return ffi.gc(place[0], getattr(lib, f"ptxgen_{kind}_free"))


def library_version() -> str:
    """The version of the loaded library."""
    return text(lib.ptxgen_version_string())
