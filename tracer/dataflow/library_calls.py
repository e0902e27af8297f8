"""The part of the C++ front end that follows calls of library functions, as the table of their names says.

What :mod:`tracer.dataflow.library` calls ``view`` is followed by ``_library_view``, and so for every other word of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from tracer.cpp.tree import Node
from tracer.dataflow.addresses import Address
from tracer.dataflow.calls import Calls, as_written
from tracer.dataflow.frames import Closure, Thing
from tracer.dataflow.ir import Dimension, Layout, Ref, Site, Storage, Value
from tracer.dataflow.library import WHOLE, Meaning
from tracer.dataflow.names import constant_of, plain

#: Names of functions that make a tensor with the extents of another one.
_LIKE = frozenset(("make_fragment_like", "make_tensor_like"))
#: Names of views that leave the numbering of the elements alone.
_SAME_LAYOUT = frozenset(("data", "data_ptr", "begin"))


class LibraryCalls(Calls):
    """Calls of library functions."""

    def _library_value(
        self, found: Meaning, name: str, callee: Node, arguments: Sequence[Node], base: Thing, site: Site
    ) -> Thing:
        if found.op == "infinity" or (not arguments and found.op in ("max", "min")):
            return self.const(float("inf"), site)
        values = [self.evaluated(argument) for argument in arguments]
        if found.op in ("lane", "broadcast"):
            distance = constant_of(values[2]) if len(values) > 2 else None
            made = self.value(found.op, values[1:2], site, str(distance) if isinstance(distance, int) else "")
            made.constant = name if "_xor_" not in name and found.op == "lane" else None
            return made
        if found.op == "fma":
            return self.operation("add", [self.operation("mul", values[:2], site), values[2]], site)
        if found.op == "reciprocal":
            return self.operation("div", [self.const(1.0, site), *values], site)
        return self.operation(found.op, values, site)

    def _library_convert(
        self, found: Meaning, name: str, callee: Node, arguments: Sequence[Node], base: Thing, site: Site
    ) -> Thing:
        if not arguments:
            return self.const(0, site)
        thing = self.thing(arguments[0])
        if WHOLE.fullmatch(name):
            cut = self.value("convert", [self.as_value(thing, site)], site, name)
            self.whole.add(cut.number)
            return cut
        return thing if isinstance(thing, Ref) and not thing.is_indexed else self.as_value(thing, site)

    def _library_copy(
        self, found: Meaning, name: str, callee: Node, arguments: Sequence[Node], base: Thing, site: Site
    ) -> Thing:
        things = [self.thing(argument) for argument in arguments]
        if len(things) >= 2 and isinstance(things[-1], Ref):
            contents, tool = self.as_value(things[-2], site), self.as_value(things[0], site)
            if self.events and self.events[-1].kind == "read":
                self.events[-1] = replace(self.events[-1], tool=tool)
            self.write(things[-1], self.value("copy", [contents], site), site)
        return None

    def _library_clear(
        self, found: Meaning, name: str, callee: Node, arguments: Sequence[Node], base: Thing, site: Site
    ) -> Thing:
        target = self.thing(arguments[0]) if arguments else base
        if isinstance(target, Ref):
            self.write(target, self.const(0.0, site), site)
        return None

    def _library_fill(
        self, found: Meaning, name: str, callee: Node, arguments: Sequence[Node], base: Thing, site: Site
    ) -> Thing:
        target = self.thing(arguments[0])
        if isinstance(target, Ref):
            self.write(target, self.evaluated(arguments[-1]), site)
        return None

    def _library_product(
        self, found: Meaning, name: str, callee: Node, arguments: Sequence[Node], base: Thing, site: Site
    ) -> Thing:
        left, right = self.evaluated(arguments[-3]), self.evaluated(arguments[-2])
        target = self.thing(arguments[-1])
        if isinstance(target, Ref):
            product = self.value("matmul", [left, right], site)
            self.write(target, self.value("add", [self.read(target, site), product], site), site)
        return None

    def _library_atomic_add(
        self, found: Meaning, name: str, callee: Node, arguments: Sequence[Node], base: Thing, site: Site
    ) -> Thing:
        target = self.thing(arguments[0])
        if isinstance(target, Ref):
            self.write(target, self.value("add", [self.read(target, site), self.evaluated(arguments[1])], site), site)
        return None

    def _library_transform(
        self, found: Meaning, name: str, callee: Node, arguments: Sequence[Node], base: Thing, site: Site
    ) -> Thing:
        *things, function = [self.thing(argument) for argument in arguments]
        target = things[-1] if things else None
        if isinstance(target, Ref) and isinstance(function, Closure):
            given = [self.fresh(self.as_value(thing, site)) for thing in (things[:-1] or things)]
            result = self.call_closure_on(function, given, site)
            changed = result if isinstance(result, Ref | Value) and found.op == "transform" else given[-1]
            self.write(target, self.as_value(changed, site), site)
        return None

    def _library_axpby(
        self, found: Meaning, name: str, callee: Node, arguments: Sequence[Node], base: Thing, site: Site
    ) -> Thing:
        a, x, b = [self.evaluated(argument) for argument in arguments[:3]]
        target = self.thing(arguments[3])
        if isinstance(target, Ref):
            products = [self.operation("mul", [a, x], site), self.operation("mul", [b, self.read(target, site)], site)]
            self.write(target, self.operation("add", products, site), site)
        return None

    def _library_fresh(
        self, found: Meaning, name: str, callee: Node, arguments: Sequence[Node], base: Thing, site: Site
    ) -> Thing:
        things = [self.thing(argument) for argument in arguments]
        made = Ref(self.store("", None))
        if name in _LIKE and len(things) == 1 and isinstance(things[0], Ref):
            made.layout = things[0].layout
        else:  # what is made of the same things has the same extents
            written = (name, self.frame.id, *[self.source.text(*self.site(argument)) for argument in arguments])
            made.layout = self.made.setdefault(written, made.layout)
        made.storage.is_identity = name == "make_identity_tensor"
        return made

    def _library_shape(
        self, found: Meaning, name: str, callee: Node, arguments: Sequence[Node], base: Thing, site: Site
    ) -> Thing:
        things = [self.thing(argument) for argument in arguments]
        if name == "get" and things:
            return things[0]
        numbers = [constant_of(t) for t in things if isinstance(t, Value)]
        written = [self.template_node(node) for node in callee.children if node.kind != "this"]
        text = f"{name}<{', '.join([str(as_written(argument)) for argument in written])}>"
        values = [thing for thing in things if isinstance(thing, Value)]
        made = self.value("shape", values, site, text if not numbers or callee.children else name)
        of = things[0] if things else base
        if name == "layout" and isinstance(of, Ref):
            self.extents[made.number] = of.layout, ()
        elif name == "size":
            dimension = _numbers(written[1:] if callee.kind == "member" else written)
            if isinstance(of, Ref) and dimension is not None:
                self.extents[made.number] = of.layout, dimension
        if name == "make_stride":
            self.tuples[made.number] = tuple([self.as_value(thing, site) for thing in things])
        elif name == "make_layout" and len(things) > 1:
            self.layouts[made.number] = self.as_value(things[1], site)
        return made

    def _library_view(
        self, found: Meaning, name: str, callee: Node, arguments: Sequence[Node], base: Thing, site: Site
    ) -> Thing:
        things = [self.thing(argument) for argument in arguments]
        if (
            name == "make_tensor"
            and any(not isinstance(thing, Ref) for thing in things[:1])
            and (callee.children or not any(isinstance(thing, Ref) for thing in things))
        ):
            return Ref(self.store("", None))  # an owning tensor: only an element type and a layout are given
        first = next((thing for thing in things if isinstance(thing, Ref)), None)
        if first is not None and first.storage.is_identity and name == "get" and len(callee.children) == 1:
            whole = first.view()
            whole.component = (_numbers([self.template_node(node) for node in callee.children]) or (-1,))[0]
            coordinate = self.value("element", [self.read(whole, site)], site, callee.children[0].text)
            coordinate.storage, coordinate.indices = first.storage, first.indices
            return coordinate
        if first is not None:
            if first.storage.space == "argument" and (name.startswith("make_") or name == "recast_ptr"):
                first.storage.space = "global"
            if name in ("local_tile", "local_partition", "make_tensor") and len(arguments) >= 2:
                self.note_tile(first.storage, arguments, site)
            result = first.view(is_pointer=first.is_pointer or name.endswith("_ptr"))
            if name == "get":
                result.component = (_numbers([self.template_node(node) for node in callee.children]) or (-1,))[0]
            elif name not in _SAME_LAYOUT:
                of = plain(things[-1]).number if isinstance(things[-1], Value) else -1
                was_of_thread = isinstance(first.layout, Layout) and first.layout.is_of_thread
                own = Layout(is_of_thread=was_of_thread or "partition" in name)
                result.layout = self.extents[of][0] if of in self.extents else own
            if first.storage.space == "global" and not name.endswith("ptr"):
                result.address = self.address_of(first, name, arguments, things)
            return result
        if isinstance(base, Ref):
            return base.view(is_pointer=True) if name in ("data", "get", "data_ptr", "begin") else base
        values = [thing for thing in things if isinstance(thing, Value)]
        return values[0] if values else self.value("opaque", (), site, name)

    def note_tile(self, storage: Storage, arguments: Sequence[Node], site: Site) -> None:
        """Note which tile is cut out of a tensor: its extents, and which of them it is."""
        extents: list[Value] = []
        if arguments[1].kind != "construct":
            return
        for child in arguments[1].children:
            if child.kind in ("name", "literal", "binary", "call"):
                thing = self.thing(child)
                extents += [self.as_value(thing)] if isinstance(thing, Ref | Value) else []
        is_chosen = len(arguments) > 2 and arguments[2].kind == "call" and len(arguments[2].children) > 1
        is_chosen = is_chosen and arguments[2].children[0].text.rpartition("::")[2] == "make_coord"
        coordinates = self.index_values(arguments[2]) if is_chosen else []
        storage.tiles.append((tuple(extents), tuple(coordinates), site))

    def address_of(self, base: Ref, name: str, arguments: Sequence[Node], things: Sequence[Thing]) -> Address:
        """Return the address of a view of a tensor in global memory."""
        address = base.address or Address()
        if name == "make_tensor":
            last = things[-1] if len(things) > 1 else None
            strides = self.as_value(last) if isinstance(last, Ref | Value) else None
            parts = self.components(strides) if strides is not None else ()
            is_tile = len(arguments) > 2 and arguments[1].kind == "construct"
            return address.laid_out(strides, len(parts), is_tile=is_tile)
        if name == "local_tile" and base.storage.tiles:
            extents, coordinates, _ = base.storage.tiles[-1]
            return address.tiled(extents, coordinates)
        if name.startswith("partition_"):
            return address.partitioned()
        return replace(address, modes=()) if address.is_tile else replace(address, modes=(), is_known=False)

    def components(self, value: Value) -> tuple[Value, ...]:
        """Return the components of a tuple of numbers; of a choice between two tuples those of the first."""
        value = plain(value)
        while value.op == "select" or value.number in self.layouts:
            value = plain(value.args[0] if value.op == "select" else self.layouts[value.number])
        return self.tuples.get(value.number, ())


def _numbers(arguments: Sequence[Any]) -> Dimension | None:
    """Return the numbers that template arguments are; None where one of them is no number that is known."""
    found = [constant_of(argument) if isinstance(argument, Value) else None for argument in arguments]
    return tuple([n for n in found if isinstance(n, int)]) if all(isinstance(n, int) for n in found) else None
