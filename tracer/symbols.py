"""Which variable of a kernel holds which symbol of the paper, from which operation on, in which form."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from tracer.crosscheck import BACKWARD, FORWARD, Analysis, KernelCheck, analyse
from tracer.dataflow.sides import LISTINGS, Side
from tracer.dataflow.variables import Variable, factor_words, terms_of, variables_of
from tracer.graph import Program
from tracer.model import Definition, Location
from tracer.records import dataclass
from tracer.route import DEFAULT_ENTRY, Identity, identity

if TYPE_CHECKING:
    from tracer.dataflow.ir import Loop, Value
    from tracer.dataflow.reference import Reference

AGREES, DIFFERS, MISSING = "agrees", "differs", "missing"


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
        analyses = analyse(program, algorithm=wanted, entry=entry, reference=used, only=wanted, forms=True)
        return table_of(identity(program.checkout), analyses.functions[0])


def table_of(checkout: Identity, analysis: Analysis) -> SymbolTable:
    """Return the symbol table of one analysed kernel function."""
    check = analysis.check()
    side = analysis.side
    rows = []
    for symbol in side.comparison.listing.symbols:
        variables = variables_of(side, symbol.name)
        steps = [step for step in check.steps if step.result == symbol.name]
        if any(step.checkout == "differs" for step in steps):
            status = DIFFERS
        elif not variables and not _computed(side, symbol.name):
            status = MISSING
        else:
            status = AGREES
        evidence = tuple(dict.fromkeys(f"{step.formula}: {step.checkout}" for step in steps))
        reference = analysis.reference.variables[symbol.name] if analysis.reference is not None else ()
        rows.append(Row(symbol.name, symbol.meaning, symbol.shape, symbol.line, variables, reference, status, evidence))
    return SymbolTable(
        checkout, check.algorithm, check.function, tuple(rows), _loops(side), _sizes(side), _masks(side), check
    )


def _computed(side: Side, symbol: str) -> bool:
    """Tell whether a symbol is computed although no variable holds it: it goes straight into what it is part of."""
    return any(side.comparison.partners(term) for term in terms_of(side, symbol))


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
        rows.append(SizeRow("softmax scale", name, declared, factor_words(value / 0.5, 1e9) or "the scale itself"))
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
