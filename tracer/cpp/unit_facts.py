"""A parsed unit turned into facts: its outline at once, bodies and trees when asked for. Runs in the parser process."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from tracer.cpp.bindings import read_bindings
from tracer.cpp.calls import Call, CallReader
from tracer.cpp.convert import Unit
from tracer.cpp.facts import BindingFact, BodyFact, CallFact, FoundFact, FunctionFact, OutlineFact, Place
from tracer.cpp.tree import Function, Node, Tables, to_plain, walk
from tracer.model import Outcome

_EXPONENTIALS = frozenset("exp2f expf __expf exp exp2 ex2 ex2_approx fast_exp exp2f_approx hexp2 h2exp2".split())
_LOGARITHMS = frozenset("logf __logf log log2f __log2f log2 fast_log".split())
_MAXIMA = frozenset("max fmaxf fmax __hmax __hmax2 maximum".split())
_MATRIX_PRODUCT = re.compile(r"(?:^|_)(?:gemm|w?g?mma)(?:_|$)|^(?:mma|gemm)")
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
        self._calls: dict[int, tuple[tuple[Call, ...], bool]] = {}

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
            return BodyFact((), ())
        function = self.unit.functions[key]
        calls, is_complete = self._plain_calls(function)
        if not is_complete:
            calls = self.reader.calls(function)
        does = _does(node, calls) | self._done_by_objects(node, self.plain_reader)
        return BodyFact(tuple(self._call(call) for call in calls), tuple(sorted(does)))

    def _plain_calls(self, function: Function) -> tuple[tuple[Call, ...], bool]:
        """Return the call sites that show without inference, and whether those are all there is to know."""
        known = self._calls.get(function.key)
        if known is None:
            calls = self.plain_reader.calls(function)
            known = self._calls[function.key] = calls, not self.plain_reader.missed
        return known

    def _calls_by(self, reader: CallReader, function: Function) -> tuple[Call, ...]:
        return self._plain_calls(function)[0] if reader is self.plain_reader else reader.calls(function)

    def _done_by_objects(self, body: Node, reader: CallReader) -> set[str]:
        """Name the primitives of the function objects that a body makes and hands on: their callee will use them."""
        found: set[str] = set()
        for node in walk(body):
            class_ = self.unit.classes.get(node.type.class_usr) if node.kind == "variable" and node.type else None
            for name, usr in class_.methods if class_ else ():
                for key in self.unit.by_usr.get(usr, ()) if name == "operator()" else ():
                    operator = self.tree(key)
                    if operator is not None:
                        found |= _does(operator, self._calls_by(reader, self.unit.functions[key]))
        return found

    def tree(self, key: int) -> Node | None:
        """Return the syntax tree of one function's body."""
        if key not in self.bodies:
            self.bodies[key] = self.unit.body(key)
        return self.bodies[key]

    def ahead(self) -> Iterator[None]:
        """Read what the functions behind the bindings and the kernels reach, a function between two yields."""
        bound = [key for b in read_bindings(self.unit) for usr in b.usrs for key in self.unit.by_usr.get(usr, ())]
        kernels = [f.key for f in self.unit.functions if "global" in f.attributes]
        for root in (*bound, *kernels):
            waiting, seen = [root], set[int]()
            while waiting:
                key = waiting.pop()
                if key not in seen and self.unit.functions[key].defined:
                    seen.add(key)
                    calls = self.body(key).calls
                    waiting += [k for call in calls for f in call.found for k in self.unit.by_usr.get(f.usr, ())]
                    yield
            self.primitives((root,))
            yield

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

    def plain_tree(self, key: int) -> Any:
        """Return the tree of a function's parameters and body in plain form."""
        node = self.tree(key)
        return to_plain((*self.unit.functions[key].parameters, *((node,) if node is not None else ())))

    def closure(self, roots: tuple[int, ...]) -> dict[int, BodyFact]:
        """Return the bodies of ``roots`` and of everything in this unit that they reach."""
        found: dict[int, BodyFact] = {}
        waiting = list(roots)
        while waiting:
            key = waiting.pop()
            if key in found or not self.unit.functions[key].defined:
                continue
            found[key] = self.body(key)
            for call in found[key].calls:
                for destination in call.found:
                    waiting += self.unit.by_usr.get(destination.usr, ())
        return found

    def primitives(self, roots: tuple[int, ...]) -> dict[int, tuple[str, ...]]:
        """Return which primitives functions use, themselves or in anything that they reach, for all below ``roots``.

        A kernel whose calls are plain shows matrix products and the exponential without any inference about template
        parameters; only where that is not enough is the costly reading done.
        """
        found = self._reached_primitives(roots, self.plain_reader)
        if not all(_WORK <= found.get(root, set()) for root in roots):
            found = self._reached_primitives(roots, self.reader)
        return {key: tuple(sorted(does)) for key, does in found.items()}

    def _reached_primitives(self, roots: tuple[int, ...], reader: CallReader) -> dict[int, set[str]]:
        own: dict[int, set[str]] = {}
        callees: dict[int, set[int]] = {}
        waiting = list(roots)
        while waiting:
            key = waiting.pop()
            node = self.tree(key) if key not in own and self.unit.functions[key].defined else None
            if node is None:
                continue
            calls = self._calls_by(reader, self.unit.functions[key])
            own[key] = _does(node, calls) | self._done_by_objects(node, reader)
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
