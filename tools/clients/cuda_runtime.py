# tools/clients/cuda_runtime.py - leads cuda.bindings.runtime to the libcudart that is found
"""cuda.bindings.runtime has NVIDIA's CUDA runtime linked in, without symbols, and that needs private
tables of NVIDIA's driver. Imported before it, or as a plugin of pytest (-p cuda_runtime), this module
leads its calls to the libcudart.so of LD_LIBRARY_PATH, the emulated driver's: the C functions that
Cython modules export to each other (`__pyx_capi__`) under the runtime's names are exchanged. Functions
that this libcudart does not have stay as they are: refused."""
import ctypes
import importlib

from cuda.bindings import _version

_new = ctypes.pythonapi.PyCapsule_New
_new.restype, _new.argtypes = ctypes.py_object, (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)
_signature = ctypes.pythonapi.PyCapsule_GetName
_signature.restype, _signature.argtypes = ctypes.c_void_p, (ctypes.py_object,)


def lead(module, library, suffix=""):
    """How many functions of a module are now those of a library."""
    functions, led = importlib.import_module(module).__pyx_capi__, 0
    for name, capsule in list(functions.items()):
        symbol = name.removeprefix("_")
        function = next((getattr(library, known) for known in (symbol + suffix, symbol)
                         if symbol.startswith("cuda") and hasattr(library, known)), None)
        if function is not None:
            # The name of a capsule, which it keeps, is the function's signature.
            functions[name] = _new(ctypes.cast(function, ctypes.c_void_p), _signature(capsule), None)
            led += 1
    return led


_library = ctypes.CDLL(f"libcudart.so.{_version.__version__.split('.')[0]}")
for _module, _suffix in (("cyruntime_ptds", "_ptsz"), ("cyruntime", "")):
    if lead(f"cuda.bindings._bindings.{_module}", _library, _suffix) == 0:
        raise ImportError(f"cuda.bindings._bindings.{_module} exports no function of the runtime")
