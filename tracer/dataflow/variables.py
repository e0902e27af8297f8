"""Which variables of a kernel hold a symbol of a listing, from which operation on, and in which form."""

from __future__ import annotations

import math

from tracer.dataflow.algebra import Term
from tracer.dataflow.confirm import SCALE
from tracer.dataflow.ir import Site, Value
from tracer.dataflow.lanes import WORDS
from tracer.dataflow.names import FieldSite
from tracer.dataflow.sides import Side
from tracer.model import Location
from tracer.records import dataclass


@dataclass(frozen=True, slots=True)
class Holding:
    """One assignment after which a variable holds a symbol.

    Attributes:
        at: where the assignment stands.
        until: where the variable's contents become something else; None where they stay.
        operation: what makes the value there: ``exp2``, ``matmul``, ``max``, ….
    """

    at: Location
    until: Location | None
    operation: str


@dataclass(frozen=True, slots=True)
class Variable:
    """A variable that holds a symbol.

    Attributes:
        name: as declared.
        qualified_name: with the function or class that declares it.
        location: where it is declared.
        storage: ``registers``, ``shared``, ``global``.
        form: in which form it holds the symbol, in a few words; empty where it is just the symbol.
        is_view: another name of storage that belongs to another variable.
        holds: the assignments after which it does.
    """

    name: str
    qualified_name: str
    location: Location
    storage: str
    form: str
    is_view: bool
    holds: tuple[Holding, ...]


def terms_of(side: Side, symbol: str) -> list[Term]:
    """Return the listing's terms that a symbol names."""
    paper = side.comparison.paper
    found = [term for term in side.comparison.steps.order if symbol in paper.names(term)]
    for term in side.comparison.steps.order:
        storage = term.origin.storage if term.op == "carried" and term.origin is not None else None
        if storage is not None and storage.name == symbol and term not in found:
            found.append(term)
    return found


def variables_of(side: Side, symbol: str) -> tuple[Variable, ...]:
    """Return the variables that hold a symbol: those that a reader looks for first, then views and helpers' locals."""
    values: dict[tuple[str, Location], list[Value]] = {}
    kernel = side.kernel
    for paper_term in terms_of(side, symbol):
        for term in side.comparison.partners(paper_term):
            if term.op in ("constant", "scalar", "undefined"):
                continue
            held = [value for value in term.values if value.op == "set" and value.name]
            if term.op == "carried" and term.origin is not None:
                held = [*held, term.origin]
            for value in held:
                for name, declared in _names(value):
                    values.setdefault((name, kernel.location(declared)), []).append(value)
    found = [_variable(side, name, place, held) for (name, place), held in values.items()]
    ranked = sorted(zip(found, values.values(), strict=True), key=lambda row: _rank(side, *row))
    return tuple(variable for variable, _ in ranked if variable.storage != "argument")


def _names(value: Value) -> list[tuple[str, Site]]:
    """Return the names under which a value is held: the assigned one, and the one that owns the storage."""
    found: list[tuple[str, Site]] = []
    if value.name and value.declared is not None:
        found.append((value.name, value.declared))
    storage = value.storage
    if storage is not None and storage.name and storage.declared is not None:
        own = (storage.name, storage.declared)
        if own not in found:
            found.append(own)
    return found


def _rank(side: Side, variable: Variable, values: list[Value]) -> tuple[bool, int, int]:
    """Put the variables that a reader looks for first: those that own storage, carried ones before helpers' locals."""
    function = side.kernel.id
    declared = values[0].storage.declared if values[0].storage is not None else None
    if any(value.op == "phi" for value in values):
        level = 0
    elif isinstance(declared, tuple) and declared[0] != function:
        level = 2
    else:
        level = 1
    return variable.is_view, level, values[0].number


def _variable(side: Side, name: str, place: Location, values: list[Value]) -> Variable:
    kernel = side.kernel
    storage = next((value.storage for value in values if value.storage is not None), None)
    declared = storage.declared if storage is not None else None
    is_view = declared is not None and (storage is None or storage.name != name or kernel.location(declared) != place)
    holds: dict[Location, Holding] = {}
    for value in values:
        at = kernel.location(value.site)
        holds.setdefault(at, Holding(at, _until(side, value), _operation(value)))
    return Variable(
        name, _qualified(side, name, values[0]), place, storage.space if storage is not None else "registers",
        _form(side, values), is_view, tuple(sorted(holds.values(), key=lambda h: (h.at.file, h.at.line))),
    )  # fmt: skip


def _qualified(side: Side, name: str, value: Value) -> str:
    declared = value.declared or (value.storage.declared if value.storage is not None else None)
    if isinstance(declared, FieldSite):
        return f"{declared.cls.declaration.qualified_name}::{name}"
    if isinstance(declared, tuple):
        return f"{side.kernel.source.definition(declared[0]).qualified_name}::{name}"
    return name


def _operation(value: Value) -> str:
    inner = value
    while inner.op in ("set", "copy", "convert", "element") and inner.args:
        inner = inner.args[0]
    return inner.op


def _until(side: Side, value: Value) -> Location | None:
    """Return where the storage of a value gets other contents."""
    if value.storage is None or value.op == "phi":
        return None
    term = side.comparison.kernel.term(value)
    for other in side.kernel.values[value.number + 1 :]:
        if other.op == "set" and other.storage is value.storage and side.comparison.kernel.term(other) is not term:
            return side.kernel.location(other.site)
    return None


def _form(side: Side, values: list[Value]) -> str:
    parts: list[str] = []
    confirmation = side.confirmation
    if confirmation is not None:
        factors = {round(confirmation.forms[v.number], 9) for v in values if v.number in confirmation.forms}
        words = {factor_words(factor, SCALE) for factor in factors}
        parts += sorted(words - {""})
    operations = {_operation(value) for value in values}
    if "exp2" in operations:
        parts.append("as a power of 2")
    lanes = side.comparison.lanes
    if lanes is not None and lanes.is_spread:
        extents = {lanes.extent(value) for value in values} & set(WORDS)
        if len(extents) == 2:
            parts.append(f"{WORDS[min(extents)]}, then {WORDS[max(extents)]}")
        elif extents:
            parts.append(WORDS[extents.pop()])
    return "; ".join(parts)


def factor_words(factor: float, scale: float) -> str:
    """Say in words by which factor something is larger than a symbol, at a softmax scale; empty for 1."""
    known = (
        (1.0, ""), (1.0 / scale, "without the softmax scale"), (scale, "times the softmax scale"),
        (math.log2(math.e), "times log2 e"), (math.log(2.0), "times ln 2"),
        (math.log2(math.e) / scale, "times log2 e, without the softmax scale"),
    )  # fmt: skip
    for number, words in known:
        if abs(factor - number) < 1e-6 * abs(number):
            return words
    return f"times {factor:.6g}"
