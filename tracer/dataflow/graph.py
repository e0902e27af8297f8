"""The value flow that both front ends fill: what each read, write, branch and loop that they follow adds to it.

A front end calls :class:`Graph` in the order in which the program runs. A branch follows both of its sides and joins
what they leave behind; a loop follows its body once, and what that carries from step to step gets a phi.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

from tracer.dataflow.ir import (
    Access,
    Event,
    Formula,
    Loop,
    Ref,
    Site,
    Storage,
    Value,
    decided,
    flags_of,
    negated,
)
from tracer.dataflow.state import Opening, State
from tracer.errors import TracerError
from tracer.model import Location

#: How many values one kernel may have. The largest kernel of any release has a hundredth of it.
MAX_VALUES = 400_000


class TooLarge(TracerError):
    """A kernel whose value flow does not fit into the bound on work."""


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
        self.handed_away: list[Value] = []  # what is handed to functions that are not known, which may change it
        self.whole: set[int] = set()  # the values that are cut to whole numbers, by their numbers
        self.accesses: list[Access] = []
        self.undefined = self.value("undefined")

    def location(self, site: Site) -> Location:
        """Return where a site is."""
        raise NotImplementedError

    def calls(self, chain: Iterable[Site]) -> tuple[Location, ...]:
        """Return where the call sites of a chain are, innermost first; the chain has the outermost first."""
        return tuple([self.location(site) for site in reversed(tuple(chain))])

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
            self.events.append(Event("read", ref.storage, site, self.path, indices=ref.indices))
        if ref.storage.space == "global":
            ref.storage.loaded_in |= {loop.number for loop in self.open_loops}
        if ref.storage.space == "global" or ref.indices or ref.loops - value.loops:
            value = self.value("element", [value], site)
            value.loops |= ref.loops
            value.storage, value.address, value.indices = ref.storage, ref.address, ref.indices
            value.args += [index for index in ref.indices if index is not None]
            if ref.places and self.open_loops:
                self.accesses.append(Access(value, ref, self.path))
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
        value.guards, value.address, value.indices = self.path, ref.address, ref.indices
        if ref.places and self.open_loops:
            self.accesses.append(Access(value, ref, self.path))
        if ref.storage.space == "shared":
            is_copy = contents.op == "copy" and _from_global(contents.args[0])
            self.events.append(Event("write", ref.storage, site, self.path, is_copy, indices=ref.indices))
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
            holds, fails = _implied(left), _implied(negated(left))
            if formula[0] == "and":
                inner = self.select(right, _resolved(then, holds), _resolved(other, holds), site)
                return self.select(left, inner, _resolved(other, fails), site)
            inner = self.select(right, _resolved(then, fails), _resolved(other, fails), site)
            return self.select(left, _resolved(then, holds), inner, site)
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
        if value.storage is not None and not value.is_view and value.op in ("set", "element"):
            return value.storage.space == "global"  # what is in registers already has arrived
        value = value.forward if value.forward is not None else value.args[0]
    return value.op == "input" or (value.storage is not None and value.storage.space == "global")


def _resolved(value: Value, known: dict[str, bool]) -> Value:
    """Return what a value is where some flags are known: a choice by them is that side."""
    while value.op == "select" and known:
        condition = decided(value.condition, known)
        if not isinstance(condition, bool):
            break
        value = value.args[0 if condition else 1]
    return value


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
