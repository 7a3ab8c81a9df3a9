# python/src/ptxgen/kernels.py - the library's kernels as functions, from its own catalog
"""Every kernel of the library by its name: `kernels.vadd(a, b, c, n=c.size)`.

`kernels.names()` lists them, `help(kernels.gemv)` describes one. Operands are positional in the order
of the signature, or keywords; parameters (shapes and options) are keywords. A name that Python
reserves has a `_` at its end: `in_`.
"""
from __future__ import annotations

import dataclasses
import functools
import inspect
import keyword
from typing import Any

from ._device import Array, Device, Foreign, default_device
from ._library import NULL, PtxgenError, check, created, encoded, ffi, lib, struct, text
from ._run import RAISE, RunResult, Transfers, observed


@dataclasses.dataclass(frozen=True)
class Parameter:
    """A shape or an option: a number, or one of the names in `values`."""

    name: str
    type: str
    doc: str
    default: int
    min: int
    max: int
    values: tuple[str, ...]  #: names of 0, 1, ...; empty for numbers


@dataclasses.dataclass(frozen=True)
class Operand:
    """An argument that the caller gives."""

    name: str
    role: str  #: "input", "output", "in-out", "scalar", "promise"
    doc: str
    optional: bool


def _python_name(name: str) -> str:
    return name + "_" if keyword.iskeyword(name) else name


