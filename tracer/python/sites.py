"""From a call in the source to a call site with its targets, or with the reason why it has none."""

from __future__ import annotations

import ast
from dataclasses import field

from tracer.model import CallSite, Confidence, How, Location, Outcome, Target
from tracer.python.files import Files
from tracer.python.flow import Env
from tracer.python.outline import callable_attributes
from tracer.python.registrations import Registrations
from tracer.python.resolve import Resolver
from tracer.python.syntax import Scope
from tracer.python.values import Kind, Value
from tracer.records import dataclass

_OPERATORS = "torch.ops."


@dataclass(slots=True)
class _Found:
    """What the values of one callee amount to."""

    targets: list[tuple[int, int, Target]] = field(default_factory=list)
    outside: list[str] = field(default_factory=list)
    unclear: list[str] = field(default_factory=list)
    nothing: bool = False


class Sites:
    """Turns the calls of a scope into call sites."""

    def __init__(self, resolver: Resolver, registrations: Registrations) -> None:
        """Take the rooms below; nothing is read yet."""
        self._resolver = resolver
        self._registrations = registrations
        self._files: Files = resolver.files
        self._attributes: dict[str, frozenset[str]] = {}

    def of_scope(self, scope: Scope) -> tuple[CallSite, ...]:
        """Return the calls in a scope's own body, in source order."""
        made = [self.site(call, env, scope) for call, env in self._resolver.body(scope).calls]
        return tuple(sorted(made, key=lambda site: (site.location.line, site.location.column)))

    def site(self, call: ast.Call, env: Env, scope: Scope) -> CallSite:
        """Return the call site of one call, where ``env`` holds inside ``scope``."""
        module = scope.module
        found = _Found()
        for value in self._resolver.evaluate(call.func, env, scope):
            self._sort(value, scope, found, set())
        targets: dict[tuple[str, How, Location | None], Target] = {}
        for _, _, target in sorted(found.targets, key=lambda one: one[:2]):
            targets.setdefault((target.id, target.how, target.through), target)
        if targets:
            outcome = Outcome.RESOLVED
            beside = [f"outside: {name}" for name in found.outside] + [f"unclear: {why}" for why in found.unclear]
            reason = "; ".join(dict.fromkeys(beside))
        elif found.nothing and not found.outside and not found.unclear:
            outcome, reason = Outcome.UNRESOLVED, "the name is only ever bound to None"
        elif found.unclear:
            outcome, reason = Outcome.UNRESOLVED, "; ".join(dict.fromkeys(found.unclear))
        else:
            outcome, reason = Outcome.EXTERNAL, "; ".join(dict.fromkeys(found.outside))
        return CallSite(
            caller=scope.id,
            written=module.written(call.func),
            location=module.callee_place(call),
            outcome=outcome,
            targets=tuple(targets.values()),
            reason=reason,
        )

    def _sort(self, value: Value, scope: Scope, found: _Found, seen: set[str]) -> None:
        match value.kind:
            case Kind.FUNCTION:
                self._function(value, found)
            case Kind.CLASS:
                self._class(value, found)
            case Kind.APPLY:
                self._apply(value, found)
            case Kind.INSTANCE:
                self._instance(value, found)
            case Kind.EXTENSION:
                self._binding(f"extension:{value.name}", value, found)
            case Kind.LIBRARY if value.name.startswith(_OPERATORS):
                self._operator(value, scope, found)
            case Kind.OBJECT if value.name.startswith("NoneType"):
                found.nothing = True  # what a name is until something is loaded, or where loading failed
            case Kind.LIBRARY | Kind.OBJECT | Kind.BUILTIN:
                found.outside.append(value.name)
            case Kind.RESULT if value.name not in seen:
                seen.add(value.name)
                for result in self._resolver.result(value):
                    self._sort(result, scope, found, seen)
            case Kind.UNKNOWN if value.member and not self._defined_near(value.member, scope):
                found.outside.append(f"{value.name}; nothing under {_near(scope)}/ defines '{value.member}'")
            case Kind.UNKNOWN:
                found.unclear.append(value.name)
            case Kind.PARAMETER:
                found.unclear.append(f"call of {value.name}")
            case _:
                found.unclear.append(f"call of a {value.kind.value}")

    def _add(self, target: Target, value: Value, found: _Found) -> None:
        # Where no condition decides, what leads to compiled code of the checkout comes before what does not.
        found.targets.append((value.rank, 0 if target.how is How.BINDING else 1, target))

    def _function(self, value: Value, found: _Found) -> None:
        how, through = value.how, value.through
        if how is How.CALL:
            registered = self._implementing(value.name)
            if registered is not None:
                how, through = How.CUSTOM_OP, through or registered
        self._add(Target(value.name, how, value.confidence, through), value, found)

    def _implementing(self, id: str) -> Location | None:
        """Return where a function is registered as an operator's implementation by its own decorator."""
        for one in self._registrations.of_definition(self._resolver.scope(id)):
            if one.verb in ("custom_op", "triton_op"):
                return one.location
        return None

    def _class(self, value: Value, found: _Found) -> None:
        scope = self._resolver.scope(value.name)
        for made in self._resolver.class_member(scope, "__init__"):
            if made.kind is Kind.FUNCTION:
                target = Target(made.name, How.CONSTRUCTOR, value.confidence, value.through)
                self._add(target, value, found)
                return
        self._add(Target(scope.id, How.CONSTRUCTOR, value.confidence, value.through), value, found)

    def _apply(self, value: Value, found: _Found) -> None:
        scope = self._resolver.scope(value.name)
        for name in ("forward", "backward"):
            for method in self._resolver.class_member(scope, name):
                if method.kind is Kind.FUNCTION:
                    self._add(Target(method.name, How.AUTOGRAD, value.confidence, value.through), value, found)

    def _instance(self, value: Value, found: _Found) -> None:
        scope = self._resolver.scope(value.name)
        names = ("__call__", "forward") if self._resolver.is_module(scope) else ("__call__",)
        for name in names:
            for method in self._resolver.class_member(scope, name):
                if method.kind is Kind.FUNCTION:
                    target = Target(method.name, How.MEMBER, Confidence.INFERRED, value.through)
                    self._add(target, value, found)
                    return
        found.unclear.append(f"call of an instance of {scope.qualname}, which defines no __call__")

    def _binding(self, id: str, value: Value, found: _Found) -> None:
        self._add(Target(id, How.BINDING, value.confidence, value.through), value, found)

    def _operator(self, value: Value, scope: Scope, found: _Found) -> None:
        namespace, *rest = value.name[len(_OPERATORS) :].split(".")
        # An operator can be followed by its overload; anything more is a look at the operator, not a call of it.
        if not rest or len(rest) > 2 or (len(rest) == 2 and (rest[1].startswith("_") or rest[1] == "overloads")):
            found.outside.append(value.name)
            return
        operator = f"{namespace}::{rest[0]}"
        implemented = self._registrations.implementations(operator, scope.module)
        for one in implemented:
            target = Target(one.definition, How.CUSTOM_OP, value.confidence, value.through or one.location)
            self._add(target, value, found)
        if not implemented:
            through = value.through or self._registering_import(namespace, scope)
            self._add(Target(f"ops:{operator}", How.BINDING, value.confidence, through), value, found)

    def _registering_import(self, namespace: str, scope: Scope) -> Location | None:
        """Return the import of a compiled module named like an operator's namespace, which registers the operators."""
        for bindings in self._resolver.body(scope.module.top).env.values():
            for value in self._resolver.bound(bindings):
                if value.kind is Kind.EXTENSION and namespace in value.name.split("."):
                    return value.through
        return None

    def _defined_near(self, name: str, scope: Scope) -> bool:
        """Whether any file of the caller's top-level folder gives an attribute this name.

        A method, an assignment to an attribute, or a field that holds a callable can be what is called; an object
        whose class has none of them is one of a library.
        """
        near = _near(scope)
        if near not in self._attributes:
            files = [f for f in self._files.names if f.startswith(f"{near}/") or (near == "." and "/" not in f)]
            self._attributes[near] = callable_attributes("\n".join(self._files.try_text(file) for file in files))
        return name in self._attributes[near]

    def related(self, scope: Scope) -> tuple[Target, ...]:
        """Return what runs because a function ran, without being called by it.

        For ``forward`` of an autograd function its ``setup_context`` and ``backward``; for an operator's implementation
        what ``register_autograd`` names.
        """
        found: list[Target] = []
        owner = scope.owner
        if owner is not None and scope.name == "forward" and self._resolver.is_autograd(owner):
            for name in ("setup_context", "backward"):
                for method in self._resolver.class_member(owner, name):
                    if method.kind is Kind.FUNCTION:
                        found.append(Target(method.name, How.AUTOGRAD, Confidence.EXACT, owner.place))
        operators = {one.operator for one in self._registrations.of_definition(scope)}
        for one in self._registrations.of_module(scope.module):
            if one.operator in operators and one.verb == "register_autograd" and one.definition != scope.id:
                found.append(Target(one.definition, How.AUTOGRAD, Confidence.EXACT, one.location))
        return tuple(found)


def _near(scope: Scope) -> str:
    top, slash, _ = scope.module.file.partition("/")
    return top if slash else "."
