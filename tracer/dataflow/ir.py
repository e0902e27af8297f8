"""The intermediate form that both front ends fill: values in SSA form over storages, joins of branches, phis of loops.

Every tensor, variable and data member is a :class:`Storage`; a name in the source is a :class:`Ref` to one, and a view
(``partition_S``, a reference, a by-reference parameter) shares it. A write makes a new :class:`Value` the contents of
the storage. So one accumulator holds S before the exponential and P after it without any special case. These are the
parts; :class:`tracer.dataflow.graph.Graph` puts them together.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, TypeAlias

from tracer.records import dataclass

if TYPE_CHECKING:
    from tracer.dataflow.addresses import Address

#: A place in a source, as its front end knows it; :meth:`Graph.location` makes a Location of it when asked.
Site = Any
#: ``True``, ``False``, ``("flag", name)``, ``("test", value)``, ``("not", f)``, ``("and", f, g)``, ``("or", f, g)``.
Formula: TypeAlias = bool | tuple[Any, ...]
#: A dimension of a tensor: its number, and in a dimension that is made of others theirs; empty for all as one.
Dimension: TypeAlias = tuple[int, ...]


class Value:
    """One operation, or one assignment, of the program that is followed.

    Attributes:
        number: order of creation.
        op: what it does: ``const``, ``param``, ``input``, ``index``, ``after``, ``set``, ``element``, ``copy``,
            ``convert``, ``phi``, ``select``, ``undefined``, ``opaque``, ``reduce``, ``lane``, ``matmul``, or an
            arithmetic operation, comparison or function by its name.
        args: the operands.
        text: the name, for the operations that have one; of an ``element`` that is a coordinate, which of them.
        constant: of a ``const``; of a ``lane`` the name of a shuffle that goes in one direction only.
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
        address: of an ``element`` and of a ``set`` in global memory: where that is; None elsewhere.
        indices: of an ``element`` and of a ``set``: what chooses the part, dimension by dimension; None where a whole
            dimension is kept.
    """

    __slots__ = (
        "address", "args", "chain", "condition", "constant", "declared", "forward", "guards", "indices", "is_view",
        "loop", "loops", "name", "number", "op", "site", "storage", "text",
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
        self.address: Address | None = None
        self.indices: tuple[Value | None, ...] = ()
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
        moves: the paths on which a pointer into it moves from step to step, as in double buffering.
        is_identity: its elements are their own coordinates.
    """

    __slots__ = (
        "declared", "is_identity", "is_raw", "loaded_in", "moves", "name", "number", "parts", "space", "tiles",
    )  # fmt: skip

    def __init__(self, number: int, name: str, declared: Site, space: str) -> None:
        """Make a storage; :meth:`Graph.store` does, and numbers it and gives it contents."""
        self.number, self.name, self.declared, self.space = number, name, declared, space
        self.parts: dict[Any, Storage] = {}
        self.loaded_in: set[int] = set()
        self.tiles: list[tuple[tuple[Value, ...], tuple[Value | None, ...], Site]] = []
        self.is_raw = False
        self.moves: list[tuple[Formula, ...]] = []
        self.is_identity = False


class Layout:
    """How the elements of a view of a tensor are numbered; only its identity counts.

    Attributes:
        base: of a slice: the layout that it was cut out of.
        kept: of a slice: the dimensions of that which can still be indexed.
        is_of_thread: it numbers the elements of one thread.
    """

    __slots__ = ("base", "is_of_thread", "kept")

    def __init__(
        self, base: Layout | Storage | None = None, kept: tuple[Dimension, ...] = (), *, is_of_thread: bool = False
    ) -> None:
        """Make a layout that no other tensor has."""
        self.base, self.kept = base, kept
        self.is_of_thread: bool = is_of_thread or (isinstance(base, Layout) and base.is_of_thread)


@dataclass(frozen=True, slots=True)
class Place:
    """One index of an element: which dimension it counts, and where it stands in that."""

    layout: Layout | Storage
    dimension: Dimension
    index: Value


class Ref:
    """A name of a storage, or of a part of it.

    Attributes:
        storage: what it names.
        loops: the loops by whose induction variable the part is chosen.
        is_pointer: it can be offset.
        is_indexed: a part was chosen by an index.
        name, declared: the variable, where it is one.
        indices: the index values by which the part was chosen.
        is_alias: it is a parameter that was passed by reference.
        address: where in global memory it is; None for what is elsewhere.
        layout: how the elements are numbered that can still be chosen: two references with the same one have the same
            extents. A storage stands for the layout that it was made with.
        places: the indices by which the part was chosen, with what each of them counts.
        component: which component of an element is meant, where that is a coordinate; -1 for the whole.
    """

    __slots__ = (
        "address", "component", "declared", "indices", "is_alias", "is_indexed", "is_pointer", "layout", "loops",
        "name", "places", "storage",
    )  # fmt: skip

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
        self.address: Address | None = None
        self.layout: Layout | Storage = storage
        self.places: tuple[Place, ...] = ()
        self.component = -1
        self.is_alias = False

    def view(self, **changes: Any) -> Ref:
        """Return the same reference with some attributes changed; ``loops`` are added to those that it has."""
        new = Ref(
            self.storage, self.name, self.declared, loops=self.loops, is_pointer=self.is_pointer,
            is_indexed=self.is_indexed, indices=self.indices,
        )  # fmt: skip
        new.address, new.layout, new.places, new.component = self.address, self.layout, self.places, self.component
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
        after: the counters' values behind it.
        chain: the call sites through which its function was entered, outermost first.
        guards: the formulas under which it is reached.
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


def tests_of(formula: Formula) -> list[Value]:
    """Return the values that a formula tests at run time."""
    if isinstance(formula, bool) or formula[0] == "flag":
        return []
    if formula[0] == "test":
        return [formula[1]]
    return [value for part in formula[1:] for value in tests_of(part)]


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
class Access:
    """One read or write of an element.

    Attributes:
        value: the ``element`` that is read, or the ``set``.
        ref: what is accessed.
        path: the formulas under which it is.
    """

    value: Value
    ref: Ref
    path: tuple[Formula, ...]


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
        groups: of a ``wait``: how many of the newest groups of copies may still be under way.
        waits_for_all: of a ``wait``: also for copies that are in no group yet.
        indices: of a ``read`` or ``write``: the index values by which a part of the buffer was chosen.
        tool: of a ``read`` by a tiled copy: that.
    """

    kind: str
    storage: Storage | None
    site: Site
    path: tuple[Formula, ...]
    is_copy: bool = False
    loop: Loop | None = None
    groups: int = 0
    waits_for_all: bool = False
    indices: tuple[Value | None, ...] = ()
    tool: Value | None = None