class Kernel:
    """A kernel of the library. Call it to launch it."""

    def __init__(self, index: int) -> None:
        info = struct("ptxgen_kernel_info")
        check(lib.ptxgen_kernel_get_info(index, info))
        self._index = index
        self.name = self.__name__ = text(info.name)
        self.doc = text(info.doc)
        self.access_pattern = text(info.access_pattern)  #: how consecutive lanes access memory
        self.parameters = tuple(self._parameter(i) for i in range(info.parameter_count))
        given = (self._operand(i) for i in range(info.operand_count))
        self.operands = tuple(one for one in given
                              if one.role in ("input", "output", "in-out", "scalar", "promise"))
        self.__signature__ = self._signature()
        self.__doc__ = self._documentation()

    def _parameter(self, index: int) -> Parameter:
        one = struct("ptxgen_parameter_info")
        check(lib.ptxgen_kernel_get_parameter(self._index, index, one))
        names: list[str] = []
        while True:
            name = text(lib.ptxgen_kernel_value_name(self._index, index, len(names)))
            if not name:
                break
            names.append(name)
        return Parameter(text(one.name), text(one.type), text(one.doc), one.default_value, one.min,
                         one.max, tuple(names))

    def _operand(self, index: int) -> Operand:
        one = struct("ptxgen_operand_info")
        check(lib.ptxgen_kernel_get_operand(self._index, index, one))
        return Operand(text(one.name), text(one.role), text(one.doc), bool(one.optional))

    def _signature(self) -> inspect.Signature:
        kinds = inspect.Parameter
        made = []
        required = True
        for one in self.operands:
            required = required and not one.optional and one.role != "promise"
            made.append(kinds(_python_name(one.name), kinds.POSITIONAL_OR_KEYWORD,
                              default=kinds.empty if required else None))
        taken = {one.name for one in made}
        for parameter in self.parameters:
            default = (parameter.values[parameter.default]
                       if parameter.default < len(parameter.values) else parameter.default)
            name = _python_name(parameter.name)
            if name not in taken:
                made.append(kinds(name, kinds.KEYWORD_ONLY, default=default))
        made.append(kinds("device", kinds.KEYWORD_ONLY, default=None))
        made.append(kinds("findings", kinds.KEYWORD_ONLY, default=RAISE))
        return inspect.Signature(made, return_annotation=RunResult)

    def _documentation(self) -> str:
        lines = [self.doc, "", "Operands:"]
        for one in self.operands:
            role = one.role + (", optional" if one.optional else "")
            lines.append(f"  {_python_name(one.name)} ({role}): {one.doc}")
        lines += ["", "Parameters:"]
        for parameter in self.parameters:
            values = (", ".join(parameter.values) if parameter.values
                      else f"{parameter.min} to {parameter.max}")
            lines.append(f"  {_python_name(parameter.name)}: {parameter.doc} ({values})")
        return "\n".join(lines)

    def __repr__(self) -> str:
        return f"<ptxgen kernel {self.name}{self.__signature__}>"

    def __call__(self, *operands: Any, device: Device | None = None, findings: str = RAISE,
                 **keywords: Any) -> RunResult:
        """Launches the kernel and waits for it: arrays, `findings` and `device` as of `ptxgen.run`."""
        on = device or default_device()
        values, parameters = self._sorted(operands, keywords)

        def launch(transfers: Transfers) -> tuple[str, str]:
            rows, keep = _operand_rows(self, values, on, transfers)
            chosen, names = self._parameter_rows(parameters)
            record = struct("ptxgen_launch_record")
            check(lib.ptxgen_launch(on.handle, encoded(self.name), chosen, len(names), rows, len(keep),
                                    on._stream, record), on.handle)
            return text(record.implementation), text(record.reason)

        return observed(on, findings, launch)

    def build(self, target: str, **parameters: Any) -> str:
        """The PTX of the kernel for a target ("sm_90")."""
        _, given = self._sorted((), parameters)
        chosen, names = self._parameter_rows(given)
        program = created("program", lib.ptxgen_program_build, NULL, encoded(target),
                          encoded(self.name), chosen, len(names))
        return text(lib.ptxgen_program_ptx(program, NULL))

    def _sorted(self, operands: tuple[Any, ...],
                keywords: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
        """Operands and parameters by the names of the library."""
        if len(operands) > len(self.operands):
            raise TypeError(f"{self.name} takes {len(self.operands)} operands, not {len(operands)}")
        values = {one.name: value for one, value in zip(self.operands, operands)}
        known = {_python_name(one.name): one.name for one in self.operands}
        shapes = {_python_name(one.name): one.name for one in self.parameters}
        parameters = {}
        for name, value in keywords.items():
            if name in known and known[name] not in values:
                values[known[name]] = value
            elif name in shapes:
                parameters[shapes[name]] = value
            elif name in known:
                raise TypeError(f"{self.name} got the operand {name} twice")
            else:
                raise TypeError(f"{self.name} has no operand or parameter {name}; it has "
                                f"{', '.join([*known, *shapes])}")
        return {name: value for name, value in values.items() if value is not None}, parameters

    def _parameter_rows(self, given: dict[str, Any]) -> tuple[Any, list[Any]]:
        by_name = {one.name: one for one in self.parameters}
        keep = [encoded(name) for name in given]
        rows = ffi.new("ptxgen_parameter[]", max(len(given), 1))
        for row, (name, value), text_ in zip(rows, given.items(), keep):
            row.name, row.value = text_, _number_of(self, by_name[name], value)
        return rows, keep


def _number_of(kernel: Kernel, parameter: Parameter, value: Any) -> int:
    if not isinstance(value, str):
        return int(value)
    if value not in parameter.values:
        valid = ", ".join(parameter.values) or f"{parameter.min} to {parameter.max}"
        raise PtxgenError(f"{kernel.name}: {parameter.name} is '{value}'; it may be {valid}",
                          code="bad-parameter", kernel=kernel.name)
    return parameter.values.index(value)


def _operand_rows(kernel: Kernel, values: dict[str, Any], device: Device,
                  transfers: Transfers) -> tuple[Any, list[Any]]:
    roles = {one.name: one.role for one in kernel.operands}
    rows = ffi.new("ptxgen_operand[]", max(len(values), 1))
    keep = []
    for row, (name, value) in zip(rows, values.items()):
        text_ = encoded(name)
        row.name = text_
        memory: Any = None
        if roles[name] in ("scalar", "promise"):
            row.number = float(value)
        else:
            memory = transfers.argument(value)
            if isinstance(memory, Array):
                row.memory.address, row.memory.bytes = memory.address_on(device), memory.nbytes
            elif hasattr(memory, "__cuda_array_interface__"):
                foreign = Foreign(memory)
                row.memory.address, row.memory.bytes = foreign.address, foreign.nbytes
            else:
                raise PtxgenError(f"{kernel.name}: {name} is a {type(value).__name__}; it is an array "
                                  f"({roles[name]})", code="arguments", kernel=kernel.name)
        keep.append((text_, memory))
    return rows, keep


@functools.lru_cache(maxsize=None)
def _indices() -> dict[str, int]:
    info = struct("ptxgen_kernel_info")
    found = {}
    for index in range(lib.ptxgen_kernel_count()):
        check(lib.ptxgen_kernel_get_info(index, info))
        found[text(info.name)] = index
    return found


@functools.lru_cache(maxsize=None)
def _kernel(name: str) -> Kernel:
    return Kernel(_indices()[name])


def names() -> list[str]:
    """The names of all kernels, in alphabetical order."""
    return list(_indices())


def __getattr__(name: str) -> Kernel:
    if name.startswith("__") or name not in _indices():
        raise AttributeError(f"the library has no kernel '{name}'; ptxgen.kernels.names() lists them")
    return _kernel(name)


def __dir__() -> list[str]:
    return [*names(), "names", "Kernel", "Operand", "Parameter"]
