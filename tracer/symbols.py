"""Which variable of a kernel holds which symbol of the paper, from which operation on, in which form."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from tracer.crosscheck import BACKWARD, FORWARD, Analysis, KernelCheck, analyse
from tracer.dataflow.sides import LISTINGS, Side
from tracer.graph import Program
from tracer.model import Definition, Location
from tracer.records import dataclass
from tracer.route import DEFAULT_ENTRY, Identity, identity

if TYPE_CHECKING:
    from tracer.dataflow.algebra import Term
    from tracer.dataflow.ir import Loop, Site, Value
    from tracer.dataflow.reference import Reference

AGREES, DIFFERS, MISSING = "agrees", "differs", "missing"


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


@dataclass(frozen=True, slots=True)
class Row:
    """One symbol of the algorithm.

    Attributes:
        symbol: as the listing spells it.
        meaning: what it is.
        shape: in the paper's letters.
        paper_line: line of the printed algorithm.
        variables: the checkout's, those that own their storage first.
        reference: the reference kernel's.
        status: ``agrees``, ``differs`` or ``missing``.
        evidence: the steps of the algorithm that define it, as formulas, each with its verdict.
    """

    symbol: str
    meaning: str
    shape: str
    paper_line: int
    variables: tuple[Variable, ...]
    reference: tuple[Variable, ...]
    status: str
    evidence: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class LoopRow:
    """A loop over tiles.

    Attributes:
        index: ``j`` or ``i``: which tiles it walks over.
        location: where it stands.
        variable: its counter.
        order: ``ascending``, ``descending`` or empty where that is not seen.
        is_masked: scores are masked in it.
    """

    index: str
    location: Location
    variable: str
    order: str
    is_masked: bool


@dataclass(frozen=True, slots=True)
class SizeRow:
    """A size or a factor of the algorithm.

    Attributes:
        symbol: ``B_r``, ``B_c``, ``d``, ``i`` or ``softmax scale``.
        name: what the kernel calls it.
        location: where that is declared or assigned.
        note: what it is made of, where that is known.
    """

    symbol: str
    name: str
    location: Location | None
    note: str = ""


@dataclass(frozen=True, slots=True)
class SymbolTable:
    """The answer to *which variable holds which symbol*.

    Attributes:
        checkout: what was read.
        algorithm: what the paper calls it.
        function: the function that was followed.
        rows: one for each symbol.
        loops: the loops over tiles.
        sizes: block sizes, head dimension, the softmax scale.
        masks: where minus infinity is put in the place of a score.
        check: the cross-check of the same function, with what is missing.
    """

    checkout: Identity
    algorithm: str
    function: Definition
    rows: tuple[Row, ...]
    loops: tuple[LoopRow, ...]
    sizes: tuple[SizeRow, ...]
    masks: tuple[Location, ...]
    check: KernelCheck

    @property
    def agreeing(self) -> int:
        """How many symbols agree."""
        return sum(row.status == AGREES for row in self.rows)


def symbol_table(
    program: Program, *, algorithm: str = FORWARD, entry: str = DEFAULT_ENTRY, reference: Reference | None = None
) -> SymbolTable:
    """Find the symbols of an algorithm in a checkout's kernel.

    Args:
        program: the checkout.
        algorithm: ``forward`` or ``backward``.
        entry: the function in which the call begins.
        reference: the reference kernels; those of this package where None.

    Raises:
        NameNotFound: no function is named as ``entry`` says.
        NoRoute: no attention kernel is reached from it.
        TooLarge: the kernel is larger than the bound on work.
    """
    from tracer.dataflow.reference import lend

    wanted = BACKWARD if algorithm == BACKWARD else FORWARD
    with lend(reference) as used:
        analyses = analyse(program, algorithm=wanted, entry=entry, reference=used, only=wanted)
        return table_of(identity(program.checkout), analyses[0])


def table_of(checkout: Identity, analysis: Analysis) -> SymbolTable:
    """Return the symbol table of one analysed kernel function."""
    check = analysis.check()
    side = analysis.side
    rows = []
    for symbol in side.comparison.listing.symbols:
        variables = _variables(side, symbol.name)
        steps = [step for step in check.steps if step.result == symbol.name]
        if any(step.checkout == "differs" for step in steps):
            status = DIFFERS
        elif not variables and not _computed(side, symbol.name):
            status = MISSING
        else:
            status = AGREES
        evidence = tuple(dict.fromkeys(f"{step.formula}: {step.checkout}" for step in steps))
        reference = _variables(analysis.reference, symbol.name) if analysis.reference is not None else ()
        rows.append(Row(symbol.name, symbol.meaning, symbol.shape, symbol.line, variables, reference, status, evidence))
    return SymbolTable(
        checkout, check.algorithm, check.function, tuple(rows), _loops(side), _sizes(side), _masks(side), check
    )


def _computed(side: Side, symbol: str) -> bool:
    """Tell whether a symbol is computed although no variable holds it: it goes straight into what it is part of."""
    return any(side.comparison.partners(term) for term in _terms(side, symbol))


# -- variables --------------------------------------------------------------------------------------------------------
def _terms(side: Side, symbol: str) -> list[Term]:
    """Return the listing's terms that a symbol names."""
    paper = side.comparison.paper
    found = [term for term in side.comparison.steps.order if symbol in paper.names(term)]
    for term in side.comparison.steps.order:
        storage = term.origin.storage if term.op == "carried" and term.origin is not None else None
        if storage is not None and storage.name == symbol and term not in found:
            found.append(term)
    return found


