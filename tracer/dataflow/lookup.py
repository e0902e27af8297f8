"""What a kernel's names can mean in its checkout: functions, classes, template parameters, from the syntax trees."""

from __future__ import annotations

import re
from weakref import WeakKeyDictionary

from tracer.cpp import slices
from tracer.cpp.source import CppSource
from tracer.cpp.tree import Class, Declaration, Node, Tables, TypeRef, walk
from tracer.model import Location
from tracer.records import dataclass

_SCALARS = re.compile(
    r"(?:const |volatile )*(?:unsigned |signed )?(?:int|long|long long|short|char|bool|float|double|"
    r"(?:std::)?u?int\d+_t|(?:std::)?size_t|unsigned)(?: const)?"
)
_WHOLE = re.compile(
    r"(?:const |volatile )*(?:unsigned |signed )?(?:int|long|long long|short|char|unsigned|"
    r"(?:std::)?u?int\d+_t|(?:std::)?size_t)(?: int)?(?: const)?"
)

#: Of each body looked into: itself, so that it lives on, its assignments, and the names that are called in it.
_INSIDE: WeakKeyDictionary[CppSource, dict[int, tuple[Node, tuple[Node, ...], tuple[str, ...]]]] = WeakKeyDictionary()


@dataclass(frozen=True, slots=True, eq=False)
class Callee:
    """A function of the checkout that a call can lead to.

    Attributes:
        id: the definition's id.
        usr: its USR.
        parameters: its ``parameter`` nodes.
        body: its body; None where only declared.
        template: its ``template parameter`` nodes.
    """

    id: str
    usr: str
    parameters: tuple[Node, ...]
    body: Node | None
    template: tuple[Node, ...]

    def takes(self, count: int) -> bool:
        """Tell whether it can be called with ``count`` arguments."""
        required = sum(1 for parameter in self.parameters if not parameter.children)
        return required <= count <= len(self.parameters)


