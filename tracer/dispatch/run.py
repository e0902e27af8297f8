"""One call being followed: its device, and what it did so far."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from tracer.cpp.tree import Node
from tracer.dispatch.answers import Decision, Device, Launch, Operator
from tracer.dispatch.explanation import decision_kind, expression_text, operands
from tracer.dispatch.host_code import Code
from tracer.dispatch.scope import Scope
from tracer.dispatch.values import Value
from tracer.model import Location

if TYPE_CHECKING:
    from tracer.dispatch.engine import Engine

# The field of the kernel's parameters that says into how many parts the keys are split.
SPLITS = "num_splits"
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
        kernels: the function and template arguments of each of ``launches``.
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
        self.kernels: list[tuple[Code, tuple[Value, ...]]] = []
        self.operators: list[Operator] = []
        self.decisions: list[Decision] = []
        self.steps = 0
        self.outermost: Scope | None = None
        self._choices = 0
        self._enclosing: list[int] = []

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
        kept = len(self.launches), len(self.arguments), len(self.operators), self.explain, len(self.kernels)
        self.explain = False
        try:
            yield
        finally:
            del self.launches[kept[0] :], self.arguments[kept[1] :], self.operators[kept[2] :], self.kernels[kept[4] :]
            self.explain = kept[3]

    def record(self, engine: Engine, condition: Node, scope: Scope, outcome: bool, node: Node) -> None:
        """Keep a decision for the explanation."""
        with self.aside():
            read = operands(engine, condition, scope)
        kind = decision_kind(node)
        text = expression_text(condition)
        value = "true" if outcome else "false"
        if kind == "check":  # written as a condition that must hold
            text, value = text.removeprefix("!").removeprefix("(").removesuffix(")"), "false" if outcome else "true"
        self._keep(engine, Decision(kind, text, value, read, engine.location(condition), "", False))

    def record_value(self, engine: Engine, source: Node, scope: Scope, value: str, node: Node) -> None:
        """Keep an assignment for the explanation."""
        with self.aside():
            read = tuple(row for part in source.children[1:] for row in operands(engine, part, scope, whole=True))
        self._keep(engine, Decision("value", expression_text(source), value, read, engine.location(node), "", True))

    def _keep(self, engine: Engine, decision: Decision) -> None:
        function = engine.host.source.definition(engine.owner).name if engine.owner else ""
        self.decisions.append(replace(decision, function=function))

    @contextmanager
    def inside_branch(self) -> Iterator[None]:
        """Remember the latest decision as the one that the following statements depend on."""
        self._enclosing.append(len(self.decisions) - 1)
        try:
            yield
        finally:
            self._enclosing.pop()

    def note_no_launch(self) -> None:
        """Note, for a call that launches nothing, what was decided in the function that could have launched."""
        chosen = [row.function for row in self.decisions if row.kind == "if"]
        below = [function for function in chosen if function != chosen[0]]
        for number, row in enumerate(self.decisions):
            if below and row.kind == "if" and row.function == below[-1]:
                self.decisions[number] = replace(row, matters=True)

    def note_launch(self) -> None:
        """Note that every branch around the current statement leads to a launch."""
        for number in self._enclosing:
            decision = self.decisions[number]
            if decision.kind == "if":
                self.decisions[number] = replace(decision, matters=True)
