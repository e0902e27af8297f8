"""Operators that a checkout registers with PyTorch from Python, and the functions that implement them."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator

from tracer.model import Location
from tracer.python.flow import Env, arguments_of
from tracer.python.resolve import Resolver
from tracer.python.syntax import Module, Scope
from tracer.python.values import Kind, Value
from tracer.records import dataclass

IMPLEMENTING = frozenset({"custom_op", "triton_op", "impl", "register_kernel"})
_VERBS = IMPLEMENTING | {"register_fake", "impl_abstract", "register_autograd", "register_vmap"}
_OPERATOR = re.compile(r"^\w[\w.]*::\w[\w.]*$")
_LITERAL = re.compile(r"""["'][\w.{}]*::[\w.{}]*|\bLibrary\(|\.register_(?:autograd|fake|kernel)\(""")


@dataclass(frozen=True, slots=True)
class Registration:
    """A function registered with PyTorch under an operator's name.

    Attributes:
        operator: ``namespace::name``.
        verb: the library function that registers it: ``custom_op``, ``register_fake``, ``register_autograd``, ….
        definition: id of the registered function.
        location: the decorator, or the registering call.
    """

    operator: str
    verb: str
    definition: str
    location: Location


class Registrations:
    """Finds the registrations of each module once."""

    def __init__(self, resolver: Resolver) -> None:
        """Take the resolver; nothing is read yet."""
        self._resolver = resolver
        self._files = resolver.files
        self._of_module: dict[str, tuple[Registration, ...]] = {}

    def of_module(self, module: Module) -> tuple[Registration, ...]:
        """Return a module's registrations in source order."""
        known = self._of_module.get(module.file)
        if known is None:
            self._of_module[module.file] = ()  # an operator's own decorator may ask for the module again
            found = list(self._find(module)) if _LITERAL.search(module.text) else []
            known = tuple(sorted(found, key=lambda one: one.location))
            self._of_module[module.file] = known
        return known

    def of_definition(self, scope: Scope) -> tuple[Registration, ...]:
        """Return the registrations of one function."""
        return tuple(one for one in self.of_module(scope.module) if one.definition == scope.id)

    def implementations(self, operator: str, asking: Module) -> tuple[Registration, ...]:
        """Return the registrations that implement an operator, the asking module's own first.

        Other files are read only if the asking module has none, and parsed only if their text names the operator.
        """
        found = self._implementing(asking, operator)
        if found:
            return found
        namespace, _, name = operator.partition("::")
        written = re.compile(rf"""(?:{re.escape(namespace)}|\}}|["'])::{re.escape(name)}["']""")
        for file in self._files.names:
            text = self._files.try_text(file)
            if file == asking.file or name not in text or namespace not in text:
                continue
            if (written.search(text) or "Library(" in text) and (module := self._files.try_module(file)) is not None:
                found += self._implementing(module, operator)
        return found

    def _implementing(self, module: Module, operator: str) -> tuple[Registration, ...]:
        return tuple(one for one in self.of_module(module) if one.operator == operator and one.verb in IMPLEMENTING)

    def _find(self, module: Module) -> Iterator[Registration]:
        for scope in list(module.scopes.values()):
            if not scope.is_function or isinstance(scope.node, ast.Lambda) or scope.parent is None:
                continue
            assert isinstance(scope.node, ast.FunctionDef | ast.AsyncFunctionDef)
            if not any(isinstance(decorator, ast.Call) for decorator in scope.node.decorator_list):
                continue
            for node, env in self._resolver.body(scope.parent).definitions:
                if node is scope.node:
                    for decorator in node.decorator_list:
                        if isinstance(decorator, ast.Call):
                            for operator, verb in self._named(decorator, env, scope.parent):
                                yield Registration(operator, verb, scope.id, module.place(decorator))
        for call, env in self._resolver.body(module.top).calls:
            if len(call.args) > 0:
                yield from self._by_call(call, env, module)

    def _by_call(self, call: ast.Call, env: Env, module: Module) -> Iterator[Registration]:
        """Registrations such as ``library.impl("name", function, "CUDA")`` and ``op.register_autograd(function)``."""
        functions = [
            value
            for argument in [*call.args, *(keyword.value for keyword in call.keywords if keyword.arg in ("fn", "func"))]
            if isinstance(argument, ast.Name | ast.Attribute)
            for value in self._resolver.evaluate(argument, env, module.top)
            if value.kind is Kind.FUNCTION
        ]
        if not functions:
            return
        for operator, verb in self._named(call, env, module.top):
            yield Registration(operator, verb, functions[0].name, module.callee_place(call))

    def _named(self, call: ast.Call, env: Env, scope: Scope) -> list[tuple[str, str]]:
        """Return the operators and verbs that a registering call names."""
        found: list[tuple[str, str]] = []
        if isinstance(call.func, ast.Attribute) and call.func.attr in _VERBS:
            for value in self._resolver.evaluate(call.func.value, env, scope):
                if value.kind is Kind.FUNCTION:
                    registered = registered_names(self._decorated(value))
                    found += [(one, call.func.attr) for one in dict.fromkeys(registered)]
        for value in self._resolver.evaluate(call.func, env, scope):
            found += self._by_value(value, call, lambda node: _text(node, {}), env, scope)
        return list(dict.fromkeys(found))

    def _decorated(self, value: Value) -> tuple[Registration, ...]:
        """Return the registrations that a function's own decorators make, without looking at the whole module."""
        scope = self._resolver.scope(value.name)
        if scope.parent is None:
            return ()
        made = []
        for node, env in self._resolver.body(scope.parent).definitions:
            if node is scope.node:
                for decorator in node.decorator_list:
                    if isinstance(decorator, ast.Call):
                        place = scope.module.place(decorator)
                        for operator, verb in self._named(decorator, env, scope.parent):
                            made.append(Registration(operator, verb, scope.id, place))
        return tuple(made)

    def _by_value(
        self, value: Value, call: ast.Call, text: Callable[[ast.expr], str], env: Env, scope: Scope
    ) -> list[tuple[str, str]]:
        library, _, verb = value.name.rpartition(".")
        if verb in _VERBS and value.kind is Kind.LIBRARY and library == "torch.library":
            return self._operators(call, verb, text, env, scope)
        if verb in _VERBS and value.kind is Kind.OBJECT and library == "torch.library.Library" and call.args:
            name = text(call.args[0])
            return [(f"{value.text}::{name}", verb)] if value.text and name else []
        if value.kind is Kind.FUNCTION:
            return self._passed_on(value, call, text)
        return []

    def _operators(
        self, call: ast.Call, verb: str, text: Callable[[ast.expr], str], env: Env, scope: Scope
    ) -> list[tuple[str, str]]:
        names = {keyword.arg: keyword.value for keyword in call.keywords}
        first = call.args[0] if call.args else names.get("name") or names.get("qualname") or names.get("op")
        if first is None:
            return []
        written = text(first)
        if _OPERATOR.match(written):
            return [(written, verb)]
        if len(call.args) > 1 and (name := text(call.args[1])):
            libraries = self._resolver.evaluate(first, env, scope)
            return [(f"{library.text}::{name}", verb) for library in libraries if library.text]
        return []

    def _passed_on(self, value: Value, call: ast.Call, text: Callable[[ast.expr], str]) -> list[tuple[str, str]]:
        """Return what a thin wrapper around a registering function registers when called like this.

        A wrapper is a function of the checkout that calls the library's function, in its own body or in one nested in
        it, with an operator name made from its own parameters and constants.
        """
        wrapper = self._resolver.scope(value.name)
        if not isinstance(wrapper.node, ast.FunctionDef | ast.Lambda):
            return []
        names = [argument.arg for argument in arguments_of(wrapper.node)]
        given = {name: text(argument) for name, argument in zip(names, call.args, strict=False)}
        given |= {keyword.arg: text(keyword.value) for keyword in call.keywords if keyword.arg}
        if not any(given.values()):
            return []
        found: list[tuple[str, str]] = []
        prefix = wrapper.qualname + ".<locals>."
        for scope in wrapper.module.scopes.values():
            if (scope is wrapper or scope.qualname.startswith(prefix)) and scope.is_function:
                for inner, env in self._resolver.body(scope).calls:
                    for called in self._resolver.evaluate(inner.func, env, scope):
                        if called.kind is not Kind.FUNCTION:
                            found += self._by_value(called, inner, lambda node: _text(node, given), env, scope)
        return found


def registered_names(registered: tuple[Registration, ...]) -> list[str]:
    """Return the operators that registrations implement."""
    return [one.operator for one in registered if one.verb in IMPLEMENTING]


def _text(node: ast.expr, given: dict[str, str]) -> str:
    """Return the string that an expression is, with the given parameters put in; empty if it is not known."""
    match node:
        case ast.Constant(value=str()):
            return str(node.value)
        case ast.Name():
            return given.get(node.id, "")
        case ast.JoinedStr():
            parts = [_text(p.value if isinstance(p, ast.FormattedValue) else p, given) for p in node.values]
            return "".join(parts) if all(parts) else ""
        case ast.BinOp(op=ast.Add()):
            left, right = _text(node.left, given), _text(node.right, given)
            return left + right if left and right else ""
    return ""