def _variables(side: Side, symbol: str) -> tuple[Variable, ...]:
    values: dict[tuple[str, Location], list[Value]] = {}
    kernel = side.kernel
    for paper_term in _terms(side, symbol):
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
    from tracer.dataflow.names import FieldSite

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
    from tracer.dataflow.confirm import SCALE
    from tracer.dataflow.lanes import WORDS

    parts: list[str] = []
    confirmation = side.confirmation
    if confirmation is not None:
        factors = {round(confirmation.forms[v.number], 9) for v in values if v.number in confirmation.forms}
        words = {_factor_words(factor, SCALE) for factor in factors}
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


def _factor_words(factor: float, scale: float) -> str:
    import math

    known = (
        (1.0, ""), (1.0 / scale, "without the softmax scale"), (scale, "times the softmax scale"),
        (math.log2(math.e), "times log2 e"), (math.log(2.0), "times ln 2"),
        (math.log2(math.e) / scale, "times log2 e, without the softmax scale"),
    )  # fmt: skip
    for number, words in known:
        if abs(factor - number) < 1e-6 * abs(number):
            return words
    return f"times {factor:.6g}"


# -- loops, sizes, masks ----------------------------------------------------------------------------------------------
def _loops(side: Side) -> tuple[LoopRow, ...]:
    from tracer.dataflow.match import main_loops

    is_backward = "dO" in side.comparison.match.inputs
    rows = []
    masks = _mask_values(side)
    for loop in main_loops(side.comparison.kernel):
        is_masked = any(loop.first <= value.number < loop.last for value in masks)
        name, order = _counter(loop)
        rows.append(LoopRow("i" if is_backward else "j", side.kernel.location(loop.site), name, order, is_masked))
    return tuple(rows)


def _counter(loop: Loop) -> tuple[str, str]:
    """Return the counter of a loop that chooses the tile, and in which order it runs."""
    from tracer.dataflow.names import plain

    found = ("", "")
    for storage, start, _, after in loop.counters:
        step = plain(after)
        order = {"add": "ascending", "sub": "descending"}.get(step.op, "")
        if plain(start).op != "const" or not found[0]:
            found = (storage.name, order)
    return found


def _sizes(side: Side) -> tuple[SizeRow, ...]:
    match, kernel = side.comparison.match, side.kernel
    rows: list[SizeRow] = []
    for listing_name, symbols in (("Q", ("B_r", "d")), ("K", ("B_c", "d"))):
        storage = kernel.inputs.get(match.inputs.get(listing_name, ""))
        for extents, coordinates, _ in storage.tiles if storage is not None else ():
            for symbol, extent in zip(symbols, extents, strict=False):
                row = _size(side, symbol, extent)
                if row is not None and all(row.symbol != other.symbol for other in rows):
                    rows.append(row)
            if listing_name == "Q" and coordinates and coordinates[0] is not None:
                row = _size(side, "i", coordinates[0])
                if row is not None and all(other.symbol != "i" for other in rows):
                    rows.append(row)
    for name, value in (side.confirmation.scalars if side.confirmation is not None else {}).items():
        storage = kernel.inputs.get(name)
        declared = kernel.location(storage.declared) if storage is not None and storage.declared is not None else None
        rows.append(SizeRow("softmax scale", name, declared, _factor_words(value / 0.5, 1e9) or "the scale itself"))
    return tuple(rows)


def _size(side: Side, symbol: str, value: Value) -> SizeRow | None:
    from tracer.dataflow.names import plain

    while value.op == "element":
        value = value.args[0]
    if value.op == "set" and value.name:
        inner = plain(value)
        return SizeRow(
            symbol, value.name, side.kernel.location(value.declared), inner.text if inner is not value else ""
        )
    inner = plain(value)
    return SizeRow(symbol, inner.text, side.kernel.location(inner.site)) if inner.text else None


def _mask_values(side: Side) -> list[Value]:
    """Return the choices that put minus infinity in the place of a score, as far as they are compiled in."""
    return side.comparison.masks(side.comparison.match.flags)


def _masks(side: Side) -> tuple[Location, ...]:
    places: Iterable[Location] = (side.kernel.location(value.site) for value in _mask_values(side))
    return tuple(dict.fromkeys(places))


__all__ = ["LISTINGS", "Row", "SymbolTable", "Variable", "symbol_table", "table_of"]
