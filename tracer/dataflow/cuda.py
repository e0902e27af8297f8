"""The C++ and CUDA front end: a kernel's syntax tree as value flow, every callee of the checkout inlined.

A kernel is followed statement by statement. What stands in a statement is followed by the classes that this one is
built on: declarations, expressions, calls and names.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tracer.cpp.source import CppSource
from tracer.cpp.tree import EMPTY, Node, walk
from tracer.dataflow.addresses import Address, Walk
from tracer.dataflow.declarations import Declarations
from tracer.dataflow.expressions import Undecided
from tracer.dataflow.frames import Closure, Frame, Type
from tracer.dataflow.ir import Formula, Loop, Ref, Storage, Value, conjunction
from tracer.dataflow.library import meaning
from tracer.dataflow.names import COUNTING
from tracer.dataflow.state import State


class Kernel(Declarations):
    """The value flow of one function of a checkout."""

    def __init__(self, source: CppSource, id: str, flags: dict[str, bool] | None = None) -> None:
        """Follow the function of an id.

        Args:
            source: the C++ side that defines it.
            id: the definition's id.
            flags: compile-time flags that are decided beforehand.

        Raises:
            TooLarge: more work than the bound allows.
            Undecided: a flag that ``flags`` leaves open chooses between two tensors.
        """
        super().__init__(source, id)
        self.known = dict(flags or {})
        self.decided = dict(self.known)
        self._leaving: list[tuple[int, list[tuple[Formula, State]]]] = []
        self._switches: list[int] = [0]  # how many are open, in each loop that is open
        self._follow()

    def _follow(self) -> None:
        function = self.lookup.function(self.id)
        self.frame = Frame(self.id, {})
        self.frame.is_root = True
        self.active.append(function.usr)
        for parameter in function.parameters:
            declared = self.site(parameter)
            self.parameter_names.append(parameter.text)
            cls = self.lookup.class_of(parameter.type)
            if cls is not None:
                template = self.class_arguments(cls, ())
                self.frame.bind(parameter.text, self.new_object(cls, parameter.text, template, declared, True))
            else:
                storage = self.input(parameter.text, declared)
                self.frame.bind(parameter.text, Ref(storage, parameter.text, declared))
        assert function.body is not None
        self.statement(function.body)
        self.outputs = {
            name: self.state[storage]
            for name, storage in self.inputs.items()
            if storage.space == "global" and (self.state.get(storage) or self.roots[storage]) is not self.roots[storage]
        }

    # -- statements ---------------------------------------------------------------------------------------------------
    def statement(self, node: Node) -> bool:
        """Follow a statement; tell whether it leaves the function or the loop."""
        handler = getattr(self, f"_statement_{node.kind}", None)
        if handler is not None:
            return bool(handler(node))
        self.thing(node)
        return False

    def _statement_block(self, node: Node) -> bool:
        self.frame.scopes.append({})
        left = any(self.statement(child) for child in node.children)
        scope = self.frame.scopes.pop()
        if not left:
            self.forget(scope, None)
        return left

    def _statement_declare(self, node: Node) -> bool:
        for child in node.children:
            if child.kind == "variable":
                self.declare(child)
            elif child.kind == "alias" and child.type is not None:
                self.frame.template = {**self.frame.template, child.text: Type(child.type.spelling)}
        return False

    def _statement_empty(self, node: Node) -> bool:
        return False

    def _statement_static_assert(self, node: Node) -> bool:
        return False

    def _statement_return(self, node: Node) -> bool:
        thing = self.thing(node.children[0]) if node.children else None
        if isinstance(thing, Ref) and thing.storage.space == "registers" and thing.is_indexed:
            thing = self.read(thing, self.site(node))
        if self.frame.is_root:
            self.exits.append(self.path)
        self.frame.leaves.append((self.leaf_condition(), thing, self.state))
        return True

    def _statement_continue(self, node: Node) -> bool:
        if self._leaving:
            entry, states = self._leaving[-1]
            states.append((_all(self.path[entry:]), self.state))
        return True

    def _statement_break(self, node: Node) -> bool:
        if self.open_loops and not self._switches[-1]:
            loop = self.open_loops[-1]
            counters = {storage: self.state[storage] for storage, *_ in loop.counters}
            loop.breaks.append((self.path[len(loop.guards) :], counters))
        return True

    def _statement_if(self, node: Node) -> bool:
        condition, then, *other = node.children
        formula = self.formula(self.evaluated(condition))
        return self.branch(
            formula,
            lambda: self.statement(then),
            (lambda: self.statement(other[0])) if other else None,
            self.site(node),
        )

    def _statement_switch(self, node: Node) -> bool:
        self.evaluated(node.children[0])
        self._switches[-1] += 1  # a break in it leaves it, and no loop
        for child in node.children[1:]:
            self.statement(child)
        self._switches[-1] -= 1
        return False

    def _statement_case(self, node: Node) -> bool:
        self.branch(("test", self.evaluated(node.children[0])), lambda: self.statement(node.children[-1]), None)
        return False

    def _statement_default(self, node: Node) -> bool:
        self.statement(node.children[-1])
        return False

    def _statement_initialise(self, node: Node) -> bool:
        if self.frame.this is not None:
            target = self.member(self.frame.this, node.text, self.site(node))
            if isinstance(target, Ref):
                thing = self.thing(node.children[0])
                if isinstance(thing, Ref) and thing.is_pointer:
                    self.frame.this.fields[node.text] = thing
                elif isinstance(thing, Ref | Value):
                    self.write(target, self.as_value(thing, self.site(node)), self.site(node))
        return False

    # -- loops --------------------------------------------------------------------------------------------------------
    def _statement_for(self, node: Node) -> bool:
        start, condition, step, body = node.children
        self.frame.scopes.append({})
        self.statement(start)
        self._loop(node, *counted(condition, step, body))
        self.forget(self.frame.scopes.pop(), None)
        return False

    def _statement_while(self, node: Node) -> bool:
        condition, body = node.children
        self._loop(node, *counted(condition, EMPTY, body))
        return False

    def _statement_do(self, node: Node) -> bool:
        body, condition = node.children if node.children[0].kind == "block" else reversed(node.children)
        self._loop(node, *counted(condition, EMPTY, body))
        return False

    def _statement_for_range(self, node: Node) -> bool:
        self._loop(node, EMPTY, EMPTY, node.children[-1])
        return False

    def _loop(self, node: Node, condition: Node, step: Node, body: Node) -> None:
        counters = self._counters(step)

        def follow(loop: Loop) -> None:
            if condition.kind != "empty":
                loop.condition = self.formula(self.evaluated(condition))
            walking = self._walking_pointers(body, loop)
            entry = len(self.path)
            states: list[tuple[Formula, State]] = []
            before = self.state.copy()
            self._leaving.append((entry, states))
            self._switches.append(0)
            left = self.statement(body)
            self._switches.pop()
            self._leaving.pop()
            for formula, state in reversed(states):
                self.state = state if left else self._merged(formula, state, before)
                left = False
            for name, thing in walking.items():  # behind the loop, all moves of all steps have been made
                self.frame.rebind(name, thing)

        def follow_step(loop: Loop) -> None:
            if step.kind != "empty":
                self.thing(step)

        self.loop(self.site(node), counters, follow, follow_step)

    def _merged(self, formula: Formula, then: State, before: State) -> State:
        merged = self.state.copy()
        for storage in then.touched(merged):
            value, mine = then.get(storage), merged.get(storage) or self.before(storage)
            if value is not None and mine is not value:
                merged[storage] = self.chosen(storage, formula, (value, mine), before, None)
        return merged

    def _counters(self, step: Node) -> list[Storage]:
        """Return the storages that a loop's step counts up or down."""
        found: list[Storage] = []
        for node in walk(step):
            is_counting = (node.kind == "unary" and node.text in COUNTING) or node.kind == "assign"
            if is_counting and node.children[0].kind == "name":
                thing = self.frame.find(node.children[0].text)
                if isinstance(thing, Ref) and thing.storage not in found and not thing.is_pointer:
                    found.append(thing.storage)
        return found

    def _walking_pointers(self, body: Node, loop: Loop) -> dict[str, Ref]:
        """Find the pointers that move with a loop, which makes what is behind them indexed by the loop."""
        walking: dict[str, Ref] = {}
        nodes = [*self.lookup.assignments(body)]
        for name in self.lookup.called_names(body):
            closure = self.frame.find(name)
            if isinstance(closure, Closure):
                nodes += self.lookup.assignments(closure.node)
        for node in nodes:
            target = node.children[0]
            if target.kind == "call" and target.children[0].kind == "member":
                found = meaning(target.children[0].text)
                target = target.children[0].children[0] if found is not None and found.does == "view" else EMPTY
            elif target.kind == "name" and node.text == "=":
                target = EMPTY
            if target.kind == "name" and target.text not in walking:
                thing = self.frame.find(target.text)
                if isinstance(thing, Ref) and (thing.is_pointer or node.children[0].kind == "call"):
                    moving = thing.view(loops=frozenset((loop.number,)))
                    if thing.storage.space == "global":
                        moving.address = (thing.address or Address()).walking(Walk(loop), 0)
                    self.frame.rebind(target.text, moving)
                    walking[target.text] = moving
        return walking


