"""Carrying terms out: a kernel's exact terms on random tiles, against attention in double precision.

What was understood of a kernel is thereby shown to compute attention. Nothing of the checkout is compiled or run: the
numbers come from interpreting the extracted terms. A factor that the host passes has the value that the host code gives
it (:mod:`tracer.dataflow.host`).
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping
from dataclasses import field

from tracer.dataflow.algebra import Term
from tracer.dataflow.arrays import Array, elementwise, filled, multiplied, reduced, row_axes, scalar
from tracer.dataflow.ir import Formula, Loop, Value
from tracer.dataflow.names import plain
from tracer.dataflow.terms import Terms
from tracer.records import dataclass

#: Which axes the tile of an input has, by the name that the listings give it.
AXES = {
    "Q": "id", "K": "jd", "V": "jd", "O": "id", "dO": "id", "L": "i", "D": "i", "l": "i", "m": "i",
    "O_parts": "sid", "L_parts": "si",
}  # fmt: skip
_COMPARE: dict[str, Callable[[float, float], bool]] = {
    "lt": lambda a, b: a < b, "gt": lambda a, b: a > b, "le": lambda a, b: a <= b, "ge": lambda a, b: a >= b,
    "eq": lambda a, b: a == b, "ne": lambda a, b: a != b,
}  # fmt: skip


class Unknown(Exception):
    """A term that cannot be carried out: it holds something without a known value."""


@dataclass(slots=True)
class Problem:
    """One small attention problem.

    Attributes:
        sizes: rows of a Q tile (``i``), rows of a K/V tile (``j``), head dimension (``d``), tiles and ranges (``s``).
        tiles: of each input, the array of each K/V tile; one array for what does not depend on the tile.
        scalars: values of the factors that the host passes, by name.
        hidden: of each tile, which scores are masked: 1.0 where they are.
        steps: how many tiles each loop of a chain of loops over tiles gets.
    """

    sizes: dict[str, int]
    tiles: dict[str, list[Array]]
    scalars: dict[str, float]
    hidden: list[Array]
    steps: tuple[int, ...] = ()
    #: Names of inputs, as the terms that are carried out call them, by the listing's names.
    names: dict[str, str] = field(default_factory=dict)


class Evaluation:
    """One run of a set of exact terms on a problem."""

    def __init__(self, terms: Terms, problem: Problem, flags: Mapping[str, bool] | None = None) -> None:
        """Prepare; nothing is carried out yet. Compile-time flags that are not named are off."""
        self.terms, self.problem, self.flags = terms, problem, {**terms.flags, **(flags or {})}
        self.by_input = {mine: listing for listing, mine in problem.names.items()}
        self.final: dict[int, Array] = {}
        self.current: dict[int, Array] = {}
        self.snapshots: dict[int, tuple[dict[int, Array], int]] = {}
        self.tile = 0
        self.counts: dict[int, int] = {}
        self._memo: dict[int, Array] = {}
        self._knowable: dict[int, bool] = {}
        self._chain = self._chained_loops()

    # -- loops --------------------------------------------------------------------------------------------------------
    def _chained_loops(self) -> list[int]:
        """Return the loops over tiles in the order in which one begins with what the other leaves."""
        after: dict[int, int] = {}
        for number, leaves in self.terms.recurrences.items():
            for leaf in leaves:
                if (
                    leaf.is_data
                    and leaf.start is not None
                    and leaf.start.op == "carried"
                    and leaf.start.loop is not None
                ):
                    after[number] = leaf.start.loop.number
        data = [n for n, leaves in self.terms.recurrences.items() if any(map(self._matters, leaves))]
        return sorted(data, key=lambda n: len(_chain(n, after)))

    def _run(self, loop: Loop) -> None:
        leaves = [leaf for leaf in self.terms.recurrences[loop.number] if self._matters(leaf)]
        values = {leaf.number: self.value(leaf.start) for leaf in leaves if leaf.start and not _never_set(leaf.start)}
        first, count = self._tiles_of(loop)
        for step in range(count):
            self.tile = first + step
            self.current.update(values)
            self.counts[loop.number] = step
            self._memo = {}
            self.snapshots[loop.number] = (dict(self.current), self.tile)
            values = {leaf.number: self.value(leaf.step) for leaf in leaves if leaf.step is not None}
            self._memo = {}
        for leaf in leaves:
            self.current.pop(leaf.number, None)
        self.final.update(values)

    def _matters(self, leaf: Term) -> bool:
        return leaf.step is not None and not leaf.step.op.startswith("call")

    def _tiles_of(self, loop: Loop) -> tuple[int, int]:
        total = len(self.problem.hidden)
        chain = self._chain
        if loop.number not in chain or len(chain) == 1:
            return 0, total
        position = chain.index(loop.number)
        sizes = list(self.problem.steps[: len(chain) - 1]) or [1]
        sizes.append(total - sum(sizes))
        if position >= len(sizes):
            raise ValueError("more loops carry values from tile to tile than a kernel has loops over tiles")
        return sum(sizes[:position]), sizes[position]

    # -- terms --------------------------------------------------------------------------------------------------------
    def outputs(self) -> dict[str, Array]:
        """Carry out what is stored.

        Raises:
            Unknown: something without a known value enters it.
        """
        return {name: self.value(term) for name, term in self.terms.outputs.items()}

    def inside(self, term: Term) -> Array:
        """Carry out a term as it is in the last step of its loop.

        Raises:
            Unknown: something without a known value enters it.
        """
        loops = {leaf.loop.number for leaf in _leaves(term) if leaf.loop is not None}
        if loops and all(number in self.snapshots for number in loops):
            number = max(loops)
            snapshot, tile = self.snapshots[number]
            saved, self.current, self.tile, self._memo = self.current, dict(snapshot), tile, {}
            try:
                return self.value(term)
            finally:
                self.current, self._memo = saved, {}
        self._memo, self.tile = {}, len(self.problem.hidden) - 1
        return self.value(term)

    def value(self, term: Term) -> Array:
        """Carry out a term at the present point of the run."""
        known = self._memo.get(term.number)
        if known is None:
            known = self._memo[term.number] = self._value(term)
        return known

    def _value(self, term: Term) -> Array:
        op = term.op
        if op == "constant":
            return scalar(float(str(term.detail)))
        if op == "input":
            return self._input(str(term.detail))
        if op == "carried":
            return self._carried(term)
        if op == "scalar":
            name = str(term.detail)
            if name in self.problem.scalars:
                return scalar(self.problem.scalars[name])
            raise Unknown(name)
        if op == "flag":
            return self.value(term.args[0 if self.flags.get(str(term.detail), False) else 1])
        if op in ("guarded", "either"):
            return self._choice(term)
        if op == "join":
            return self.value(term.args[0])
        if op in ("rowmax", "rowmin", "rowsum"):
            operand = self.value(term.args[0])
            operation = {"rowmax": max, "rowmin": min, "rowsum": math.fsum}[op]
            return reduced(operation, operand, row_axes(operand.axes))  # type: ignore[arg-type]
        if op == "matmul":
            return multiplied(self.value(term.args[0]), self.value(term.args[1]))
        if op in _OPERATIONS:
            return elementwise(_OPERATIONS[op], *[self.value(argument) for argument in term.args])
        raise Unknown(f"{op} {term.detail or ''}".strip())

    def _input(self, name: str) -> Array:
        tiles = self.problem.tiles.get(self.by_input.get(name, name))
        if tiles is None:
            raise Unknown(name)
        return tiles[self.tile % len(tiles)]

    def _carried(self, term: Term) -> Array:
        if term.number in self.current:
            return self.current[term.number]
        if term.number not in self.final:
            assert term.loop is not None
            saved, self._memo = self._memo, {}
            current, tile = self.current, self.tile
            self.current = {}
            self._run(term.loop)
            self.current, self.tile, self._memo = current, tile, saved
        if term.number not in self.final:
            raise Unknown("a value that no step of the loop gives")
        return self.final[term.number]

    # -- conditions ---------------------------------------------------------------------------------------------------
    def _choice(self, term: Term) -> Array:
        assert term.origin is not None
        then, other = term.args
        truth = self._truth(term.origin.condition)
        if truth is None:
            for side, rest in ((then, other), (other, then)):
                if side.op == "constant" and side.detail == -math.inf:
                    shown = self.value(rest)
                    if {"i", "j"} <= set(shown.axes):
                        hidden = self.problem.hidden[self.tile % len(self.problem.hidden)]
                        return elementwise(lambda h, x: -math.inf if h == 1.0 else x, hidden, shown)
            if self._masks(other) and not self._masks(then):
                return self.value(other)  # a mask that is skipped where it would hide nothing
            return self.value(then if then.is_data else other)
        left, right = self._side(then, truth, 1.0), self._side(other, truth, 0.0)
        if left is None or right is None:
            return left if left is not None else right if right is not None else self.value(then)
        return elementwise(lambda t, a, b: a if t else b, truth, left, right)

    def _masks(self, term: Term) -> bool:
        """Tell whether minus infinity stands in the place of a score in a term."""
        if term.op == "flag":
            return self._masks(term.args[0 if self.flags.get(str(term.detail), False) else 1])
        return term.op == "guarded" and any(x.op == "constant" and x.detail == -math.inf for x in term.args)

    def _side(self, term: Term, truth: Array, when: float) -> Array | None:
        """Return one side of a choice; None where it is never taken."""
        return self.value(term) if any((number != 0.0) == (when == 1.0) for number in truth.numbers) else None

    def _truth(self, formula: Formula) -> Array | None:
        """Return where a condition holds; None where nothing is known of it."""
        if isinstance(formula, bool):
            return scalar(float(formula))
        if formula[0] == "flag":
            return scalar(float(self.flags.get(formula[1], False)))
        if formula[0] == "test":
            return self._test(formula[1])
        if formula[0] == "not":
            inner = self._truth(formula[1])
            return None if inner is None else elementwise(lambda x: float(x == 0.0), inner)
        return self._both(formula[0], self._truth(formula[1]), self._truth(formula[2]))

    def _both(self, op: str, left: Array | None, right: Array | None) -> Array | None:
        if left is None or right is None:
            known = right if left is None else left
            decisive = 0.0 if op == "and" else 1.0
            if known is not None and all((number != 0.0) == bool(decisive) for number in known.numbers):
                return known
            return None
        if op == "and":
            return elementwise(lambda a, b: float(a != 0.0 and b != 0.0), left, right)
        return elementwise(lambda a, b: float(a != 0.0 or b != 0.0), left, right)

    def _test(self, value: Value) -> Array | None:
        value = plain(value)
        if value.op in ("and", "or"):
            return self._both(value.op, self._test(value.args[0]), self._test(value.args[1]))
        if value.op == "not":
            inner = self._test(value.args[0])
            return None if inner is None else elementwise(lambda x: float(x == 0.0), inner)
        if value.op == "param":
            return scalar(float(self.flags.get(value.text, False)))
        if value.op == "const":
            return scalar(float(bool(value.constant)))
        if value.op in _COMPARE:
            left, right = self._operand(value.args[0]), self._operand(value.args[1])
            if left is None or right is None:
                return None
            compare = _COMPARE[value.op]
            return elementwise(lambda a, b: float(compare(a, b)), left, right)
        return None

    def _operand(self, value: Value) -> Array | None:
        value = plain(value)
        if value.op == "index" and value.loop is not None:
            return self._counter(value)
        if value.op == "const" and isinstance(value.constant, int | float):
            return scalar(float(value.constant))
        term = self.terms.term(value)
        if (not term.is_data and term.op != "constant") or not self._is_known(term):
            return None
        return self.value(term)

    def _is_known(self, term: Term) -> bool:
        """Tell whether only the problem's tensors enter a term, and operations that can be carried out."""
        known = self._knowable.get(term.number)
        if known is None:
            self._knowable[term.number] = True
            if term.op == "input":
                known = str(term.detail) in self.by_input
            else:
                known = not term.op.startswith("call") and all(self._is_known(argument) for argument in term.args)
            self._knowable[term.number] = known
        return known

    def _counter(self, value: Value) -> Array | None:
        """Return the number of the step, of a counter that starts at a constant and counts by one."""
        assert value.loop is not None
        step = self.counts.get(value.loop.number)
        for storage, start, counter, after in value.loop.counters:
            if storage is value.storage and step is not None:
                first, following = plain(start), plain(after)
                by_one = following.op == "add" and plain(following.args[1]).constant == 1
                if first.op == "const" and isinstance(first.constant, int) and by_one and counter is value:
                    return scalar(first.constant + step)
        return None


