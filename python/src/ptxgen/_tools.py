# python/src/ptxgen/_tools.py - checks, passes and assemblers on PTX text
from __future__ import annotations

import dataclasses
from typing import Any, Sequence, Union

from ._arguments import dim3
from ._findings import Finding, read_findings
from ._library import NULL, check as checked, created, encoded, ffi, lib, struct, text


def _source(ptx: str | bytes) -> bytes:
    return ptx.encode() if isinstance(ptx, str) else ptx


def _program(ptx: str | bytes, file: str | None) -> Any:
    source = _source(ptx)
    return created("program", lib.ptxgen_program_parse, source, len(source), encoded(file))


def check(ptx: str | bytes, *, target: str | None = None, entry: str | None = None,
          block: Union[int, Sequence[int], None] = None, file: str | None = None) -> list[Finding]:
    """What the verifier, the gates and the analyzer find, as `ptxgen check` reports it.

    `target`: checked for "sm_90" instead of the text's own. `entry`: the kernel that must exist.
    `block`: threads of a block, if they are known. `file`: the text's name in messages. Text that
    cannot be parsed is a finding of the rule "syntax".
    """
    source = _source(ptx)
    options = struct("ptxgen_check_options")
    keep = encoded(target), encoded(entry)
    options.target, options.entry = keep
    if block is not None:
        options.block = dim3("block", block)
    return read_findings(created("findings", lib.ptxgen_check, source, len(source), encoded(file),
                                 options))


@dataclasses.dataclass(frozen=True)
class PassReport:
    """One run of one pass."""

    name: str
    changed: bool
    fired: int  #: candidates that it changed
    refused: int  #: candidates that it left as they were
    statements_before: int
    statements_after: int
    microseconds: float


@dataclasses.dataclass(frozen=True)
class Optimized:
    """PTX after passes."""

    ptx: str
    passes: list[PassReport]  #: in execution order
    report: str  #: a line for each pass and each of its decisions

    @property
    def changed(self) -> bool:
        return any(each.changed for each in self.passes)


def opt(ptx: str | bytes, passes: Union[str, Sequence[str]] = "default", *, contract: bool = True,
        split_threshold: int | None = None, file: str | None = None) -> Optimized:
    """Runs passes, as `ptxgen opt` does.

    `passes`: names of passes and groups in the order in which they run. `contract`: whether mul and
    add may become fma. `split_threshold`: instructions that make a condition worth a loop split.
    """
    program = _program(ptx, file)
    options = struct("ptxgen_optimize_options")
    names = encoded(passes if isinstance(passes, str) else ",".join(passes) or "none")
    options.passes, options.no_contract = names, not contract
    if split_threshold is not None:
        options.set_split_threshold, options.split_threshold = 1, split_threshold
    made = created("program", lib.ptxgen_program_optimize, program, options, first=program)
    reports = []
    one = struct("ptxgen_pass_info")
    for index in range(lib.ptxgen_program_pass_count(made)):
        checked(lib.ptxgen_program_get_pass(made, index, one), made)
        reports.append(PassReport(text(one.name), bool(one.changed), one.fired, one.refused,
                                  one.statements_before, one.statements_after, one.microseconds))
    return Optimized(text(lib.ptxgen_program_ptx(made, NULL)), reports,
                     text(lib.ptxgen_program_log(made)))


@dataclasses.dataclass(frozen=True)
class KernelResources:
    """Resources of one kernel, in bytes unless stated otherwise."""

    name: str
    registers: int  #: 32-bit registers of a thread
    barriers: int  #: named barriers
    spill_stores: int  #: of a thread
    spill_loads: int  #: of a thread
    stack: int  #: local memory of a thread
    shared: int  #: static shared memory of a block
    constant_bytes: int


@dataclasses.dataclass(frozen=True)
class Assembly:
    """Machine code."""

    image: bytes = dataclasses.field(repr=False)  #: the cubin
    tool: str  #: "nvJitLink 13.0"
    registers: int  #: of the kernel that uses most
    spill_stores: int
    spill_loads: int
    shared: int  #: of the kernel that uses most
    kernels: list[KernelResources]  #: by name
    log: str = dataclasses.field(repr=False)  #: of the tool


def assemble(ptx: str | bytes, target: str, *, tool: str = "fewest", optimization: int = 3,
             max_registers: int = 0, line_info: bool = False, file: str | None = None) -> Assembly:
    """Machine code by nvJitLink, ptxas or the driver, as `ptxgen assemble` makes it.

    `tool`: "nvjitlink", "ptxas" or "driver"; "fewest": nvJitLink and ptxas, and the image of the one
    that uses the fewest registers. Raises `PtxgenError` with the code "no-assembler" if none is
    found; its message says what to install.
    """
    program = _program(ptx, file)
    options = struct("ptxgen_assemble_options")
    keep = encoded(target), encoded(tool)
    options.target, options.tool = keep
    options.set_optimization, options.optimization = 1, optimization
    options.max_registers, options.line_info = max_registers, line_info
    image = created("image", lib.ptxgen_program_assemble_with, program, NULL, options, first=program)
    info = struct("ptxgen_image_info")
    checked(lib.ptxgen_image_get_info(image, info), image)
    kernels = []
    one = struct("ptxgen_kernel_resources")
    for index in range(lib.ptxgen_image_kernel_count(image)):
        checked(lib.ptxgen_image_get_kernel(image, index, one), image)
        values = {field.name: getattr(one, field.name)
                  for field in dataclasses.fields(KernelResources)}
        kernels.append(KernelResources(**{**values, "name": text(one.name)}))
    return Assembly(bytes(ffi.buffer(info.data, info.bytes)), text(info.tool), info.registers,
                    info.spill_stores, info.spill_loads, info.shared, kernels, text(info.log))
