"""Which functions a launch, a library call that starts a kernel, or a function pointer means."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from tracer.cpp import spelling
from tracer.cpp.candidates import Candidates, Found
from tracer.cpp.library import RUNS_OPERATOR_OF, STARTERS
from tracer.cpp.scopes import Scope, Visited
from tracer.cpp.tree import Function, Node
from tracer.cpp.types import Instance, Where
from tracer.model import Confidence, How


class Kernels:
    """The kernels that one body names, where it does not call them."""

    def __init__(self, candidates: Candidates, function: Function, visited: Callable[[int], list[Visited]]) -> None:
        """Prepare.

        Args:
            candidates: the functions of the unit.
            function: the function whose body names them.
            visited: gives the places of a function's body, by key.
        """
        self.unit, self.types, self.function, self._visited = candidates.unit, candidates.types, function, visited

    def function_pointer(self, node: Node | None, scope: Scope) -> list[Found]:
        """Return the functions that the initialiser of a function-pointer variable names."""
        if node is None:
            return []
        if node.kind in ("unary", "cast") and node.children:
            return self.function_pointer(node.children[0], scope)
        if node.kind == "conditional":
            found = {f.usr: f for child in reversed(node.children[1:]) for f in self.function_pointer(child, scope)}
            if len(found) < 2:  # one template, chosen with other arguments
                return list(found.values())
            return [Found(f.usr, f.how, Confidence.AMBIGUOUS, f.through, f.template_arguments) for f in found.values()]
        if node.kind != "name":
            return []
        if not node.targets and node.text in scope:
            return self.function_pointer(scope[node.text].node, scope)
        inside = [usr for usr in node.targets if self.unit.is_inside(usr)]
        if not inside and self.library_name(node) in RUNS_OPERATOR_OF:
            return self.run_by(node.children, RUNS_OPERATOR_OF[self.library_name(node)], scope)
        confidence = Confidence.EXACT if len(inside) == 1 else Confidence.AMBIGUOUS
        through, arguments = (node.file, node.start), spelling.arguments(self.unit, node)
        return [Found(usr, How.KERNEL_POINTER, confidence, through, arguments) for usr in inside]

    def started(self, node: Node, callee: Node, scope: Scope) -> list[Found]:
        """Return the kernels that a call of a library function starts."""
        starter = STARTERS.get(self.library_name(callee))
        if starter is None:
            return []
        if starter.template_argument >= 0:
            found = self.run_by(callee.children, starter.template_argument, scope)
        elif starter.argument + 1 < len(node.children):
            found = self.function_pointer(node.children[starter.argument + 1], scope)
        else:
            found = []
        return [replace(f, how=How.LAUNCH) for f in found]

    def library_name(self, node: Node) -> str:
        """Return the qualified name of what a node names; empty where it is not declared."""
        declaration = self.unit.declarations.get(node.targets[0]) if node.targets else None
        return declaration.qualified_name if declaration is not None else ""

    def run_by(self, arguments: tuple[Node, ...], position: int, scope: Scope) -> list[Found]:
        """Return what a library's kernel runs: ``operator()`` of the class that is its template argument."""
        if position >= len(arguments):
            return []
        argument = arguments[position]
        where = Where(self.function, self.function.declaration.parent, scope, deep=True)
        types = self.types.of_written(argument, where)
        runs = [usr for instance in types.instances for usr in self.runs(instance)]
        sure = len(set(runs)) == 1 and not types.unknown
        confidence = Confidence.INFERRED if sure else Confidence.AMBIGUOUS
        named = scope.get(argument.text)
        through = named.place if named is not None else (argument.file, argument.start)
        written = (spelling.text(self.unit, argument) or argument.text,)
        return [Found(usr, How.KERNEL_POINTER, confidence, through, written) for usr in dict.fromkeys(runs)]

    def runs(self, instance: Instance) -> list[str]:
        """Return ``operator()`` of a class; of its base where the class only guards the base's.

        ``template <class K> struct Guarded : K`` hands the call on in the compilation for the right device only, so
        that its own operator is empty in any other.
        """
        class_ = self.unit.classes[instance.usr]
        own = [usr for name, usr in class_.methods if name == "operator()"]
        if own and any(base.spelling in class_.template_parameters for base in class_.bases):
            if any(self._visited(key) for usr in own for key in self.unit.by_usr.get(usr, ())):
                return own
            bases = self.types.bases(instance, True)
            return [usr for base in bases.instances for usr in self.runs(base)] or own
        return own or [usr for base in self.types.bases(instance, True).instances for usr in self.runs(base)]
