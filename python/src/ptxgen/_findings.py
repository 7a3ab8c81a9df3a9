# python/src/ptxgen/_findings.py - findings and counters as objects
from __future__ import annotations

import collections
import dataclasses
from typing import Any, Deque, Iterable

from ._library import PtxgenError, check, created, ffi, lib, struct, text

SEVERITIES = ("error", "warning", "note")


@dataclasses.dataclass(frozen=True)
class Finding:
    """One thing that is wrong, or not shown to be right: of a launch, or of a check."""

    severity: str  #: "error": proved wrong, or observed; "warning"; "note"
    rule: str  #: a stable short name: "uninitialized-read", "shared-race", "out-of-bounds", ...
    message: str
    kernel: str
    statement: str  #: the PTX statement
    file: str  #: of `line`
    line: int  #: of the PTX, from 1; 0 if unknown
    source_file: str  #: of the `.loc` lines, or ""
    source_line: int  #: from 1; 0 if unknown
    other_line: int  #: PTX line of the second access of a race, or 0
    count: int  #: how often it happened in the launch
    fault: bool  #: it stopped the kernel
    launch: int  #: number of the launch; 0 for a check
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    block_index: tuple[int, int, int]  #: of the first thread that did it
    thread: tuple[int, int, int]  #: the first thread that did it, in its block
    text: str  #: everything, as the program prints it

    def __str__(self) -> str:
        return self.text


class FindingError(PtxgenError):
    """A launch with findings of severity error. `findings` has all of the launch."""

    def __init__(self, findings: list[Finding], result: Any = None) -> None:
        errors = [finding for finding in findings if finding.severity == "error"]
        first = (errors or findings)[0]
        super().__init__("\n".join(finding.text for finding in errors or findings),
                         status="launch", code=first.rule, message=first.message,
                         kernel=first.kernel, file=first.file, line=first.line,
                         excerpt=first.statement)
        self.findings = findings
        self.result = result  #: the RunResult, if the launch has ended


class FindingWarning(UserWarning):
    """Findings of severity error that no call has raised: their device was closed before."""


def _triple(values: Any) -> tuple[int, int, int]:
    return (values[0], values[1], values[2])


def read_findings(handle: Any) -> list[Finding]:
    """The findings of a ptxgen_findings."""
    found = []
    one = struct("ptxgen_finding")
    for index in range(lib.ptxgen_findings_count(handle)):
        check(lib.ptxgen_findings_get(handle, index, one), handle)
        found.append(Finding(
            severity=SEVERITIES[one.severity], rule=text(one.rule), message=text(one.message),
            kernel=text(one.kernel), statement=text(one.statement), file=text(one.file),
            line=one.line, source_file=text(one.source_file), source_line=one.source_line,
            other_line=one.other_line, count=one.count, fault=bool(one.fault), launch=one.launch,
            grid=_triple(one.grid), block=_triple(one.block),
            block_index=_triple(one.block_index), thread=_triple(one.thread_index),
            text=text(one.text)))
    return found


class History:
    """The error findings of all devices of the process, for test runners. Old ones are dropped."""

    def __init__(self) -> None:
        self.total = 0
        self._kept: Deque[Finding] = collections.deque(maxlen=10000)

    def add(self, findings: Iterable[Finding]) -> None:
        for finding in findings:
            if finding.severity == "error":
                self._kept.append(finding)
                self.total += 1

    def since(self, total: int) -> list[Finding]:
        """Those after the first `total`."""
        count = min(self.total - total, len(self._kept))
        return list(self._kept)[len(self._kept) - count:] if count > 0 else []


history = History()


def take_findings(device: Any) -> list[Finding]:
    """The findings of a ptxgen_device since the last call."""
    counts = ffi.new("uint64_t[3]")
    check(lib.ptxgen_device_count_findings(device, counts, counts + 1, counts + 2), device)
    if sum(counts) == 0:
        return []
    found = read_findings(created("findings", lib.ptxgen_findings_create, device, first=device))
    check(lib.ptxgen_device_clear_findings(device), device)
    history.add(found)
    return found


@dataclasses.dataclass(frozen=True)
class MemoryCounters:
    """Global or local memory. A request is an instruction of a warp with an active lane."""

    requests: int = 0
    sectors: int = 0  #: distinct 32-byte sectors, summed over requests
    ideal_sectors: int = 0  #: sectors that the bytes would fill
    bytes: int = 0  #: requested, summed over lanes

    @property
    def coalescing(self) -> float:
        """ideal_sectors / sectors; 1 without sectors."""
        return self.ideal_sectors / self.sectors if self.sectors else 1.0


@dataclasses.dataclass(frozen=True)
class SharedCounters:
    """Shared memory of the block."""

    requests: int = 0
    wavefronts: int = 0
    ideal_wavefronts: int = 0
    bank_conflicts: int = 0
    bytes: int = 0


@dataclasses.dataclass(frozen=True)
class Counters:
    """Exact counts of launches on the emulated device. A GPU counts nothing: `launches` is 0."""

    launches: int = 0
    warp_instructions: int = 0
    thread_instructions: int = 0  #: active lanes, summed over warp instructions
    branches: int = 0
    divergent_branches: int = 0
    barriers: int = 0
    atomics: int = 0
    global_load: MemoryCounters = MemoryCounters()
    global_store: MemoryCounters = MemoryCounters()
    local_load: MemoryCounters = MemoryCounters()
    local_store: MemoryCounters = MemoryCounters()
    shared_load: SharedCounters = SharedCounters()
    shared_store: SharedCounters = SharedCounters()
    bulk_load_bytes: int = 0
    bulk_store_bytes: int = 0
    seconds: float = 0.0  #: host time of the emulation

    def __sub__(self, before: Counters) -> Counters:
        difference: Counters = _difference(self, before)
        return difference


def _difference(after: Any, before: Any) -> Any:
    if not isinstance(after, (Counters, MemoryCounters, SharedCounters)):
        return after - before
    return type(after)(**{field.name: _difference(getattr(after, field.name),
                                                  getattr(before, field.name))
                          for field in dataclasses.fields(after)})


def read_counters(device: Any) -> Counters:
    """The sums of a ptxgen_device."""
    sums = struct("ptxgen_counters")
    check(lib.ptxgen_device_get_counters(device, sums), device)
    values: dict[str, Any] = {}
    for field in dataclasses.fields(Counters):
        value = getattr(sums, field.name)
        if field.name.endswith(("_load", "_store")):
            group = SharedCounters if field.name.startswith("shared") else MemoryCounters
            value = group(**{part.name: getattr(value, part.name)
                             for part in dataclasses.fields(group)})
        values[field.name] = value
    return Counters(**values)
