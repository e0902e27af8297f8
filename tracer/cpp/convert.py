"""One parsed unit: libclang's cursors turned into declarations at once and into bodies on demand."""

from __future__ import annotations

import os
import re
from bisect import bisect_right
from collections.abc import Callable, Iterable
from ctypes import c_void_p

from tracer.cpp import instantiations, slices
from tracer.cpp import kinds as k
from tracer.cpp.libclang import INCLUSION_VISITOR, SEVERITY_ERROR, CXCursor, CXSourceLocation, CXType, LibClang
from tracer.cpp.tree import EMPTY, Class, Declaration, Function, Node, TypeRef

_IN_MACRO = 1 << 31  # set in the number of a location that a macro produced
_STORAGE_WORDS = re.compile(r"\b(?:constexpr|static|extern|const|thread_local|__shared__|inline|volatile)\b")


class SourceFile:
    """The bytes of one file of a unit, and where its lines begin."""

    def __init__(self, path: str, relative: str, data: bytes) -> None:
        """Keep ``data`` and index its lines."""
        self.path, self.relative, self.data = path, relative, data
        self.line_starts = [0, *(match.end() for match in re.finditer(b"\n", data))]

    def line_and_column(self, offset: int) -> tuple[int, int]:
        """Return the 1-based line and column (in characters) of a byte offset."""
        line = bisect_right(self.line_starts, offset)
        start = self.line_starts[line - 1]
        return line, len(self.data[start:offset].decode("utf-8", "replace")) + 1


