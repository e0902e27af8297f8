"""What each name is bound to at each call, following a body's statements in order.

Branches that are not decided keep all their bindings, as alternatives; a branch that ends in ``return`` or ``raise``
hands nothing on. A loop's body is followed once: what its end binds does not reach its beginning.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping
from dataclasses import field
from enum import Enum

from tracer.model import Location
from tracer.python.conditions import UNDECIDED, fold
from tracer.python.syntax import Scope
from tracer.records import dataclass


class Bound(Enum):
    """The ways in which a name comes to be bound."""

    EXPRESSION = "expression"
    IMPORT = "import"
    SCOPE = "scope"
    PARAMETER = "parameter"
    OPAQUE = "opaque"


@dataclass(frozen=True, slots=True, eq=False)
class Binding:
    """One place that binds a name.

    Attributes:
        node: the assigned expression, the parameter, the import's alias, or the definition.
        target: the node that stands where the name is bound.
        env: what the names in ``node`` were bound to there.
        source: for an import, the module as written, with its leading dots.
        attribute: for ``from source import attribute``, the attribute; empty for ``import source``.
        rank: how many conditions on the way do not hold in a clean environment with a CUDA build of PyTorch.
        reason: for an opaque binding, why nothing is known of it.
    """

    kind: Bound
    scope: Scope
    rank: int
    target: ast.AST
    node: ast.AST | None = None
    env: Env | None = None
    source: str = ""
    attribute: str = ""
    reason: str = ""

    @property
    def place(self) -> Location:
        """Where the name is bound."""
        assert isinstance(self.target, ast.expr | ast.stmt | ast.alias | ast.arg)
        return self.scope.module.place(self.target)


Env = Mapping[str, tuple[Binding, ...]]


@dataclass(slots=True)
class Body:
    """What following a body's statements has shown.

    Attributes:
        env: the bindings at its end.
        calls: every call with the bindings that hold there.
        returns: every returned expression, likewise.
        stores: for a method, what is assigned to attributes of its first parameter.
        definitions: every function and class defined in it, with the bindings that hold there.
        stars: the modules of ``from … import *``, as written.
        globals: the names that a ``global`` statement gives to the module.
    """

    env: Env
    calls: list[tuple[ast.Call, Env]] = field(default_factory=list)
    returns: list[tuple[ast.expr, Env]] = field(default_factory=list)
    stores: dict[str, list[tuple[ast.expr, Env]]] = field(default_factory=dict)
    definitions: list[tuple[ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef, Env]] = field(default_factory=list)
    stars: list[str] = field(default_factory=list)
    globals: set[str] = field(default_factory=set)


def follow(scope: Scope, outer: Env) -> Body:
    """Follow the statements of a scope.

    Args:
        scope: the module, class, function or named lambda.
        outer: the bindings around it, used only to decide conditions and as the start of a class body.
    """
    walker = _Walker(scope, outer)
    node = scope.node
    if isinstance(node, ast.Lambda):
        walker.expression(node.body)
        walker.body.returns.append((node.body, walker.env))
    else:
        walker.block(node.body)
    walker.body.env = walker.env
    return walker.body


class _Walker:
    """Carries the bindings along one body."""

    def __init__(self, scope: Scope, outer: Env) -> None:
        self.scope = scope
        self.outer = outer
        self.rank = 0
        self.ended = False
        self.env: dict[str, tuple[Binding, ...]] = {}
        self.body = Body(self.env)
        self.receiver = ""
        if isinstance(scope.node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            self.env = {argument.arg: (self.parameter(argument),) for argument in arguments_of(scope.node)}
            if scope.owner is not None and not scope.decorated_with("staticmethod"):
                self.receiver = next(iter(self.env), "")

    def parameter(self, argument: ast.arg) -> Binding:
        return Binding(Bound.PARAMETER, self.scope, 0, argument, argument)

    def bind(self, name: str, *bindings: Binding) -> None:
        self.env = {**self.env, name: bindings}

    # Statements

    def block(self, statements: Iterable[ast.stmt]) -> None:
        for statement in statements:
            self.statement(statement)

    def statement(self, node: ast.stmt) -> None:
        match node:
            case ast.Import() | ast.ImportFrom():
                self.imports(node)
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                self.define(node)
            case ast.If():
                self.expression(node.test)
                value = fold(node.test, self.env, self.outer)
                decided = value is not UNDECIDED
                self.branches([node.body, node.orelse], [decided and not value, decided and bool(value)])
            case ast.Try():
                self.attempt(node)
            case ast.For() | ast.AsyncFor():
                self.expression(node.iter)
                self.element(node.target, node.iter)
                self.loop(node.body, node.orelse)
            case ast.While():
                self.expression(node.test)
                self.loop(node.body, node.orelse)
            case ast.With() | ast.AsyncWith():
                for item in node.items:
                    self.expression(item.context_expr)
                    if item.optional_vars is not None:
                        self.opaque(item.optional_vars, "the value of a with statement")
                self.block(node.body)
            case ast.Match():
                self.expression(node.subject)
                for case in node.cases:
                    if case.guard is not None:
                        self.expression(case.guard)
                    for pattern in ast.walk(case.pattern):
                        name = getattr(pattern, "name", None)
                        if isinstance(name, str):
                            self.bind(name, self.unknown(node, "a part of a matched pattern"))
                self.branches([case.body for case in node.cases] + [[]], [False] * (len(node.cases) + 1))
            case ast.Assign():
                self.expression(node.value)
                for target in node.targets:
                    self.assign(target, node.value)
            case ast.AnnAssign():
                if node.value is not None:
                    self.expression(node.value)
                    self.assign(node.target, node.value)
            case ast.AugAssign():
                self.expression(node.value)
                self.opaque(node.target, "the result of an augmented assignment")
            case ast.Return():
                if node.value is not None:
                    self.expression(node.value)
                    self.body.returns.append((node.value, self.env))
                self.ended = True
            case ast.Global():
                self.body.globals.update(node.names)
            case ast.Raise() | ast.Continue():
                self.children(node)
                self.ended = True
            case _:
                self.children(node)

    def branches(self, arms: list[list[ast.stmt]], doubtful: list[bool]) -> None:
        """Follow alternatives from the same start and keep what any of them that goes on has bound."""
        start, rank, ends = self.env, self.rank, []
        for arm, off in zip(arms, doubtful, strict=True):
            self.env, self.rank, self.ended = start, rank + off, False
            self.block(arm)
            if not self.ended:
                ends.append(self.env)
        self.rank = rank
        self.ended = not ends
        self.env = merge(ends) if ends else start

    def attempt(self, node: ast.Try) -> None:
        start, rank = self.env, self.rank
        self.ended = False
        self.block(node.body)
        reached = merge([start, self.env])
        self.block(node.orelse)
        ends = [] if self.ended else [self.env]
        for handler in node.handlers:
            self.env, self.rank, self.ended = reached, rank + 1, False
            if handler.name:
                self.bind(handler.name, self.unknown(handler, "a caught exception"))
            self.block(handler.body)
            if not self.ended:
                ends.append(self.env)
        self.rank = rank
        self.ended = not ends
        self.env = merge(ends) if ends else reached
        ended = self.ended
        self.block(node.finalbody)
        self.ended = self.ended or ended

    def loop(self, body: list[ast.stmt], orelse: list[ast.stmt]) -> None:
        start = self.env
        self.block(body)
        self.ended = False
        self.env = merge([start, self.env])
        self.block(orelse)

    def define(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> None:
        for decorator in node.decorator_list:
            self.expression(decorator)
        if isinstance(node, ast.ClassDef):
            for part in (*node.bases, *(keyword.value for keyword in node.keywords)):
                self.expression(part)
        else:
            for default in (*node.args.defaults, *node.args.kw_defaults):
                if default is not None:
                    self.expression(default)
        self.body.definitions.append((node, self.env))
        self.bind(node.name, Binding(Bound.SCOPE, self.scope, self.rank, node, node, self.env))

    def imports(self, node: ast.Import | ast.ImportFrom) -> None:
        source = "." * node.level + (node.module or "") if isinstance(node, ast.ImportFrom) else ""
        for alias in node.names:
            if isinstance(node, ast.Import):
                # `import a.b` binds `a`; `import a.b as c` binds c to the module a.b.
                name = alias.asname or alias.name.partition(".")[0]
                bound_to = alias.name if alias.asname else name
                self.bind(name, Binding(Bound.IMPORT, self.scope, self.rank, alias, alias, source=bound_to))
            elif alias.name == "*":
                self.body.stars.append(source)
            else:
                name = alias.asname or alias.name
                binding = Binding(
                    Bound.IMPORT, self.scope, self.rank, alias, alias, source=source, attribute=alias.name
                )
                self.bind(name, binding)

    # Binding by assignment

    def assign(self, target: ast.expr, value: ast.expr) -> None:
        if isinstance(target, ast.Name):
            self.bind(target.id, Binding(Bound.EXPRESSION, self.scope, self.rank, target, value, self.env))
        elif isinstance(target, ast.Tuple | ast.List):
            values = value.elts if isinstance(value, ast.Tuple | ast.List) else []
            if len(values) == len(target.elts) and not any(isinstance(v, ast.Starred) for v in (*values, *target.elts)):
                before = self.env
                for one, its in zip(target.elts, values, strict=True):
                    if isinstance(one, ast.Name):
                        self.bind(one.id, Binding(Bound.EXPRESSION, self.scope, self.rank, one, its, before))
                    else:
                        self.assign(one, its)
            else:
                self.opaque(target, "one of several values unpacked from an expression")
        elif isinstance(target, ast.Starred):
            self.opaque(target, "the rest of an unpacked sequence")
        elif isinstance(target, ast.Attribute):
            self.expression(target.value)
            if isinstance(target.value, ast.Name) and self.receiver and target.value.id == self.receiver:
                self.body.stores.setdefault(target.attr, []).append((value, self.env))
        else:
            self.children(target)

    def element(self, target: ast.expr, sequence: ast.expr) -> None:
        """Bind a loop variable: to each element of a sequence that is written out, else to nothing known."""
        if isinstance(target, ast.Name) and isinstance(sequence, ast.Tuple | ast.List | ast.Set) and sequence.elts:
            self.bind(
                target.id,
                *(Binding(Bound.EXPRESSION, self.scope, self.rank, target, one, self.env) for one in sequence.elts),
            )
        else:
            self.opaque(target, "an element of a sequence")

    def opaque(self, target: ast.expr, reason: str) -> None:
        for node in ast.walk(target):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                self.bind(node.id, self.unknown(node, reason))
            elif isinstance(node, ast.Call):
                self.body.calls.append((node, self.env))

    def unknown(self, node: ast.AST, reason: str) -> Binding:
        return Binding(Bound.OPAQUE, self.scope, self.rank, node, reason=reason)

    # Expressions: only the calls in them and the names that they bind matter

    def children(self, node: ast.AST) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.expr):
                self.expression(child)
            elif isinstance(child, ast.keyword):
                self.expression(child.value)

    def expression(self, node: ast.expr) -> None:
        match node:
            case ast.Name() | ast.Constant():
                return
            case ast.Call():
                self.body.calls.append((node, self.env))
                self.expression(node.func)
                for argument in node.args:
                    self.expression(argument)
                for keyword in node.keywords:
                    self.expression(keyword.value)
            case ast.Attribute():
                self.expression(node.value)
            case ast.NamedExpr():
                self.expression(node.value)
                self.assign(node.target, node.value)
            case ast.Lambda():
                for default in (*node.args.defaults, *node.args.kw_defaults):
                    if default is not None:
                        self.expression(default)
                if id(node) not in self.scope.module.scope_of:  # one that was given a name is followed on its own
                    self.inner(node.body, {one.arg: (self.parameter(one),) for one in arguments_of(node)})
            case ast.ListComp() | ast.SetComp() | ast.GeneratorExp() | ast.DictComp():
                self.comprehension(node)
            case _:
                self.children(node)

    def inner(self, body: ast.expr, names: dict[str, tuple[Binding, ...]]) -> None:
        outside = self.env
        self.env = {**self.env, **names}
        self.expression(body)
        self.env = outside

    def comprehension(self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp) -> None:
        outside = self.env
        for generator in node.generators:
            self.expression(generator.iter)
            self.element(generator.target, generator.iter)
            for condition in generator.ifs:
                self.expression(condition)
        if isinstance(node, ast.DictComp):
            self.expression(node.key)
            self.expression(node.value)
        else:
            self.expression(node.elt)
        self.env = outside


def arguments_of(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> list[ast.arg]:
    """Return all parameters in the order in which they are written."""
    written = node.args
    variable = [argument for argument in (written.vararg,) if argument is not None]
    named = [argument for argument in (written.kwarg,) if argument is not None]
    return [*written.posonlyargs, *written.args, *variable, *written.kwonlyargs, *named]


def merge(ends: list[dict[str, tuple[Binding, ...]]]) -> dict[str, tuple[Binding, ...]]:
    """Return the bindings of several branches together, each binding once, in source order."""
    first = ends[0]
    if all(end is first for end in ends):
        return first
    merged = dict(first)
    for end in ends[1:]:
        for name, bindings in end.items():
            known = merged.get(name)
            if known is None:
                merged[name] = bindings
            elif known is not bindings:
                merged[name] = known + tuple(binding for binding in bindings if binding not in known)
    return merged
