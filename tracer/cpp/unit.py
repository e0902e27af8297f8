"""One parsed unit: libclang's cursors turned into declarations at once and into bodies on demand."""

from __future__ import annotations

import re
from collections.abc import Iterable
from ctypes import c_void_p

from tracer.cpp import instantiations, slices
from tracer.cpp import kinds as k
from tracer.cpp.cursors import CursorReader
from tracer.cpp.expressions import EXPRESSIONS, parameter, unexposed
from tracer.cpp.libclang import INCLUSION_VISITOR, SEVERITY_ERROR, CXCursor, LibClang
from tracer.cpp.statements import STATEMENTS
from tracer.cpp.tree import Class, Function, Node, TypeRef

_CONVERTERS = {**EXPRESSIONS, **STATEMENTS}


class Unit(CursorReader):
    """One translation unit, converted on demand.

    Attributes:
        files: the checkout's files that the unit reads; nodes refer to them by index.
        declarations: everything that a node's targets can name.
        functions: the functions that the unit defines or declares inside the checkout, by key.
        classes: the checkout's classes, by USR.
        aliases: namespace-level type aliases of the checkout: (name, type).
        errors: (file index or -1, line, column, message) of each error diagnostic.
        instantiations: explicit instantiations, which libclang does not show: (name, arguments, file, offset).
    """

    def __init__(self, clang: LibClang, handle: c_void_p, root: str, own_files: Iterable[str]) -> None:
        """Read the outline of a parsed unit; see :class:`CursorReader`."""
        super().__init__(clang, handle, root, own_files)
        self.functions: list[Function] = []
        self.by_usr: dict[str, list[int]] = {}
        self.aliases: list[tuple[str, TypeRef]] = []
        self.included: list[str] = []
        self._cursors: list[CXCursor] = []
        self._template_parameters: dict[str, list[CXCursor]] = {}
        self._read_included_files()
        self._outline(self.f.clang_getTranslationUnitCursor(handle))
        self.errors = self._read_errors()
        self.instantiations = self._read_instantiations()

    # -- outline ------------------------------------------------------------------------------------------------------
    def _read_included_files(self) -> None:
        def visit(file: int, _stack: object, _depth: int, _data: object) -> None:
            path = self.clang.text(self.f.clang_getFileName(c_void_p(file)))
            self.included.append(path)
            self.file_number(path)

        self.f.clang_getInclusions(self.handle, INCLUSION_VISITOR(visit), None)

    def _outline(self, parent: CXCursor) -> None:
        for cursor in self.clang.children(parent):
            kind = cursor.kind
            if kind in (k.FUNCTION_TEMPLATE, k.CLASS_TEMPLATE, k.TYPE_ALIAS_TEMPLATE_DECL, k.UNEXPOSED_DECL):
                self.templates.add(self.spelling(cursor))
            file, _ = self.position(self.f.clang_getCursorLocation(cursor))
            if kind in (k.NAMESPACE, k.LINKAGE_SPEC, k.UNEXPOSED_DECL):
                self._outline(cursor)
            elif file < 0:
                continue
            elif kind in k.FUNCTIONS:
                self._add_function(cursor)
            elif kind in k.CLASSES and self.f.clang_isCursorDefinition(cursor):
                self._add_class(cursor)
            elif kind in (k.TYPE_ALIAS_DECL, k.TYPEDEF_DECL, k.TYPE_ALIAS_TEMPLATE_DECL):
                self.aliases.append((self.spelling(cursor), self.alias_type(cursor)))

    def _add_function(self, cursor: CXCursor) -> None:
        usr = self.reference(cursor)[1]
        attributes: list[str] = []
        template_parameters: list[str] = []
        parameters: list[Node] = []
        defined = False
        for child in self.clang.children(cursor):
            if child.kind == k.COMPOUND_STMT:
                defined = True
            elif child.kind in k.CUDA_ATTRIBUTES:
                attributes.append(k.CUDA_ATTRIBUTES[child.kind])
            elif child.kind in k.LOCALS and child.kind != k.PARM_DECL:
                template_parameters.append(self.spelling(child))
                self._template_parameters.setdefault(usr, []).append(child)
            elif child.kind == k.PARM_DECL:
                parameters.append(parameter(self, child))
        self.by_usr.setdefault(usr, []).append(len(self.functions))
        self.functions.append(
            Function(
                self.declarations[usr],
                tuple(attributes),
                tuple(template_parameters),
                self._written_arguments(cursor) if self.declarations[usr].primary else (),
                tuple(parameters),
                len(self.functions),
                defined,
            )
        )
        self._cursors.append(cursor)

    def _written_arguments(self, cursor: CXCursor) -> tuple[str, ...]:
        """Return the template arguments written behind the name of an explicit specialization."""
        file, offset = self.position(self.f.clang_getCursorLocation(cursor))
        end = self.extent(cursor)[2]
        text = self.slice(file, offset, end)
        opening = re.match(r"[\w~]+\s*(?=<)", text)
        return slices.split_arguments(text, opening.end())[0] if opening else ()

    def _add_class(self, cursor: CXCursor) -> None:
        usr = self.reference(cursor)[1]
        template_parameters: list[str] = []
        bases: list[TypeRef] = []
        fields: list[tuple[str, TypeRef]] = []
        aliases: list[tuple[str, TypeRef]] = []
        methods: list[tuple[str, str]] = []
        constants: list[tuple[str, Node]] = []
        constant_types: list[TypeRef] = []
        for child in self.clang.children(cursor):
            kind = child.kind
            if kind in k.LOCALS:
                template_parameters.append(self.spelling(child))
                self._template_parameters.setdefault(usr, []).append(child)
            elif kind == k.CXX_BASE_SPECIFIER:
                bases.append(self.type_ref(self.f.clang_getCursorType(child), child))
            elif kind == k.FIELD_DECL:
                fields.append((self.spelling(child), self.type_ref(self.f.clang_getCursorType(child), child)))
            elif kind in (k.TYPE_ALIAS_DECL, k.TYPEDEF_DECL, k.TYPE_ALIAS_TEMPLATE_DECL):
                aliases.append((self.spelling(child), self.alias_type(child)))
            elif kind in k.FUNCTIONS:
                self._add_function(child)
                name = self.functions[-1].declaration.name
                methods.append((name, self.functions[-1].declaration.usr))
            elif kind in k.CLASSES and self.f.clang_isCursorDefinition(child):
                self._add_class(child)
            elif kind == k.VAR_DECL:
                initialisers = [c for c in self.clang.children(child) if c.kind not in k.REFERENCES and c.kind < 400]
                if initialisers:
                    constants.append((self.spelling(child), self.node(initialisers[-1])))
                    constant_types.append(self.type_ref(self.f.clang_getCursorType(child), child))
        self.classes[usr] = Class(
            self.declarations[usr],
            tuple(template_parameters),
            tuple(bases),
            tuple(fields),
            tuple(aliases),
            tuple(methods),
            tuple(constants),
            tuple(constant_types),
        )

    def _read_errors(self) -> list[tuple[int, int, int, str]]:
        found = []
        for number in range(self.f.clang_getNumDiagnostics(self.handle)):
            diagnostic = self.f.clang_getDiagnostic(self.handle, number)
            if self.f.clang_getDiagnosticSeverity(diagnostic) >= SEVERITY_ERROR:
                location = self.f.clang_getDiagnosticLocation(diagnostic)
                file_id, line, column, _ = self.clang.file_position(location)
                message = self.clang.text(self.f.clang_getDiagnosticSpelling(diagnostic)).replace(self.root, "")
                found.append((self.file_of(file_id), line, column, message))
            self.f.clang_disposeDiagnostic(diagnostic)
        return found

    def _read_instantiations(self) -> list[tuple[str, tuple[str, ...], int, int]]:
        found = []
        for number, file in enumerate(self.files):
            if b"template" in file.data:
                text = file.data.decode("latin-1")  # one character a byte, so that offsets stay byte offsets
                found += [(name, arguments, number, offset) for name, arguments, offset in instantiations.read(text)]
        return found

    def is_inside(self, usr: str) -> bool:
        """Tell whether a declaration stands in the checkout.

        A compiler builtin has no declaration; libclang places it at its first use, which can be in the checkout.
        """
        declaration = self.declarations.get(usr)
        if declaration is None or not declaration.inside:
            return False
        return usr in self.by_usr or declaration.kind not in ("function", "function template", "method")

    # -- signatures ---------------------------------------------------------------------------------------------------
    def template_parameters(self) -> dict[str, tuple[Node, ...]]:
        """Return the template parameters of the checkout's functions and classes, by USR."""
        return {
            usr: tuple([self._template_parameter(cursor) for cursor in self._last_declared(cursors)])
            for usr, cursors in self._template_parameters.items()
        }

    def results(self) -> dict[str, TypeRef]:
        """Return what the checkout's functions return, by USR."""
        return {
            function.declaration.usr: self.type_ref(self.f.clang_getCursorResultType(cursor))
            for function, cursor in zip(self.functions, self._cursors, strict=True)
        }

    def _last_declared(self, cursors: list[CXCursor]) -> list[CXCursor]:
        """Keep the parameters of one declaration where several were seen: only one of them can write the defaults."""
        names = [self.spelling(cursor) for cursor in cursors]
        count = next((n for n in range(1, len(names)) if names[n] == names[0] and names[0]), len(names))
        return max(
            (cursors[at : at + count] for at in range(0, len(cursors), count)),
            key=lambda group: sum(self.extent(cursor)[2] - self.extent(cursor)[1] for cursor in group),
        )

    def _template_parameter(self, cursor: CXCursor) -> Node:
        file, start, end = self.extent(cursor)
        _, name_at = self.position(self.f.clang_getCursorLocation(cursor))
        name = self.spelling(cursor)
        type_ = None
        if cursor.kind == k.TEMPLATE_NON_TYPE_PARAMETER:
            type_ = self.type_ref(self.f.clang_getCursorType(cursor), cursor)
        text = self.slice(file, name_at, end)
        written = re.match(r"\w*\s*=\s*", text)
        default: tuple[Node, ...] = ()
        if written:
            default = (slices.expression(text[written.end() :], file, name_at + written.end(), self.is_template),)
        return Node("template parameter", name, default, file, start, end, type_)

    def function_extent(self, key: int) -> tuple[int, int, int]:
        """Return (file index, offset of the name, end of the construct) of a function."""
        cursor = self._cursors[key]
        file, name_at = self.position(self.f.clang_getCursorLocation(cursor))
        end_file, _, end = self.extent(cursor)
        return file, name_at, end if end_file == file else name_at

    # -- bodies -------------------------------------------------------------------------------------------------------
    def body(self, key: int) -> Node | None:
        """Convert the body of a function, constructor initialisers included; None where the unit has none."""
        statements: list[Node] = []
        member = ""
        for child in self.clang.children(self._cursors[key]):
            if child.kind == k.MEMBER_REF:
                member = self.spelling(child)
                continue
            if child.kind == k.COMPOUND_STMT:
                block = self.node(child)
                return (
                    Node("block", "", (*statements, block), block.file, block.start, block.end) if statements else block
                )
            if (self._cursors[key].kind == k.CONSTRUCTOR or member) and k.UNEXPOSED_EXPR <= child.kind < 400:
                value = self.node(child)
                if member:
                    value = Node("initialise", member, (value,), value.file, value.start, value.end)
                statements.append(value)
            member = ""
        return None

    def node(self, cursor: CXCursor) -> Node:
        """Convert a statement or an expression."""
        kind = cursor.kind
        if kind in (k.UNEXPOSED_EXPR, k.PAREN_EXPR, k.UNEXPOSED_STMT):
            return unexposed(self, cursor)
        convert = _CONVERTERS.get(kind)
        if convert is None:
            return self.raw(cursor)
        return convert(self, cursor)
