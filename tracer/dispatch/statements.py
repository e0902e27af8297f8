"""Statements of the host code."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from tracer.cpp.tree import Node, TypeRef
from tracer.dispatch.answers import Unsupported
from tracer.dispatch.explanation import expression_text, kind_of
from tracer.dispatch.numbers import Number, arithmetic_type
from tracer.dispatch.scope import Scope
from tracer.dispatch.values import UNINITIALISED, Cell, Sequence, Tuple, Unknown, Value, copied
from tracer.model import Location

if TYPE_CHECKING:
    from tracer.dispatch.engine import Engine


class Return:
    """A ``return`` on its way out."""

    __slots__ = ("value",)

    def __init__(self, value: Value) -> None:
        """Carry the value."""
        self.value = value


class _Jump:
    """A ``break`` or ``continue`` on its way to its loop."""


BREAK, CONTINUE = _Jump(), _Jump()
Outcome = Return | _Jump | None


class Statements:
    """Executes one kind of statement each; a kind that is not in ``table`` is an expression.

    Attributes:
        table: by kind of node.
    """

    def __init__(self, engine: Engine) -> None:
        """Share the engine's state."""
        self.engine = engine
        self.table: dict[str, Callable[[Node, Scope], Outcome]] = {
            "block": self._block,
            "declare": self._declare,
            "variable": self._variable,
            "alias": self._alias,
            "bind": self._bind,
            "if": self._if,
            "for": self._for,
            "while": self._while,
            "do": self._do,
            "return": self._return,
            "break": lambda node, scope: BREAK,
            "continue": lambda node, scope: CONTINUE,
            "empty": lambda node, scope: None,
            # A build exists only when these hold, so they never decide what a call does.
            "static_assert": lambda node, scope: None,
        }

    def _block(self, node: Node, scope: Scope) -> Outcome:
        if self.engine.errors:
            self._refuse_unparsed(node)
        inner = Scope(scope)
        if self.engine.run.outermost is None:
            self.engine.run.outermost = inner
        try:
            for statement in node.children:
                outcome = self.engine.execute(statement, inner)
                if outcome is not None:
                    return outcome
        except Unsupported as error:
            for name, cell in inner.names.items():
                if isinstance(cell.value, Number):
                    error.locals.setdefault(name, cell.value.value)
            raise
        return None

    def _refuse_unparsed(self, block: Node) -> None:
        """Stop where the parser reported an error: it may have dropped a statement of this very block.

        Raises:
            Unsupported: an error stands in the block and not inside a block of it that the tree has. On the first and
                last line of an inner block it may belong to what surrounds that, such as its condition.
        """
        span = self.engine.location(block)
        for line, message in self.engine.errors:
            if span.line <= line <= span.end_line and not any(
                inner.line < line < inner.end_line for inner in map(self.engine.location, _inner_blocks(block))
            ):
                raise Unsupported(f"source that the parser does not understand ({message})", Location(span.file, line))

    def _declare(self, node: Node, scope: Scope) -> Outcome:
        for declaration in node.children:
            self.engine.execute(declaration, scope)
        return None

    def _variable(self, node: Node, scope: Scope) -> Outcome:
        type_ = node.type
        assert type_ is not None
        if "extern" in node.text2:
            raise self.engine.unsupported(f"variable {node.text}, which is defined elsewhere", node)
        if not node.children:
            if type_.form == "array":
                raise self.engine.unsupported(f"array {node.text} without an initialiser", node)
            number = arithmetic_type(type_.canonical) if type_.form == "value" else ""
            scope.names[node.text] = Cell(self._default(type_, node, scope), number)
        elif type_.form == "reference":
            scope.names[node.text] = self.engine.place(node.children[0], scope)
        else:
            value = self.engine.objects.initialised(type_, node.children[0], scope)
            scope.names[node.text] = Cell(value, value.type if type(value) is Number else "")
        return None

    def _default(self, type_: TypeRef, node: Node, scope: Scope) -> Value:
        """Return what a variable without initialiser holds."""
        if type_.form != "value" or arithmetic_type(type_.canonical):
            return UNINITIALISED
        return self.engine.constructed(type_, (), node, scope)

    def _alias(self, node: Node, scope: Scope) -> Outcome:
        assert node.type is not None
        scope.names[node.text] = Cell(self.engine.types.of(node.type, scope))
        return None

    def _bind(self, node: Node, scope: Scope) -> Outcome:
        value = self.engine.evaluate(node.children[0], scope)
        names = node.text.split(",")
        if not isinstance(value, Tuple | Sequence) or len(value) != len(names):
            raise self.engine.unsupported(f"structured binding of {kind_of(value)}", node)
        for name, part in zip(names, value, strict=True):
            scope.names[name] = Cell(part, part.type if isinstance(part, Number) else "")
        return None

    def _if(self, node: Node, scope: Scope) -> Outcome:
        condition, *branches = node.children
        if condition.kind in ("declare", "variable", "empty") or len(branches) > 2:
            raise self.engine.unsupported("an if with a declaration in its head", node)
        if self.engine.decide(condition, scope, node):
            taken = branches[0]
        elif len(branches) == 2:
            taken = branches[1]
        else:
            return None
        if not self.engine.run.explain:
            return self.engine.execute(taken, scope)
        with self.engine.run.inside_branch():
            return self.engine.execute(taken, scope)

    def _for(self, node: Node, scope: Scope) -> Outcome:
        start, condition, step, body = node.children
        inner = Scope(scope)
        self.engine.execute(start, inner)
        while condition.kind == "empty" or self._holds(condition, inner):
            outcome = self.engine.execute(body, inner)
            if outcome is BREAK:
                break
            if isinstance(outcome, Return):
                return outcome
            self.engine.execute(step, inner)
        return None

    def _while(self, node: Node, scope: Scope) -> Outcome:
        condition, body = node.children
        while self._holds(condition, scope):
            outcome = self.engine.execute(body, scope)
            if outcome is BREAK:
                break
            if isinstance(outcome, Return):
                return outcome
        return None

    def _do(self, node: Node, scope: Scope) -> Outcome:
        body, condition = node.children
        while True:
            outcome = self.engine.execute(body, scope)
            if outcome is BREAK:
                return None
            if isinstance(outcome, Return):
                return outcome
            if not self._holds(condition, scope):
                return None

    def _holds(self, condition: Node, scope: Scope) -> bool:
        value = self.engine.evaluate(condition, scope)
        if isinstance(value, Unknown):
            raise self.engine.unsupported(
                f"a loop over {expression_text(condition)}, which depends on {value.reason}", condition
            )
        return self.engine.truth(value)

    def _return(self, node: Node, scope: Scope) -> Outcome:
        return Return(copied(self.engine.evaluate(node.children[0], scope)) if node.children else None)


def _inner_blocks(block: Node) -> Iterator[Node]:
    """Yield the blocks directly below a block."""
    waiting = list(block.children)
    while waiting:
        node = waiting.pop()
        if node.kind == "block":
            yield node
        else:
            waiting.extend(node.children)
