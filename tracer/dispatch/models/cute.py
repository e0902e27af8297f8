"""CuTe, as far as the sizes of shared memory need it: shapes are counted, layouts are only carried.

How a layout swizzles decides where an element lies, never how many there are. So a layout here is its shape.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from tracer.dispatch.answers import Unsupported
from tracer.dispatch.models.registry import CONSTRUCTORS, Site, constructor, function
from tracer.dispatch.numbers import Number, binary, integer
from tracer.dispatch.values import NamedType, Unknown, Value, ValueType

if TYPE_CHECKING:
    from tracer.dispatch.engine import Engine


class Layout:
    """A layout or a shape: the number of elements in each mode."""

    __slots__ = ("modes",)

    def __init__(self, modes: tuple[int, ...]) -> None:
        """Keep the modes."""
        self.modes = modes


def _mode(value: Value) -> int:
    """Return a mode given as a number, as ``Int<8>``, ``_8``, or a nested shape."""
    if isinstance(value, ValueType):
        value = value.value
    if isinstance(value, Number):
        return int(value.value)
    if isinstance(value, Layout):
        return math.prod(value.modes)
    if isinstance(value, NamedType):
        name = value.name.rpartition("::")[2]
        if name in ("Int", "C") and value.arguments and isinstance(value.arguments[0], Number):
            return int(value.arguments[0].value)
        if name.startswith("_") and name[1:].isdigit():
            return int(name[1:])
        if name in ("Shape", "tuple") and value.arguments is not None:
            return math.prod(map(_mode, value.arguments))
    raise Unsupported(f"the size of {value} in a CuTe shape")


@constructor("cute::Shape", "cute::tuple", "cute::Stride", "cute::Tile", "cute::Coord", "cute::Step")
def _shape(engine: Engine, values: tuple[Value, ...], site: Site) -> Value:
    return Layout(tuple(map(_mode, values or site.arguments)))


@constructor("cute::Int", "cute::C")
def _int(engine: Engine, values: tuple[Value, ...], site: Site) -> Value:
    return site.arguments[0]


@constructor("cute::Layout")
def _layout(engine: Engine, values: tuple[Value, ...], site: Site) -> Value:
    shape = site.arguments[0] if site.arguments else None
    if isinstance(shape, NamedType) and shape.arguments is not None:
        return Layout(tuple(map(_mode, shape.arguments)))
    raise Unsupported(f"a CuTe layout of {shape}")


def _carried(engine: Engine, values: tuple[Value, ...], site: Site) -> Value:
    return Unknown("an object of CuTe that only decides where elements lie")


for _name in (
    "Swizzle", "Copy_Atom", "MMA_Atom", "TiledMMA", "TiledCopy", "LayoutLeft", "LayoutRight", "GenRowMajor",
    "GenColMajor", "Underscore",
):  # fmt: skip
    CONSTRUCTORS[f"cute::{_name}"] = _carried


@function("cute::make_shape", "cute::make_stride", "cute::make_tile", "cute::make_coord")
def _make_shape(engine: Engine, values: list[Value], site: Site) -> Value:
    return Layout(tuple(map(_mode, values)))


@function("cute::make_layout")
def _make_layout(engine: Engine, values: list[Value], site: Site) -> Value:
    return values[0]


@function("cute::composition", "cute::tile_to_shape")
def _second_shape(engine: Engine, values: list[Value], site: Site) -> Value:
    """The result has the shape of the second argument; the first says how it is laid out."""
    return values[1]


@function("cute::get_nonswizzle_portion", "cute::get_swizzle_portion")
def _portion(engine: Engine, values: list[Value], site: Site) -> Value:
    return values[0]


@function("cute::make_tiled_copy", "cute::make_tiled_mma")
def _tiled(engine: Engine, values: list[Value], site: Site) -> Value:
    return Unknown("a tiled copy, which only decides which thread moves what")


@function("cute::size")
def _size(engine: Engine, values: list[Value], site: Site) -> Value:
    layout = values[0]
    if not isinstance(layout, Layout):
        raise Unsupported("the size of a CuTe object whose shape is not known")
    if not site.arguments:
        return integer(math.prod(layout.modes))
    mode = site.arguments[0]
    if len(site.arguments) == 1 and isinstance(mode, Number) and 0 <= mode.value < len(layout.modes):
        return integer(layout.modes[int(mode.value)])
    raise Unsupported("the size of a nested mode of a CuTe layout")


@function("cute::ceil_div", "cutlass::ceil_div")
def _ceil_div(engine: Engine, values: list[Value], site: Site) -> Value:
    a, b = values
    for value in values:
        if isinstance(value, Unknown):
            return value
    if not isinstance(a, Number) or not isinstance(b, Number):
        raise Unsupported("ceil_div of something that is no number")
    return binary("/", binary("-", binary("+", a, b), integer(1)), b)


@function("cute::round_up", "cutlass::round_up")
def _round_up(engine: Engine, values: list[Value], site: Site) -> Value:
    return binary("*", _ceil_div(engine, values, site), values[1])
