"""What the interpreter asks of the front end: functions with their trees, classes, declarations, parse errors.

Everything is read when it is first needed and kept for the next call.
"""

from __future__ import annotations

import re
from functools import lru_cache

from tracer.cpp import CppSource, slices
from tracer.cpp.tree import Class, Declaration, Node, TypeRef
from tracer.dispatch.answers import Unsupported
from tracer.errors import TracerError
from tracer.model import Definition, Diagnostic, Location
from tracer.records import dataclass


@dataclass(frozen=True, slots=True)
class Code:
    """One function, ready to run.

    Attributes:
        id: of its definition.
        definition: name and place.
        parameters: ``parameter`` nodes.
        body: its block.
        template_parameters: of the template; empty for an explicit specialization and for a plain function.
        result: what it returns.
        errors: what the parser did not understand inside of it.
    """

    id: str
    definition: Definition
    parameters: tuple[Node, ...]
    body: Node
    template_parameters: tuple[Node, ...]
    result: TypeRef
    errors: tuple[tuple[int, str], ...]


@dataclass(frozen=True, slots=True)
class ClassCode:
    """One class of the checkout.

    Attributes:
        class_: what the front end tells of it.
        template_parameters: ``template parameter`` nodes.
        owner: a function whose tables know its files.
        errors: what the parser did not understand inside of it.
    """

    class_: Class
    template_parameters: tuple[Node, ...]
    owner: str
    errors: tuple[Diagnostic, ...]


