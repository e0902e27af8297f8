"""The intermediate form that both front ends fill: values in SSA form over storages, joins of branches, phis of loops.

Every tensor, variable and data member is a :class:`Storage`; a name in the source is a :class:`Ref` to one, and a view
(``partition_S``, a reference, a by-reference parameter) shares it. A write makes a new :class:`Value` the contents of
the storage. So one accumulator holds S before the exponential and P after it without any special case.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, TypeAlias

from tracer.dataflow.state import Opening, State
from tracer.errors import TracerError
from tracer.model import Location
from tracer.records import dataclass

#: A place in a source, as its front end knows it; :meth:`Graph.location` makes a Location of it when asked.
Site = Any
#: ``True``, ``False``, ``("flag", name)``, ``("test", value)``, ``("not", f)``, ``("and", f, g)``, ``("or", f, g)``.
Formula: TypeAlias = bool | tuple[Any, ...]

#: How many values one kernel may have. The largest kernel of any release has a tenth of it.
MAX_VALUES = 400_000


class TooLarge(TracerError):
    """A kernel whose value flow does not fit into the bound on work."""


class Value:
    """One operation, or one assignment, of the program that is followed.

    Attributes:
        number: order of creation.
        op: what it does: ``const``, ``param``, ``input``, ``index``, ``after``, ``set``, ``element``, ``copy``,
            ``convert``, ``phi``, ``select``, ``undefined``, ``opaque``, ``reduce``, ``lane``, ``matmul``, or an
            arithmetic operation, comparison or function by its name.
        args: the operands.
        text: the name, for the operations that have one.
        constant: of a ``const``.
        condition: of a ``select``: its first operand is taken where this holds.
        site: where it stands.
        chain: the call sites through which its function was entered, outermost first.
        name: the variable assigned, of a ``set``.
        declared: where that variable is declared.
        storage: what is written or carried.
        loop: of ``phi``, ``index`` and ``after``.
        loops: the loops by whose induction variable it is indexed.
        forward: the value that it turned out to be the same as.
        is_view: a ``set`` that only gives another name to unchanged contents; a ``select`` that stands for the
            predicate of a store into an element.
        guards: of a ``set`` of an output: the formulas under which it is reached.
    """

    __slots__ = (
        "args", "chain", "condition", "constant", "declared", "forward", "guards", "is_view", "loop", "loops", "name",
        "number", "op", "site", "storage", "text",
    )  # fmt: skip

    def __init__(self, number: int, op: str, args: Iterable[Value] = ()) -> None:
        """Make a value; :meth:`Graph.value` does, and numbers it."""
        self.number, self.op = number, op
        self.args = list(args)
        self.text = ""
        self.constant: float | int | bool | str | None = None
        self.condition: Formula = True
        self.site: Site = None
        self.chain: tuple[Site, ...] = ()
        self.name = ""
        self.declared: Site = None
        self.storage: Storage | None = None
        self.loop: Loop | None = None
        self.forward: Value | None = None
        self.is_view = False
        self.guards: tuple[Formula, ...] = ()
        self.loops: frozenset[int] = frozenset()
        for argument in self.args:
            if argument.loops:
                self.loops |= argument.loops

    def __repr__(self) -> str:
        """Return a short form for debugging."""
        return (
            f"<{self.number} {self.op} {self.text or self.name or self.constant or ''} {[a.number for a in self.args]}>"
        )


class Storage:
    """Something that holds a value: a variable, a tensor, a data member, a buffer.

    Attributes:
        number: order of creation.
        name: of the variable that it belongs to; empty for a part of a buffer that has no name of its own.
        declared: where that is declared.
        space: ``registers``, ``shared``, ``global``; ``argument`` for a scalar that the host passes.
        parts: the buffers cut out of this one, by the place that cuts them.
        loaded_in: the loops inside which it is read, of an input.
        tiles: the tiles cut out of it: (extents, coordinates), as values.
        is_raw: it is an array of bytes that tensors are laid into.
        is_moving: a pointer into it moves from step to step, as in double buffering.
    """

    __slots__ = ("declared", "is_moving", "is_raw", "loaded_in", "name", "number", "parts", "space", "tiles")

    def __init__(self, number: int, name: str, declared: Site, space: str) -> None:
        """Make a storage; :meth:`Graph.store` does, and numbers it and gives it contents."""
        self.number, self.name, self.declared, self.space = number, name, declared, space
        self.parts: dict[Any, Storage] = {}
        self.loaded_in: set[int] = set()
        self.tiles: list[tuple[tuple[Value, ...], tuple[Value | None, ...], Site]] = []
        self.is_raw = False
        self.is_moving = False


class Ref:
    """A name of a storage, or of a part of it.

    Attributes:
        storage: what it names.
        loops: the loops by whose induction variable the part is chosen.
        is_pointer: it can be offset.
        is_indexed: a part was chosen by an index.
        name, declared: the variable, where it is one.
        indices: the index values by which the part was chosen.
    """

    __slots__ = ("declared", "indices", "is_indexed", "is_pointer", "loops", "name", "storage")

    def __init__(
        self,
        storage: Storage,
        name: str = "",
        declared: Site = None,
        *,
        loops: frozenset[int] = frozenset(),
        is_pointer: bool = False,
        is_indexed: bool = False,
        indices: tuple[Value | None, ...] = (),
    ) -> None:
        """Name a storage."""
        self.storage, self.name, self.declared, self.loops = storage, name, declared, loops
        self.is_pointer, self.is_indexed, self.indices = is_pointer, is_indexed, indices

    def view(self, **changes: Any) -> Ref:
        """Return the same reference with some attributes changed; ``loops`` are added to those that it has."""
        new = Ref(
            self.storage, self.name, self.declared, loops=self.loops, is_pointer=self.is_pointer,
            is_indexed=self.is_indexed, indices=self.indices,
        )  # fmt: skip
        for key, change in changes.items():
            setattr(new, key, self.loops | change if key == "loops" else change)
        return new


class Loop:
    """One loop of the source, once for each time that its function is inlined.

    Attributes:
        number: identity.
        site: where it stands.
        depth: how many loops surround it.
        first, last: numbers of its first and last value.
        phis: what it carries from step to step.
        unindexed: the storages that it writes without its induction variable choosing the part.
        counters: its induction variables: (storage, value at the start, value in the loop, value after one step).
        condition: the formula under which it goes on; True where none is written.
        breaks: for each ``break``, the formulas that lead to it and the counters' values there.
        reductions: the phis recognised as reductions, by their operation.
    """

    __slots__ = (
        "after", "breaks", "chain", "condition", "counters", "depth", "first", "guards", "last", "number", "phis",
        "site", "unindexed",
    )  # fmt: skip

    def __init__(self, number: int, site: Site, chain: tuple[Site, ...], depth: int, first: int) -> None:
        """Make a loop; :meth:`Graph.loop` does, and runs it."""
        self.number, self.site, self.chain, self.depth, self.first, self.last = number, site, chain, depth, first, first
        self.phis: list[Value] = []
        self.unindexed: set[Storage] = set()
        self.counters: list[tuple[Storage, Value, Value, Value]] = []
        self.after: dict[Storage, Value] = {}
        self.condition: Formula = True
        self.breaks: list[tuple[tuple[Formula, ...], dict[Storage, Value]]] = []
        self.guards: tuple[Formula, ...] = ()


def plain(value: Value) -> Value:
    """Look through assignments and copies."""
    while value.op in ("set", "copy", "convert") or value.forward is not None:
        value = value.forward if value.forward is not None else value.args[0]
    return value


def negated(formula: Formula) -> Formula:
    """Return the opposite of a formula."""
    if isinstance(formula, bool):
        return not formula
    return formula[1] if formula[0] == "not" else ("not", formula)


def conjunction(left: Formula, right: Formula) -> Formula:
    """Return ``left and right``."""
    if left is False or right is False:
        return False
    if left is True:
        return right
    return left if right is True or left == right else ("and", left, right)


def disjunction(left: Formula, right: Formula) -> Formula:
    """Return ``left or right``."""
    return (
        negated(conjunction(negated(left), negated(right)))
        if isinstance(left, bool) or isinstance(right, bool)
        else (left if left == right else ("or", left, right))
    )


def flags_of(formula: Formula) -> frozenset[str]:
    """Return the compile-time flags that a formula depends on."""
    if isinstance(formula, bool) or formula[0] == "test":
        return frozenset()
    if formula[0] == "flag":
        return frozenset((formula[1],))
    return frozenset().union(*[flags_of(part) for part in formula[1:]])


def decided(formula: Formula, flags: dict[str, bool]) -> Formula:
    """Put known flags into a formula and simplify it."""
    if isinstance(formula, bool) or formula[0] == "test":
        return formula
    if formula[0] == "flag":
        return flags.get(formula[1], formula)
    if formula[0] == "not":
        return negated(decided(formula[1], flags))
    left, right = decided(formula[1], flags), decided(formula[2], flags)
    return conjunction(left, right) if formula[0] == "and" else disjunction(left, right)


@dataclass(frozen=True, slots=True)
class Event:
    """Something that the order of memory accesses depends on.

    Attributes:
        kind: ``read``, ``write``, ``block`` and ``warp`` for barriers, ``wait``, ``fence``, ``loop``, ``end``.
        storage: the shared buffer that is read or written.
        site: where.
        path: the formulas under which it happens.
        is_copy: of a ``write``: the data come from global memory, so that they may arrive later.
        loop: of ``loop`` and ``end``.
    """

    kind: str
    storage: Storage | None
    site: Site
    path: tuple[Formula, ...]
    is_copy: bool = False
    loop: Loop | None = None


class Graph:
    """The value flow of one function, while it is followed and afterwards.

    ``state`` maps storages to their contents at the point of the program that has been reached.
    """

    def __init__(self) -> None:
        """Start empty."""
        self.values: list[Value] = []
        self.state = State()
        self._storages = 0
        self.inputs: dict[str, Storage] = {}
        self.roots: dict[Storage, Value] = {}
        self.outputs: dict[str, Value] = {}
        self.loops: list[Loop] = []
        self.open_loops: list[Loop] = []
        self.known: dict[str, bool] = {}
        self.path: tuple[Formula, ...] = ()
        self.exits: list[tuple[Formula, ...]] = []
        self.chain: tuple[Site, ...] = ()
        self.events: list[Event] = []
        self.undefined = self.value("undefined")

    def location(self, site: Site) -> Location:
        """Return where a site is."""
        raise NotImplementedError

    # -- making values ------------------------------------------------------------------------------------------------
    def value(self, op: str, args: Iterable[Value] = (), site: Site = None, text: str = "") -> Value:
        """Make a value.

        Raises:
            TooLarge: the kernel has more values than the bound allows.
        """
        value = Value(len(self.values), op, args)
        value.site, value.chain, value.text = site, self.chain, text
        self.values.append(value)
        if len(self.values) > MAX_VALUES:
            raise TooLarge(
                f"the value flow has more than {MAX_VALUES} operations, which no attention kernel needs; "
                "the function that was followed is not one, or it inlines itself"
            )
        return value

    def const(self, constant: float | int | bool | str, site: Site = None) -> Value:
        """Make a constant."""
        value = self.value("const", (), site)
        value.constant = constant
        return value

    def store(
        self, name: str = "", declared: Site = None, space: str = "registers", contents: Value | None = None
    ) -> Storage:
        """Make a storage."""
        storage = self._storage(name, declared, space)
        self.state[storage] = self.undefined if contents is None else contents
        return storage

    def _storage(self, name: str, declared: Site, space: str) -> Storage:
        self._storages += 1
        return Storage(self._storages, name, declared, space)

    def input(self, name: str, declared: Site = None) -> Storage:
        """Return the storage of what the caller passes under a name, made at its first mention."""
        if name not in self.inputs:
            storage = self._storage(name, declared, "argument")
            self.inputs[name] = storage
            root = self.value("input", (), declared, name)
            root.storage, root.name, root.declared = storage, name, declared
            self.roots[storage] = root
        storage = self.inputs[name]
        if storage not in self.state:
            self.state[storage] = self.roots[storage]
        return storage

    # -- reading and writing ------------------------------------------------------------------------------------------
    def contents(self, storage: Storage) -> Value:
        """Return what a storage holds now."""
        known = self.state.get(storage)
        if known is None:
            known = self.state[storage] = self.before(storage)
        return known

    def before(self, storage: Storage) -> Value:
        """Return what a storage holds before anything is written to it."""
        return self.roots.get(storage, self.undefined)

    def read(self, ref: Ref, site: Site = None) -> Value:
        """Return the value behind a reference."""
        value = self.contents(ref.storage)
        if ref.storage.space == "shared":
            self.events.append(Event("read", ref.storage, site, self.path))
        if ref.storage.space == "global":
            ref.storage.loaded_in |= {loop.number for loop in self.open_loops}
        if ref.storage.space == "global" or ref.indices or ref.loops - value.loops:
            value = self.value("element", [value], site)
            value.loops |= ref.loops
            value.storage = ref.storage
            value.args += [index for index in ref.indices if index is not None]
        return value

    def write(self, ref: Ref, contents: Value, site: Site) -> None:
        """Make ``contents`` what the storage behind a reference holds."""
        for loop in self.open_loops:
            if loop.number not in ref.loops:
                loop.unindexed.add(ref.storage)
        value = self.value("set", [contents], site)
        value.name, value.declared, value.storage = (
            ref.name or ref.storage.name,
            ref.declared or ref.storage.declared,
            ref.storage,
        )
        value.args += [index for index in ref.indices if index is not None]
        value.guards = self.path
        if ref.storage.space == "shared":
            is_copy = contents.op == "copy" and _from_global(contents.args[0])
            self.events.append(Event("write", ref.storage, site, self.path, is_copy))
        self.state[ref.storage] = value

    def rename(self, ref: Ref, site: Site) -> None:
        """Note that a storage got another name, so that what it holds can be found under that name too."""
        value = self.value("set", [self.contents(ref.storage)], site)
        value.name, value.declared, value.storage, value.is_view = ref.name, ref.declared, ref.storage, True
        self.state[ref.storage] = value

    # -- control flow -------------------------------------------------------------------------------------------------
    def select(self, formula: Formula, then: Value, other: Value, site: Site = None) -> Value:
        """Return ``then`` where the formula holds, else ``other``; one value for each flag and each run-time test."""
        formula = decided(formula, self.known)
        if formula is True or then is other:
            return then
        if formula is False:
            return other
        assert isinstance(formula, tuple)
        if formula[0] == "not":
            return self.select(formula[1], other, then, site)
        if formula[0] in ("and", "or") and flags_of(formula):
            left, right = formula[1], formula[2]
            if not flags_of(left):
                left, right = right, left
            inner = self.select(right, then, other, site)
            return (
                self.select(left, inner, other, site) if formula[0] == "and" else self.select(left, then, inner, site)
            )
        value = self.value("select", [then, other], site)
        value.condition = formula
        return value

    @contextmanager
    def assuming(self, formula: Formula) -> Iterator[None]:
        """Follow what happens where a formula holds."""
        known, path = self.known, self.path
        self.known = {**known, **_implied(formula)}
        self.path = (*path, formula)
        try:
            yield
        finally:
            self.known, self.path = known, path

    def chosen(
        self, storage: Storage, formula: Formula, sides: tuple[Value, Value], before: State, site: Site
    ) -> Value:
        """Return what a storage holds behind a condition: ``sides[0]`` where it holds, else ``sides[1]``.

        Where only an element of a tile or of a tensor is written, and only on one side, the condition is the store's
        predicate: it says which elements exist.
        """
        chosen = self.select(formula, *sides, site)
        old = before.get(storage)
        if storage.space in ("shared", "global") and chosen.op == "select" and old in sides:
            then, other = chosen.args
            new = other if then is old else then
            if (new.op == "set" and len(new.args) > 1) or (new.op == "select" and new.is_view):
                chosen.is_view = True
                if new is other:
                    chosen.args, chosen.condition = [other, then], negated(chosen.condition)
        return chosen

    def branch(
        self, formula: Formula, then: Callable[[], bool], other: Callable[[], bool] | None, site: Site = None
    ) -> bool:
        """Follow both sides of a condition and join what they leave behind.

        A side that returns True has left the function or the loop: it contributes nothing to what comes after.

        Returns:
            Whether both sides left.
        """
        formula = decided(formula, self.known)
        if isinstance(formula, bool):
            side = then if formula else other
            return side() if side is not None else False
        before = self.state.copy()
        with self.assuming(formula):
            then_left = then()
        after_then, self.state = self.state, before.copy()
        other_left = False
        if other is not None:
            with self.assuming(negated(formula)):
                other_left = other()
        after_other = self.state
        if then_left and other_left:
            self.state = before
            return True
        if then_left:
            self.path = (*self.path, negated(formula))
            return False
        if other_left:
            self.state = after_then
            self.path = (*self.path, formula)
            return False
        joined = after_then.copy()
        for storage in after_other.touched(after_then):
            mine, value = after_then.get(storage), after_other.get(storage)
            if value is None and mine is not None:
                value = self.roots.get(storage)
            if value is None or mine is value:
                continue
            mine = self.before(storage) if mine is None else mine
            if mine is not value:
                joined[storage] = self.chosen(storage, formula, (mine, value), before, site)
        self.state = joined
        return False

    def loop(
        self,
        site: Site,
        counters: Iterable[Storage],
        body: Callable[[Loop], None],
        step: Callable[[Loop], None],
    ) -> None:
        """Follow the body of a loop once, with a phi for everything that it may carry from step to step.

        A storage whose writes are all indexed by the loop's induction variable is written element by element and needs
        no phi. Everything else that the body changes is carried.

        Args:
            site: where the loop stands.
            counters: the storages of its induction variables.
            body: follows the body; sets the loop's condition.
            step: follows the step expression.
        """
        loop = Loop(len(self.loops), site, self.chain, len(self.open_loops), len(self.values))
        self.loops.append(loop)
        loop.guards = self.path
        before, counters = self.state, list(counters)

        def carry(storage: Storage, contents: Value) -> Value:
            phi = self.value("phi", [contents], site)
            phi.chain, phi.loop, phi.storage, phi.loops = loop.chain, loop, storage, contents.loops
            return phi

        opening = Opening(before, carry)
        self.state = State(opening)
        for storage in counters:
            start = before.get(storage)
            if start is not None:
                counter = self.value("index", (), site)
                counter.loop, counter.storage, counter.loops = loop, storage, frozenset((loop.number,))
                self.state[storage] = counter
                loop.counters.append((storage, start, counter, counter))
        self.open_loops.append(loop)
        self.events.append(Event("loop", None, site, self.path, loop=loop))
        path, known = self.path, self.known
        body(loop)
        step(loop)
        self.path, self.known = path, known
        ends = self.state
        loop.counters = [
            (storage, start, counter, ends.get(storage) or counter) for storage, start, counter, _ in loop.counters
        ]
        self.open_loops.pop()
        self.events.append(Event("end", None, site, self.path, loop=loop))
        self._close(loop, opening, ends, counters)
        for storage in counters:
            after = self.value("after", (), site)
            after.loop, after.storage = loop, storage
            self.state[storage] = loop.after[storage] = after
        loop.last = len(self.values)

    def _close(self, loop: Loop, opening: Opening, ends: State, counters: list[Storage]) -> None:
        """Set what the storages hold behind a loop, and drop the phis of those that it does not carry."""
        self.state = opening.before.copy()
        for storage, end in ends.own.items():
            if storage in counters or end is None:
                continue
            if opening.value(storage) is None:
                self.state[storage] = end  # it is new
        opening.is_open = False
        for storage, phi in sorted(opening.carried.items(), key=lambda item: item[0].number):
            end = ends.get(storage)
            if end is None or end is phi:
                phi.forward = phi.args[0]
            elif storage not in loop.unindexed:
                phi.forward, self.state[storage] = phi.args[0], end
            else:
                phi.args.append(end)
                loop.phis.append(phi)
                self.state[storage] = phi


def _from_global(value: Value) -> bool:
    while value.op in ("set", "element", "copy", "convert") or value.forward is not None:
        if value.storage is not None and value.storage.space == "global":
            return True
        value = value.forward if value.forward is not None else value.args[0]
    return value.op == "input" or (value.storage is not None and value.storage.space == "global")


def _implied(formula: Formula) -> dict[str, bool]:
    """Return the flags whose value follows from a formula."""
    if isinstance(formula, bool) or formula[0] == "test":
        return {}
    if formula[0] == "flag":
        return {formula[1]: True}
    if formula[0] == "and":
        return {**_implied(formula[1]), **_implied(formula[2])}
    if formula[0] == "not":
        inner = formula[1]
        if isinstance(inner, tuple) and inner[0] == "flag":
            return {inner[1]: False}
        if isinstance(inner, tuple) and inner[0] == "or":
            return {**_implied(negated(inner[1])), **_implied(negated(inner[2]))}
    return {}
