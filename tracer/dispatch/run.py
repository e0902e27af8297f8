"""One call being followed: its device, and what it did so far."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from tracer.cpp.tree import Node
from tracer.dispatch.answers import Decision, Device, Launch, Operator
from tracer.dispatch.explanation import expression_text, is_check, operands
from tracer.dispatch.scope import Scope
from tracer.dispatch.values import Value
from tracer.model import Location

if TYPE_CHECKING:
    from tracer.dispatch.engine import Engine

_NO_DEVICE = Device("none", 0, 0, 0, 0, 0)


class Refused(Exception):
    """The host code refuses the call.

    Attributes:
        message: what it says.
        location: the check.
    """

    def __init__(self, message: str, location: Location) -> None:
        """Keep message and place."""
        super().__init__(message)
        self.message, self.location = message, location


class Undecided(Exception):
    """A branch on a value that the question does not fix.

    Attributes:
        condition: as written.
        reason: what the value is.
        location: where the branch stands.
    """

    def __init__(self, condition: str, reason: str, location: Location) -> None:
        """Keep what is not decided and where."""
        super().__init__(condition)
        self.condition, self.reason, self.location = condition, reason, location


class Run:
    """What one call has done so far.

    Attributes:
        device: on which GPU.
        explain: record every decision.
        forced: how to go on at branches on unknown values, in order; None to stop at the first one.
        launches, operators, decisions: what happened, in order.
        arguments: what was passed to each of ``launches``.
        steps: statements executed.
        outermost: the scope of the entry's body.
    """

    def __init__(
        self, device: Device = _NO_DEVICE, *, explain: bool = False, forced: tuple[bool, ...] | None = None
    ) -> None:
        """Start."""
        self.device, self.explain, self.forced = device, explain, forced
        self.launches: list[Launch] = []
        self.arguments: list[tuple[Value, ...]] = []
        self.operators: list[Operator] = []
        self.decisions: list[Decision] = []
        self.steps = 0
        self.outermost: Scope | None = None
        self._choices = 0
        self.enclosing: list[int] = []
        self.led_to_launch: set[int] = set()

    def choose(self, condition: str, reason: str, location: Location) -> bool:
        """Return how to go on at a branch on an unknown value.

        Raises:
            Undecided: nobody has said so yet.
        """
        assert self.forced is not None
        if self._choices >= len(self.forced):
            raise Undecided(condition, reason, location)
        self._choices += 1
        return self.forced[self._choices - 1]

    @contextmanager
    def aside(self) -> Iterator[None]:
        """Evaluate something that the call itself does not evaluate: nothing of it is recorded."""
        kept = len(self.launches), len(self.arguments), len(self.operators), self.explain
        self.explain = False
        try:
            yield
        finally:
            del self.launches[kept[0] :], self.arguments[kept[1] :], self.operators[kept[2] :]
            self.explain = kept[3]

    def record(self, engine: Engine, condition: Node, scope: Scope, outcome: bool, node: Node) -> None:
        """Keep a decision for the explanation."""
        with self.aside():
            read = operands(engine, condition, scope)
        location = engine.location(condition)
        function = engine.host.source.definition(engine.owner).name if engine.owner else ""
        self.decisions.append(
            Decision(expression_text(condition), outcome, read, location, function, matters=not is_check(node))
        )
