"""What the host passes for the factors of a kernel, followed through the host code: ``scale * log2 e`` and its kin."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from weakref import WeakKeyDictionary

from tracer.cpp.source import CppSource
from tracer.cpp.tree import walk
from tracer.dataflow.cuda import Kernel
from tracer.dataflow.expressions import Undecided
from tracer.dataflow.ir import Formula, Value, tests_of
from tracer.dataflow.names import plain
from tracer.errors import TracerError
from tracer.model import Location
from tracer.records import dataclass


@dataclass(frozen=True, slots=True)
class HostFactor:
    """One factor that the host computes and the kernel reads.

    Attributes:
        field: the member of the argument struct.
        location: where the host assigns it.
        values: its value for softmax scales of 1.0 and 0.5, with every other argument of the host function zero.
        root: the argument of the host function that is the softmax scale; empty where the factor has nothing of it.
    """

    field: str
    location: Location
    values: tuple[float, float]
    root: str


class NotANumber(Exception):
    """A host value that cannot be computed from the arguments alone."""


def number(value: Value, roots: Mapping[str, float]) -> float:
    """Return a scalar value, given the arguments that it depends on; those not named are zero.

    Raises:
        NotANumber: it depends on something that is no argument.
    """
    value = plain(value)
    if value.op == "const" and isinstance(value.constant, int | float):
        return float(value.constant)
    if value.op == "input":
        return roots.get(value.text, 0.0)
    if value.op == "select":
        holds = truth(value.condition, roots)
        return number(value.args[0 if holds else 1], roots)
    arguments = [number(argument, roots) for argument in value.args[:2]] if value.op in _ARITHMETIC else []
    if arguments:
        return _ARITHMETIC[value.op](arguments)
    raise NotANumber(value.op)


def truth(formula: Formula, roots: Mapping[str, float]) -> bool:
    """Return whether a condition on the arguments holds.

    Raises:
        NotANumber: it depends on something that is no argument.
    """
    if isinstance(formula, bool):
        return formula
    if formula[0] == "not":
        return not truth(formula[1], roots)
    if formula[0] == "and":
        return truth(formula[1], roots) and truth(formula[2], roots)
    if formula[0] == "or":
        return truth(formula[1], roots) or truth(formula[2], roots)
    if formula[0] == "test":
        value = plain(formula[1])
        if value.op in ("lt", "gt", "le", "ge", "eq", "ne"):
            left, right = number(value.args[0], roots), number(value.args[1], roots)
            return {
                "lt": left < right, "gt": left > right, "le": left <= right, "ge": left >= right,
                "eq": left == right, "ne": left != right,
            }[value.op]  # fmt: skip
        return number(value, roots) != 0.0
    raise NotANumber(str(formula[0]))


def _divided(arguments: list[float]) -> float:
    if arguments[1] == 0.0:
        raise NotANumber("division by zero")
    return arguments[0] / arguments[1]


_ARITHMETIC: dict[str, Callable[[list[float]], float]] = {
    "add": lambda a: a[0] + a[1],
    "sub": lambda a: a[0] - a[1],
    "mul": lambda a: a[0] * a[1],
    "div": _divided,
    "neg": lambda a: -a[0],
    "max": max,
    "min": min,
    "sqrt": lambda a: math.sqrt(a[0]),
}


#: The host functions followed so far: the same ones lead to several kernels.
_FOLLOWED: WeakKeyDictionary[CppSource, dict[str, Kernel | None]] = WeakKeyDictionary()


#: How large the host functions are that were asked for.
_SIZES: WeakKeyDictionary[CppSource, dict[str, int]] = WeakKeyDictionary()


class HostCode:
    """The host functions on the way to a kernel, followed on demand."""

    def __init__(self, source: CppSource, functions: Callable[[], Iterable[str]]) -> None:
        """Remember where to look.

        Args:
            source: the C++ side of the extension.
            functions: gives the ids of the host functions on the way to the kernel, and of those that they call.
        """
        self.source, self.functions = source, functions
        self._assigned: dict[str, frozenset[str]] | None = None

    def factor(self, field: str) -> HostFactor | None:
        """Return what the host passes for a member of the kernel's argument struct; None where no code says it."""
        for host in self._assigning(field):
            found = _factor(host, field)
            if found is not None:
                return found
        return None

    def filled(self, fields: Iterable[str]) -> Iterator[Kernel]:
        """Yield, for each member of the argument struct, the smallest host function that assigns it, each once."""
        found: dict[str, None] = {}
        for field in fields:
            host = next(self._assigning(field), None)
            if host is not None and host.id not in found:
                found[host.id] = None
                yield host

    def _assigning(self, field: str) -> Iterator[Kernel]:
        """Yield the host functions that assign a member of the argument struct, the smallest first."""
        if self._assigned is None:
            self._assigned = {id: self.source.assigns(id) for id in self.functions()}
        for id in sorted((id for id, fields in self._assigned.items() if field in fields), key=self._size):
            host = self._follow(id)
            if host is not None:
                yield host

    def passed(self, field: str) -> float | None:
        """Return the value of a member of the argument struct at a softmax scale of 0.5; None where no code says it."""
        factor = self.factor(field)
        return factor.values[1] if factor is not None else None

    @property
    def is_read(self) -> bool:
        """Whether any host function on the way assigns members of an object."""
        return any((self._assigned or {}).values())

    def assignment(self, field: str) -> Location | None:
        """Return where the host code assigns a member of the kernel's argument struct; None where it does nowhere."""
        for id, fields in (self._assigned or {}).items():
            host = self._follow(id) if field in fields else None
            for name, storage in host.inputs.items() if host is not None else ():
                if name.rpartition(".")[2] == field and host is not None:
                    contents = host.state.get(storage)
                    if contents is not None and contents is not host.roots[storage]:
                        return host.location(contents.site)
        return None

    def _size(self, id: str) -> int:
        sizes = _SIZES.setdefault(self.source, {})
        if id not in sizes:
            sizes[id] = sum(1 for part in self.source.tree(id) for _ in walk(part))
        return sizes[id]

    def _follow(self, id: str) -> Kernel | None:
        followed = _FOLLOWED.setdefault(self.source, {})
        if id not in followed:
            try:
                followed[id] = Kernel(self.source, id)
            except (Undecided, TracerError):
                followed[id] = None
        return followed[id]


