"""Expressions as nodes: one function for each kind of cursor that is more than its children."""

from __future__ import annotations

import re
from ctypes import c_void_p

from tracer.cpp import kinds as k
from tracer.cpp import slices
from tracer.cpp.cursors import Converter, CursorReader, simple_converter
from tracer.cpp.libclang import CXCursor
from tracer.cpp.tree import EMPTY, Node


def unexposed(unit: CursorReader, cursor: CXCursor) -> Node:
    """Convert parentheses and what libclang shows no kind of, mostly implicit conversions and dependent names."""
    children = unit.clang.children(cursor)
    parts = [child for child in children if child.kind not in k.REFERENCES]
    if len(parts) == 1 and not any(child.kind == k.OVERLOADED_DECL_REF for child in children):
        return unit.node(parts[0])
    if not parts or any(child.kind == k.OVERLOADED_DECL_REF for child in children):
        if not children and unit.extent(cursor)[1] == unit.extent(cursor)[2]:
            return EMPTY  # a default argument: nothing is written here
        return _name(unit, cursor)
    if cursor.kind == k.UNEXPOSED_STMT:
        return unit.simple("block", cursor)
    return unit.raw(cursor)


def _name(unit: CursorReader, cursor: CXCursor) -> Node:
    file, start, end = unit.extent(cursor)
    targets: tuple[str, ...] = ()
    name = ""
    referenced = unit.f.clang_getCursorReferenced(cursor)
    if referenced.kind == k.OVERLOADED_DECL_REF or not referenced.data[0]:
        for child in unit.clang.children(cursor):
            if child.kind == k.OVERLOADED_DECL_REF:
                referenced = child
    overloaded = ""
    if referenced.kind == k.OVERLOADED_DECL_REF:
        targets = unit.overloads(referenced)
        name, overloaded = unit.spelling(referenced), "overloaded"
    elif referenced.data[0] and referenced.kind > 0 and not 70 <= referenced.kind <= 73:
        _, usr, name = unit.reference(referenced)
        targets = (unit.primary(usr),) if usr else ()
    text = unit.slice(file, start, end)
    if text and (not name or "<" in text or "::" in text) and _reads_as_name(text, name):
        parsed = slices.expression(text, file, start, unit.is_template)
        if parsed.kind == "raw":
            return Node("name" if name else "raw", name or text, (), file, start, end, None, targets, overloaded)
        if parsed.kind == "name":
            return Node("name", parsed.text, parsed.children, file, start, end, None, targets, overloaded)
        return parsed
    return Node("name", name or text, (), file, start, end, None, targets, overloaded)


def _member(unit: CursorReader, cursor: CXCursor) -> Node:
    file, start, end = unit.extent(cursor)
    children = unit.clang.children(cursor)
    parts = [child for child in children if child.kind not in k.REFERENCES]
    base = unit.node(parts[0]) if parts else Node("this", "", (), file, start, start)
    name = unit.spelling(cursor)
    targets: tuple[str, ...] = ()
    referenced = unit.f.clang_getCursorReferenced(cursor)
    overloaded = [child for child in children if child.kind == k.OVERLOADED_DECL_REF]
    if overloaded:
        targets = unit.overloads(overloaded[0])
    elif referenced.data[0] and referenced.kind in k.FUNCTIONS | {k.FIELD_DECL, k.VAR_DECL, k.ENUM_CONSTANT_DECL}:
        usr = unit.reference(referenced)[1]
        targets = (unit.primary(usr),) if usr else ()
    arguments: tuple[Node, ...] = ()
    # Without parts the whole slice is the member's name; with them it begins behind the base.
    begin = base.end if parts and base.file == file and base.end > start else start
    text = unit.slice(file, begin, end)
    written = re.match(r"\s*(?:/\*.*?\*/\s*)*(\.|->)?\s*(?:template\s+)?", text, re.DOTALL)
    access, skip = (written.group(1) or "", written.end()) if written else ("", 0)
    if not name or "<" in text:
        parsed = slices.expression(text[skip:], file, begin + skip, lambda _: True)
        if parsed.kind == "name":
            name, arguments = name or parsed.text, parsed.children
        elif not name:
            name = text[skip:].strip()
    return Node("member", name, (base, *arguments), file, start, end, None, targets, access or ".")


