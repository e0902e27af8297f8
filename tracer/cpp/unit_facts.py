"""A parsed unit turned into facts: its outline at once, bodies and trees when asked for. Runs in the parser process."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

from tracer.cpp.bindings import read_bindings
from tracer.cpp.calls import Call, CallReader
from tracer.cpp.facts import BindingFact, BodyFact, CallFact, FoundFact, FunctionFact, OutlineFact, Place
from tracer.cpp.handed import exchanged
from tracer.cpp.tree import Function, Node, Tables, to_plain, walk
from tracer.cpp.unit import Unit
from tracer.model import Outcome

_EXPONENTIALS = frozenset(
    (
        "exp2f expf __expf exp exp2 ex2 ex2_approx fast_exp exp2f_approx hexp2 "
        "h2exp2 exp10 exp10f __exp10f expm1 expm1f"
    ).split()
)
_LOGARITHMS = frozenset("logf __logf log log2f __log2f log2 fast_log".split())
_MAXIMA = frozenset("max fmaxf fmax __hmax __hmax2 maximum".split())
_MATRIX_PRODUCT = re.compile(r"(?:^|_)(?:gemm|w?g?mma)(?:_|$)|^(?:mma|gemm)")
_QUIET_SECONDS = 0.015
#: What a kernel that computes attention does at least.
_WORK = {"matrix product", "exponential"}


class UnitFacts:
    """Turns a parsed unit into facts."""

    def __init__(self, unit: Unit) -> None:
        """Keep the unit; bodies are read when asked for."""
        self.unit = unit
        self.bodies: dict[int, Node | None] = {}
        self.reader = CallReader(unit, self.tree)
        # Most bodies need no inference about template parameters, which is the costly part.
        self.plain_reader = CallReader(unit, self.tree, infer=False)
        self._facts: dict[int, BodyFact] = {}
        self._plain_calls: dict[int, tuple[tuple[Call, ...], bool]] = {}  # and whether that is all there is to know
        self._inferred_calls: dict[int, tuple[Call, ...]] = {}
        self._does: dict[tuple[int, bool], frozenset[str]] = {}

    def outline(self) -> OutlineFact:
        """Return what the unit declares."""
        unit = self.unit
        functions = tuple(
            FunctionFact(
                f.declaration.usr, f.declaration.name, f.declaration.qualified_name, f.declaration.kind,
                f.declaration.primary, f.declaration.parent, self._declared_at(f.key), f.attributes,
                f.template_parameters, f.template_arguments, len(f.parameters), f.defined, f.key,
            )
            for f in unit.functions
        )  # fmt: skip
        bindings = tuple(
            BindingFact(b.module, b.name, b.usrs, self._place(b.file, b.offset, b.end)) for b in read_bindings(unit)
        )
        instantiations = tuple(
            (name, arguments, self._place(file, offset, offset))
            for name, arguments, file, offset in unit.instantiations
        )
        errors = tuple(
            ((unit.files[file].relative if file >= 0 else "", line, column, line), message)
            for file, line, column, message in unit.errors
        )
        return OutlineFact(tuple(f.relative for f in unit.files), functions, bindings, instantiations, errors)

    def body(self, key: int) -> BodyFact:
        """Return the call sites of one function."""
        known = self._facts.get(key)
        if known is None:
            known = self._facts[key] = self._read_body(key)
        return known

    def _read_body(self, key: int) -> BodyFact:
        node = self.tree(key)
        if node is None:
            return BodyFact((), (), ())
        function = self.unit.functions[key]
        calls = self._calls(function, infer=True)
        does = tuple(sorted(self._own_primitives(key, node)))
        own = [parameter.text for parameter in function.parameters], function.template_parameters
        found = tuple(
            (self._place(at.file, at.start, at.end), said, is_flag)
            for at, said, is_flag in exchanged(node, own, self._parameters)
        )
        return BodyFact(tuple(self._call(call) for call in calls), does, _assigns(node), found)

    def _parameters(self, usr: str) -> tuple[list[str], tuple[str, ...]] | None:
        """Return the names of the parameters and of the template parameters of a function of the checkout."""
        for key in self.unit.by_usr.get(usr, ()):
            function = self.unit.functions[key]
            return [parameter.text for parameter in function.parameters], function.template_parameters
        return None

    def _own_primitives(self, key: int, body: Node, *, infer: bool = False) -> frozenset[str]:
        """Return the primitives that a function uses itself, or through a function object that it makes."""
        known = self._does.get((key, infer))
        if known is None:
            calls = self._calls(self.unit.functions[key], infer=infer)
            known = frozenset(_does(body, calls) | self._done_by_objects(body, infer=infer))
            self._does[key, infer] = known
        return known

    def _calls(self, function: Function, *, infer: bool) -> tuple[Call, ...]:
        """Return the call sites of one function; with ``infer`` also what only inference shows."""
        plain = self._plain_calls.get(function.key)
        if plain is None:
            calls = self.plain_reader.calls(function)
            plain = self._plain_calls[function.key] = calls, not self.plain_reader.missed
        calls, is_complete = plain
        if is_complete or not infer:
            return calls
        if function.key not in self._inferred_calls:
            self._inferred_calls[function.key] = self.reader.calls(function)
        return self._inferred_calls[function.key]

    def _done_by_objects(self, body: Node, *, infer: bool) -> set[str]:
        """Name the primitives of the function objects that a body makes and hands on: their callee will use them."""
        found: set[str] = set()
        for name, usr in self._methods_of_objects(body):
            for key in self.unit.by_usr.get(usr, ()) if name == "operator()" else ():
                operator = self.tree(key)
                if operator is not None:
                    found |= _does(operator, self._calls(self.unit.functions[key], infer=infer))
        return found

    def _methods_of_objects(self, body: Node) -> list[tuple[str, str]]:
        """Return name and USR of the member functions of the objects of the checkout's classes that a body makes."""
        found: list[tuple[str, str]] = []
        for node in walk(body):
            class_ = self.unit.classes.get(node.type.class_usr) if node.kind == "variable" and node.type else None
            found += class_.methods if class_ else ()
        return found

    def tree(self, key: int) -> Node | None:
        """Return the syntax tree of one function's body."""
        if key not in self.bodies:
            self.bodies[key] = self.unit.body(key)
        return self.bodies[key]

    def ahead(self) -> Iterator[float]:
        """Read what the kernels reach, a function between two yields; host code is short and read when asked for.

        What needs inference is left until it is asked for: one such question can take as long as all the rest.

        Yields:
            for how many seconds nothing should have been asked before reading goes on: a while before another kernel,
            whose functions are long, because the next question is most likely still about the one before.
        """
        kernels = [f.key for f in self.unit.functions if "global" in f.attributes]
        seen: set[int] = set()
        for number, root in enumerate(kernels):
            yield _QUIET_SECONDS if number else 0.0
            waiting = [root]
            while waiting:
                key = waiting.pop()
                node = self.tree(key) if key not in seen else None
                if node is not None:
                    seen.add(key)
                    waiting += reversed(self._below(key, node))
                    yield 0.0

    def _below(self, key: int, body: Node) -> list[int]:
        """Return the functions that a body calls as far as shows without inference, and those of objects it makes."""
        usrs = [f.usr for call in self._calls(self.unit.functions[key], infer=False) for f in call.found]
        usrs += [usr for _, usr in self._methods_of_objects(body)]
        return [found for usr in dict.fromkeys(usrs) for found in self.unit.by_usr.get(usr, ())]

    def tables(self) -> Tables:
        """Return what the trees of this unit refer to; complete only for the bodies read so far."""
        unit = self.unit
        return Tables(
            tuple(file.relative for file in unit.files),
            unit.declarations,
            unit.classes,
            tuple(unit.aliases),
            frozenset(unit.templates),
            unit.template_parameters(),
            unit.results(),
        )

    def plain_trees(self, root: int) -> dict[int, Any]:
        """Return the trees of a function and of what it calls, in plain form; of a kernel only its own.

        Whoever follows a function follows what it calls, so this saves asking for each. But a question about the host
        ends at a kernel's parameters.
        """
        found: dict[int, Any] = {}
        waiting = [root]
        while waiting:
            key = waiting.pop()
            function = self.unit.functions[key]
            if key in found or (key != root and (not function.defined or "global" in function.attributes)):
                continue
            node = self.tree(key)
            found[key] = to_plain((*function.parameters, *((node,) if node is not None else ())))
            if node is not None and "global" not in function.attributes:
                waiting += self._below(key, node)
        return found

    def primitives(self, roots: tuple[int, ...]) -> dict[int, tuple[str, ...]]:
        """Return which primitives functions use, themselves or in anything that they reach, for all below ``roots``.

        A kernel whose calls are plain shows matrix products and the exponential without any inference about template
        parameters; only where that is not enough is the costly reading done.
        """
        found = self._reached_primitives(roots, infer=False)
        if not all(_WORK <= found.get(root, set()) for root in roots):
            found = self._reached_primitives(roots, infer=True)
        return {key: tuple(sorted(does)) for key, does in found.items()}

    def plain_bodies(self, keys: Iterable[int]) -> dict[int, BodyFact]:
        """Return the bodies of those functions whose calls show without inference."""
        return {key: self.body(key) for key in keys if self._plain_calls.get(key, ((), False))[1]}

    def _reached_primitives(self, roots: tuple[int, ...], *, infer: bool) -> dict[int, set[str]]:
        own: dict[int, set[str]] = {}
        callees: dict[int, set[int]] = {}
        waiting = list(roots)
        while waiting:
            key = waiting.pop()
            node = self.tree(key) if key not in own and self.unit.functions[key].defined else None
            if node is None:
                continue
            calls = self._calls(self.unit.functions[key], infer=infer)
            own[key] = set(self._own_primitives(key, node, infer=infer))
            callees[key] = {k for call in calls for f in call.found for k in self.unit.by_usr.get(f.usr, ())}
            waiting += callees[key]
        changed = True
        while changed:  # calls can be recursive
            changed = False
            for key, does in own.items():
                more = set().union(*(own.get(callee, set()) for callee in callees[key])) - does
                does |= more
                changed = changed or bool(more)
        return own

    def _declared_at(self, key: int) -> Place:
        """Return the place of one declaration or definition of a function, not of the first one that names its USR."""
        file, start, end = self.unit.function_extent(key)
        return self._place(file, start, end)

    def _place(self, file: int, start: int, end: int) -> Place:
        if file < 0:
            return "", 0, 0, 0
        source = self.unit.files[file]
        line, column = source.line_and_column(start)
        return source.relative, line, column, max(line, source.line_and_column(max(end - 1, start))[0])

    def _call(self, call: Call) -> CallFact:
        found = tuple(
            FoundFact(
                f.usr, f.how.value, f.confidence.value, self._place(*f.through, f.through[1]) if f.through else None,
                f.template_arguments,
            )
            for f in call.found
        )  # fmt: skip
        place = self._place(call.file, call.offset, call.end)
        return CallFact(call.written, place, call.outcome.value, found, call.reason, call.condition)


def _assigns(body: Node) -> tuple[str, ...]:
    """Name the data members that a body assigns directly."""
    targets = [node.children[0] for node in walk(body) if node.kind == "assign"]
    return tuple(sorted({target.text for target in targets if target.kind == "member"}))


def _does(body: Node, calls: tuple[Call, ...]) -> set[str]:
    """Name the documented primitives that a body uses itself."""
    found: set[str] = set()
    for call in calls:
        if call.outcome is Outcome.RESOLVED:
            continue
        name = re.split(r"::|\.|->", call.written)[-1]
        if name in _EXPONENTIALS:
            found.add("exponential")
        elif name in _LOGARITHMS:
            found.add("logarithm")
        elif name in _MAXIMA:
            found.add("maximum")
        elif _MATRIX_PRODUCT.search(name):
            found.add("matrix product")
    for node in walk(body):
        if node.kind in ("for", "while", "do", "for_range"):
            found.add("loop")
        elif node.kind == "raw" and node.text.startswith(("asm", "__asm")):
            if "mma" in node.text:
                found.add("matrix product")
            if "ex2" in node.text:
                found.add("exponential")
    return found
