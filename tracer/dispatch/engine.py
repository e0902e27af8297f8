"""Executes host code from its syntax tree.

The engine is the state of a run and the way from a node to the rule that knows it: statements, expressions, places,
objects, functions and types have a module each. It knows the C++ language; what libraries do is in
:mod:`tracer.dispatch.models`. Every statement that is reached is executed; one that no rule knows ends the run as
:class:`Unsupported` with its place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from tracer.cpp.tree import Node, TypeRef
from tracer.dispatch.answers import Unsupported
from tracer.dispatch.explanation import expression_text, kind_of
from tracer.dispatch.expressions import Expressions
from tracer.dispatch.functions import FunctionCaller
from tracer.dispatch.host_code import HostCode
from tracer.dispatch.numbers import Number
from tracer.dispatch.objects import Objects
from tracer.dispatch.places import Places
from tracer.dispatch.run import Run
from tracer.dispatch.scope import Scope
from tracer.dispatch.statements import Outcome, Statements
from tracer.dispatch.types import TypeReader
from tracer.dispatch.values import Optional, Pointer, Unknown, Value
from tracer.model import Location

_STEPS = 2_000_000  # statements of one call; the longest loop of a real one has 128 turns

# What a rule raises that meets a value of a kind it was not written for.
_UNEXPECTED = (AssertionError, AttributeError, IndexError, KeyError, TypeError, ValueError)


class Engine:
    """Runs functions of one extension. What it learns of classes and literals serves all later calls.

    Attributes:
        run: the call that is being followed: its device and what it did so far.
        owner: id of the function whose tree is being executed; places are looked up in it.
        errors: (line, message) of what the parser did not understand in that function.
        place: returns the cell that an expression denotes; a new one for a value that lies nowhere.
    """

    def __init__(self, host: HostCode) -> None:
        """Connect the engine with the host code."""
        self.host = host
        self.run = Run()
        self.owner = ""
        self.errors: tuple[tuple[int, str], ...] = ()
        self.types = TypeReader(self, host)
        self.functions = FunctionCaller(self, host)
        self.objects = Objects(self)
        self.places = Places(self)
        self.statements = Statements(self)
        self.expressions = Expressions(self)
        self.place = self.places.place
        self._execute = self.statements.table
        self._evaluate: dict[str, Callable[[Node, Scope], Value]] = {
            **self.expressions.table,
            "call": self.functions.call,
            "launch": self.functions.launch,
            "construct": self.objects.construct,
            "sizeof": self.objects.sizeof,
            "type": self.types.of_node,
        }

    # -- places of the source -----------------------------------------------------------------------------------------
    @contextmanager
    def inside(self, owner: str) -> Iterator[None]:
        """Look up places in the tree of another function for a while."""
        saved, self.owner = self.owner, owner
        try:
            yield
        finally:
            self.owner = saved

    def location(self, node: Node) -> Location:
        """Return where a node of the running function stands."""
        return self.host.location(self.owner, node)

    def unsupported(self, construct: str, node: Node) -> Unsupported:
        """Return the error for a construct that is not known."""
        return Unsupported(construct, self.location(node))

    # -- running ------------------------------------------------------------------------------------------------------
    def execute(self, node: Node, scope: Scope) -> Outcome:
        """Execute one statement."""
        self.run.steps += 1
        if self.run.steps > _STEPS:
            raise self.unsupported("a loop that does not end", node)
        statement = self._execute.get(node.kind)
        try:
            if statement is not None:
                return statement(node, scope)
            self.evaluate(node, scope)
            return None
        except Unsupported as error:
            if error.location is None:
                error.location = self.location(node)
            raise
        except _UNEXPECTED as error:
            what = f"a value of a kind that is not expected here ({type(error).__name__}: {error})"
            raise self.unsupported(what, node) from error

    def evaluate(self, node: Node, scope: Scope) -> Value:
        """Return the value of an expression.

        Raises:
            Unsupported: the expression, or a value in it, is not known to the engine.
            Refused: the call ends here by the host code's own decision.
        """
        expression = self._evaluate.get(node.kind)
        if expression is None:
            raise self.unsupported(_unknown_expression(node), node)
        return expression(node, scope)

    def decide(self, condition: Node, scope: Scope, node: Node) -> bool:
        """Evaluate a condition that chooses what is done next, and record it where decisions are asked for."""
        value = self.evaluate(condition, scope)
        if isinstance(value, Unknown):
            if self.run.forced is None:
                raise self.unsupported(
                    f"a branch on {expression_text(condition)}, which depends on {value.reason}", node
                )
            outcome = self.run.choose(expression_text(condition), value.reason, self.location(condition))
        else:
            outcome = self.truth(value)
        if self.run.explain:
            self.run.record(self, condition, scope, outcome, node)
        return outcome

    def truth(self, value: Value) -> bool:
        """Return what a value is as a condition.

        Raises:
            Unsupported: it is no condition that the engine knows.
        """
        if type(value) is Number:
            return value.value != 0
        if isinstance(value, Pointer):
            return value.target is not None
        if isinstance(value, Optional):
            return value.cell.value is not None
        if isinstance(value, Unknown):
            raise Unsupported(f"a condition that depends on {value.reason}")
        raise Unsupported(f"{kind_of(value)} as a condition")

    # -- objects ------------------------------------------------------------------------------------------------------
    def coerced(self, value: Value, type_: TypeRef, scope: Scope) -> Value:
        """Return what initialising an object of a type with a value yields."""
        return self.objects.coerced(value, type_, scope)

    def constructed(self, type_: TypeRef, arguments: tuple[Value, ...], node: Node, scope: Scope) -> Value:
        """Return a new object of a type."""
        return self.objects.constructed(type_, arguments, node, scope)


def _unknown_expression(node: Node) -> str:
    words = " ".join(node.text.split())[:60]
    return f"{node.kind.replace('_', '-')} {words}".strip() if node.kind != "raw" else f"{words or 'a construct'}"