def counted(condition: Node, step: Node, body: Node) -> tuple[Node, Node, Node]:
    """Return condition, step and body of a loop as a counting ``for`` has them, where it can be written so.

    ``while (c) { …; ++n; }`` and ``for (;; ++n) { if (!c) break; … }`` count as ``for (; c; ++n) { … }`` does.
    """
    statements = list(body.children) if body.kind == "block" else []
    if step.kind == "empty" and len(statements) > 1 and not any(node.kind == "continue" for node in walk(body)):
        last = statements[-1]
        is_step = (last.kind == "unary" and last.text in COUNTING) or (
            last.kind == "assign" and last.text in ("+=", "-=")
        )
        if is_step and last.children[0].kind == "name":
            step = statements.pop()
    if condition.kind == "empty" and step.kind != "empty" and statements and _only_breaks(statements[0]):
        left = statements.pop(0).children[0]
        condition = Node("unary", "!", (left,), left.file, left.start, left.end)
    return condition, step, replace(body, children=tuple(statements)) if statements else body


def _only_breaks(node: Node) -> bool:
    """Tell whether a statement leaves the loop on a condition and does nothing else."""
    if node.kind != "if" or len(node.children) != 2:
        return False
    inside = node.children[1]
    inside = inside.children[0] if inside.kind == "block" and len(inside.children) == 1 else inside
    return inside.kind == "break"


def _all(formulas: Sequence[Formula]) -> Formula:
    result: Formula = True
    for formula in formulas:
        result = conjunction(result, formula)
    return result


def kernels(source: CppSource, id: str, flags: dict[str, bool] | None = None) -> list[Kernel]:
    """Follow a function, once for each value of the flags that choose between its tensors.

    Raises:
        TooLarge: more work than the bound allows.
    """
    try:
        return [Kernel(source, id, flags)]
    except Undecided as undecided:
        flag = undecided.flags[0]
        return [kernel for value in (False, True) for kernel in kernels(source, id, {**(flags or {}), flag: value})]
