"""The part of the C++ front end that follows declarations: what a variable is bound to, and what it holds first."""

from __future__ import annotations

import re
from dataclasses import replace

from tracer.cpp.tree import Node
from tracer.dataflow.expressions import Expressions
from tracer.dataflow.frames import Closure, Object, Thing, Type
from tracer.dataflow.ir import Ref, Site, Value


class Declarations(Expressions):
    """Variables of the function that is followed."""

    def declare(self, node: Node) -> None:
        """Follow the declaration of a variable."""
        site, type_ = self.site(node), node.type
        space = "shared" if "__shared__" in node.text2 else "registers"
        init = self.initialiser(node)
        if (
            type_ is not None
            and type_.form == "array"
            and not (init is not None and init.kind not in ("list", "construct"))
        ):
            storage = self.store(node.text, site, space)
            storage.is_raw = space == "shared" and "char" in type_.canonical
            reference = Ref(storage, node.text, site, is_pointer=True)
            if init is not None:
                self.state[storage] = self._listed_value(init, site)
            self.frame.bind(node.text, reference)
            return
        if init is None or init.kind in ("construct", "list"):
            made = self.construct(type_, node.text, init.children if init is not None else (), site)
            if made is not None:
                self.frame.bind(node.text, made)
                return
        if init is None or (
            init.kind in ("construct", "list") and not self.lookup.is_scalar(type_) and not init.children
        ):
            self.bind_new(node, self.undefined, site, space)
            return
        thing = self.thing(init.children[0] if init.kind in ("construct", "list") and init.children else init)
        if isinstance(thing, Value) and init.kind == "construct" and self.lookup.is_whole(init.type):
            self.whole.add(thing.number)
        self.bind_variable(node, thing, site)

    def initialiser(self, node: Node) -> Node | None:
        """Return what a variable is initialised with; an expression inside of its type is none."""
        if not node.children:
            return None
        last = node.children[-1]
        if node.type is not None and "<" in node.type.spelling and last.file == node.file and last.end < node.end:
            behind = self.source.text(self.frame.id, replace(node, start=last.end))
            if re.search(rf"\b{re.escape(node.text)}\b", behind):
                return None
        return last

    def _listed_value(self, init: Node, site: Site) -> Value:
        """Return what an array holds whose elements are listed: one of them; zero where the list is empty."""
        values = [self.evaluated(child) for child in init.children]
        if not values:
            return self.const(0.0, site)
        held = values[0]
        for value in values[1:]:
            held = self.select(("test", self.value("opaque", (), site, "which element")), value, held, site)
        return held

    def bind_variable(self, node: Node, thing: Thing, site: Site) -> None:
        """Bind a variable to what initialises it: another name of the same storage, or a storage of its own."""
        if isinstance(thing, Object | Closure | Type):
            self.frame.bind(node.text, thing)
            return
        is_reference = node.type is not None and node.type.form in ("reference", "pointer")
        is_address = isinstance(thing, Ref) and thing.is_pointer and thing.storage.space == "shared"
        if isinstance(thing, Ref) and (is_address or not self.lookup.is_scalar(node.type)):
            is_element = thing.is_indexed and not is_reference and thing.storage.space != "global"
            if not is_element and (thing.storage.space != "argument" or thing.is_pointer or is_reference):
                if not thing.storage.name or thing.storage.is_raw:  # bytes get the name of the first tensor in them
                    thing.storage.name, thing.storage.declared, thing.storage.is_raw = node.text, site, False
                named = thing.view(name=node.text, declared=site)
                self.frame.bind(node.text, named)
                if thing.storage.space in ("registers", "shared") and not thing.is_indexed:
                    self.rename(named, site)
                return
        if (
            isinstance(thing, Value)
            and thing.op == "opaque"
            and node.type is not None
            and not self.lookup.is_scalar(node.type)
        ):
            self.frame.bind(node.text, thing if node.type.spelling == "auto" else Type(node.type.spelling))
            return
        self.bind_new(node, self.as_value(thing, site), site, "registers")

    def bind_new(self, node: Node, contents: Value, site: Site, space: str) -> None:
        """Bind a variable to a storage of its own."""
        if contents is self.undefined and node.type is not None and not self.lookup.is_scalar(node.type):
            if node.type.spelling.startswith(("cutlass::", "typename ")) or "Converter" in node.type.spelling:
                self.frame.bind(node.text, Type(node.type.spelling))
                return
        storage = self.store(node.text, site, space)
        if contents is not self.undefined:
            value = self.value("set", [contents], site)
            value.name, value.declared, value.storage = node.text, site, storage
            self.state[storage] = value
            if self.lookup.is_whole(node.type):
                self.whole.add(value.number)
        if self.lookup.is_scalar(node.type):
            self.scalars.add(storage.number)
        self.frame.bind(node.text, Ref(storage, node.text, site))
