"""What a unit binds the type parameters of its templates to.

A template says nothing of its arguments; whoever uses it does: aliases, variables and bases write the arguments of a
class template, calls write those of a function template or let them be deduced from the types of what they pass. All
of these places are collected for one parameter at a time, only when somebody asks, and only in the functions whose text
names the template. An argument can be a parameter itself, so that answers depend on each other: they are computed in
rounds until a round changes nothing.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from tracer.cpp.library import CONDITIONAL_TYPES
from tracer.cpp.scopes import Visited
from tracer.cpp.tree import Function, Node, TypeRef
from tracer.cpp.type_reader import TypeReader
from tracer.cpp.types import Types, Where, join, same_types, unknown, written

if TYPE_CHECKING:
    from tracer.cpp.unit import Unit

_MAX_ROUNDS = 4
_NOTHING = Types()
_WORD = re.compile(r"[A-Za-z_]\w*")
_Key = tuple[str, int]


class TemplateArguments:
    """The template parameters of one unit."""

    def __init__(
        self,
        unit: Unit,
        types: TypeReader,
        visited: Callable[[int], list[Visited]],
        reached: Callable[[Visited, Function], tuple[str, ...]],
    ) -> None:
        """Prepare; nothing is read yet.

        Args:
            unit: the unit.
            types: reads what types are.
            visited: gives the places of a function's body, by key.
            reached: tells which functions a call in a function reaches.
        """
        self.unit, self.types, self._visited, self._reached = unit, types, visited, reached
        self._known: dict[_Key, Types] = {}
        self._round: dict[_Key, Types] | None = None
        self._before: dict[_Key, Types] = {}
        self._open: set[_Key] = set()
        self._cut = False
        self._naming: dict[str, tuple[int, ...]] = {}
        self._callers: dict[str, list[tuple[Visited, Function]]] = {}
        self._defaults: dict[str, tuple[Node, ...]] | None = None
        self._extents: dict[int, tuple[list[int], list[tuple[int, int]]]] | None = None
        self._class_types: dict[str, list[tuple[TypeRef, Where]]] | None = None

    def bound(self, owner: str, position: int, name: str) -> Types:
        """Return what the parameter ``name`` at ``position`` of a class or function template is bound to."""
        key = (owner, position)
        if key in self._known:
            return self._known[key]
        if self._round is not None:
            return self._one(key, name)
        previous: dict[_Key, Types] = {}
        for _ in range(_MAX_ROUNDS):
            self._round, self._before, self._cut, self._callers = {}, previous, False, {}
            self._one(key, name)
            done = not self._cut or all(
                same_types(types, previous.get(known, _NOTHING)) for known, types in self._round.items()
            )
            previous = self._round
            if done:
                break
        self._round = None
        self._known.update(previous)
        return self._known[key]

    def _one(self, key: _Key, name: str) -> Types:
        assert self._round is not None
        if key in self._round:
            return self._round[key]
        if key in self._open:  # an answer that depends on itself: what the last round said
            self._cut = True
            return self._before.get(key, _NOTHING)
        self._open.add(key)
        found = join(self._collected(*key, name))
        self._open.discard(key)
        if not found.decided and not found.unknown:
            found = unknown(f"the template parameter {name}")
        self._round[key] = found
        return found

    def _collected(self, owner: str, position: int, name: str) -> Iterator[Types]:
        class_ = self.unit.classes.get(owner)
        if class_ is not None:
            if not class_.declaration.primary:
                for arguments, where in self._uses_of_class(class_.declaration.name, owner):
                    yield self._argument(owner, arguments, position, where)
            return
        keys = self.unit.by_usr.get(owner, ())
        if keys:
            yield from self._from_instantiations(self.unit.functions[keys[0]], position)
            yield from self._from_calls(self.unit.functions[keys[-1]], position, name)

    def _argument(self, owner: str, arguments: tuple[Node, ...], position: int, where: Where) -> Types:
        if position < len(arguments):
            return self.types.of_written(arguments[position], where)
        if self._defaults is None:
            self._defaults = self.unit.template_parameters()
        parameters = self._defaults.get(owner, ())
        if position < len(parameters) and parameters[position].children:
            return self.types.of_written(parameters[position].children[0], Where(None, owner, deep=True))
        return _NOTHING

    # -- class templates ----------------------------------------------------------------------------------------------
    def _uses_of_class(self, name: str, usr: str) -> Iterator[tuple[tuple[Node, ...], Where]]:
        """Yield the template arguments that the unit writes behind the name of a class, and where."""
        for type_, where in self._types_outside_of_bodies().get(name, ()):
            yield from self._uses_in(self.types.parsed(type_.spelling), name, usr, where)
        for key in self._functions_naming(name):
            function = self.unit.functions[key]
            for place in self._visited(key):
                where = self._where(function, place)
                node = place.node
                if node.type is not None and name in node.type.spelling and "<" in node.type.spelling:
                    yield from self._uses_in(self.types.parsed(node.type.spelling), name, usr, where)
                for argument in self._written_arguments(node):
                    yield from self._uses_in(argument, name, usr, where)

    def _types_outside_of_bodies(self) -> dict[str, list[tuple[TypeRef, Where]]]:
        """Return the types with template arguments that classes, aliases and parameters are declared with, by word."""
        if self._class_types is None:
            self._class_types = {}
            rows = [(type_, Where(deep=True)) for _, type_ in self.unit.aliases]
            for usr, class_ in self.unit.classes.items():
                where = Where(None, usr, deep=True)
                rows += [(type_, where) for type_ in class_.bases]
                rows += [(type_, where) for _, type_ in (*class_.fields, *class_.aliases)]
            for function in self.unit.functions:
                where = Where(function, function.declaration.parent, deep=True)
                rows += [(node.type, where) for node in function.parameters if node.type is not None]
            for type_, where in rows:
                if "<" in type_.spelling:
                    for word in set(_WORD.findall(type_.spelling)):
                        self._class_types.setdefault(word, []).append((type_, where))
        return self._class_types

    def _written_arguments(self, node: Node) -> tuple[Node, ...]:
        if node.kind == "name":
            return node.children
        if node.kind == "launch" and node.children[0].kind == "name":
            return node.children[0].children
        if node.kind == "call" and node.children:
            callee = node.children[0]
            return callee.children[callee.kind == "member" :] if callee.kind in ("name", "member") else ()
        return ()

    def _uses_in(
        self, node: Node | None, name: str, usr: str, where: Where
    ) -> Iterator[tuple[tuple[Node, ...], Where]]:
        """Yield the uses of a class inside a written type, each with the conditions that its place assumes."""
        if node is None:
            return
        last = node.text.split("::")[-1] if node.kind == "name" else ""
        if last in CONDITIONAL_TYPES and len(node.children) == 3:
            condition = written(node.children[0])
            for truth, choice in zip((True, False), node.children[1:], strict=True):
                if (condition, not truth) not in where.assumed:
                    assumed = replace(where, assumed=where.assumed | {(condition, truth)})
                    yield from self._uses_in(choice, name, usr, assumed)
            return
        if last == name and node.children and self._means(node, usr, where):
            yield node.children, where
        if node.kind == "name" and "<" in node.text and name in node.text:  # before a `::`
            yield from self._uses_in(self.types.parsed(node.text.rpartition("::")[0]), name, usr, where)
        for child in node.children:
            yield from self._uses_in(child, name, usr, where)

    def _means(self, node: Node, usr: str, where: Where) -> bool:
        return any(instance.usr == usr for instance in self.types.of_written(node, where).instances)

    # -- function templates -------------------------------------------------------------------------------------------
    def _from_instantiations(self, function: Function, position: int) -> Iterator[Types]:
        for name, arguments, _, _ in self.unit.instantiations:
            if name == function.declaration.name and position < len(arguments):
                yield self.types.of_spelling(arguments[position], Where(deep=True))

    def _from_calls(self, function: Function, position: int, name: str) -> Iterator[Types]:
        usr = function.declaration.usr
        takes = [at for at, parameter in enumerate(function.parameters) if _is_just(parameter.type, name)]
        if usr not in self._callers:
            self._callers[usr] = list(self._places_using(function))
        for place, caller in self._callers[usr]:
            explicit = self._written_arguments(place.node)
            where = self._where(caller, place)
            if position < len(explicit):
                yield self.types.of_written(explicit[position], where)
                continue
            handed = _handed(place.node)
            passed = [handed[at] for at in takes if at < len(handed)]
            if not passed:
                yield unknown(f"the template parameter {name}")
            for argument in passed:
                yield self.types.of_node(argument, where)

    def _places_using(self, function: Function) -> Iterator[tuple[Visited, Function]]:
        """Yield the places that call a function, launch it or point to it, with the functions around them."""
        usr, name = function.declaration.usr, function.declaration.name
        for key in self._functions_naming(name):
            caller = self.unit.functions[key]
            for place in self._visited(key):
                node = place.node
                named = node.children[0] if node.kind == "launch" else node
                if (named.kind == "name" and usr in named.targets) or (
                    node.kind == "call" and node.children and _calls(node, name) and usr in self._reached(place, caller)
                ):
                    yield place, caller

    # -- places -------------------------------------------------------------------------------------------------------
    def _where(self, function: Function, place: Visited) -> Where:
        return Where(function, function.declaration.parent, place.scope, deep=True)

    def _functions_naming(self, name: str) -> tuple[int, ...]:
        """Return the keys of the defined functions in whose text a name stands."""
        if name not in self._naming:
            self._naming[name] = tuple(dict.fromkeys(self._search(name.encode())))
        return self._naming[name]

    def _search(self, name: bytes) -> Iterator[int]:
        if self._extents is None:
            self._extents = self._read_extents()
        for number, (starts, rows) in self._extents.items():
            data = self.unit.files[number].data
            at = data.find(name)
            while at >= 0:
                end = at + len(name)
                if not (_is_word(data[at - 1 : at]) or _is_word(data[end : end + 1])):
                    row = bisect_right(starts, at) - 1
                    if row >= 0 and at < rows[row][0]:
                        yield rows[row][1]
                at = data.find(name, end)

    def _read_extents(self) -> dict[int, tuple[list[int], list[tuple[int, int]]]]:
        found: dict[int, list[tuple[int, int, int]]] = {}
        for function in self.unit.functions:
            if function.defined:
                file, start, end = self.unit.function_extent(function.key)
                if file >= 0:
                    found.setdefault(file, []).append((start, end, function.key))
        return {
            file: ([start for start, _, _ in sorted(rows)], [(end, key) for _, end, key in sorted(rows)])
            for file, rows in found.items()
        }


def _is_just(type_: TypeRef | None, name: str) -> bool:
    """Tell whether a parameter is declared as the template parameter itself, up to const and references."""
    return type_ is not None and re.sub(r"\b(?:const|volatile|typename)\b|[&*\s]", "", type_.spelling) == name


def _handed(node: Node) -> tuple[Node, ...]:
    """Return the arguments of a call or a launch; none where a function is only named."""
    if node.kind == "launch":
        return node.children[1 + int(node.text or 0) :]
    return node.children[1:] if node.kind == "call" else ()


def _calls(node: Node, name: str) -> bool:
    return re.sub(r"<.*", "", node.children[0].text.split("::")[-1]) == name


def _is_word(byte: bytes) -> bool:
    return byte.isalnum() or byte == b"_"
