"""The parts of the C++ front end that know storages: names, data members, indexing, reading a thing as a value."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

from tracer.cpp.source import CppSource
from tracer.cpp.tree import Class, Node
from tracer.dataflow.addresses import Address, Step
from tracer.dataflow.frames import Closure, Frame, Object, Thing, Type
from tracer.dataflow.graph import Graph
from tracer.dataflow.ir import Dimension, Formula, Layout, Place, Ref, Site, Storage, Value, negated, plain
from tracer.dataflow.lookup import Callee, Lookup
from tracer.model import Location
from tracer.records import dataclass

#: Operators of C++ by the name of their operation here.
OPERATORS = {
    "+": "add", "-": "sub", "*": "mul", "/": "div", "%": "mod", "<": "lt", ">": "gt", "<=": "le", ">=": "ge",
    "==": "eq", "!=": "ne", "&": "bit_and", "|": "bit_or", "^": "bit_xor", "<<": "shift_left", ">>": "shift_right",
}  # fmt: skip
#: Operators of C++ that count a variable up or down; those written behind it with a ``p``.
COUNTING = ("++", "--", "p++", "p--")


def fold(op: str, args: list[float | int | bool]) -> float | int | bool | None:
    """Return what an operation on constants gives; None where that is not defined."""
    left, right = args[0], args[-1]
    whole = all(isinstance(argument, int) for argument in args)
    try:
        if op == "neg":
            return -left
        if op == "add":
            return left + right
        if op == "sub":
            return left - right
        if op == "mul":
            return left * right
        if op == "div":
            return int(left / right) if whole else left / right
        if op == "mod" and whole:
            return int(math.fmod(left, right))
        if op in ("max", "min"):
            return max(args) if op == "max" else min(args)
        if op == "ceil_div" and whole:
            return -(-int(left) // int(right))
        if op in ("lt", "gt", "le", "ge", "eq", "ne"):
            return {
                "lt": left < right, "gt": left > right, "le": left <= right, "ge": left >= right,
                "eq": left == right, "ne": left != right,
            }[op]  # fmt: skip
    except (ZeroDivisionError, OverflowError, ValueError):
        return None
    return None


@dataclass(frozen=True, slots=True, eq=False)
class FieldSite:
    """Where a data member is declared: known once the bodies that use it are read.

    Attributes:
        cls: its class.
        name: its name.
        fallback: where the object is made.
    """

    cls: Class
    name: str
    fallback: Site


class Names(Graph):
    """Storages and names of the function that is followed."""

    def __init__(self, source: CppSource, id: str) -> None:
        """Begin at the function of an id."""
        super().__init__()
        self.source, self.id = source, id
        self.lookup = Lookup(source, id)
        self.frame = Frame(id, {})
        self.unknown: dict[str, Site] = {}
        self.inlined = 0
        self.lost: set[Storage] = set()  # the tensors of which it is not known where they are pointed to
        self.scalars: set[int] = set()  # the storages that are declared as numbers
        self.followed: dict[str, Callee] = {}  # the functions that were inlined, by USR
        self.active: list[str] = []
        self.parameter_names: list[str] = []
        self.tuples: dict[int, tuple[Value, ...]] = {}  # of a tuple of numbers, by the number of its value
        self.extents: dict[int, tuple[Layout | Storage, Dimension]] = {}  # of sizes and layouts
        self.made: dict[tuple[str, ...], Layout | Storage] = {}  # by how a fragment is made
        self.inner: dict[Layout | Storage, Layout | Storage] = {}  # of arrays in an array
        self.layouts: dict[int, Value] = {}  # the strides of a layout, by the number of its value

    def location(self, site: Site) -> Location:
        """Return where a site is."""
        if isinstance(site, Location):
            return site
        if isinstance(site, FieldSite):
            declaration = self.lookup.field_declaration(site.cls, site.name)
            if declaration is not None and declaration.file >= 0:
                return self.lookup.place(declaration)
            return self.location(site.fallback)
        if site is None:
            return self.source.definition(self.id).location
        return self.source.location(site[0], site[1])

    def site(self, node: Node) -> Site:
        """Return the site of a node of the function that is followed now."""
        return (self.frame.id, node)

    # -- things as values ---------------------------------------------------------------------------------------------
    def thing(self, node: Node) -> Thing:
        """Follow an expression."""
        raise NotImplementedError

    def as_value(self, thing: Thing, site: Site = None) -> Value:
        """Return the value of a thing; something without one gives an opaque value."""
        if isinstance(thing, Value):
            return thing
        if isinstance(thing, Ref):
            return self.read(thing, site)
        if thing is None:
            return self.undefined
        return self.value("opaque", (), site, type(thing).__name__)

    def evaluated(self, node: Node) -> Value:
        """Follow an expression and return its value."""
        return self.as_value(self.thing(node), self.site(node))

    def operation(self, op: str, args: list[Value], site: Site, text: str = "") -> Value:
        """Make an operation; one on constants is carried out."""
        constants = [constant_of(argument) for argument in args]
        if constants and all(isinstance(c, int | float) for c in constants):
            result = fold(op, constants)  # type: ignore[arg-type]
            if result is not None:
                return self.const(result, site)
        return self.value(op, args, site, text)

    def formula(self, value: Value) -> Formula:
        """Return a value as a condition."""
        inner = plain(value)
        if inner.op == "const":
            return bool(inner.constant)
        if inner.op == "param":
            return ("flag", inner.text)
        if inner.op == "not":
            return negated(self.formula(inner.args[0]))
        if inner.op in ("and", "or"):
            return (inner.op, self.formula(inner.args[0]), self.formula(inner.args[1]))
        if inner.op == "select":
            then, other = self.formula(inner.args[0]), self.formula(inner.args[1])
            if isinstance(then, bool) and isinstance(other, bool):
                return inner.condition if then else negated(inner.condition)
        return ("test", inner)

    # -- storages -----------------------------------------------------------------------------------------------------
    def loops_of(self, values: Iterable[Value]) -> frozenset[int]:
        """Return the loops that index values depend on."""
        found: frozenset[int] = frozenset()
        for value in values:
            found |= value.loops
        return found

    def indexed(self, base: Thing, nodes: Iterable[Node], site: Site) -> Thing:
        """Return the part of a tensor that some indices choose; an underscore keeps a whole dimension."""
        nodes = tuple(nodes)
        placed = [found for number, node in enumerate(nodes) for found in self.placed_values(node, (number,))]
        indices = [index for _, index in placed]
        values = [index for index in indices if index is not None]
        if isinstance(base, Ref):
            if base.storage.space == "argument":
                base.storage.space = "global"
            is_global = base.storage.space == "global"
            layout, places = numbered(base, placed, len(nodes))
            if values and len(values) == len(indices):
                layout = self.inner.setdefault(base.layout, layout)
            return base.view(
                layout=layout,
                places=places,
                loops=self.loops_of(values),
                is_pointer=False,
                is_indexed=base.is_indexed or len(values) == len(indices),
                indices=(*base.indices, *indices),
                address=self.element_of(base, indices) if is_global else None,
            )
        if isinstance(base, Value):
            element = self.value("element", [base, *values], site)
            return element
        return base

    def element_of(self, base: Ref, indices: list[Value | None]) -> Address:
        """Return the address of the part of a tensor, or of what a pointer points to, that some indices choose."""
        address = base.address or Address()
        if not address.modes and not address.is_tile and len(indices) == 1 and indices[0] is not None:
            return address.moved(Step(indices[0]))
        return address.indexed(indices)

    def index_values(self, node: Node) -> list[Value | None]:
        """Return the values of one written index: several for a coordinate, None for a whole dimension."""
        return [value for _, value in self.placed_values(node, ())]

    def placed_values(self, node: Node, dimension: Dimension) -> list[tuple[Dimension, Value | None]]:
        """Return the values of one written index, each with the dimension that it counts."""
        if node.kind == "name" and node.text.rpartition("::")[2] == "_" and self.frame.find("_") is None:
            return [(dimension, None)]
        if node.kind == "call" and node.children[0].text.rpartition("::")[2] == "make_coord":
            parts = [self.placed_values(child, (*dimension, n)) for n, child in enumerate(node.children[1:])]
            return [found for part in parts for found in part]
        thing = self.thing(node)
        return [(dimension, self.as_value(thing, self.site(node)))] if isinstance(thing, Ref | Value) else []

    def part(self, ref: Ref, key: Any, name: str, site: Site) -> Ref:
        """Return the buffer that is cut out of another at a place of the source, or under the name of a member."""
        if ref.storage.space in ("global", "argument"):
            return ref.view(is_pointer=True)
        if key not in ref.storage.parts:
            ref.storage.parts[key] = self.store(name, site, ref.storage.space)
        storage = ref.storage.parts[key]
        return Ref(storage, storage.name, storage.declared, loops=ref.loops, is_pointer=True)

    # -- data members -------------------------------------------------------------------------------------------------
    def new_object(
        self, cls: Class, name: str, template: dict[str, Any], site: Site, is_argument: bool = False
    ) -> Object:
        """Make an object with all its data members, so that every loop sees them."""
        made = Object(cls, name, template, is_argument)
        for field, _ in self.lookup.fields(cls):
            self.member(made, field, site)
        return made

    def member(self, owner: Object, name: str, site: Site) -> Thing:
        """Return a data member of an object."""
        if name in owner.fields:
            return owner.fields[name]
        type_ = next((t for field, t in self.lookup.fields(owner.cls) if field == name), None)
        declared: Site = FieldSite(owner.cls, name, site)
        inner = self.lookup.class_of(type_)
        thing: Thing
        if owner.is_argument:
            single = len(self.lookup.fields(owner.cls)) == 1
            storage = self.input(owner.name if single else f"{owner.name}.{name}", declared)
            is_pointer = type_ is not None and type_.form == "pointer"
            thing = Ref(storage, storage.name, declared, is_pointer=is_pointer)
        elif inner is not None and inner is not owner.cls:
            thing = self.new_object(inner, name, {}, site)
        else:
            storage = self.store(name, declared)
            thing = Ref(storage, name, declared, is_pointer=type_ is not None and type_.form in ("pointer", "array"))
        owner.fields[name] = thing
        return thing

    def class_constant(self, cls: Class, name: str) -> Node | None:
        """Return the initialiser of a static constant of a class."""
        return next((node for constant, node in cls.constants if constant == name), None)


def numbered(
    base: Ref, placed: Sequence[tuple[Dimension, Value | None]], count: int
) -> tuple[Layout | Storage, tuple[Place, ...]]:
    """Return how what an index leaves of a tensor is numbered, and what its indices count.

    Args:
        base: the tensor.
        placed: the indices with their dimensions; None keeps a dimension.
        count: how many indices are written: one alone counts all elements, or is the coordinate of all dimensions.
    """
    alone = count == 1
    places = [Place(base.layout, d[1:] if alone else d, index) for d, index in placed if index is not None]
    kept = tuple([d[1:] if alone else d for d, index in placed if index is None])
    return Layout(base.layout, kept), (*base.places, *places)


def constant_of(value: Value) -> float | int | bool | str | None:
    """Return the constant that a value is, looking through assignments; None where it is none."""
    inner = plain(value)
    return inner.constant if inner.op == "const" else None


__all__ = ["Closure", "Names", "Storage", "Type", "constant_of", "fold", "plain"]