def _factor(host: Kernel, field: str) -> HostFactor | None:
    for name, storage in host.inputs.items():
        if name.rpartition(".")[2] != field or storage not in host.state:
            continue
        value = host.state[storage]
        if value is host.roots[storage]:
            continue
        try:
            alone = number(value, {})
        except NotANumber:
            alone = 0.0
        if alone != 0.0:
            return HostFactor(field, host.location(value.site), (alone, alone), "")
        for root in _roots(value):
            try:
                values = number(value, {root: 1.0}), number(value, {root: 0.5})
            except NotANumber:
                continue
            if values[0] != 0.0:
                return HostFactor(field, host.location(value.site), values, root)
    return None


def _roots(value: Value) -> list[str]:
    """Return the arguments that a value depends on, the nearest first; those that a condition tests where no others."""
    found: dict[str, None] = {}
    tested: set[str] = set()
    waiting, seen = [value], set()
    while waiting:
        current = plain(waiting.pop(0))
        if current.number in seen:
            continue
        seen.add(current.number)
        if current.op == "input":
            found[current.text] = None
        if current.op == "select":
            tested |= _tested(current.condition)
        waiting.extend(current.args)
    return [name for name in found if name not in tested] or list(found)


def _tested(formula: Formula) -> set[str]:
    compared = [plain(argument) for test in tests_of(formula) for argument in plain(test).args]
    return {argument.text for argument in compared if argument.op == "input"}
