"""Statements and local declarations as nodes: one function for each kind of cursor that is more than its children."""

from __future__ import annotations

import re

from tracer.cpp import kinds as k
from tracer.cpp.cursors import Converter, CursorReader, simple_converter
from tracer.cpp.libclang import CXCursor
from tracer.cpp.tree import EMPTY, Node

_STORAGE_WORDS = re.compile(r"\b(?:constexpr|static|extern|const|thread_local|__shared__|inline|volatile)\b")


def _block(unit: CursorReader, cursor: CXCursor) -> Node:
    return unit.simple("block", cursor)


def _declare_statement(unit: CursorReader, cursor: CXCursor) -> Node:
    file, start, end = unit.extent(cursor)
    children = [unit.node(child) for child in unit.clang.children(cursor)]
    return Node("declare", "", tuple(children), file, start, end)


def _variable(unit: CursorReader, cursor: CXCursor) -> Node:
    file, start, end = unit.extent(cursor)
    _, name_at = unit.position(unit.f.clang_getCursorLocation(cursor))
    name = unit.spelling(cursor)
    type_ = unit.type_ref(unit.f.clang_getCursorType(cursor), cursor)
    parts = [part for part in unit.parts(cursor) if part.kind < 400]
    shared = any(child.kind in k.CUDA_ATTRIBUTES and k.CUDA_ATTRIBUTES[child.kind] == "shared"
                 for child in unit.clang.children(cursor))  # fmt: skip
    if type_.form == "array":
        parts = [part for part in parts[-1:] if part.kind in (k.INIT_LIST_EXPR, k.STRING_LITERAL)]
    words = _STORAGE_WORDS.findall(unit.slice(file, start, name_at)) if name_at > start else []
    if shared and "__shared__" not in words:
        words.append("__shared__")
    if not words and type_.canonical.startswith("const "):
        words.append("const")
    initialiser = unit.nodes(parts[-1:])
    direct = re.match(r"\w+\s*[({]", unit.slice(file, name_at, end))
    first = initialiser[0] if initialiser else EMPTY
    parenthesised = first.kind == "raw" and first.text.startswith("(")
    depends = parenthesised or type_.canonical.startswith(("typename ", "const typename "))
    if direct and initialiser and (type_.class_usr or depends) and first.kind != "construct":
        # `Class object(a, b)` with a dependent type: libclang shows the bare list of arguments.
        arguments = first.children if parenthesised or first.kind == "list" else initialiser
        initialiser = (Node("construct", name, arguments, file, name_at, end, type_),)
    return Node("variable", name, initialiser, file, name_at, end, type_, (), " ".join(words))


def _alias(unit: CursorReader, cursor: CXCursor) -> Node:
    file, start, end = unit.extent(cursor)
    return Node("alias", unit.spelling(cursor), (), file, start, end, unit.alias_type(cursor))


def _local_class(unit: CursorReader, cursor: CXCursor) -> Node:
    file, start, end = unit.extent(cursor)
    return Node("raw", unit.slice(file, start, end), (), file, start, end)


def _unexposed_declaration(unit: CursorReader, cursor: CXCursor) -> Node:
    name = unit.spelling(cursor)
    file, start, end = unit.extent(cursor)
    parts = [child for child in unit.parts(cursor) if child.kind != k.UNEXPOSED_DECL and child.kind < 400]
    if name.startswith("["):
        names = ",".join(part.strip() for part in name.strip("[]").split(","))
        return Node("bind", names, unit.nodes(parts[-1:]), file, start, end)
    return Node("raw", unit.slice(file, start, end), (), file, start, end)


def _if(unit: CursorReader, cursor: CXCursor) -> Node:
    file, start, end = unit.extent(cursor)
    head = re.match(r"if\s+constexpr\b", unit.slice(file, start, min(end, start + 40)))
    return unit.simple("if", cursor, "constexpr" if head else "")


def _for(unit: CursorReader, cursor: CXCursor) -> Node:
    file, start, end = unit.extent(cursor)
    parts = unit.nodes(unit.parts(cursor))
    if len(parts) == 4:
        return Node("for", "", parts, file, start, end)
    # libclang leaves omitted parts out; the semicolons of the head say which ones are there.
    head = unit.slice(file, start, end)
    first = _find_semicolon(head, 0)
    second = _find_semicolon(head, first + 1)
    slots = [EMPTY, EMPTY, EMPTY]
    for part in parts[:-1]:
        offset = part.start - start
        slots[0 if offset < first else 1 if offset < second else 2] = part
    return Node("for", "", (*slots, parts[-1]), file, start, end)


def _for_range(unit: CursorReader, cursor: CXCursor) -> Node:
    file, start, end = unit.extent(cursor)
    children = unit.nodes(unit.parts(cursor))
    return Node("for_range", "", children, file, start, end)


def _find_semicolon(text: str, start: int) -> int:
    depth = 0
    for position in range(start, len(text)):
        character = text[position]
        depth += (character in "([{") - (character in ")]}")
        if character == ";" and depth <= 1:
            return position
    return len(text)


#: The converters of statements and of local declarations, by kind of cursor.
STATEMENTS: dict[int, Converter] = {
    k.COMPOUND_STMT: _block, k.DECL_STMT: _declare_statement, k.VAR_DECL: _variable, k.TYPE_ALIAS_DECL: _alias,
    k.TYPEDEF_DECL: _alias, k.STRUCT_DECL: _local_class, k.CLASS_DECL: _local_class,
    k.UNEXPOSED_DECL: _unexposed_declaration, k.IF_STMT: _if, k.FOR_STMT: _for, k.CXX_FOR_RANGE_STMT: _for_range,
    k.STATIC_ASSERT: simple_converter("static_assert"), k.WHILE_STMT: simple_converter("while"),
    k.DO_STMT: simple_converter("do"), k.SWITCH_STMT: simple_converter("switch"),
    k.CASE_STMT: simple_converter("case"), k.DEFAULT_STMT: simple_converter("default"),
    k.RETURN_STMT: simple_converter("return"), k.BREAK_STMT: simple_converter("break"),
    k.CONTINUE_STMT: simple_converter("continue"), k.NULL_STMT: simple_converter("empty"),
}  # fmt: skip
