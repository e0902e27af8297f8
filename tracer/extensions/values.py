"""Sets of texts with what is known of each: the currency of the setup.py reader."""

from __future__ import annotations

import itertools
import posixpath
from collections.abc import Callable, Iterator
from enum import IntEnum
from typing import NamedTuple, Union

#: Starts the path of something inside the checkout that was built from ``__file__``.
ROOT = "\0"
WILDCARD = "*"

MAX_CHOICES = 4096

#: What a list holds: a text, or a tuple as it stands in a list that a loop takes apart.
Cell = Union[str, "tuple[Cell, ...]"]


class Chance(IntEnum):
    """Whether something is part of a build without any option or environment; of two that must both hold, the least.

    ``MAYBE`` is what the building machine decides: its compiler, its libraries, its GPUs.
    """

    NEVER = 0
    MAYBE = 1
    ALWAYS = 2

    @staticmethod
    def of(answer: bool | None) -> Chance:
        """Return the chance of what happens if a condition with this answer holds."""
        return Chance.MAYBE if answer is None else Chance.ALWAYS if answer else Chance.NEVER


class Item(NamedTuple):
    """One text that can occur."""

    cell: Cell
    chance: Chance = Chance.ALWAYS


class Value(NamedTuple):
    """What an expression can stand for: the elements of a list, or the alternatives of a single text."""

    items: tuple[Item, ...] = ()
    is_list: bool = False
    known: bool = True

    def texts(self) -> tuple[Item, ...]:
        """Return the items that are texts."""
        return tuple(item for item in self.items if isinstance(item.cell, str))

    def under(self, chance: Chance) -> Value:
        """Return the value as it is where it depends on something with this chance."""
        if chance is Chance.ALWAYS:
            return self
        return self._replace(items=tuple(Item(item.cell, min(item.chance, chance)) for item in self.items))


UNKNOWN = Value((Item(WILDCARD, Chance.MAYBE),), known=False)


def union(values: list[Value]) -> Value:
    """Return everything that one of the values can stand for."""
    items: dict[Cell, Chance] = {}
    for value in values:
        for item in value.items:
            items[item.cell] = max(items.get(item.cell, Chance.NEVER), item.chance)
    is_list = any(value.is_list for value in values)
    return Value(
        tuple(Item(cell, chance) for cell, chance in items.items()), is_list, all(value.known for value in values)
    )


def least(items: tuple[Item, ...]) -> Chance:
    """Return the chance that all of the items are part of the build."""
    return min((item.chance for item in items), default=Chance.ALWAYS)


def product(parts: list[tuple[Item, ...]]) -> Iterator[tuple[Item, ...]]:
    """Yield every combination of one item per part; parts become ``*`` where there would be too many."""
    size = 1
    for part in parts:
        size *= max(1, len(part))
    if size > MAX_CHOICES:
        parts = [part if len(part) == 1 else UNKNOWN.items for part in parts]
    return itertools.product(*parts)


def concatenate(parts: list[Value], join: Callable[..., str] | None = None) -> Value:
    """Return every text that the parts can make, side by side or as the parts of a path."""
    items: dict[str, Chance] = {}
    for combination in product([part.texts() for part in parts]):
        texts = [str(item.cell) for item in combination]
        text = join(*texts) if join is not None else "".join(texts)
        while WILDCARD * 3 in text:
            text = text.replace(WILDCARD * 3, WILDCARD * 2)
        items[text] = max(items.get(text, Chance.NEVER), least(combination))
    return Value(tuple(Item(text, chance) for text, chance in items.items()))


def each(value: Value, change: Callable[[str], str]) -> Value:
    """Return the value with every text changed."""
    return value._replace(items=tuple(Item(change(str(item.cell)), item.chance) for item in value.texts()))


def parent(path: str) -> str:
    """Return the folder that a path stands in."""
    if path == ROOT:
        return posixpath.join(ROOT, "..")
    return posixpath.dirname(path)
