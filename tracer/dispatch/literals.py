"""Literals of C++ as values."""

from __future__ import annotations

import re

from tracer.cpp.tree import Node
from tracer.dispatch import numbers
from tracer.dispatch.answers import Unsupported
from tracer.dispatch.numbers import Number
from tracer.dispatch.values import NULL, Value

_SUFFIXES = {"": "int", "u": "unsigned int", "l": "long", "ul": "unsigned long", "ll": "long long",
             "ull": "unsigned long long"}  # fmt: skip


def literal_value(node: Node) -> Value:
    """Return the value of a ``literal`` node, with the type that C++ gives it.

    Raises:
        Unsupported: a kind of literal that host code does not use, such as a character.
    """
    text, kind = node.text, node.text2
    if kind == "null":
        return NULL
    if kind == "bool":
        return numbers.boolean(text == "true")
    if kind == "string":
        return re.sub(r"\\(.)", lambda m: {"n": "\n", "t": "\t"}.get(m.group(1), m.group(1)), text.strip('"'))
    if kind == "float":
        return numbers.convert(Number(float(text.rstrip("fFlL")), "double"), "float" if text[-1] in "fF" else "double")
    if kind == "int":
        match = re.fullmatch(r"(0[xX][0-9a-fA-F]+|0[bB][01]+|\d+)([uUlL]*)", text.replace("'", ""))
        if match:
            suffix = "".join(sorted(match.group(2).lower(), reverse=True))
            body = match.group(1)
            octal = len(body) > 1 and body[0] == "0" and body.isdigit()
            value = int(body, 8) if octal else int(body, 0)
            type_ = _SUFFIXES[suffix]
            if type_ == "int" and value > 2**31 - 1:
                type_ = "long" if value < 2**63 else "unsigned long"
            return Number(value, type_)
    raise Unsupported(f"literal {node.text}")
