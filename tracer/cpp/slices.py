"""Expressions read from source text, for the places that libclang leaves empty.

libclang flattens template arguments and shows dependent names without their parts. What stands there is still plain
text in the file, so a small precedence parser reads it. It knows expressions and types as they occur between ``<`` and
``>`` or as a qualified name; anything else becomes one ``raw`` node with its text, never an error.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from tracer.cpp.tree import Node, TypeRef

_TOKEN = re.compile(
    r"(?P<space>\s+|\\\n|//[^\n]*|/\*.*?\*/)"
    r"|(?P<number>(?:0[xX][0-9a-fA-F']+|\d[\d']*\.?\d*(?:[eE][+-]?\d+)?|\.\d+(?:[eE][+-]?\d+)?)[uUlLfF]*)"
    r'|(?P<string>"(?:\\.|[^"\\])*")'
    r"|(?P<char>'(?:\\.|[^'\\])+')"
    r"|(?P<name>[A-Za-z_]\w*)"
    r"|(?P<operator>::|->|\+\+|--|&&|\|\||<=|>=|==|!=|<<|\.\.\.|[-+*/%<>=!&|^~?:.,;(){}\[\]])",
    re.DOTALL,
)
_PRECEDENCE = {
    "||": 1, "&&": 2, "|": 3, "^": 4, "&": 5, "==": 6, "!=": 6, "<": 7, ">": 7, "<=": 7, ">=": 7,
    "<<": 8, ">>": 8, "+": 9, "-": 9, "*": 10, "/": 10, "%": 10,
}  # fmt: skip
_CASTS = {"static_cast": "static", "reinterpret_cast": "reinterpret", "const_cast": "const", "dynamic_cast": "dynamic"}
_TYPE_WORDS = frozenset("unsigned signed int long short char bool float double void".split())


class _Unreadable(Exception):
    """The text is no expression that this parser knows; the caller makes a ``raw`` node of it."""


class _Parser:
    """One pass over the tokens of one slice."""

    def __init__(self, text: str, file: int, base: int, is_template: Callable[[str], bool]) -> None:
        self.text, self.file, self.base, self.is_template = text, file, base, is_template
        self.tokens: list[tuple[str, str, int, int]] = []
        position = 0
        while position < len(text):
            match = _TOKEN.match(text, position)
            if match is None:
                raise _Unreadable
            position = match.end()
            if match.lastgroup != "space":
                self.tokens.append((match.lastgroup or "", match.group(), match.start(), match.end()))
        self.tokens.append(("end", "", len(text), len(text)))
        self.at = 0
        self.angle = 0  # inside < >, where > closes instead of comparing

    def peek(self, ahead: int = 0) -> str:
        return self.tokens[min(self.at + ahead, len(self.tokens) - 1)][1]

    def accept(self, *texts: str) -> bool:
        if self.peek() in texts and self.tokens[self.at][0] != "end":
            self.at += 1
            return True
        return False

    def expect(self, text: str) -> None:
        if not self.accept(text):
            raise _Unreadable

    def node(self, kind: str, start: int, text: str = "", children: tuple[Node, ...] = (), **more: str) -> Node:
        last = self.tokens[max(self.at - 1, 0)][3]
        type_ref = TypeRef(more["type"], more["type"], more.get("form", "value")) if "type" in more else None
        return Node(
            kind, text, children, self.file, self.base + start, self.base + last, type_ref, (), more.get("text2", "")
        )

    def expression(self, least: int = 0) -> Node:
        start = self.tokens[self.at][2]
        left = self.unary()
        while True:
            operator = self.peek()
            if operator == ">" and self.angle:
                return left
            if operator == ">" and self.peek(1) == ">" and self.tokens[self.at][3] == self.tokens[self.at + 1][2]:
                operator = ">>"
            if operator == "?" and least <= 0:
                self.at += 1
                then = self.expression()
                self.expect(":")
                left = self.node("conditional", start, "", (left, then, self.expression()))
                continue
            precedence = _PRECEDENCE.get(operator) if self.tokens[self.at][0] == "operator" else None
            if precedence is None or precedence < least:
                return left
            self.at += 2 if operator == ">>" else 1
            left = self.node("binary", start, operator, (left, self.expression(precedence + 1)))

    def unary(self) -> Node:
        start = self.tokens[self.at][2]
        operator = self.peek()
        if self.tokens[self.at][0] == "operator" and operator in ("!", "-", "+", "~", "&", "*", "++", "--"):
            self.at += 1
            return self.node("unary", start, operator, (self.unary(),))
        return self.postfix(self.primary(), start)

    def primary(self) -> Node:
        kind, text, start, _ = self.tokens[self.at]
        if kind in ("number", "string", "char"):
            self.at += 1
            is_float = kind == "number" and not text.lower().startswith("0x") and bool(re.search(r"[.eE]|[fF]$", text))
            return self.node("literal", start, text, text2={"number": "float" if is_float else "int"}.get(kind, kind))
        if text == "(":
            return self.parenthesised(start)
        if text in ("true", "false", "nullptr"):
            self.at += 1
            return self.node("literal", start, text, text2="null" if text == "nullptr" else "bool")
        if text in ("sizeof", "alignof", "decltype", "noexcept"):
            self.at += 1
            self.accept("...")
            self.expect("(")
            operand = self.outside_angles(self.expression)
            self.expect(")")
            return self.node("sizeof" if text == "sizeof" else "raw", start, text, (operand,))
        if text in _CASTS:
            return self.named_cast(start)
        if text in ("typename", "const", "volatile", "struct", "class", "constexpr"):
            self.at += 1
            return self.primary()
        if text in _TYPE_WORDS:
            words = []
            while self.peek() in _TYPE_WORDS or self.peek() == "const":
                words.append(self.peek())
                self.at += 1
            spelling = " ".join(word for word in words if word != "const")
            return self.node("type", start, spelling, type=spelling)
        if kind == "name" or text == "::":
            return self.qualified_name(start)
        raise _Unreadable

    def parenthesised(self, start: int) -> Node:
        self.at += 1
        inner = self.outside_angles(self.expression)
        self.expect(")")
        simple = self.tokens[self.at][0] in ("number", "name") or self.peek() == "("
        if inner.kind == "type" or (simple and inner.kind == "name"):
            operand = self.unary()
            return self.node("cast", start, "c", (operand,), type=inner.text)
        return inner

    def named_cast(self, start: int) -> Node:
        word = _CASTS[self.peek()]
        self.at += 1
        self.expect("<")
        type_start = self.tokens[self.at][2]
        self.angle, saved = 1, self.angle
        self.expression()
        self.angle = saved
        type_text = self.text[type_start : self.tokens[self.at - 1][3]]
        self.expect(">")
        self.expect("(")
        operand = self.outside_angles(self.expression)
        self.expect(")")
        return self.node("cast", start, word, (operand,), type=type_text)

    def qualified_name(self, start: int) -> Node:
        parts: list[str] = []
        arguments: tuple[Node, ...] = ()
        if self.accept("::"):
            parts.append("")
        while True:
            self.accept("template")
            kind, text, _, _ = self.tokens[self.at]
            if self.accept("~"):
                text = "~" + self.peek()
            elif kind != "name":
                raise _Unreadable
            self.at += 1
            if self.peek() == "<" and self.is_template(text):
                name_start = self.tokens[self.at][2]
                saved = self.at
                try:
                    arguments = self.template_arguments()
                except _Unreadable:
                    self.at = saved
                    arguments = ()
                else:
                    if self.peek() == "::":  # arguments in the middle of a name stay part of its text
                        text += re.sub(r"\s+", " ", self.text[name_start : self.tokens[self.at - 1][3]])
                        arguments = ()
            parts.append(text)
            if not self.accept("::"):
                return self.node("name", start, "::".join(parts), arguments)

    def template_arguments(self) -> tuple[Node, ...]:
        self.expect("<")
        saved, self.angle = self.angle, 1
        found: list[Node] = []
        while self.peek() != ">":
            start = self.tokens[self.at][2]
            argument = self.expression()
            while self.peek() in ("*", "&", "const", "..."):
                self.at += 1
                argument = self.node("type", start, self.text[start : self.tokens[self.at - 1][3]], (argument,))
            found.append(argument)
            if not self.accept(",") and self.peek() != ">":
                raise _Unreadable
        self.expect(">")
        self.angle = saved
        return tuple(found)

    def outside_angles(self, parse: Callable[[], Node]) -> Node:
        saved, self.angle = self.angle, 0
        result = parse()
        self.angle = saved
        return result

    def arguments(self, close: str) -> tuple[Node, ...]:
        found: list[Node] = []
        while not self.accept(close):
            found.append(self.outside_angles(self.expression))
            self.accept("...")
            if not self.accept(",") and self.peek() != close:
                raise _Unreadable
        return tuple(found)

    def postfix(self, node: Node, start: int) -> Node:
        while True:
            if self.accept("("):
                node = self.node("call", start, "", (node, *self.arguments(")")))
            elif self.peek() == "{":
                type_ = self.text[start : self.tokens[self.at - 1][3]]
                self.at += 1
                node = self.node("construct", start, node.text, self.arguments("}"), type=type_)
            elif self.accept("["):
                node = self.node("index", start, "", (node, *self.arguments("]")))
            elif self.peek() in (".", "->"):
                access = self.peek()
                self.at += 1
                member = self.qualified_name(self.tokens[self.at][2])
                node = self.node("member", start, member.text, (node, *member.children), text2=access)
            elif self.peek() in ("*", "&", "&&") and self.peek(1) in (">", ",", ")", ""):
                self.at += 1
                node = self.node("type", start, self.text[start : self.tokens[self.at - 1][3]], (node,))
            elif self.peek() == "const":
                self.at += 1
            else:
                return node


def expression(text: str, file: int, base: int, is_template: Callable[[str], bool]) -> Node:
    """Parse ``text``, which stands at byte ``base`` of file ``file``, as one expression or type.

    Args:
        text: the source slice.
        file: index of the file in its unit.
        base: byte offset of the slice.
        is_template: tells whether a ``<`` behind a name opens template arguments.

    Returns:
        The expression; a ``raw`` node with the text where no rule reads it.
    """
    try:
        parser = _Parser(text, file, base, is_template)
        node = parser.expression()
        if parser.peek():
            raise _Unreadable
    except (_Unreadable, RecursionError):
        return Node("raw", text, (), file, base, base + len(text))
    return node


def split_arguments(text: str, opening: int) -> tuple[tuple[str, ...], int]:
    """Split the template arguments that open with ``<`` at ``opening``.

    Returns:
        The arguments as written, white space folded, and the position behind the closing ``>``; ``((), opening)`` when
        the brackets do not close.
    """
    depth = {"<": 0, "(": 0}
    parts: list[str] = []
    start = opening + 1
    for match in re.finditer(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\])*"|->|[<>(){},]', text[opening:], re.DOTALL):
        token, position = match.group(), opening + match.start()
        if token == "<" and not depth["("]:
            depth["<"] += 1
        elif token in "({" and token:
            depth["("] += 1
        elif token in ")}" and token:
            depth["("] -= 1
        elif depth["("] or token == "->" or len(token) > 1:
            continue
        elif token == "," and depth["<"] == 1:
            parts.append(text[start:position])
            start = position + 1
        elif token == ">":
            depth["<"] -= 1
            if depth["<"] == 0:
                parts.append(text[start:position])
                cleaned = [re.sub(r"/\*.*?\*/|//[^\n]*", "", part, flags=re.DOTALL) for part in parts]
                return tuple([" ".join(part.split()) for part in cleaned if part.strip()]), position + 1
    return (), opening
