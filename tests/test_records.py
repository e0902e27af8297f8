"""The quick ``dataclass`` beside the standard library's: same construction, equality, hash, text and refusals."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from dataclasses import field
from typing import Any

import pytest

from tracer.records import dataclass


def declared(decorator: Any) -> type:
    @decorator(frozen=True, slots=True)
    class Row:
        name: str
        size: int = 3
        parts: list[int] = field(default_factory=list, compare=False)
        hidden: str = field(default="x", repr=False)

    return Row


OURS, THEIRS = declared(dataclass), declared(dataclasses.dataclass)


@dataclass(frozen=True, slots=True)
class Pair:
    left: int
    right: int


@dataclass(slots=True)
class Changing:
    total: int = 0


@dataclass(frozen=True)
class Checked:
    size: int

    def __post_init__(self) -> None:
        if self.size < 0:
            raise ValueError(self.size)

    def __repr__(self) -> str:
        return "<checked>"


@dataclass(frozen=True, slots=True, eq=False)
class Identity:
    number: int


@pytest.mark.parametrize(
    ("arguments", "named"),
    [(("a",), {}), (("a", 4), {"parts": [1]}), ((), {"name": "b", "hidden": "y"}), (("a", 3, [2], "z"), {})],
)
def test_it_makes_what_the_standard_library_makes(arguments: tuple[Any, ...], named: dict[str, Any]) -> None:
    ours, theirs = OURS(*arguments, **named), THEIRS(*arguments, **named)
    assert dataclasses.asdict(ours) == dataclasses.asdict(theirs)
    assert repr(ours) == repr(theirs)
    assert [f.name for f in dataclasses.fields(ours)] == [f.name for f in dataclasses.fields(theirs)]
    assert (ours == OURS("a"), hash(ours) == hash(OURS("a"))) == (
        theirs == THEIRS("a"),
        hash(theirs) == hash(THEIRS("a")),
    )
    assert not hasattr(ours, "__dict__")
    assert dataclasses.replace(ours, size=9).size == 9


def test_every_default_list_is_its_own() -> None:
    assert OURS("a").parts is not OURS("a").parts


@pytest.mark.parametrize("arguments", [(), ("a", 1, [], "x", "more")])
def test_wrong_arguments_are_refused(arguments: tuple[Any, ...]) -> None:
    for made in (OURS, THEIRS):
        with pytest.raises(TypeError, match=r"__init__\(\)"):
            made(*arguments)


def test_a_frozen_one_cannot_be_changed() -> None:
    pair = Pair(1, 2)
    with pytest.raises(dataclasses.FrozenInstanceError):
        pair.left = 2  # type: ignore[misc]
    with pytest.raises(dataclasses.FrozenInstanceError):
        del pair.left  # type: ignore[misc]
    assert pair == Pair(1, 2) != Pair(2, 1) and pair != (1, 2)
    assert len({pair, Pair(1, 2), Pair(2, 1)}) == 2


def test_copies_are_equal() -> None:
    pair = Pair(1, 2)
    assert copy.copy(pair) == copy.deepcopy(pair) == pickle.loads(pickle.dumps(pair)) == pair


def test_one_that_is_not_frozen_changes_and_has_no_hash() -> None:
    changing = Changing()
    changing.total += 1
    assert changing == Changing(1)
    with pytest.raises(TypeError, match="unhashable"):
        hash(changing)


def test_methods_of_the_class_stay() -> None:
    assert repr(Checked(1)) == "<checked>"
    with pytest.raises(ValueError, match="-1"):
        Checked(-1)


def test_without_equality_objects_are_themselves() -> None:
    assert Identity(1) != Identity(1) and len({Identity(1), Identity(1)}) == 2