_OPERATIONS: dict[str, Callable[..., float]] = {
    "add": lambda *numbers: math.fsum(numbers) if all(map(math.isfinite, numbers)) else sum(numbers),
    "mul": lambda *numbers: math.prod(numbers) if 0.0 not in numbers else 0.0,
    "sub": lambda a, b: a - b if a != b else 0.0,
    "div": lambda a, b: a / b if b != 0.0 else math.copysign(math.inf, a) if a != 0.0 else math.nan,
    "reciprocal": lambda a: 1.0 / a if a != 0.0 else math.inf,
    "exp": lambda a: math.exp(a) if a < 700.0 else math.inf,
    "log": lambda a: math.log(a) if a > 0.0 else (-math.inf if a == 0.0 else math.nan),
    "neg": lambda a: -a,
    "tanh": math.tanh,
    "max": max,
    "min": min,
}


def _leaves(term: Term) -> list[Term]:
    found: dict[int, Term] = {}
    waiting, seen = [term], set()
    while waiting:
        current = waiting.pop()
        if current.number in seen or not (current.carried or current.op == "carried"):
            continue
        seen.add(current.number)
        if current.op == "carried":
            found[current.number] = current
        waiting.extend(current.args)
    return list(found.values())


def _never_set(start: Term | None) -> bool:
    return start is None or start.op == "undefined"


