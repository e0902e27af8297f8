"""What every storage holds at one point of a program that is followed.

A loop carries what its body touches, and nothing else. So inside a loop a state keeps only what was read or written
there; the phi of a storage is made where the body first asks for it. A kernel has some hundred storages and some
hundred loops, of which one loop touches a handful.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tracer.dataflow.ir import Storage, Value


class Opening:
    """The beginning of a loop.

    Attributes:
        before: what the storages held there.
        carried: the phis made so far, by storage.
        is_open: the loop is still being followed; afterwards it carries nothing more.
    """

    __slots__ = ("_carry", "before", "carried", "is_open")

    def __init__(self, before: State, carry: Callable[[Storage, Value], Value]) -> None:
        """Begin a loop; ``carry`` makes the phi of a storage from what that held before."""
        self.before, self._carry = before, carry
        self.carried: dict[Storage, Value] = {}
        self.is_open = True

    def value(self, storage: Storage) -> Value | None:
        """Return what a storage holds at the beginning of a step; None for one that the loop's surroundings lack."""
        found = self.carried.get(storage)
        if found is None:
            found = self.before.get(storage)
            if found is not None and self.is_open:
                found = self.carried[storage] = self._carry(storage, found)
        return found


class State:
    """The contents of the storages; inside a loop, what was changed there, over what the loop carries.

    Attributes:
        own: what was changed since the innermost loop began; None for what was forgotten since.
        opening: the beginning of that loop; None outside of all loops.
    """

    __slots__ = ("opening", "own")

    def __init__(self, opening: Opening | None = None) -> None:
        """Start with nothing changed."""
        self.own: dict[Storage, Value | None] = {}
        self.opening = opening

    def get(self, storage: Storage) -> Value | None:
        """Return what a storage holds; None where nothing is known of it."""
        own = self.own
        if storage in own:
            return own[storage]
        return self.opening.value(storage) if self.opening is not None else None

    def __getitem__(self, storage: Storage) -> Value:
        """Return what a storage holds, which must be known."""
        found = self.get(storage)
        if found is None:
            raise KeyError(storage)
        return found

    def __contains__(self, storage: Storage) -> bool:
        """Tell whether anything is known of a storage."""
        return self.get(storage) is not None

    def __setitem__(self, storage: Storage, contents: Value) -> None:
        """Change what a storage holds."""
        self.own[storage] = contents

    def forget(self, storage: Storage) -> None:
        """Drop a storage."""
        if self.opening is None:
            self.own.pop(storage, None)
        else:
            self.own[storage] = None

    def copy(self) -> State:
        """Return a state that changes on its own from here."""
        new = State(self.opening)
        new.own = dict(self.own)
        return new

    def touched(self, other: State) -> list[Storage]:
        """Return the storages whose contents may differ between two states of one program, this state's first."""
        theirs = set(other._openings())
        common = next((opening for opening in self._openings() if opening in theirs), None)
        found: dict[Storage, None] = {}
        for state in (self, other):
            found.update(dict.fromkeys(state.own))
            opening = state.opening
            while opening is not common and opening is not None:
                found.update(dict.fromkeys(opening.carried))
                found.update(dict.fromkeys(opening.before.own))
                opening = opening.before.opening
        return list(found)

    def _openings(self) -> list[Opening]:
        """Return the loops around this state, the innermost first."""
        found = []
        opening = self.opening
        while opening is not None:
            found.append(opening)
            opening = opening.before.opening
        return found