class Unit:
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
        """Read the outline of a parsed unit.

        Args:
            clang: the library.
            handle: the parsed unit.
            root: where the checkout lies.
            own_files: the checkout's files that the unit can read, relative to the root; all others are a library's.
        """
        self.clang, self.f, self.handle = clang, clang.f, handle
        self.root = os.path.realpath(root) + os.sep
        self.own_files = frozenset(own_files)
        self.files: list[SourceFile] = []
        self.declarations: dict[str, Declaration] = {}
        self.functions: list[Function] = []
        self.by_usr: dict[str, list[int]] = {}
        self.classes: dict[str, Class] = {}
        self.aliases: list[tuple[str, TypeRef]] = []
        self.templates: set[str] = set()
        self.included: list[str] = []
        self._cursors: list[CXCursor] = []
        self._template_parameters: dict[str, list[CXCursor]] = {}
        self._file_numbers: dict[str, int] = {}
        self._file_ids: dict[int, int] = {}
        self._positions: dict[int, tuple[int, int]] = {}
        self._span_starts: list[int] = []
        self._spans: list[tuple[int, int, int]] = []
        self._references: dict[int, tuple[int, str, str]] = {}
        self._lambdas: dict[tuple[int, int, int], Node] = {}
        self._types: dict[tuple[str, str, str, str], TypeRef] = {}
        self._read_included_files()
        self._outline(self.f.clang_getTranslationUnitCursor(handle))
        self.errors = self._read_errors()
        self.instantiations = self._read_instantiations()

    # -- positions ----------------------------------------------------------------------------------------------------
    def _file_number(self, path: str) -> int:
        """Return the index of a file of the checkout; -1 for a file outside of it."""
        known = self._file_numbers.get(path)
        if known is None:
            known = -1
            real = os.path.realpath(path) if path else ""
            relative = real[len(self.root) :].replace(os.sep, "/") if real.startswith(self.root) else ""
            if relative in self.own_files:
                with open(real, "rb") as stream:
                    data = stream.read()
                known = len(self.files)
                self.files.append(SourceFile(real, relative, data))
            self._file_numbers[path] = known
        return known

    def _position(self, location: CXSourceLocation) -> tuple[int, int]:
        """Return (file index, byte offset) of where the text of a location stands."""
        return self._positions.get(location.int_data) or self._new_position(location.int_data, lambda: location)

    def _new_position(self, key: int, location: Callable[[], CXSourceLocation]) -> tuple[int, int]:
        """Find a position and remember it.

        A location outside of macros is numbered by its offset in the file plus a number of the file's own. So one
        answer of libclang settles all locations of that file, which are most of a unit's.
        """
        if not key & _IN_MACRO:
            number = bisect_right(self._span_starts, key) - 1
            if number >= 0:
                start, end, file = self._spans[number]
                if key <= end:
                    found = self._positions[key] = (file, key - start)
                    return found
        file_id, _, _, offset = self.clang.file_position(location())
        file = self._file_of(file_id)
        if file >= 0 and not key & _IN_MACRO:
            start = key - offset
            at = bisect_right(self._span_starts, start)
            self._span_starts.insert(at, start)
            self._spans.insert(at, (start, start + len(self.files[file].data), file))
        found = self._positions[key] = (file, offset)
        return found

    def _file_of(self, file_id: int) -> int:
        """Return the index of the file that libclang numbers so; -1 for a file outside of the checkout."""
        known = self._file_ids.get(file_id)
        if known is None:
            known = self._file_ids[file_id] = self._file_number(self.clang.file_name(file_id))
        return known

    def _extent(self, cursor: CXCursor) -> tuple[int, int, int]:
        """Return (file index, start, end) of a cursor; an empty extent where it has no text of its own."""
        extent = self.f.clang_getCursorExtent(cursor)
        begin = self._positions.get(extent.begin_int_data) or self._new_position(
            extent.begin_int_data, lambda: self.f.clang_getRangeStart(extent)
        )
        end = self._positions.get(extent.end_int_data) or self._new_position(
            extent.end_int_data, lambda: self.f.clang_getRangeEnd(extent)
        )
        if begin[0] != end[0] or end[1] < begin[1]:
            return begin[0], begin[1], begin[1]
        return begin[0], begin[1], end[1]

    def slice(self, file: int, start: int, end: int) -> str:
        """Return the source text between two byte offsets of a file; empty for no file."""
        return self.files[file].data[start:end].decode("utf-8", "replace") if file >= 0 else ""

    # -- outline ------------------------------------------------------------------------------------------------------
    def _read_included_files(self) -> None:
        def visit(file: int, _stack: object, _depth: int, _data: object) -> None:
            path = self.clang.text(self.f.clang_getFileName(c_void_p(file)))
            self.included.append(path)
            self._file_number(path)

        self.f.clang_getInclusions(self.handle, INCLUSION_VISITOR(visit), None)

    def _outline(self, parent: CXCursor) -> None:
        for cursor in self.clang.children(parent):
            kind = cursor.kind
            if kind in (k.FUNCTION_TEMPLATE, k.CLASS_TEMPLATE, k.TYPE_ALIAS_TEMPLATE_DECL, k.UNEXPOSED_DECL):
                self.templates.add(self._spelling(cursor))
            file, _ = self._position(self.f.clang_getCursorLocation(cursor))
            if kind in (k.NAMESPACE, k.LINKAGE_SPEC, k.UNEXPOSED_DECL):
                self._outline(cursor)
            elif file < 0:
                continue
            elif kind in k.FUNCTIONS:
                self._add_function(cursor)
            elif kind in k.CLASSES and self.f.clang_isCursorDefinition(cursor):
                self._add_class(cursor)
            elif kind in (k.TYPE_ALIAS_DECL, k.TYPEDEF_DECL, k.TYPE_ALIAS_TEMPLATE_DECL):
                self.aliases.append((self._spelling(cursor), self._alias_type(cursor)))

    def _spelling(self, cursor: CXCursor) -> str:
        return self.clang.text(self.f.clang_getCursorSpelling(cursor))

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
                template_parameters.append(self._spelling(child))
                self._template_parameters.setdefault(usr, []).append(child)
            elif child.kind == k.PARM_DECL:
                parameters.append(self._parameter(child))
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
        file, offset = self._position(self.f.clang_getCursorLocation(cursor))
        end = self._extent(cursor)[2]
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
                template_parameters.append(self._spelling(child))
                self._template_parameters.setdefault(usr, []).append(child)
            elif kind == k.CXX_BASE_SPECIFIER:
                bases.append(self._type(self.f.clang_getCursorType(child), child))
            elif kind == k.FIELD_DECL:
                fields.append((self._spelling(child), self._type(self.f.clang_getCursorType(child), child)))
            elif kind in (k.TYPE_ALIAS_DECL, k.TYPEDEF_DECL, k.TYPE_ALIAS_TEMPLATE_DECL):
                aliases.append((self._spelling(child), self._alias_type(child)))
            elif kind in k.FUNCTIONS:
                self._add_function(child)
                name = self.functions[-1].declaration.name
                methods.append((name, self.functions[-1].declaration.usr))
            elif kind in k.CLASSES and self.f.clang_isCursorDefinition(child):
                self._add_class(child)
            elif kind == k.VAR_DECL:
                initialisers = [c for c in self.clang.children(child) if c.kind not in k.REFERENCES and c.kind < 400]
                if initialisers:
                    constants.append((self._spelling(child), self.node(initialisers[-1])))
                    constant_types.append(self._type(self.f.clang_getCursorType(child), child))
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
                found.append((self._file_of(file_id), line, column, message))
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

    # -- references and types -----------------------------------------------------------------------------------------
    def reference(self, cursor: CXCursor) -> tuple[int, str, str]:
        """Return (kind, USR, name) of a declaration; the USR is empty for a local name."""
        address = cursor.data[0] or 0
        known = self._references.get(address)
        if known is not None:
            return known
        kind = cursor.kind
        name = self._spelling(cursor)
        if kind == k.CONSTRUCTOR or (kind == k.FUNCTION_TEMPLATE and "<" in name and "operator" not in name):
            name = name.partition("<")[0]  # of a class template: spelled with the template's own arguments
        usr = "" if self._is_local(cursor) else self.clang.text(self.f.clang_getCursorUSR(cursor))
        known = self._references[address] = (kind, usr, name)
        if usr and usr not in self.declarations:
            self._declare(cursor, usr, name)
        return known

    def _is_local(self, cursor: CXCursor) -> bool:
        if cursor.kind in k.LOCALS:
            return True
        if cursor.kind != k.VAR_DECL:
            return False
        parent = self.f.clang_getCursorSemanticParent(cursor)
        return parent.kind in k.FUNCTIONS or parent.kind not in (k.NAMESPACE, k.LINKAGE_SPEC, 350, *k.CLASSES)

    def _declare(self, cursor: CXCursor, usr: str, name: str) -> None:
        scopes: list[str] = []
        parent_usr = ""
        parent = self.f.clang_getCursorSemanticParent(cursor)
        while parent.kind in k.CLASSES or parent.kind in (k.NAMESPACE, k.ENUM_DECL):
            if parent.kind in k.CLASSES and not parent_usr:
                parent_usr = self.reference(parent)[1]
            scopes.append(self._spelling(parent))
            parent = self.f.clang_getCursorSemanticParent(parent)
        template = self.f.clang_getSpecializedCursorTemplate(cursor)
        primary = self.reference(template)[1] if template.kind >= 1 and not 70 <= template.kind <= 73 else ""
        kind = cursor.kind
        if kind == k.FUNCTION_TEMPLATE and parent_usr:
            kind = k.CXX_METHOD
        location = self.f.clang_getCursorLocation(cursor)
        file, offset = self._position(location)
        line = column = end_line = 0
        if file >= 0:
            line, column = self.files[file].line_and_column(offset)
            end_file, _, end = self._extent(cursor)
            end_line = self.files[file].line_and_column(end)[0] if end_file == file else line
        qualified = "::".join([*reversed([scope for scope in scopes if scope]), name])
        self.declarations[usr] = Declaration(
            usr, name, qualified, k.DECLARATION_NAMES.get(kind, "other"), file >= 0, primary, parent_usr, file, line,
            column, max(end_line, line),
        )  # fmt: skip

    def _type(self, type_: CXType, cursor: CXCursor | None = None) -> TypeRef:
        """Describe a type; ``cursor`` is the declaration that writes it, whose children name the class."""
        spelling = self.clang.text(self.f.clang_getTypeSpelling(type_))
        form, inner = "value", type_
        if type_.kind in (k.TYPE_LVALUE_REFERENCE, k.TYPE_RVALUE_REFERENCE):
            form, inner = "reference", self.f.clang_getPointeeType(type_)
        elif type_.kind == k.TYPE_POINTER:
            form, inner = "pointer", self.f.clang_getPointeeType(type_)
        elif type_.kind in k.TYPE_ARRAYS:
            form = "array"
        canonical = self.clang.text(self.f.clang_getTypeSpelling(self.f.clang_getCanonicalType(inner)))
        class_usr = ""
        declaration = self.f.clang_getTypeDeclaration(inner)
        if declaration.kind in k.CLASSES:
            _, class_usr, _ = self.reference(declaration)
            known = self.declarations.get(class_usr)
            if known is not None and known.primary and class_usr not in self.classes:
                class_usr = known.primary
        elif cursor is not None:
            for child in self.clang.children(cursor):
                if child.kind in (k.TYPE_REF, k.TEMPLATE_REF):
                    target = self.f.clang_getCursorReferenced(child)
                    if target.kind in k.CLASSES:
                        class_usr = self.reference(target)[1]
                        break
                elif child.kind not in k.REFERENCES:
                    break
        key = (spelling, canonical, form, class_usr)
        known_type = self._types.get(key)
        if known_type is None:
            known_type = self._types[key] = TypeRef(*key)
        return known_type

    def _alias_type(self, cursor: CXCursor) -> TypeRef:
        if cursor.kind == k.TYPE_ALIAS_TEMPLATE_DECL:
            inner = [child for child in self.clang.children(cursor) if child.kind == k.TYPE_ALIAS_DECL]
            if not inner:
                return TypeRef("", "", "value")
            cursor = inner[0]
        return self._type(self.f.clang_getTypedefDeclUnderlyingType(cursor), cursor)

    def template_parameters(self) -> dict[str, tuple[Node, ...]]:
        """Return the template parameters of the checkout's functions and classes, by USR."""
        return {
            usr: tuple([self._template_parameter(cursor) for cursor in self._last_declared(cursors)])
            for usr, cursors in self._template_parameters.items()
        }

    def results(self) -> dict[str, TypeRef]:
        """Return what the checkout's functions return, by USR."""
        return {
            function.declaration.usr: self._type(self.f.clang_getCursorResultType(cursor))
            for function, cursor in zip(self.functions, self._cursors, strict=True)
        }

    def _last_declared(self, cursors: list[CXCursor]) -> list[CXCursor]:
        """Keep the parameters of one declaration where several were seen: only one of them can write the defaults."""
        names = [self._spelling(cursor) for cursor in cursors]
        count = next((n for n in range(1, len(names)) if names[n] == names[0] and names[0]), len(names))
        return max(
            (cursors[at : at + count] for at in range(0, len(cursors), count)),
            key=lambda group: sum(self._extent(cursor)[2] - self._extent(cursor)[1] for cursor in group),
        )

    def _template_parameter(self, cursor: CXCursor) -> Node:
        file, start, end = self._extent(cursor)
        _, name_at = self._position(self.f.clang_getCursorLocation(cursor))
        name = self._spelling(cursor)
        type_ = None
        if cursor.kind == k.TEMPLATE_NON_TYPE_PARAMETER:
            type_ = self._type(self.f.clang_getCursorType(cursor), cursor)
        text = self.slice(file, name_at, end)
        written = re.match(r"\w*\s*=\s*", text)
        default: tuple[Node, ...] = ()
        if written:
            default = (slices.expression(text[written.end() :], file, name_at + written.end(), self._is_template),)
        return Node("template parameter", name, default, file, start, end, type_)

    def function_extent(self, key: int) -> tuple[int, int, int]:
        """Return (file index, offset of the name, end of the construct) of a function."""
        cursor = self._cursors[key]
        file, name_at = self._position(self.f.clang_getCursorLocation(cursor))
        end_file, _, end = self._extent(cursor)
        return file, name_at, end if end_file == file else name_at

    # -- bodies -------------------------------------------------------------------------------------------------------
    def body(self, key: int) -> Node | None:
        """Convert the body of a function, constructor initialisers included; None where the unit has none."""
        statements: list[Node] = []
        member = ""
        for child in self.clang.children(self._cursors[key]):
            if child.kind == k.MEMBER_REF:
                member = self._spelling(child)
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
            return self._unexposed(cursor)
        convert = _CONVERTERS.get(kind)
        if convert is None:
            return self._raw(cursor)
        return convert(self, cursor)

    def _parts(self, cursor: CXCursor) -> list[CXCursor]:
        return [child for child in self.clang.children(cursor) if child.kind not in k.REFERENCES]

    def _nodes(self, cursors: list[CXCursor]) -> tuple[Node, ...]:
        return tuple([self.node(cursor) for cursor in cursors])

    def _simple(self, kind: str, cursor: CXCursor, text: str = "", text2: str = "") -> Node:
        file, start, end = self._extent(cursor)
        return Node(kind, text, self._nodes(self._parts(cursor)), file, start, end, None, (), text2)

    def _raw(self, cursor: CXCursor) -> Node:
        file, start, end = self._extent(cursor)
        return Node("raw", self.slice(file, start, end), self._nodes(self._parts(cursor)), file, start, end)

    def _unexposed(self, cursor: CXCursor) -> Node:
        children = self.clang.children(cursor)
        parts = [child for child in children if child.kind not in k.REFERENCES]
        if len(parts) == 1 and not any(child.kind == k.OVERLOADED_DECL_REF for child in children):
            return self.node(parts[0])
        if not parts or any(child.kind == k.OVERLOADED_DECL_REF for child in children):
            if not children and self._extent(cursor)[1] == self._extent(cursor)[2]:
                return EMPTY  # a default argument: nothing is written here
            return self._name(cursor)
        if cursor.kind == k.UNEXPOSED_STMT:
            return self._simple("block", cursor)
        return self._raw(cursor)

    def _is_template(self, name: str) -> bool:
        return name in self.templates

    def _name(self, cursor: CXCursor) -> Node:
        file, start, end = self._extent(cursor)
        targets: tuple[str, ...] = ()
        name = ""
        referenced = self.f.clang_getCursorReferenced(cursor)
        if referenced.kind == k.OVERLOADED_DECL_REF or not referenced.data[0]:
            for child in self.clang.children(cursor):
                if child.kind == k.OVERLOADED_DECL_REF:
                    referenced = child
        overloaded = ""
        if referenced.kind == k.OVERLOADED_DECL_REF:
            targets = self._overloads(referenced)
            name, overloaded = self._spelling(referenced), "overloaded"
        elif referenced.data[0] and referenced.kind > 0 and not 70 <= referenced.kind <= 73:
            _, usr, name = self.reference(referenced)
            targets = (self._primary(usr),) if usr else ()
        text = self.slice(file, start, end)
        if text and (not name or "<" in text or "::" in text) and _reads_as_name(text, name):
            parsed = slices.expression(text, file, start, self._is_template)
            if parsed.kind == "raw":
                return Node("name" if name else "raw", name or text, (), file, start, end, None, targets, overloaded)
            if parsed.kind == "name":
                return Node("name", parsed.text, parsed.children, file, start, end, None, targets, overloaded)
            return parsed
        return Node("name", name or text, (), file, start, end, None, targets, overloaded)

    def _primary(self, usr: str) -> str:
        """Name the template instead of one instantiation of it, unless the checkout specializes it explicitly here."""
        declaration = self.declarations.get(usr)
        return declaration.primary if declaration is not None and declaration.primary else usr

    def _overloads(self, cursor: CXCursor) -> tuple[str, ...]:
        found: list[str] = []
        for number in range(self.f.clang_getNumOverloadedDecls(cursor)):
            usr = self._primary(self.reference(self.f.clang_getOverloadedDecl(cursor, number))[1])
            if usr and usr not in found:
                found.append(usr)
        return tuple(found)

    def _member(self, cursor: CXCursor) -> Node:
        file, start, end = self._extent(cursor)
        children = self.clang.children(cursor)
        parts = [child for child in children if child.kind not in k.REFERENCES]
        base = self.node(parts[0]) if parts else Node("this", "", (), file, start, start)
        name = self._spelling(cursor)
        targets: tuple[str, ...] = ()
        referenced = self.f.clang_getCursorReferenced(cursor)
        overloaded = [child for child in children if child.kind == k.OVERLOADED_DECL_REF]
        if overloaded:
            targets = self._overloads(overloaded[0])
        elif referenced.data[0] and referenced.kind in k.FUNCTIONS | {k.FIELD_DECL, k.VAR_DECL, k.ENUM_CONSTANT_DECL}:
            usr = self.reference(referenced)[1]
            targets = (self._primary(usr),) if usr else ()
        arguments: tuple[Node, ...] = ()
        # Without parts the whole slice is the member's name; with them it begins behind the base.
        begin = base.end if parts and base.file == file and base.end > start else start
        text = self.slice(file, begin, end)
        written = re.match(r"\s*(?:/\*.*?\*/\s*)*(\.|->)?\s*(?:template\s+)?", text, re.DOTALL)
        access, skip = (written.group(1) or "", written.end()) if written else ("", 0)
        if not name or "<" in text:
            parsed = slices.expression(text[skip:], file, begin + skip, lambda _: True)
            if parsed.kind == "name":
                name, arguments = name or parsed.text, parsed.children
            elif not name:
                name = text[skip:].strip()
        return Node("member", name, (base, *arguments), file, start, end, None, targets, access or ".")

    def _call(self, cursor: CXCursor) -> Node:
        file, start, end = self._extent(cursor)
        parts = self._parts(cursor)
        count = self.f.clang_Cursor_getNumArguments(cursor)
        referenced = self.f.clang_getCursorReferenced(cursor)
        if count < 0 or len(parts) <= count or referenced.kind == k.CONSTRUCTOR:
            return self._construct(cursor, parts, referenced)
        operator = self._overloaded_operator(parts)
        if operator is not None:
            return self._operator_call(cursor, parts, *operator)
        callee, arguments = parts[0], parts[1:]
        if (
            arguments
            and arguments[0].kind == k.CALL_EXPR
            and self._spelling(arguments[0])
            in (
                "__cudaPushCallConfiguration",
                "cudaConfigureCall",
            )
        ):
            configuration = self._nodes(self._parts(arguments[0])[1:])
            configuration = tuple([node for node in configuration if node.kind != "empty"])
            children = (self.node(callee), *configuration, *self._nodes(arguments[1:]))
            return Node("launch", str(len(configuration)), children, file, start, end)
        if callee.kind == k.MEMBER_REF_EXPR and not arguments and self._spelling(callee).startswith("operator "):
            return self.node(self._parts(callee)[0])  # an implicit conversion
        children = tuple([node for node in (self.node(callee), *self._nodes(arguments)) if node.kind != "empty"])
        return Node("call", "", children, file, start, end)

    def _construct(self, cursor: CXCursor, parts: list[CXCursor], referenced: CXCursor) -> Node:
        file, start, end = self._extent(cursor)
        type_ = self._type(self.f.clang_getCursorType(cursor), cursor)
        targets: tuple[str, ...] = ()
        if referenced.kind in k.FUNCTIONS and referenced.data[0]:
            targets = (self._primary(self.reference(referenced)[1]),)
        arguments = tuple([node for node in self._nodes(parts) if node.kind != "empty"])
        written = self.slice(file, start, end)
        # A copy or conversion that nobody wrote is not a construct of the source.
        if len(arguments) == 1 and (arguments[0].start, arguments[0].end) == (start, end):
            return arguments[0]
        name = re.match(r"\s*(?:typename\s+)?([\w:]+)", written)
        return Node("construct", name.group(1) if name else type_.spelling, arguments, file, start, end, type_, targets)

    def _overloaded_operator(self, parts: list[CXCursor]) -> tuple[int, str] | None:
        for number, part in enumerate(parts):
            inner = part
            while inner.kind == k.UNEXPOSED_EXPR:
                below = self._parts(inner)
                if len(below) != 1:
                    break
                inner = below[0]
            if inner.kind in (k.DECL_REF_EXPR, k.UNEXPOSED_EXPR):
                name = self._spelling(inner)
                if not name:  # of a dependent operator, with the overloads that it may mean below it
                    name = next(
                        (self._spelling(c) for c in self.clang.children(inner) if c.kind == k.OVERLOADED_DECL_REF), ""
                    )
                if name.startswith("operator") and not name[8:9].isalnum() and name[8:9] not in ("_", " ", ""):
                    return number, name[8:]
        return None

    def _operator_call(self, cursor: CXCursor, parts: list[CXCursor], at: int, operator: str) -> Node:
        file, start, end = self._extent(cursor)
        operands = self._nodes([part for number, part in enumerate(parts) if number != at])
        if operator == "()":
            return Node("call", "", operands, file, start, end)
        if operator == "[]":
            return Node("index", "", operands, file, start, end)
        if operator == "->":
            return operands[0]
        kind = "assign" if operator in k.BINARY_OPERATORS[22:33] else "unary" if len(operands) == 1 else "binary"
        if operator in ("++", "--"):
            kind, operator = "unary", operator if at == 0 else f"p{operator}"
            operands = operands[:1]
        return Node(kind, operator, operands, file, start, end)

    def _literal(self, cursor: CXCursor) -> Node:
        file, start, end = self._extent(cursor)
        kind = {k.INTEGER_LITERAL: "int", k.FLOATING_LITERAL: "float", k.CXX_BOOL_LITERAL_EXPR: "bool"}.get(
            cursor.kind, "char"
        )
        text = self.slice(file, start, end)
        if not re.fullmatch(r"'.*'|true|false|[\d.][\w.'+-]*", text, re.DOTALL):
            text = self._evaluated(cursor, kind == "float") or text  # written inside a macro
            if kind == "bool":
                text = "true" if text not in ("", "0") else "false"
        return Node("literal", text, (), file, start, end, None, (), kind)

    def _evaluated(self, cursor: CXCursor, is_float: bool) -> str:
        result = self.f.clang_Cursor_Evaluate(cursor)
        if not result:
            return ""
        result = c_void_p(result)
        value = (
            self.f.clang_EvalResult_getAsDouble(result) if is_float else self.f.clang_EvalResult_getAsLongLong(result)
        )
        self.f.clang_EvalResult_dispose(result)
        return repr(value)

    def _string(self, cursor: CXCursor) -> Node:
        file, start, end = self._extent(cursor)
        return Node("literal", self._spelling(cursor), (), file, start, end, None, (), "string")

    def _fixed_literal(self, cursor: CXCursor) -> Node:
        file, start, end = self._extent(cursor)
        return Node("literal", "nullptr", (), file, start, end, None, (), "null")

    def _binary(self, cursor: CXCursor) -> Node:
        operator = k.BINARY_OPERATORS[self.f.clang_getCursorBinaryOperatorKind(cursor)]
        kind = "assign" if operator in k.BINARY_OPERATORS[22:33] else "binary"
        return self._simple(kind, cursor, operator)

    def _unary(self, cursor: CXCursor) -> Node:
        return self._simple("unary", cursor, k.UNARY_OPERATORS[self.f.clang_getCursorUnaryOperatorKind(cursor)])

    def _cast(self, cursor: CXCursor) -> Node:
        file, start, end = self._extent(cursor)
        word = _CASTS[cursor.kind]
        children = self._nodes(self._parts(cursor))
        type_ = self._type(self.f.clang_getCursorType(cursor), cursor)
        if word == "functional" and len(children) == 1 and children[0].kind == "construct":
            return children[0]
        return Node("cast", word, children, file, start, end, type_)

    def _list(self, cursor: CXCursor) -> Node:
        node = self._simple("list", cursor)
        return Node("list", "", node.children, node.file, node.start, node.end,
                    self._type(self.f.clang_getCursorType(cursor), cursor))  # fmt: skip

    def _sizeof(self, cursor: CXCursor) -> Node:
        file, start, end = self._extent(cursor)
        text = self.slice(file, start, end)
        parsed = slices.expression(text, file, start, self._is_template)
        return (
            parsed
            if parsed.kind == "sizeof"
            else Node("sizeof", text, self._nodes(self._parts(cursor)), file, start, end)
        )

    def _lambda(self, cursor: CXCursor) -> Node:
        file, start, end = self._extent(cursor)
        written = file >= 0 and self.files[file].data[start : start + 1] == b"["
        key = (file, start, end)
        if written and key in self._lambdas:
            return self._lambdas[key]
        children: list[Node] = []
        for child in self.clang.children(cursor):
            if child.kind == k.PARM_DECL:
                children.append(self._parameter(child))
            elif child.kind == k.COMPOUND_STMT:
                children.append(self.node(child))
        node = Node("lambda", "", tuple(children), file, start, end)
        if written:
            self._lambdas[key] = node
        return node

    def _parameter(self, cursor: CXCursor) -> Node:
        file, start, end = self._extent(cursor)
        default = [c for c in self._parts(cursor) if k.UNEXPOSED_EXPR <= c.kind < k.UNEXPOSED_STMT]
        type_ = self._type(self.f.clang_getCursorType(cursor), cursor)
        return Node("parameter", self._spelling(cursor), self._nodes(default[-1:]), file, start, end, type_)

    # -- statements ---------------------------------------------------------------------------------------------------
    def _block(self, cursor: CXCursor) -> Node:
        return self._simple("block", cursor)

    def _declare_statement(self, cursor: CXCursor) -> Node:
        file, start, end = self._extent(cursor)
        children = [self.node(child) for child in self.clang.children(cursor)]
        return Node("declare", "", tuple(children), file, start, end)

    def _variable(self, cursor: CXCursor) -> Node:
        file, start, end = self._extent(cursor)
        _, name_at = self._position(self.f.clang_getCursorLocation(cursor))
        name = self._spelling(cursor)
        type_ = self._type(self.f.clang_getCursorType(cursor), cursor)
        parts = [part for part in self._parts(cursor) if part.kind < 400]
        shared = any(child.kind in k.CUDA_ATTRIBUTES and k.CUDA_ATTRIBUTES[child.kind] == "shared"
                     for child in self.clang.children(cursor))  # fmt: skip
        if type_.form == "array":
            parts = [part for part in parts[-1:] if part.kind in (k.INIT_LIST_EXPR, k.STRING_LITERAL)]
        words = _STORAGE_WORDS.findall(self.slice(file, start, name_at)) if name_at > start else []
        if shared and "__shared__" not in words:
            words.append("__shared__")
        if not words and type_.canonical.startswith("const "):
            words.append("const")
        initialiser = self._nodes(parts[-1:])
        direct = re.match(r"\w+\s*[({]", self.slice(file, name_at, end))
        first = initialiser[0] if initialiser else EMPTY
        parenthesised = first.kind == "raw" and first.text.startswith("(")
        depends = parenthesised or type_.canonical.startswith(("typename ", "const typename "))
        if direct and initialiser and (type_.class_usr or depends) and first.kind != "construct":
            # `Class object(a, b)` with a dependent type: libclang shows the bare list of arguments.
            arguments = first.children if parenthesised or first.kind == "list" else initialiser
            initialiser = (Node("construct", name, arguments, file, name_at, end, type_),)
        return Node("variable", name, initialiser, file, name_at, end, type_, (), " ".join(words))

    def _alias(self, cursor: CXCursor) -> Node:
        file, start, end = self._extent(cursor)
        return Node("alias", self._spelling(cursor), (), file, start, end, self._alias_type(cursor))

    def _local_class(self, cursor: CXCursor) -> Node:
        file, start, end = self._extent(cursor)
        return Node("raw", self.slice(file, start, end), (), file, start, end)

    def _unexposed_declaration(self, cursor: CXCursor) -> Node:
        name = self._spelling(cursor)
        file, start, end = self._extent(cursor)
        parts = [child for child in self._parts(cursor) if child.kind != k.UNEXPOSED_DECL and child.kind < 400]
        if name.startswith("["):
            names = ",".join(part.strip() for part in name.strip("[]").split(","))
            return Node("bind", names, self._nodes(parts[-1:]), file, start, end)
        return Node("raw", self.slice(file, start, end), (), file, start, end)

    def _if(self, cursor: CXCursor) -> Node:
        file, start, end = self._extent(cursor)
        head = re.match(r"if\s+constexpr\b", self.slice(file, start, min(end, start + 40)))
        return self._simple("if", cursor, "constexpr" if head else "")

    def _for(self, cursor: CXCursor) -> Node:
        file, start, end = self._extent(cursor)
        parts = self._nodes(self._parts(cursor))
        if len(parts) == 4:
            return Node("for", "", parts, file, start, end)
        # libclang leaves omitted parts out; the semicolons of the head say which ones are there.
        head = self.slice(file, start, end)
        first = _find_semicolon(head, 0)
        second = _find_semicolon(head, first + 1)
        slots = [EMPTY, EMPTY, EMPTY]
        for part in parts[:-1]:
            offset = part.start - start
            slots[0 if offset < first else 1 if offset < second else 2] = part
        return Node("for", "", (*slots, parts[-1]), file, start, end)

    def _for_range(self, cursor: CXCursor) -> Node:
        file, start, end = self._extent(cursor)
        children = self._nodes(self._parts(cursor))
        return Node("for_range", "", children, file, start, end)