def _chain(number: int, after: Mapping[int, int]) -> list[int]:
    chain = [number]
    while chain[-1] in after and after[chain[-1]] not in chain:
        chain.append(after[chain[-1]])
    return chain


# -- problems and what attention is -----------------------------------------------------------------------------------
def random_tiles(inputs: Mapping[str, str], sizes: Mapping[str, int], tiles: int, seed: int) -> dict[str, list[Array]]:
    """Return random arrays for the inputs of a listing; those with an axis ``j`` get one for each tile."""
    generator = random.Random(seed)
    found: dict[str, list[Array]] = {}
    for name in inputs:
        axes = AXES.get(name, "id")
        count = tiles if "j" in axes else 1
        found[name] = [
            filled(axes, [sizes[axis] for axis in axes], lambda _: generator.uniform(-1.5, 1.5)) for _ in range(count)
        ]
    return found


def joined(tiles: list[Array]) -> Array:
    """Return the tiles of one input, joined along the keys."""
    rows = tiles[0].size("j")
    axes = tiles[0].axes
    sizes = [rows * len(tiles) if axis == "j" else tiles[0].size(axis) for axis in axes]
    return filled(axes, sizes, lambda place: tiles[place["j"] // rows].at({**place, "j": place["j"] % rows}))


def attention(q: Array, k: Array, v: Array, scale: float, hidden: Array) -> tuple[Array, Array, Array]:
    """Return attention in double precision: output, log-sum-exp, probabilities."""
    scores = elementwise(lambda s, h: -math.inf if h == 1.0 else scale * s, multiplied(q, k), hidden)
    largest = reduced(max, scores, ["j"])
    weights = elementwise(lambda s, m: math.exp(s - m), scores, largest)
    total = reduced(math.fsum, weights, ["j"])
    probabilities = elementwise(lambda w, t: w / t, weights, total)
    return multiplied(probabilities, v), elementwise(lambda m, t: m + math.log(t), largest, total), probabilities