def _call(unit: CursorReader, cursor: CXCursor) -> Node:
    file, start, end = unit.extent(cursor)
    parts = unit.parts(cursor)
    count = unit.f.clang_Cursor_getNumArguments(cursor)
    referenced = unit.f.clang_getCursorReferenced(cursor)
    if count < 0 or len(parts) <= count or referenced.kind == k.CONSTRUCTOR:
        return _construct(unit, cursor, parts, referenced)
    operator = _overloaded_operator(unit, parts)
    if operator is not None:
        return _operator_call(unit, cursor, parts, *operator)
    callee, arguments = parts[0], parts[1:]
    if (
        arguments
        and arguments[0].kind == k.CALL_EXPR
        and unit.spelling(arguments[0])
        in (
            "__cudaPushCallConfiguration",
            "cudaConfigureCall",
        )
    ):
        configuration = unit.nodes(unit.parts(arguments[0])[1:])
        configuration = tuple([node for node in configuration if node.kind != "empty"])
        children = (unit.node(callee), *configuration, *unit.nodes(arguments[1:]))
        return Node("launch", str(len(configuration)), children, file, start, end)
    if callee.kind == k.MEMBER_REF_EXPR and not arguments and unit.spelling(callee).startswith("operator "):
        return unit.node(unit.parts(callee)[0])  # an implicit conversion
    children = tuple([node for node in (unit.node(callee), *unit.nodes(arguments)) if node.kind != "empty"])
    return Node("call", "", children, file, start, end)


def _construct(unit: CursorReader, cursor: CXCursor, parts: list[CXCursor], referenced: CXCursor) -> Node:
    file, start, end = unit.extent(cursor)
    type_ = unit.type_ref(unit.f.clang_getCursorType(cursor), cursor)
    targets: tuple[str, ...] = ()
    if referenced.kind in k.FUNCTIONS and referenced.data[0]:
        targets = (unit.primary(unit.reference(referenced)[1]),)
    arguments = tuple([node for node in unit.nodes(parts) if node.kind != "empty"])
    written = unit.slice(file, start, end)
    # A copy or conversion that nobody wrote is not a construct of the source.
    if len(arguments) == 1 and (arguments[0].start, arguments[0].end) == (start, end):
        return arguments[0]
    name = re.match(r"\s*(?:typename\s+)?([\w:]+)", written)
    return Node("construct", name.group(1) if name else type_.spelling, arguments, file, start, end, type_, targets)


def _overloaded_operator(unit: CursorReader, parts: list[CXCursor]) -> tuple[int, str] | None:
    for number, part in enumerate(parts):
        inner = part
        while inner.kind == k.UNEXPOSED_EXPR:
            below = unit.parts(inner)
            if len(below) != 1:
                break
            inner = below[0]
        if inner.kind in (k.DECL_REF_EXPR, k.UNEXPOSED_EXPR):
            name = unit.spelling(inner)
            if not name:  # of a dependent operator, with the overloads that it may mean below it
                name = next(
                    (unit.spelling(c) for c in unit.clang.children(inner) if c.kind == k.OVERLOADED_DECL_REF), ""
                )
            if name.startswith("operator") and not name[8:9].isalnum() and name[8:9] not in ("_", " ", ""):
                return number, name[8:]
    return None


def _operator_call(unit: CursorReader, cursor: CXCursor, parts: list[CXCursor], at: int, operator: str) -> Node:
    file, start, end = unit.extent(cursor)
    operands = unit.nodes([part for number, part in enumerate(parts) if number != at])
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


def _literal(unit: CursorReader, cursor: CXCursor) -> Node:
    file, start, end = unit.extent(cursor)
    kind = {k.INTEGER_LITERAL: "int", k.FLOATING_LITERAL: "float", k.CXX_BOOL_LITERAL_EXPR: "bool"}.get(
        cursor.kind, "char"
    )
    text = unit.slice(file, start, end)
    if not re.fullmatch(r"'.*'|true|false|[\d.][\w.'+-]*", text, re.DOTALL):
        text = _evaluated(unit, cursor, kind == "float") or text  # written inside a macro
        if kind == "bool":
            text = "true" if text not in ("", "0") else "false"
    return Node("literal", text, (), file, start, end, None, (), kind)


def _evaluated(unit: CursorReader, cursor: CXCursor, is_float: bool) -> str:
    result = unit.f.clang_Cursor_Evaluate(cursor)
    if not result:
        return ""
    result = c_void_p(result)
    value = unit.f.clang_EvalResult_getAsDouble(result) if is_float else unit.f.clang_EvalResult_getAsLongLong(result)
    unit.f.clang_EvalResult_dispose(result)
    return repr(value)


def _string(unit: CursorReader, cursor: CXCursor) -> Node:
    file, start, end = unit.extent(cursor)
    return Node("literal", unit.spelling(cursor), (), file, start, end, None, (), "string")


def _fixed_literal(unit: CursorReader, cursor: CXCursor) -> Node:
    file, start, end = unit.extent(cursor)
    return Node("literal", "nullptr", (), file, start, end, None, (), "null")


def _binary(unit: CursorReader, cursor: CXCursor) -> Node:
    operator = k.BINARY_OPERATORS[unit.f.clang_getCursorBinaryOperatorKind(cursor)]
    kind = "assign" if operator in k.BINARY_OPERATORS[22:33] else "binary"
    return unit.simple(kind, cursor, operator)


