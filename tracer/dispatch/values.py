"""What a C++ expression of the host code can be worth, numbers aside.

Library objects live in :mod:`tracer.dispatch.models`; here is what the language itself makes: places that hold values,
pointers, structs, sequences, functions and types.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from tracer.dispatch.numbers import Number
from tracer.records import dataclass

if TYPE_CHECKING:
    from tracer.cpp.tree import Node
    from tracer.dispatch.scope import Scope

Value = Any  # a Number, a str, one of the classes below, or a library object


class Uninitialised:
    """What a variable holds before its first assignment. Reading it is an error of the host code or of this reader."""

    def __repr__(self) -> str:
        """Return a name for messages."""
        return "uninitialised"


UNINITIALISED = Uninitialised()


@dataclass(frozen=True, slots=True)
class Unknown:
    """A value that the question does not fix: the contents of a tensor, an answer of the driver."""

    reason: str


class Cell:
    """A place in memory: a variable, a field, an element.

    Attributes:
        value: what it holds.
        type: the arithmetic type that assigned numbers are converted to; empty for anything else.
    """

    __slots__ = ("type", "value")

    def __init__(self, value: Value, type_: str = "") -> None:
        """Hold a value."""
        self.value, self.type = value, type_


class Pointer:
    """A pointer: to a cell, or to the memory of a tensor, or null."""

    __slots__ = ("target",)

    def __init__(self, target: object | None) -> None:
        """Point to something; None is the null pointer."""
        self.target = target


NULL = Pointer(None)


@dataclass(frozen=True, slots=True)
class Inside:
    """What a pointer points to after arithmetic: a place in the same memory; only that it is not null is known."""

    memory: object


@dataclass(frozen=True, slots=True)
class Symbol:
    """A named constant that is only ever compared: an enumerator, a stream, a status."""

    name: str


class Struct:
    """An object of a class of the checkout."""

    __slots__ = ("class_usr", "fields")

    def __init__(self, class_usr: str, fields: dict[str, Cell]) -> None:
        """Keep the fields by name."""
        self.class_usr, self.fields = class_usr, fields


class Sequence(list[Value]):
    """A vector, an array, an ``ArrayRef`` or a braced list."""


class Tuple(list[Value]):
    """A tuple or pair; of cells where ``std::tie`` made it."""


class Optional:
    """A ``std::optional``.

    Attributes:
        cell: what it holds; None for an absent value.
        element: the arithmetic type of what it can hold; empty for another type or where that is not known.
    """

    __slots__ = ("cell", "element")

    def __init__(self, value: Value | None, element: str = "") -> None:
        """Hold a value; None for an absent one."""
        self.cell, self.element = Cell(value), element


@dataclass(frozen=True, slots=True)
class Function:
    """A function by name, before it is called: overloads and specializations are not decided yet.

    Attributes:
        name: qualified name.
        usrs: the declarations that the name can mean; empty for a dependent name.
        arguments: the template arguments, evaluated; None where none are written.
    """

    name: str
    usrs: tuple[str, ...]
    arguments: tuple[Value, ...] | None


class Closure:
    """A lambda with the scope that it was made in. All captures are by reference: the host code relies on nothing else.

    Attributes:
        owner: id of the function whose tree the lambda belongs to.
    """

    __slots__ = ("node", "owner", "scope")

    def __init__(self, node: Node, scope: Scope, owner: str) -> None:
        """Keep the lambda and its scope."""
        self.node, self.scope, self.owner = node, scope, owner


# -- types ------------------------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class NamedType:
    """A type that is only a name here: an arithmetic type, a library class.

    Attributes:
        name: qualified name.
        arguments: template arguments; None for what is no template.
    """

    name: str
    arguments: tuple[Value, ...] | None = None

    def __str__(self) -> str:
        """Return it as written in C++."""
        return self.name if self.arguments is None else f"{self.name}<{written(self.arguments)}>"


@dataclass(frozen=True, slots=True)
class PointerType:
    """A pointer or reference to a type; ``mark`` is ``*`` or ``&``."""

    pointee: Value
    mark: str

    def __str__(self) -> str:
        """Return it as written in C++."""
        return f"{self.pointee}{self.mark}"


@dataclass(frozen=True, slots=True)
class ValueType:
    """``decltype(expression)``: a type that is known by a value of it."""

    value: Value


def written(arguments: Iterable[Value]) -> str:
    """Return template arguments as a demangler writes them: ``> >`` keeps its space."""
    text = ", ".join(str(argument) for argument in arguments)
    return f"{text} " if text.endswith(">") else text


def copied(value: Value) -> Value:
    """Return what an object is after it was passed or assigned by value."""
    if type(value) is Number:
        return value
    if isinstance(value, Struct):
        return Struct(value.class_usr, {n: Cell(copied(c.value), c.type) for n, c in value.fields.items()})
    if isinstance(value, Sequence):
        return Sequence(value)
    if isinstance(value, Optional):
        return Optional(value.cell.value, value.element)
    return value


def object_size(struct: Struct) -> Unknown:
    """Return ``sizeof`` an object: how a compiler lays it out is not modelled, only whose size it is."""
    return Unknown(f"the size of an object of {struct.class_usr}")
