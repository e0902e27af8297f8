"""Explicit instantiations, ``template void run<64>(int);``: read from the text, and kept from the parser.

libclang shows no cursor for the explicit instantiation of a function, so what it instantiates is read from the text.
The parser would only act on it: build the function with these arguments, and everything that its body refers to. A
release that spells out some hundred of them spends nearly all of its parse there, and nothing of it reaches a tree.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from tracer.cpp import slices

_NAME = re.compile(r"^[ \t]*(?:extern\s+)?template\s+(?!<)[^;{}()]*?([A-Za-z_]\w*)\s*<", re.MULTILINE)
_COMMENT = re.compile(r'//[^\n]*|/\*.*?\*/|("(?:\\.|[^"\\\n])*")', re.DOTALL)
# No class: its members have cursors of their own. No backslash in it or before it: a macro keeps its lines.
_STATEMENT = re.compile(
    r"(?<!\\\n)^[ \t]*template\s+(?!<|class\b|struct\b|union\b)[^;{}()\\]*?[A-Za-z_]\w*\s*<[^;{}\\]*\([^;{}\\]*\)\s*;",
    re.MULTILINE,
)


def read(text: str) -> Iterator[tuple[str, tuple[str, ...], int]]:
    """Yield (function's name, arguments as written, offset of the name) of each explicit instantiation in ``text``."""
    if _NAME.search(text):
        text = _COMMENT.sub(lambda m: m.group(1) or re.sub(r"[^\n]", " ", m.group()), text)
    for match in _NAME.finditer(text):
        if match.group().lstrip().startswith("extern"):
            continue
        arguments, end = slices.split_arguments(text, match.end() - 1)
        if arguments and text[end : end + 1] == "(":
            yield match.group(1), arguments, match.start(1)


def without(text: str) -> str | None:
    """Return ``text`` with its explicit instantiations of functions blanked in place; None where there are none."""
    if "template" not in text:
        return None
    # One blank a byte, so that every offset behind it stays true.
    blanked = _STATEMENT.sub(lambda match: re.sub(rb"[^\n]", b" ", match.group().encode()).decode(), text)
    return blanked if blanked != text else None