class HostCode:
    """The host side of one extension."""

    def __init__(self, source: CppSource) -> None:
        """Read nothing yet."""
        self.source = source
        self._codes: dict[str, Code] = {}
        self._declarations: dict[str, Declaration] = {}
        self._classes: dict[str, ClassCode] = {}
        self._aliases: dict[str, TypeRef] = {}
        self._template_parameters: dict[str, tuple[Node, ...]] = {}
        self._results: dict[str, TypeRef] = {}
        self._units: set[str] = set()
        self._class_names: dict[str, list[str]] = {}
        self._templates: frozenset[str] = frozenset()
        self._parsed: dict[str, Node] = {}
        self._specializations: dict[str, tuple[tuple[str, tuple[Node, ...]], ...]] = {}
        self._errors: dict[str, list[tuple[int, str]]] | None = None
        self._by_name: dict[str, list[str]] | None = None

    # -- functions ----------------------------------------------------------------------------------------------------
    def functions_named(self, name: str) -> list[str]:
        """Return the ids of the functions of that name, explicit specializations aside."""
        if self._by_name is None:
            self._by_name = {}
            for definition in self.source.definitions():
                if definition.kind != "specialization":
                    self._by_name.setdefault(definition.name, []).append(definition.id)
        return self._by_name.get(name, [])

    def names(self) -> list[str]:
        """Return the names of all functions."""
        self.functions_named("")
        assert self._by_name is not None
        return list(self._by_name)

    def code(self, id: str) -> Code:
        """Return a function by id."""
        known = self._codes.get(id)
        if known is None:
            if not self.source.owns(id):
                name = self.source.extension.name
                raise TracerError(f"the call leaves {name}, whose host code is followed; name an entry of that module")
            *parameters, body = self.source.tree(id)
            definition = self.source.definition(id)
            usr = id[len(self.source.prefix) :]
            if self.source.unit(id) not in self._units:
                self._learn(id)
            template_parameters = () if definition.template_arguments else self._template_parameters.get(usr, ())
            place = definition.location
            errors = tuple(
                (line, message) for line, message in self._errors_of(place.file) if place.line <= line <= place.end_line
            )
            known = self._codes[id] = Code(
                id, definition, tuple(parameters), body, template_parameters, self._results[usr], errors
            )
        return known

    def _errors_of(self, file: str) -> list[tuple[int, str]]:
        if self._errors is None:
            self._errors = {}
            for diagnostic in self.source.diagnostics:
                place = diagnostic.location
                self._errors.setdefault(place.file, []).append((place.line, diagnostic.message))
        return self._errors.get(file, [])

    def specializations(self, usr: str) -> tuple[tuple[str, tuple[Node, ...]], ...]:
        """Return (id, template arguments) of the explicit specializations of a function template."""
        known = self._specializations.get(usr)
        if known is None:
            known = self._specializations[usr] = tuple(
                (id, tuple(self.parse(text) for text in self.source.definition(id).template_arguments))
                for id in self.source.specializations(usr)
            )
        return known

    # -- declarations -------------------------------------------------------------------------------------------------
    def _learn(self, id: str) -> None:
        """Take over the tables of the unit that a function belongs to."""
        tables = self.source.tables(id)
        self._units.add(self.source.unit(id))
        self._class_names.clear()
        self._declarations.update(tables.declarations)
        self._templates |= tables.templates
        for name, type_ in tables.aliases:
            self._aliases.setdefault(name, type_)
        for usr, class_ in tables.classes.items():
            if usr not in self._classes:
                declared = class_.declaration
                file = tables.files[declared.file] if declared.file >= 0 else ""
                errors = tuple(
                    Diagnostic(Location(file, line), message)
                    for line, message in self._errors_of(file)
                    if declared.line <= line <= declared.end_line
                )
                self._classes[usr] = ClassCode(class_, tables.template_parameters.get(usr, ()), id, errors)
        self._template_parameters.update(tables.template_parameters)
        self._results.update(tables.results)

    def declaration(self, usr: str, owner: str) -> Declaration:
        """Return what a USR in the tree of function ``owner`` names."""
        known = self._declarations.get(usr)
        if known is None:
            self._learn(owner)  # a body that was read later brought new declarations
            known = self._declarations[usr]
        return known

    def result(self, usr: str) -> TypeRef | None:
        """Return what a function of the checkout returns; None for a library's function."""
        return self._results.get(usr)

    def is_inside(self, usr: str, owner: str) -> bool:
        """Tell whether a USR in the tree of function ``owner`` names a function of the checkout."""
        return self.declaration(usr, owner).inside

    def class_(self, usr: str) -> ClassCode | None:
        """Return a class of the checkout; None for a library's."""
        return self._classes.get(usr)

    def class_named(self, name: str) -> str:
        """Return the USR of the class of the checkout that a qualified or simple name means; empty for none.

        Raises:
            Unsupported: several classes have that name.
        """
        known = self._class_names.get(name)
        if known is None:
            known = self._class_names[name] = [
                usr
                for usr, code in self._classes.items()
                if f"::{code.class_.declaration.qualified_name}".endswith(f"::{name}")
            ]
        if len(known) > 1:
            raise Unsupported(f"the name {name}, which {len(known)} classes have")
        return known[0] if known else ""

    def alias(self, name: str) -> TypeRef | None:
        """Return what a namespace-level alias of the checkout stands for."""
        return self._aliases.get(name)

    # -- text ---------------------------------------------------------------------------------------------------------
    def parse(self, text: str) -> Node:
        """Parse a type or an expression that the front end hands out as text."""
        known = self._parsed.get(text)
        if known is None:
            known = self._parsed[text] = slices.expression(text, -1, 0, self._is_template)
        return known

    def _is_template(self, name: str) -> bool:
        return name in self._templates

    def location(self, owner: str, node: Node) -> Location:
        """Return where a node of the tree of function ``owner`` stands."""
        return self.source.location(owner, node)


_QUALIFIERS = re.compile(r"\b(?:const|volatile|typename|struct|class)\b\s*")


@lru_cache(maxsize=4096)
def bare(spelling: str) -> str:
    """Return a type's spelling without cv-qualifiers, elaborations, and reference marks."""
    return _QUALIFIERS.sub("", spelling).strip().rstrip("&").strip()
