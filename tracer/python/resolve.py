"""From an expression and the bindings around it to the things that it can stand for."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Callable, Collection, Iterable
from dataclasses import replace
from fnmatch import fnmatchcase
from functools import cached_property

from tracer.errors import SourceError
from tracer.model import Confidence, How
from tracer.python.annotations import promised
from tracer.python.files import Files
from tracer.python.flow import Binding, Body, Bound, Env, arguments_of, follow
from tracer.python.syntax import Module, Scope, too_deep
from tracer.python.values import Kind, Value, unknown

Values = tuple[Value, ...]

_BUILTINS = frozenset(dir(builtins))
_CONTEXT = "torch.autograd.function.FunctionCtx"
# Library calls whose result is called in place of the function that they are given first.
_PASS_THROUGH = frozenset(
    {
        "functools.partial",
        "functools.lru_cache",
        "functools.cache",
        "torch.compile",
        "torch.jit.script",
        "torch.compiler.disable",
        "torch.compiler.allow_in_graph",
        "torch.library.wrap_triton",
        "triton.jit",
    }
)


class Resolver:
    """Evaluates names, attributes and calls of one checkout, each binding once."""

    def __init__(self, files: Files, extensions: Callable[[], Collection[str]]) -> None:
        """Take the files and what gives the dotted names of the compiled modules that the checkout builds."""
        self.files = files
        self._extensions = extensions
        self._bodies: dict[Scope, Body] = {}
        self._values: dict[Binding, Values] = {}
        self._late: dict[Module, dict[str, tuple[Binding, ...]]] = {}
        self._open: set[object] = set()

    @cached_property
    def extensions(self) -> frozenset[str]:
        """The dotted names of the compiled modules that the checkout builds."""
        return frozenset(self._extensions())

    # Scopes

    def body(self, scope: Scope) -> Body:
        """Return what following a scope's statements shows."""
        if scope not in self._bodies:
            try:
                self._bodies[scope] = follow(scope, self.around(scope))
            except RecursionError:
                raise too_deep(scope.module.file, scope.module.text) from None
        return self._bodies[scope]

    def global_(self, module: Module, name: str) -> tuple[Binding, ...]:
        """Return what binds a module's name: its own statements, then functions that declare it ``global``."""
        if module not in self._late:
            late: dict[str, tuple[Binding, ...]] = {}
            if "global " in module.text:
                for scope in module.scopes.values():
                    if not scope.is_function:
                        continue
                    body = self.body(scope)
                    for declared in body.globals:
                        late[declared] = late.get(declared, ()) + body.env.get(declared, ())
            self._late[module] = late
        own = self.body(module.top).env.get(name, ())
        late_ones = self._late[module].get(name, ())
        return own + late_ones if late_ones else own

    def around(self, scope: Scope) -> Env:
        """Return the bindings that a scope sees around itself."""
        parent = scope.parent
        while parent is not None and isinstance(parent.node, ast.ClassDef):
            parent = parent.parent
        if parent is None:
            return {}
        outer = self.around(parent)
        own = self.body(parent).env
        return {**outer, **own} if outer else own

    def scope(self, id: str) -> Scope:
        """Return the scope that a definition's id names.

        Raises:
            KeyError: there is none.
            SourceError: its file cannot be read.
        """
        _, file, qualname = id.split(":", 2)
        return self.files.module(file).scopes[qualname]

    # Expressions

    def evaluate(self, node: ast.expr, env: Env, scope: Scope) -> Values:
        """Return everything that an expression can stand for; never empty."""
        match node:
            case ast.Name():
                return self.name(node.id, env, scope)
            case ast.Attribute():
                return self._each(self.evaluate(node.value, env, scope), lambda value: self.attribute(value, node.attr))
            case ast.Call():
                return self._each(self.evaluate(node.func, env, scope), lambda v: self.called(v, node, env, scope))
            case ast.IfExp():
                return self.evaluate(node.body, env, scope) + self.evaluate(node.orelse, env, scope)
            case ast.BoolOp():
                return tuple(value for part in node.values for value in self.evaluate(part, env, scope))
            case ast.NamedExpr():
                return self.evaluate(node.value, env, scope)
            case ast.Subscript():
                return self._each(self.evaluate(node.value, env, scope), self.element)
            case ast.Dict():
                return self._container(node.values, env, scope)
            case ast.Tuple() | ast.List() | ast.Set():
                return self._container(node.elts, env, scope)
            case ast.Lambda():
                named = scope.module.scope_of.get(id(node))
                return (Value(Kind.FUNCTION, named.id),) if named else unknown("a lambda without a name")
            case ast.Constant() | ast.JoinedStr():
                kind = type(node.value).__name__ if isinstance(node, ast.Constant) else "str"
                return (Value(Kind.OBJECT, kind),)
            case ast.Await() | ast.Starred():
                return self.evaluate(node.value, env, scope)
            case ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
                return (Value(Kind.OBJECT, type(node).__name__),)
        return unknown("the value of an expression")

    def name(self, name: str, env: Env, scope: Scope) -> Values:
        """Return what a name stands for where ``env`` holds inside ``scope``."""
        if name in env:
            return self.bound(env[name])
        outer: Scope | None = scope.parent
        while outer is not None:
            if not isinstance(outer.node, ast.ClassDef):
                found = self.global_(outer.module, name) if outer.parent is None else self.body(outer).env.get(name)
                if found:
                    return self.bound(found)
            outer = outer.parent
        starred = self._starred(scope.module, name)
        if starred:
            return starred
        if name in _BUILTINS:
            return (Value(Kind.BUILTIN, name),)
        return unknown(f"the name '{name}' is not bound in {scope.module.file}")

    def _starred(self, module: Module, name: str) -> Values:
        outside: Values = ()
        for source in self.body(module.top).stars:
            for value in self.imported(module, source):
                if value.kind is Kind.MODULE:
                    found = self.member(value.name, name)
                    if found:
                        return found
                elif value.kind is Kind.LIBRARY and name not in _BUILTINS:
                    outside = (replace(value, name=f"{value.name}.{name}"),)
        return outside

    def bound(self, bindings: Iterable[Binding]) -> Values:
        """Return what several bindings of one name stand for together."""
        return tuple(dict.fromkeys(value for binding in bindings for value in self._bound(binding)))

    def _bound(self, binding: Binding) -> Values:
        known = self._values.get(binding)
        if known is not None:
            return known
        if binding in self._open:
            return unknown("defined in terms of itself")
        self._open.add(binding)
        try:
            values = self._fresh(binding)
        finally:
            self._open.discard(binding)
        self._values[binding] = values
        return values

    def _fresh(self, binding: Binding) -> Values:
        scope = binding.scope
        match binding.kind:
            case Bound.IMPORT:
                found = self.imported(scope.module, binding.source, binding.attribute)
                return tuple(value.reached(binding.place, binding.rank, alias=False) for value in found)
            case Bound.SCOPE:
                inner = scope.module.scope_of[id(binding.node)]
                kind = Kind.CLASS if isinstance(inner.node, ast.ClassDef) else Kind.FUNCTION
                return (Value(kind, inner.id, rank=binding.rank),)
            case Bound.PARAMETER:
                assert isinstance(binding.node, ast.arg)
                return self._parameter(binding.node, scope)
            case Bound.EXPRESSION:
                assert isinstance(binding.node, ast.expr) and binding.env is not None
                named = isinstance(binding.node, ast.Lambda)
                found = self.evaluate(binding.node, binding.env, scope)
                if named:
                    return tuple(replace(value, rank=value.rank + binding.rank) for value in found)
                return tuple(value.reached(binding.place, binding.rank, alias=True) for value in found)
        return unknown(binding.reason)

    def _container(self, nodes: Iterable[ast.expr | None], env: Env, scope: Scope) -> Values:
        # Only names and attributes can be called later; a table of numbers is not worth following.
        worth = [node for node in nodes if isinstance(node, ast.Name | ast.Attribute | ast.Lambda)]
        items = tuple(value for node in worth for value in self.evaluate(node, env, scope))
        return (Value(Kind.CONTAINER, "a container", items=items),)

    @staticmethod
    def _each(values: Values, step: Callable[[Value], Values]) -> Values:
        return tuple(dict.fromkeys(found for value in values for found in step(value)))

    # Parameters

    def _parameter(self, node: ast.arg, scope: Scope) -> Values:
        owner = scope.owner
        first = arguments_of(scope.node)[0] if isinstance(scope.node, ast.FunctionDef | ast.AsyncFunctionDef) else None
        if owner is not None and node is first:
            if self.is_autograd(owner) and scope.name in ("forward", "backward", "setup_context", "jvp", "vjp"):
                return (Value(Kind.OBJECT, _CONTEXT),)
            if not scope.decorated_with("staticmethod"):
                is_class = scope.decorated_with("classmethod") or scope.name in ("__new__", "__init_subclass__")
                return (Value(Kind.CLASS if is_class else Kind.INSTANCE, owner.id),)
        if node.annotation is not None:
            found = promised(node.annotation, scope, self)
            if found:
                return found
        return (Value(Kind.PARAMETER, f"the parameter '{node.arg}'"),)

    # Imports

    def imported(self, module: Module, source: str, attribute: str = "") -> Values:
        """Return what ``from source import attribute``, or ``import source``, names in a module."""
        level = len(source) - len(source.lstrip("."))
        dotted = source[level:]
        if level:
            package = module.package
            for _ in range(level - 1):
                package = package.rpartition("/")[0]
            parts = [part for part in dotted.split(".") if part]
            found = self.files.named(package, parts)
            outside = ".".join([*package.split("/"), *parts]).strip(".")
        else:
            found = self.files.absolute(dotted, module.file)
            outside = dotted
        if found is None:
            return self._outside(f"{outside}.{attribute}" if attribute else outside, module, relative=level > 0)
        if not attribute:
            return (Value(Kind.MODULE, found),)
        member = self.member(found, attribute)
        if member:
            return member
        if self.files.is_file(found) and not found.endswith("/__init__.py"):
            return unknown(f"{found} has no '{attribute}'")
        return self._outside(f"{outside}.{attribute}", module, relative=True)

    def _outside(self, dotted: str, module: Module, relative: bool) -> Values:
        """Return what an import leads to that no Python file of the checkout answers.

        It is a compiled module where the checkout's build says so, and where the import is one inside a package of
        the checkout: what Python would find there can only have been compiled or generated.
        """
        if self._compiled(dotted):
            return (Value(Kind.EXTENSION, dotted),)
        parent = dotted.rpartition(".")[0]
        if relative or (parent and self._inside(parent, module)):
            return (Value(Kind.EXTENSION, dotted, confidence=Confidence.INFERRED),)
        return (Value(Kind.LIBRARY, dotted),)

    def _compiled(self, dotted: str) -> bool:
        """Whether a dotted name is that of a compiled module, or of something in one."""
        if dotted.partition(".")[0] == "torch":  # in nearly every file, and no need to read the build for it
            return False
        return any(fnmatchcase(dotted, name) or fnmatchcase(dotted, name + ".*") for name in self.extensions)

    def _inside(self, dotted: str, module: Module) -> bool:
        found = self.files.absolute(dotted, module.file)
        return found is not None and found.endswith("/__init__.py")

    def member(self, module: str, name: str) -> Values:
        """Return what a name stands for in a module of the checkout, submodules included; empty if nothing."""
        if self.files.is_file(module):
            parsed = self.files.try_module(module)
            if parsed is None:
                return unknown(self.files.diagnostics[module].message)
            found = self.global_(parsed, name)
            if found:
                return self.bound(found)
        inner = self.files.named(self.files.package_of(module), [name]) if self._is_package(module) else None
        if inner is not None:
            return (Value(Kind.MODULE, inner),)
        if self.files.is_file(module) and (parsed := self.files.try_module(module)) is not None:
            key = (module, name)
            if key not in self._open:
                self._open.add(key)
                try:
                    return self._starred(parsed, name)
                finally:
                    self._open.discard(key)
        return ()

    def _is_package(self, module: str) -> bool:
        return not self.files.is_file(module) or module.endswith("__init__.py")

    # Attributes, elements and results

    def attribute(self, value: Value, name: str) -> Values:
        """Return what an attribute of a value stands for."""
        match value.kind:
            case Kind.MODULE:
                found = self.member(value.name, name)
                kept = [v.reached(value.through, value.rank, alias=False) if value.through else v for v in found]
                return tuple(kept) or unknown(f"{value.name} has no '{name}'")
            case Kind.LIBRARY | Kind.EXTENSION:
                dotted = f"{value.name}.{name}"
                if value.kind is Kind.LIBRARY and self._compiled(dotted):
                    return (replace(value, kind=Kind.EXTENSION, name=dotted),)
                # What is imported as torch is no evidence; the alias of an operator's namespace is.
                enters = dotted.startswith("torch.ops.") and not value.name.startswith("torch.ops.")
                return (replace(value, name=dotted, how=How.CALL, through=None if enters else value.through),)
            case Kind.OBJECT | Kind.BUILTIN:
                return (replace(value, kind=Kind.OBJECT, name=f"{value.name}.{name}"),)
            case Kind.CLASS | Kind.INSTANCE | Kind.SUPER:
                return self._class_attribute(value, name)
            case Kind.RESULT:
                return self._each(self.result(value), lambda found: self.attribute(found, name))
            case Kind.FUNCTION | Kind.APPLY:
                return unknown(f"attribute '{name}' of a function", name)
            case Kind.CONTAINER:
                return (Value(Kind.OBJECT, f"container.{name}"),)
        return unknown(f"attribute '{name}' of {value.name}", name)

    def _class_attribute(self, value: Value, name: str) -> Values:
        scope = self.scope(value.name)
        own = value.kind is not Kind.SUPER
        found = self.class_member(scope, name, own)
        if found:
            how = How.MEMBER if value.kind is not Kind.CLASS else How.CALL
            result = []
            for one in found:
                is_function = one.kind is Kind.FUNCTION
                if is_function and value.kind is not Kind.CLASS and self._is_property(one):
                    result.append(replace(one, kind=Kind.RESULT, rank=value.rank))
                    continue
                result.append(
                    replace(
                        one,
                        how=how if is_function and one.how is How.CALL else one.how,
                        through=one.through or value.through,
                        rank=one.rank + value.rank,
                        confidence=value.confidence if is_function else one.confidence,
                    )
                )
            return tuple(result)
        if name == "apply" and self.is_autograd(scope):
            return (replace(value, kind=Kind.APPLY),)
        if value.kind is Kind.INSTANCE:
            stored = self._stored(scope, name)
            if stored:
                return stored
        for base in self._foreign_bases(scope):
            return (Value(Kind.OBJECT, f"{base.name}.{name}", through=value.through, rank=value.rank),)
        return unknown(f"class {scope.qualname} defines no '{name}'")

    def _is_property(self, value: Value) -> bool:
        scope = self.scope(value.name)
        return scope.decorated_with("property") or scope.decorated_with("cached_property")

    def bases(self, scope: Scope) -> Values:
        """Return what the bases of a class stand for."""
        assert isinstance(scope.node, ast.ClassDef)
        key = ("bases", scope)
        if key in self._open or scope.parent is None:
            return ()
        self._open.add(key)
        try:
            env: Env = {}
            for node, there in self.body(scope.parent).definitions:
                if node is scope.node:
                    env = there
            return tuple(value for base in scope.node.bases for value in self.evaluate(base, env, scope.parent))
        finally:
            self._open.discard(key)

    def lineage(self, scope: Scope) -> list[Scope]:
        """Return a class and its bases inside the checkout, depth first."""
        found, waiting = [], [scope]
        while waiting:
            one = waiting.pop(0)
            if one not in found:
                found.append(one)
                inner = [self.scope(base.name) for base in self.bases(one) if base.kind is Kind.CLASS]
                waiting = inner + waiting
        return found

    def _foreign_bases(self, scope: Scope) -> list[Value]:
        return [b for one in self.lineage(scope) for b in self.bases(one) if b.kind in (Kind.LIBRARY, Kind.BUILTIN)]

    def is_autograd(self, scope: Scope) -> bool:
        """Whether a class derives from ``torch.autograd.Function``."""
        return any(base.name.endswith("autograd.Function") for base in self._foreign_bases(scope))

    def is_module(self, scope: Scope) -> bool:
        """Whether a class derives from something of ``torch.nn``, whose instances call ``forward`` when called."""
        return any(base.name.startswith("torch.nn.") for base in self._foreign_bases(scope))

    def class_member(self, scope: Scope, name: str, own: bool = True) -> Values:
        """Return what a name stands for in a class or its bases inside the checkout; empty if nothing."""
        for one in self.lineage(scope)[0 if own else 1 :]:
            bindings = self.body(one).env.get(name)
            if bindings:
                return self.bound(bindings)
        return ()

    def _stored(self, scope: Scope, name: str) -> Values:
        """Return what the methods of a class assign to ``self.name``."""
        key = ("stored", scope, name)
        if key in self._open:
            return unknown("defined in terms of itself")
        self._open.add(key)
        try:
            found: list[Value] = []
            for one in self.lineage(scope):
                for method in one.module.scopes.values():
                    if method.owner is one:
                        for node, env in self.body(method).stores.get(name, ()):
                            found += self.evaluate(node, env, method)
                if found:
                    break
        finally:
            self._open.discard(key)
        worth = [value for value in found if value.kind is not Kind.OBJECT or value.name != "NoneType"]
        return tuple(dict.fromkeys(replace(value, confidence=Confidence.INFERRED) for value in worth))

    def element(self, value: Value) -> Values:
        """Return what a subscript of a value stands for: ``kernel[grid]`` launches, a table gives any element."""
        if value.kind is Kind.FUNCTION:
            return (replace(value, how=How.LAUNCH),)
        if value.kind is Kind.CONTAINER and value.items:
            sure = Confidence.EXACT if len(value.items) == 1 else Confidence.AMBIGUOUS
            return tuple(replace(item, confidence=sure, through=item.through or value.through) for item in value.items)
        if value.kind in (Kind.LIBRARY, Kind.OBJECT):
            return (replace(value, kind=Kind.OBJECT, name=f"{value.name}[…]"),)
        if value.kind is Kind.RESULT:
            return self._each(self.result(value), self.element)
        return unknown(f"an element of {value.name}")

    def called(self, value: Value, call: ast.Call, env: Env, scope: Scope) -> Values:
        """Return what calling a value returns."""
        first = call.args[0] if call.args else None
        match value.kind:
            case Kind.CLASS:
                return (replace(value, kind=Kind.INSTANCE, how=How.CALL),)
            case Kind.FUNCTION:
                return (replace(value, kind=Kind.RESULT),)
            case Kind.RESULT:
                return self._each(self.result(value), lambda found: self.called(found, call, env, scope))
            case Kind.BUILTIN if value.name == "getattr" and len(call.args) > 1:
                key = call.args[1]
                if isinstance(key, ast.Constant) and isinstance(key.value, str) and first is not None:
                    name = key.value
                    return self._each(self.evaluate(first, env, scope), lambda found: self.attribute(found, name))
            case Kind.BUILTIN if value.name == "super":
                owner: Scope | None = scope
                while owner is not None and not isinstance(owner.node, ast.ClassDef):
                    owner = owner.parent
                return (Value(Kind.SUPER, owner.id),) if owner else unknown("super() outside of a class")
            case Kind.LIBRARY if value.name in _PASS_THROUGH and first is not None:
                return self.evaluate(first, env, scope)
            case Kind.LIBRARY if value.name == "importlib.import_module" and isinstance(first, ast.Constant):
                return self.imported(scope.module, str(first.value))
            case Kind.LIBRARY if value.name == "torch.library.Library" and isinstance(first, ast.Constant):
                return (Value(Kind.OBJECT, value.name, text=str(first.value)),)
        if value.kind in (Kind.LIBRARY, Kind.BUILTIN, Kind.OBJECT, Kind.EXTENSION):
            return (Value(Kind.OBJECT, f"{value.name}()"),)
        if value.kind is Kind.INSTANCE:
            return unknown("the result of calling an object")
        return unknown(f"the result of calling {value.name}")

    def result(self, value: Value) -> Values:
        """Return what the function of a result returns."""
        key = ("result", value.name)
        if key in self._open:
            return unknown("returned by a function that calls itself")
        self._open.add(key)
        try:
            scope = self.scope(value.name)
            returns = self.body(scope).returns
            found = tuple(v for node, env in returns for v in self.evaluate(node, env, scope))
            return tuple(dict.fromkeys(found)) or unknown(f"what {scope.qualname} returns")
        except SourceError as error:
            return unknown(str(error))
        finally:
            self._open.discard(key)