def _unary(unit: CursorReader, cursor: CXCursor) -> Node:
    return unit.simple("unary", cursor, k.UNARY_OPERATORS[unit.f.clang_getCursorUnaryOperatorKind(cursor)])


def _cast(unit: CursorReader, cursor: CXCursor) -> Node:
    file, start, end = unit.extent(cursor)
    word = _CASTS[cursor.kind]
    children = unit.nodes(unit.parts(cursor))
    type_ = unit.type_ref(unit.f.clang_getCursorType(cursor), cursor)
    if word == "functional" and len(children) == 1 and children[0].kind == "construct":
        return children[0]
    return Node("cast", word, children, file, start, end, type_)


def _list(unit: CursorReader, cursor: CXCursor) -> Node:
    node = unit.simple("list", cursor)
    return Node("list", "", node.children, node.file, node.start, node.end,
                unit.type_ref(unit.f.clang_getCursorType(cursor), cursor))  # fmt: skip


def _sizeof(unit: CursorReader, cursor: CXCursor) -> Node:
    file, start, end = unit.extent(cursor)
    text = unit.slice(file, start, end)
    parsed = slices.expression(text, file, start, unit.is_template)
    return parsed if parsed.kind == "sizeof" else Node("sizeof", text, unit.nodes(unit.parts(cursor)), file, start, end)


def _lambda(unit: CursorReader, cursor: CXCursor) -> Node:
    file, start, end = unit.extent(cursor)
    written = file >= 0 and unit.files[file].data[start : start + 1] == b"["
    key = (file, start, end)
    if written and key in unit.lambdas:
        return unit.lambdas[key]
    children: list[Node] = []
    for child in unit.clang.children(cursor):
        if child.kind == k.PARM_DECL:
            children.append(parameter(unit, child))
        elif child.kind == k.COMPOUND_STMT:
            children.append(unit.node(child))
    node = Node("lambda", "", tuple(children), file, start, end)
    if written:
        unit.lambdas[key] = node
    return node


def parameter(unit: CursorReader, cursor: CXCursor) -> Node:
    """Convert a parameter of a function or of a lambda, with its default."""
    file, start, end = unit.extent(cursor)
    default = [c for c in unit.parts(cursor) if k.UNEXPOSED_EXPR <= c.kind < k.UNEXPOSED_STMT]
    type_ = unit.type_ref(unit.f.clang_getCursorType(cursor), cursor)
    return Node("parameter", unit.spelling(cursor), unit.nodes(default[-1:]), file, start, end, type_)


def _reads_as_name(text: str, name: str) -> bool:
    """Tell whether a slice is the text of the name itself, not of a macro that produced it."""
    return not name or name in text or text.lstrip().startswith(("::", "typename"))


_CASTS = {
    k.CSTYLE_CAST_EXPR: "c", k.CXX_STATIC_CAST_EXPR: "static", k.CXX_DYNAMIC_CAST_EXPR: "dynamic",
    k.CXX_REINTERPRET_CAST_EXPR: "reinterpret", k.CXX_CONST_CAST_EXPR: "const",
    k.CXX_FUNCTIONAL_CAST_EXPR: "functional",
}  # fmt: skip

#: The converters of expressions and of parameters, by kind of cursor.
EXPRESSIONS: dict[int, Converter] = {
    k.DECL_REF_EXPR: _name, k.MEMBER_REF_EXPR: _member, k.CALL_EXPR: _call,
    k.INTEGER_LITERAL: _literal, k.FLOATING_LITERAL: _literal, k.CXX_BOOL_LITERAL_EXPR: _literal,
    k.CHARACTER_LITERAL: _literal, k.STRING_LITERAL: _string,
    k.CXX_NULL_PTR_LITERAL_EXPR: _fixed_literal, k.BINARY_OPERATOR: _binary,
    k.COMPOUND_ASSIGNMENT_OPERATOR: _binary, k.UNARY_OPERATOR: _unary,
    **dict.fromkeys(_CASTS, _cast), k.INIT_LIST_EXPR: _list, k.CXX_UNARY_EXPR: _sizeof,
    k.LAMBDA_EXPR: _lambda, k.PARM_DECL: parameter,
    k.ARRAY_SUBSCRIPT_EXPR: simple_converter("index"), k.CONDITIONAL_OPERATOR: simple_converter("conditional"),
    k.CXX_THIS_EXPR: simple_converter("this"), k.CXX_THROW_EXPR: simple_converter("throw"),
    k.CXX_NEW_EXPR: simple_converter("new"), k.CXX_DELETE_EXPR: simple_converter("delete"),
    k.PACK_EXPANSION_EXPR: simple_converter("pack"), k.SIZE_OF_PACK_EXPR: simple_converter("sizeof"),
}  # fmt: skip
