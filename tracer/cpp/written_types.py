"""What a type can be that somebody writes: a name or a template's name with arguments, where it stands."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING

from tracer.cpp import slices
from tracer.cpp.library import CONDITIONAL_TYPES
from tracer.cpp.tree import Node, TypeRef
from tracer.cpp.types import LIBRARY, MAX_DEPTH, Instance, Types, Where, join, unknown, written

if TYPE_CHECKING:
    from tracer.cpp.unit import Unit

_WORD = re.compile(r"[A-Za-z_]\w*")
_QUALIFIERS = re.compile(r"\b(?:const|volatile|typename|struct|class)\b|[&*]")
_BOUNDS = re.compile(r"\s*(?:\[[^\[\]]*\])+\s*$")


class WrittenTypes:
    """Types of one unit by their names.

    Attributes:
        bound: tells what the unit binds a template parameter to: of which class or function, position, name.
    """

    def __init__(self, unit: Unit, functions_by_name: Mapping[str, list[str]]) -> None:
        """Index the unit's classes and aliases."""
        self.unit, self.functions_by_name = unit, functions_by_name
        self.classes_by_name: dict[str, list[str]] = {}
        self.member_aliases: dict[str, list[tuple[TypeRef, str]]] = {}
        self.nested: dict[tuple[str, str], str] = {}
        self.specialized: dict[str, list[str]] = {}
        for usr, class_ in unit.classes.items():
            declaration = class_.declaration
            self.classes_by_name.setdefault(declaration.name, []).append(usr)
            if declaration.parent:
                self.nested[declaration.parent, declaration.name] = usr
            if declaration.primary:
                self.specialized.setdefault(declaration.primary, []).append(usr)
            for name, type_ in class_.aliases:
                self.member_aliases.setdefault(name, []).append((type_, usr))
        self.aliases = dict(unit.aliases)
        self._texts: dict[str, Node | None] = {}
        self._guessing = False
        self.bound: Callable[[str, int, str], Types] = lambda owner, position, name: unknown(
            f"the template parameter {name}"
        )

    def parsed(self, spelling: str) -> Node | None:
        """Read the text of a type; None where it is more than a name with template arguments."""
        text = _plain(spelling)
        if text not in self._texts:
            # A `<` behind a name that is no known template can be a comparison, or open the arguments of a member.
            for is_template in (self.unit.templates.__contains__, lambda _: True):
                node = slices.expression(text, -1, 0, is_template)
                if node.kind in ("name", "type"):
                    break
            self._texts[text] = node if node.kind in ("name", "type") else None
        return self._texts[text]

    # -- written types ------------------------------------------------------------------------------------------------
    def class_usr(self, type_: TypeRef) -> str:
        """Return the USR of the class, or of the template of the class, that the parser found a type to be."""
        if not type_.class_usr or type_.class_usr in self.unit.classes:
            return type_.class_usr
        declaration = self.unit.declarations.get(type_.class_usr)
        return declaration.primary if declaration is not None and declaration.primary else type_.class_usr

    def of_type(self, type_: TypeRef | None, where: Where, depth: int = 0) -> Types:
        """Return what a written type can be."""
        if type_ is None or depth > MAX_DEPTH:
            return unknown()
        usr = self.class_usr(type_)
        if usr:
            if usr in self.unit.classes:
                return Types((self._instance(usr, type_, where),))
            declaration = self.unit.declarations.get(usr)
            if declaration is None or not declaration.inside:
                chooses = declaration is not None and declaration.name in CONDITIONAL_TYPES
                return self.of_spelling(type_.spelling, where, depth) if chooses else LIBRARY
            return self._only_specialized(usr)
        return self.of_spelling(type_.spelling, where, depth)

    def _only_specialized(self, usr: str) -> Types:
        """Return the classes behind a template that is declared, and defined for some arguments only."""
        found = tuple([Instance(specialization) for specialization in self.specialized.get(usr, ())])
        return Types(found) if found else unknown("only declared")

    def _instance(self, usr: str, type_: TypeRef, where: Where) -> Instance:
        if not self.unit.classes[usr].template_parameters:
            return Instance(usr)
        name = self.unit.classes[usr].declaration.name
        for spelling in (type_.spelling, type_.canonical):
            written = self.parsed(spelling)
            if written is not None and written.kind == "name" and written.text.split("::")[-1] == name:
                if written.children:
                    return Instance(usr, written.children, where)
        return Instance(usr)

    def of_spelling(self, spelling: str, where: Where, depth: int = 0) -> Types:
        """Return what the text of a type can be."""
        plain = _plain(spelling)
        if plain in ("auto", "") or plain.startswith("(lambda"):
            return unknown()
        if plain.startswith("decltype("):
            called = _WORD.search(plain, len("decltype("))
            own = called is not None and (called.group() in self.functions_by_name or called.group() in where.scope)
            return unknown() if own else LIBRARY
        if _WORD.fullmatch(plain):
            return self._of_path([(plain, ())], where, depth)
        written = self.parsed(plain)
        if written is None:
            return self._of_path([(word, ()) for word in re.sub(r"<.*", "", plain, flags=re.DOTALL).split("::")],
                                 where, depth)  # fmt: skip
        return self.of_written(written, where, depth)

    def of_written(self, node: Node, where: Where, depth: int = 0) -> Types:
        """Return what a template argument, or another type that was read from text, can be."""
        while node.kind == "type" and node.children:
            node = node.children[0]
        if node.kind in ("type", "literal"):
            return LIBRARY
        if node.kind != "name":
            return unknown()
        parts: list[tuple[str, tuple[Node, ...]]] = []
        for part in _components(node.text):
            name, opening, rest = part.partition("<")
            parsed = self.parsed(f"x<{rest}") if opening else None
            parts.append((name.strip(), parsed.children if parsed is not None else ()))
        parts[-1] = (parts[-1][0], node.children or parts[-1][1])
        return self._of_path(parts, where, depth)

    # -- names --------------------------------------------------------------------------------------------------------
    def _of_path(self, parts: list[tuple[str, tuple[Node, ...]]], where: Where, depth: int) -> Types:
        """Return what a qualified name can be, component by component."""
        if depth > MAX_DEPTH:
            return unknown()
        name, arguments = parts[0]
        conditional = next((at for at, (name, _) in enumerate(parts) if name in CONDITIONAL_TYPES), None)
        if conditional is not None and len(parts[conditional][1]) == 3:
            return self._conditional(parts[conditional][1], where, depth)
        types = self._first(name, arguments, where, depth, qualified=len(parts) > 1)
        rest = parts[1:]
        if types is None:  # a namespace: what it holds is known by its own name
            for at, (_, inner_arguments) in enumerate(parts):
                path = [part for part, _ in parts[: at + 1]]
                types = self._in_namespace(path, inner_arguments, where, depth, qualified=len(parts) > 1)
                if types is not None:
                    rest = parts[at + 1 :]
                    break
            else:
                return LIBRARY
        for inner, _ in rest:
            member = self.member_type(types, inner, where.deep, depth)
            if not member.decided and not types.instances and not types.library:
                member = self._of_unknown_class(inner, name, where, depth)
            types = member
        return types

    def _first(self, name: str, arguments: tuple[Node, ...], where: Where, depth: int, qualified: bool) -> Types | None:
        local = where.scope.get(name)
        if local is not None and local.alias and local.type is not None and local.type.spelling != name:
            return self.of_type(local.type, where, depth + 1)
        if where.function is not None and name in where.function.template_parameters:
            position = where.function.template_parameters.index(name)
            return self._parameter(where.function.declaration.usr, position, name, where, depth)
        usr = where.class_usr
        while usr in self.unit.classes:
            class_ = self.unit.classes[usr]
            if name == class_.declaration.name:
                return Types((Instance(usr, arguments, where),))
            found = self._own_member(usr, name, where, depth)
            if found is not None:
                return found
            if name in class_.template_parameters:
                return self._parameter(usr, class_.template_parameters.index(name), name, where, depth)
            usr = class_.declaration.parent
        if local is not None and qualified:  # a member type of a variable: by its class
            return unknown(f"the type of {name}")
        return None

    def _own_member(self, usr: str, name: str, where: Where, depth: int) -> Types | None:
        """Return the type that a class or one of its bases calls ``name``."""
        inside = self._inside(usr, where)
        class_ = self.unit.classes[usr]
        for alias, type_ in class_.aliases:
            if alias == name and type_.spelling != name:
                return self.of_type(type_, inside, depth + 1)
        if (usr, name) in self.nested:
            return Types((Instance(self.nested[usr, name]),))
        for base in class_.bases:
            for instance in self.of_type(base, inside, depth + 1).instances:
                if instance.usr != usr:
                    found = self._own_member(instance.usr, name, self._of_instance(instance, where.deep), depth + 1)
                    if found is not None:
                        return found
        return None

    def _inside(self, usr: str, where: Where) -> Where:
        instance = where.instance if where.instance is not None and where.instance.usr == usr else None
        return Where(None, usr, {}, instance, frozenset(), where.deep)

    def _of_instance(self, instance: Instance, deep: bool) -> Where:
        return Where(None, instance.usr, {}, instance, frozenset(), deep)

    def _parameter(self, owner: str, position: int, name: str, where: Where, depth: int) -> Types:
        """Return what a template parameter stands for: by the arguments of this instance, or by all that bind it."""
        instance = where.instance
        if instance is not None and instance.usr == owner and instance.where is not None:
            if position < len(instance.arguments):
                inner = replace(instance.where, deep=where.deep)
                return self.of_written(instance.arguments[position], inner, depth + 1)
        if where.deep:
            return self.bound(owner, position, name)
        return unknown(f"the template parameter {name}")

    def _in_namespace(
        self, path: list[str], arguments: tuple[Node, ...], where: Where, depth: int, qualified: bool
    ) -> Types | None:
        """Return the class or alias of the checkout that stands in a namespace under this name; None for neither."""
        name = path[-1]
        if name in self.aliases:
            return self.of_type(self.aliases[name], Where(deep=where.deep), depth + 1)
        usrs = [usr for usr in self.classes_by_name.get(name, ()) if not self.unit.classes[usr].declaration.primary]
        if qualified:  # a member class would be named by its class
            usrs = [usr for usr in usrs if not self.unit.classes[usr].declaration.parent]
        if len(usrs) > 1:
            suffix = "::" + "::".join(path)
            named = [u for u in usrs if f"::{self.unit.classes[u].declaration.qualified_name}".endswith(suffix)]
            usrs = named or usrs
        if len(usrs) > 1:
            return unknown(f"one of {len(usrs)} classes named {name}")
        return Types((Instance(usrs[0], arguments, where),)) if usrs else None

    def _of_unknown_class(self, name: str, owner: str, where: Where, depth: int) -> Types:
        """Return a member type of a class that is not known: what the one class with such a member says."""
        if self._guessing:  # what another class calls so would be a guess about a guess
            return unknown(f"{name} of the template parameter {owner}")
        self._guessing = True
        found = join(
            [
                self.of_type(type_, Where(None, usr, deep=where.deep), depth + 1)
                for type_, usr in self.member_aliases.get(name, ())
            ]
        )
        self._guessing = False
        one_class = len(found.usrs) == 1 and not found.library and (where.deep or not found.unknown)
        if one_class or (found.library and not found.instances and not found.unknown):
            return found
        return unknown(f"{name} of the template parameter {owner}")

    def _conditional(self, arguments: tuple[Node, ...], where: Where, depth: int) -> Types:
        """Return both choices of a conditional type, each under its condition; one where that is decided already."""
        condition = written(arguments[0])
        truths = [truth for text, truth in where.assumed if text == condition] or [True, False]
        return join(
            self.of_written(
                arguments[1 if truth else 2], replace(where, assumed=where.assumed | {(condition, truth)}), depth + 1
            )
            for truth in truths
        )

    def member_type(self, types: Types, name: str, deep: bool, depth: int = 0) -> Types:
        """Return what the member type ``name`` of a type can be."""
        found = [LIBRARY] if types.library else []
        for instance in types.instances:
            inner = self._own_member(instance.usr, name, self._of_instance(instance, deep), depth + 1)
            found.append(inner if inner is not None else unknown(f"no type {name} in the class"))
        if types.unknown:
            found.append(unknown(types.unknown))
        return join(found)


def _plain(spelling: str) -> str:
    """Return a type's text without qualifiers, references, pointers and array bounds around it."""
    spelling = _BOUNDS.sub("", spelling)
    head, opening, rest = spelling.partition("<")
    if not opening:
        return _QUALIFIERS.sub(" ", spelling).strip()
    return (_QUALIFIERS.sub(" ", head).strip() + opening + rest).rstrip(" &*")


@lru_cache(maxsize=4096)
def _components(text: str) -> tuple[str, ...]:
    """Split a qualified name at the ``::`` outside of template arguments."""
    parts, depth, start = [], 0, 0
    for match in re.finditer(r"[<>]|::", text):
        if match.group() == "::":
            if depth == 0:
                parts.append(text[start : match.start()])
                start = match.end()
        else:
            depth += 1 if match.group() == "<" else -1
    parts.append(text[start:])
    return tuple([part for part in parts if part]) or (text,)