class Lookup:
    """Functions and classes of one extension, by USR and by name, read on demand."""

    def __init__(self, source: CppSource, id: str) -> None:
        """Look up from the unit that defines function ``id``."""
        self.source, self.id = source, id
        source.tree(id)
        self.tables: Tables = source.tables(id)
        self._callees: dict[str, Callee | None] = {}
        self._classes_named: dict[str, list[Class]] = {}
        self._expressions: dict[str, Node] = {}
        for found in self.tables.classes.values():
            self._classes_named.setdefault(found.declaration.name.partition("<")[0], []).append(found)

    # -- functions ----------------------------------------------------------------------------------------------------
    def callee(self, usr: str) -> Callee | None:
        """Return the function of a USR, if a source of the extension defines it."""
        if usr not in self._callees:
            id = self.source.id(usr)
            found = self._read(id, usr) if id is not None else None
            if found is None:  # a template that only its specializations define: they do the same for each type
                specializations = self.source.specializations(usr)
                found = self.function(specializations[0]) if specializations else None
            self._callees[usr] = found
        return self._callees[usr]

    def function(self, id: str) -> Callee:
        """Return the function of a definition's id."""
        usr = id.partition("c:")[1] + id.partition("c:")[2]
        found = self._read(id, usr)
        assert found is not None
        return found

    def _read(self, id: str, usr: str) -> Callee | None:
        parts = self.source.tree(id)
        if not parts or parts[-1].kind != "block":
            return None
        return Callee(id, usr, parts[:-1], parts[-1], self.tables.template_parameters.get(usr, ()))

    def assignments(self, body: Node) -> tuple[Node, ...]:
        """Return the assignments inside of a loop's body, found once for all kernels that have it."""
        return self._inside(body)[1]

    def called_names(self, body: Node) -> tuple[str, ...]:
        """Return the names without a qualifier that are called inside of a loop's body, found once."""
        return self._inside(body)[2]

    def _inside(self, body: Node) -> tuple[Node, tuple[Node, ...], tuple[str, ...]]:
        known = _INSIDE.setdefault(self.source, {})
        if id(body) not in known:
            nodes = [node for node in walk(body) if node.kind in ("assign", "call")]
            callees = [node.children[0] for node in nodes if node.kind == "call"]
            names = {callee.text: None for callee in callees if callee.kind == "name" and "::" not in callee.text}
            known[id(body)] = body, tuple([node for node in nodes if node.kind == "assign"]), tuple(names)
        return known[id(body)]

    # -- classes ------------------------------------------------------------------------------------------------------
    def class_of(self, type_: TypeRef | None) -> Class | None:
        """Return the class of the checkout that a type names."""
        if type_ is None:
            return None
        return self.tables.classes.get(type_.class_usr) if type_.class_usr else None

    def class_named(self, name: str, arguments: tuple[str, ...] = ()) -> Class | None:
        """Return the class of a name: the explicit specialization for ``arguments`` where there is one."""
        candidates = self._classes_named.get(name.rpartition("::")[2], [])
        for found in candidates:
            written = self.specialized_for(found)
            if written and written == arguments:
                return found
        return next((found for found in candidates if not self.specialized_for(found)), None)

    def specialized(self, found: Class, arguments: tuple[str, ...]) -> Class:
        """Return the explicit specialization of a class template for some arguments, or the class itself."""
        usr = found.declaration.usr
        for other in self._classes_named.get(found.declaration.name.partition("<")[0], []):
            if other.declaration.primary == usr and self.specialized_for(other) == arguments:
                return other
        return found

    def specializations(self, found: Class) -> list[Class]:
        """Return the explicit specializations of a class template."""
        alike = self._classes_named.get(found.declaration.name.partition("<")[0], [])
        return [other for other in alike if other.declaration.primary == found.declaration.usr]

    def specialized_for(self, found: Class) -> tuple[str, ...]:
        """Return the arguments that an explicit specialization is for; empty for anything else."""
        if not found.declaration.primary:
            return ()
        name = found.declaration.qualified_name
        opening = name.find("<")
        if opening >= 0:
            return slices.split_arguments(name, opening)[0]
        return tuple(re.findall(r"#VI?(-?\d+)", found.declaration.usr.rpartition("@S@")[2]))

    def methods(self, found: Class, name: str) -> list[Callee]:
        """Return the member functions of a name, those of the base classes last."""
        callees = [self.callee(usr) for method, usr in found.methods if method == name]
        for base in found.bases:
            base_class = self.class_of(base) or self.class_named(base.spelling.partition("<")[0])
            if base_class is not None and base_class is not found:
                callees += self.methods(base_class, name)
        return [callee for callee in callees if callee is not None]

    def fields(self, found: Class) -> list[tuple[str, TypeRef]]:
        """Return the data members, those of the base classes first."""
        inherited: list[tuple[str, TypeRef]] = []
        for base in found.bases:
            base_class = self.class_of(base) or self.class_named(base.spelling.partition("<")[0])
            if base_class is not None and base_class is not found:
                inherited += self.fields(base_class)
        return [*inherited, *found.fields]

    def parameters_of(self, usr: str) -> tuple[Node, ...]:
        """Return the template parameters of a template."""
        return self.tables.template_parameters.get(usr, ())

    def field_declaration(self, found: Class, name: str) -> Declaration | None:
        """Return where a data member is declared, as far as the unit's tables know."""
        usr = f"{found.declaration.usr}@FI@{name}"
        known = self.tables.declarations.get(usr)
        if known is None:
            self.tables = self.source.tables(self.id)  # bodies that were read since bring their declarations
            known = self.tables.declarations.get(usr)
        if known is None:
            for base in found.bases:
                base_class = self.class_of(base)
                if base_class is not None and base_class is not found:
                    known = known or self.field_declaration(base_class, name)
        return known

    def place(self, declaration: Declaration) -> Location:
        """Return where a declaration stands."""
        return Location(self.tables.files[declaration.file], declaration.line, declaration.column, declaration.end_line)

    # -- types and expressions ----------------------------------------------------------------------------------------
    def is_whole(self, type_: TypeRef | None) -> bool:
        """Tell whether a type is one of whole numbers."""
        return type_ is not None and _WHOLE.fullmatch(type_.canonical or type_.spelling) is not None

    def is_scalar(self, type_: TypeRef | None) -> bool:
        """Tell whether a type is a number."""
        return (
            type_ is not None
            and type_.form == "value"
            and bool(_SCALARS.fullmatch(type_.canonical) or _SCALARS.fullmatch(type_.spelling))
        )

    def arguments_of(self, spelling: str) -> tuple[str, ...]:
        """Return the template arguments written in a type."""
        opening = spelling.find("<")
        return slices.split_arguments(spelling, opening)[0] if opening >= 0 else ()

    def expression(self, text: str) -> Node:
        """Return a template argument, written as text, as an expression."""
        if text not in self._expressions:
            self._expressions[text] = slices.expression(text, -1, 0, lambda name: name in self.tables.templates)
        return self._expressions[text]
