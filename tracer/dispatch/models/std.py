"""The C and C++ libraries, as far as host code uses them: one entry per function, in the order of their headers."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from tracer.dispatch.answers import Unsupported
from tracer.dispatch.models.registry import Site, constructor, function, method
from tracer.dispatch.numbers import Number, boolean, convert, integer, single
from tracer.dispatch.run import Refused
from tracer.dispatch.values import (
    Cell,
    NamedType,
    Optional,
    Pointer,
    Sequence,
    Struct,
    Tuple,
    Unknown,
    Value,
    object_size,
)

if TYPE_CHECKING:
    from tracer.dispatch.engine import Engine


class Opaque:
    """An object that host code only holds: a lock, a guard, a mutex."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        """Name what it is."""
        self.name = name


# -- numbers ----------------------------------------------------------------------------------------------------------
def _extreme(values: list[Value], largest: bool) -> Value:
    candidates = values[0] if len(values) == 1 and isinstance(values[0], Sequence) else values
    for value in candidates:
        if isinstance(value, Unknown):
            return value
        if not isinstance(value, Number):
            raise Unsupported("std::min or std::max of something that is no number")
    if len({value.type for value in candidates}) != 1:
        raise Unsupported("std::min or std::max of numbers of different types")
    best: Number = candidates[0]
    for value in candidates[1:]:
        if value.value > best.value if largest else value.value < best.value:
            best = value
    return best


@function("std::min", "min")
def _min(engine: Engine, values: list[Value], site: Site) -> Value:
    return _extreme(_explicit(values, site), False)


@function("std::max", "max")
def _max(engine: Engine, values: list[Value], site: Site) -> Value:
    return _extreme(_explicit(values, site), True)


def _explicit(values: list[Value], site: Site) -> list[Value]:
    """Convert to the type that ``std::max<T>`` names."""
    if site.arguments and isinstance(site.arguments[0], NamedType):
        return [convert(v, site.arguments[0].name) if isinstance(v, Number) else v for v in values]
    return values


def _real(name: str, compute: object) -> None:
    """Register a function of one floating-point number: float stays float, anything else becomes double."""

    def run(engine: Engine, values: list[Value], site: Site) -> Value:
        number = values[0]
        if isinstance(number, Unknown):
            return number
        if not isinstance(number, Number):
            raise Unsupported(f"{name} of something that is no number")
        assert callable(compute)
        result = float(compute(number.value))
        return Number(single(result), "float") if number.type == "float" else Number(result, "double")

    function(name, f"std::{name}", f"{name}f")(run)


_real("ceil", lambda x: math.ceil(x) if math.isfinite(x) else x)
_real("floor", lambda x: math.floor(x) if math.isfinite(x) else x)
_real("sqrt", lambda x: math.sqrt(x) if x >= 0 else math.nan)
_real("fabs", abs)


@function("std::numeric_limits::infinity")
def _infinity(engine: Engine, values: list[Value], site: Site) -> Value:
    return Number(math.inf, "float")


# -- program ----------------------------------------------------------------------------------------------------------
@function("exit", "abort")
def _exit(engine: Engine, values: list[Value], site: Site) -> Value:
    status = f" with status {values[0]}" if values else ""
    raise Refused(f"the host code ends the process{status}", engine.location(site.node))


@function("printf", "fprintf", "fflush")
def _print(engine: Engine, values: list[Value], site: Site) -> Value:
    return integer(0)


@function("memset", "std::memset")
def _memset(engine: Engine, values: list[Value], site: Site) -> Value:
    pointer, byte = values[0], values[1]
    if isinstance(pointer, Pointer) and isinstance(pointer.target, Cell) and isinstance(pointer.target.value, Struct):
        struct = pointer.target.value
        if byte == integer(0) and values[2] == object_size(struct):
            pointer.target.value = engine.objects.zeroed(engine.types.class_type(struct.class_usr, ()))
            return pointer
    raise Unsupported("memset of anything but a whole object to zero")


@function("flashtracer_assert")
def _assert(engine: Engine, values: list[Value], site: Site) -> Value:
    if not engine.truth(values[0]):
        raise Refused(f"Assertion `{values[1]}' failed.", engine.location(site.node))
    return None


# -- optional, tuple, vector ------------------------------------------------------------------------------------------
@method(Optional, "has_value", result="bool")
def _has_value(engine: Engine, optional: Optional, values: list[Value], site: Site) -> Value:
    return boolean(optional.cell.value is not None)


@method(Optional, "value")
def _value(engine: Engine, optional: Optional, values: list[Value], site: Site) -> Value:
    if optional.cell.value is None:
        raise Refused("bad optional access", engine.location(site.node))
    return optional.cell.value


@method(Optional, "value_or")
def _value_or(engine: Engine, optional: Optional, values: list[Value], site: Site) -> Value:
    return values[0] if optional.cell.value is None else optional.cell.value


@constructor("std::optional", "c10::optional")
def _optional(engine: Engine, values: tuple[Value, ...], site: Site) -> Value:
    if not values:
        return Optional(None)
    return values[0] if isinstance(values[0], Optional) else Optional(values[0])


@function("std::make_optional", "c10::make_optional")
def _make_optional(engine: Engine, values: list[Value], site: Site) -> Value:
    return Optional(values[0])


@function("std::make_tuple", "std::make_pair")
def _make_tuple(engine: Engine, values: list[Value], site: Site) -> Value:
    return Tuple(values)


@constructor("std::tuple", "std::pair")
def _tuple(engine: Engine, values: tuple[Value, ...], site: Site) -> Value:
    return Tuple(values)


@function("std::tie", takes_places=True)
def _tie(engine: Engine, cells: list[Value], site: Site) -> Value:
    return Tuple(cells)


@function("std::get")
def _get(engine: Engine, values: list[Value], site: Site) -> Value:
    if len(site.arguments) == 1 and isinstance(site.arguments[0], Number) and isinstance(values[0], Tuple | Sequence):
        return values[0][int(site.arguments[0].value)]
    raise Unsupported("std::get of something that is no tuple")


@function("std::move", "std::forward")
def _move(engine: Engine, values: list[Value], site: Site) -> Value:
    return values[0]


@function("std::swap", takes_places=True)
def _swap(engine: Engine, cells: list[Value], site: Site) -> Value:
    a, b = cells
    a.value, b.value = b.value, a.value
    return None


@constructor("std::vector", "std::initializer_list", "c10::ArrayRef", "std::array")
def _vector(engine: Engine, values: tuple[Value, ...], site: Site) -> Value:
    if not values:
        return Sequence()
    if len(values) == 1 and isinstance(values[0], Sequence):
        return Sequence(values[0])
    if len(values) <= 2 and isinstance(values[0], Number):
        element = site.arguments[0] if site.arguments else None
        zero: Value = values[1] if len(values) == 2 else None
        if zero is None and isinstance(element, NamedType):
            zero = convert(integer(0), element.name)
        if zero is not None:
            return Sequence([zero] * int(values[0].value))
    raise Unsupported("a std::vector made from these arguments")


@method(Sequence, "push_back", "emplace_back")
def _push_back(engine: Engine, sequence: Sequence, values: list[Value], site: Site) -> Value:
    sequence.append(values[0])
    return None


@method(Sequence, "reserve")
def _reserve(engine: Engine, sequence: Sequence, values: list[Value], site: Site) -> Value:
    return None


@method(Sequence, "size", result="unsigned long")
def _size(engine: Engine, sequence: Sequence, values: list[Value], site: Site) -> Value:
    return integer(len(sequence), "unsigned long")


@method(Sequence, "back")
def _back(engine: Engine, sequence: Sequence, values: list[Value], site: Site) -> Value:
    if not sequence:
        raise Unsupported("the last element of an empty sequence")
    return sequence[-1]


@method(Sequence, "empty")
def _empty(engine: Engine, sequence: Sequence, values: list[Value], site: Site) -> Value:
    return boolean(not sequence)


# -- locks, strings ---------------------------------------------------------------------------------------------------
@constructor("std::lock_guard", "std::unique_lock", "std::scoped_lock", "std::mutex")
def _lock(engine: Engine, values: tuple[Value, ...], site: Site) -> Value:
    return Opaque("a lock")


@constructor("std::string", "std::basic_string")
def _string(engine: Engine, values: tuple[Value, ...], site: Site) -> Value:
    if len(values) == 1 and isinstance(values[0], str):
        return values[0]
    raise Unsupported("a std::string made from these arguments")


@function("std::to_string")
def _to_string(engine: Engine, values: list[Value], site: Site) -> Value:
    return str(values[0])