def _find_semicolon(text: str, start: int) -> int:
    depth = 0
    for position in range(start, len(text)):
        character = text[position]
        depth += (character in "([{") - (character in ")]}")
        if character == ";" and depth <= 1:
            return position
    return len(text)


def _reads_as_name(text: str, name: str) -> bool:
    """Tell whether a slice is the text of the name itself, not of a macro that produced it."""
    return not name or name in text or text.lstrip().startswith(("::", "typename"))


def _statement(kind: str) -> Callable[[Unit, CXCursor], Node]:
    return lambda unit, cursor: unit._simple(kind, cursor)


_CASTS = {
    k.CSTYLE_CAST_EXPR: "c", k.CXX_STATIC_CAST_EXPR: "static", k.CXX_DYNAMIC_CAST_EXPR: "dynamic",
    k.CXX_REINTERPRET_CAST_EXPR: "reinterpret", k.CXX_CONST_CAST_EXPR: "const",
    k.CXX_FUNCTIONAL_CAST_EXPR: "functional",
}  # fmt: skip

_CONVERTERS: dict[int, Callable[[Unit, CXCursor], Node]] = {
    k.DECL_REF_EXPR: Unit._name, k.MEMBER_REF_EXPR: Unit._member, k.CALL_EXPR: Unit._call,
    k.INTEGER_LITERAL: Unit._literal, k.FLOATING_LITERAL: Unit._literal, k.CXX_BOOL_LITERAL_EXPR: Unit._literal,
    k.CHARACTER_LITERAL: Unit._literal, k.STRING_LITERAL: Unit._string,
    k.CXX_NULL_PTR_LITERAL_EXPR: Unit._fixed_literal, k.BINARY_OPERATOR: Unit._binary,
    k.COMPOUND_ASSIGNMENT_OPERATOR: Unit._binary, k.UNARY_OPERATOR: Unit._unary,
    **dict.fromkeys(_CASTS, Unit._cast), k.INIT_LIST_EXPR: Unit._list, k.CXX_UNARY_EXPR: Unit._sizeof,
    k.LAMBDA_EXPR: Unit._lambda, k.PARM_DECL: Unit._parameter, k.COMPOUND_STMT: Unit._block,
    k.DECL_STMT: Unit._declare_statement, k.VAR_DECL: Unit._variable, k.TYPE_ALIAS_DECL: Unit._alias,
    k.TYPEDEF_DECL: Unit._alias, k.STRUCT_DECL: Unit._local_class, k.CLASS_DECL: Unit._local_class,
    k.UNEXPOSED_DECL: Unit._unexposed_declaration, k.IF_STMT: Unit._if, k.FOR_STMT: Unit._for,
    k.CXX_FOR_RANGE_STMT: Unit._for_range,
    k.ARRAY_SUBSCRIPT_EXPR: _statement("index"), k.CONDITIONAL_OPERATOR: _statement("conditional"),
    k.CXX_THIS_EXPR: _statement("this"), k.CXX_THROW_EXPR: _statement("throw"), k.CXX_NEW_EXPR: _statement("new"),
    k.CXX_DELETE_EXPR: _statement("delete"), k.STATIC_ASSERT: _statement("static_assert"),
    k.WHILE_STMT: _statement("while"), k.DO_STMT: _statement("do"), k.SWITCH_STMT: _statement("switch"),
    k.CASE_STMT: _statement("case"), k.DEFAULT_STMT: _statement("default"), k.RETURN_STMT: _statement("return"),
    k.BREAK_STMT: _statement("break"), k.CONTINUE_STMT: _statement("continue"), k.NULL_STMT: _statement("empty"),
    k.PACK_EXPANSION_EXPR: _statement("pack"), k.SIZE_OF_PACK_EXPR: _statement("sizeof"),
}  # fmt: skip
