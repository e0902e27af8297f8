"""How a library model is written down: by the qualified name of what it stands for.

A model is a Python function of the engine, the evaluated arguments and the call site. Registered under a name, it is
what the engine runs in place of the library's code.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from tracer.cpp.tree import Node
from tracer.dispatch.values import Value
from tracer.records import dataclass

if TYPE_CHECKING:
    from tracer.dispatch.engine import Engine


@dataclass(frozen=True, slots=True)
class Site:
    """Where a model is called from.

    Attributes:
        node: the call.
        arguments: explicit template arguments.
    """

    node: Node
    arguments: tuple[Value, ...]


FunctionModel = Callable[["Engine", list[Value], Site], Value]
MethodModel = Callable[["Engine", Value, list[Value], Site], Value]
ConstructorModel = Callable[["Engine", tuple[Value, ...], Site], Value]


@dataclass(frozen=True, slots=True)
class Model:
    """A library function; ``takes_places`` when it gets the places of its arguments instead of their values."""

    run: FunctionModel
    takes_places: bool


FUNCTIONS: dict[str, Model] = {}
METHODS: dict[tuple[type, str], MethodModel] = {}
RESULTS: dict[tuple[type, str], str] = {}
CONSTRUCTORS: dict[str, ConstructorModel] = {}
CONSTANTS: dict[str, Value] = {}


def function(*names: str, takes_places: bool = False) -> Callable[[FunctionModel], FunctionModel]:
    """Register the model of library functions by their qualified names."""

    def register(run: FunctionModel) -> FunctionModel:
        for name in names:
            FUNCTIONS[name] = Model(run, takes_places)
        return run

    return register


def method(class_: type, *names: str, result: str | None = None) -> Callable[[MethodModel], MethodModel]:
    """Register the model of member functions of the objects that ``class_`` stands for.

    Args:
        class_: the Python class of the objects.
        names: of the member functions.
        result: the arithmetic type that they return; empty for another type, None where it depends on the call.
    """

    def register(run: MethodModel) -> MethodModel:
        for name in names:
            METHODS[class_, name] = run
            if result is not None:
                RESULTS[class_, name] = result
        return run

    return register


def constructor(*names: str) -> Callable[[ConstructorModel], ConstructorModel]:
    """Register the model of a library class's constructors by the class's qualified name."""

    def register(run: ConstructorModel) -> ConstructorModel:
        for name in names:
            CONSTRUCTORS[name] = run
        return run

    return register


def numbers_of(values: Sequence[Value]) -> list[int]:
    """Return plain integers of a list of numbers.

    Raises:
        Unsupported: one of them is no number that the call fixes.
    """
    from tracer.dispatch.answers import Unsupported
    from tracer.dispatch.numbers import Number
    from tracer.dispatch.values import Unknown

    plain = []
    for value in values:
        if isinstance(value, Unknown):
            raise Unsupported(f"a size that depends on {value.reason}")
        if not isinstance(value, Number):
            raise Unsupported("a size that is no number")
        plain.append(int(value.value))
    return plain
