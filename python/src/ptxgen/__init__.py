# python/src/ptxgen/__init__.py - run, check and optimise PTX, with or without a GPU
"""ptxgen from Python: docs/python.md is the guide."""
from . import kernels
from ._device import Array, Device, DeviceInfo, Function, Parameter, default_device, devices
from ._findings import (Counters, Finding, FindingError, FindingWarning, MemoryCounters,
                        SharedCounters)
from ._library import PtxgenError, library_version
from ._run import In, Out, RunResult, run
from ._tools import Assembly, KernelResources, Optimized, PassReport, assemble, check, opt

__version__ = "0.1.0"

__all__ = [
    "Array", "Assembly", "Counters", "Device", "DeviceInfo", "Finding", "FindingError",
    "FindingWarning", "Function", "In", "KernelResources", "MemoryCounters", "Optimized", "Out",
    "Parameter", "PassReport", "PtxgenError", "RunResult", "SharedCounters", "assemble", "check",
    "default_device", "devices", "kernels", "library_version", "opt", "run",
]
