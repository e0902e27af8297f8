"""Which texts an expression of a setup.py can stand for, found by reading it; nothing is executed.

A build description is straight code: lists of file names, put together from constants, options and loops over
constants. Options are taken as nobody set them. What only the building machine can decide is answered both ways, and
a part of a text that only it knows becomes ``*``, to be matched against the files that are there.
"""

from __future__ import annotations

import ast
import itertools
import posixpath
from collections.abc import Iterator, Mapping
from dataclasses import field
from types import MappingProxyType
from typing import NamedTuple

from tracer.extensions.values import (
    MAX_CHOICES,
    ROOT,
    UNKNOWN,
    WILDCARD,
    Cell,
    Chance,
    Item,
    Value,
    concatenate,
    each,
    least,
    parent,
    product,
    union,
)
from tracer.records import dataclass

_MAX_DEPTH = 60

#: An enclosing ``if`` or loop, and which of its branches.
Condition = tuple[ast.stmt, bool]


@dataclass(frozen=True, slots=True)
class Binding:
    """One statement that gives a name a value or adds to it."""

    operation: str
    value: ast.expr | None
    line: int
    conditions: tuple[Condition, ...]


@dataclass(slots=True)
class Scope:
    """The module or a function: what its names are bound to, in the order of the text.

    Attributes:
        bindings: by name.
        calls: of something named ``…Extension``.
        returns: of a function, what it returns.
        functions: defined in it.
        parent: the scope around it.
    """

    bindings: dict[str, list[Binding]] = field(default_factory=dict)
    calls: list[tuple[ast.Call, tuple[Condition, ...]]] = field(default_factory=list)
    returns: list[tuple[ast.expr, tuple[Condition, ...]]] = field(default_factory=list)
    functions: dict[str, tuple[ast.FunctionDef, Scope]] = field(default_factory=dict)
    parent: Scope | None = None


class Place(NamedTuple):
    """Where an expression is read: only what was bound before it, on a way that leads to it, counts."""

    scope: Scope
    line: int
    conditions: tuple[Condition, ...] = ()
    variables: Mapping[str, Value] = MappingProxyType({})


def read_scopes(text: str) -> Scope:
    """Return a module's scope, with its functions' scopes inside.

    Raises:
        SyntaxError: if the text is no Python.
    """
    scope = Scope()
    lines = [number for number, line in enumerate(text.splitlines(), 1) if "Extension" in line]
    _Collector(lines).collect(ast.parse(text).body, scope, ())
    return scope


def all_scopes(scope: Scope) -> Iterator[Scope]:
    """Yield a scope and those of its functions."""
    yield scope
    for _, inner in scope.functions.values():
        yield from all_scopes(inner)


class _Collector:
    """Sorts the statements of a file into its scopes."""

    def __init__(self, lines: list[int]) -> None:
        # Looking for calls in every statement would take longer than everything else.
        self._lines = lines

    def collect(self, statements: list[ast.stmt], scope: Scope, conditions: tuple[Condition, ...]) -> None:
        for statement in statements:
            if isinstance(statement, ast.FunctionDef):
                inner = Scope(parent=scope)
                scope.functions[statement.name] = (statement, inner)
                self.collect(statement.body, inner, ())
            elif isinstance(statement, (ast.If, ast.While, ast.For)):
                if isinstance(statement, ast.For):
                    _bind_target(statement.target, "each", statement.iter, statement, scope, conditions)
                self.collect(statement.body, scope, (*conditions, (statement, True)))
                self.collect(statement.orelse, scope, (*conditions, (statement, False)))
            elif isinstance(statement, ast.Try):
                self.collect(statement.body, scope, conditions)
                for handler in statement.handlers:
                    self.collect(handler.body, scope, (*conditions, (statement, False)))
                self.collect(statement.orelse + statement.finalbody, scope, conditions)
            elif isinstance(statement, ast.With):
                self.collect(statement.body, scope, conditions)
            elif not isinstance(statement, ast.ClassDef):
                _bind(statement, scope, conditions)
                self._note_calls(statement, scope, conditions)

    def _note_calls(self, statement: ast.stmt, scope: Scope, conditions: tuple[Condition, ...]) -> None:
        end = statement.end_lineno or statement.lineno
        if not any(statement.lineno <= line <= end for line in self._lines):
            return
        for call in ast.walk(statement):
            if isinstance(call, ast.Call) and called_name(call).endswith("Extension"):
                scope.calls.append((call, conditions))


def _bind(statement: ast.stmt, scope: Scope, conditions: tuple[Condition, ...]) -> None:
    if isinstance(statement, ast.Assign):
        for target in statement.targets:
            _bind_target(target, "set", statement.value, statement, scope, conditions)
    elif isinstance(statement, ast.AnnAssign) and statement.value is not None:
        _bind_target(statement.target, "set", statement.value, statement, scope, conditions)
    elif isinstance(statement, ast.AugAssign):
        operation = "extend" if isinstance(statement.op, ast.Add) else "unknown"
        _bind_target(statement.target, operation, statement.value, statement, scope, conditions)
    elif isinstance(statement, ast.Return) and statement.value is not None:
        scope.returns.append((statement.value, conditions))
    elif isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
        call = statement.value
        if isinstance(call.func, ast.Attribute) and call.func.attr in ("append", "extend") and len(call.args) == 1:
            _bind_target(call.func.value, call.func.attr, call.args[0], statement, scope, conditions)


def _bind_target(
    target: ast.expr,
    operation: str,
    value: ast.expr,
    statement: ast.stmt,
    scope: Scope,
    conditions: tuple[Condition, ...],
) -> None:
    if isinstance(target, ast.Name):
        binding = Binding(operation, value, statement.lineno, conditions)
        scope.bindings.setdefault(target.id, []).append(binding)
    elif isinstance(target, (ast.Tuple, ast.List)):
        for position, part in enumerate(target.elts):
            matching = isinstance(value, (ast.Tuple, ast.List)) and len(value.elts) == len(target.elts)
            if matching and operation == "set":
                assert isinstance(value, (ast.Tuple, ast.List))
                _bind_target(part, operation, value.elts[position], statement, scope, conditions)
            elif isinstance(part, ast.Name):
                unknown = Binding("unknown", None, statement.lineno, conditions)
                scope.bindings.setdefault(part.id, []).append(unknown)


class Reader:
    """Reads the expressions of one setup.py."""

    def __init__(self, package_dir: str) -> None:
        """Remember where the file stands; ``package_dir`` is relative to the checkout's root."""
        self._file = posixpath.join(ROOT, package_dir, "setup.py")
        self._depth = 0

    def value(self, node: ast.expr | None, place: Place) -> Value:
        """Return what an expression can stand for."""
        if node is None or self._depth > _MAX_DEPTH:
            return UNKNOWN
        self._depth += 1
        try:
            return self._value(node, place)
        finally:
            self._depth -= 1

    def truth(self, node: ast.expr, place: Place) -> bool | None:
        """Return whether a condition holds in a build without options, or None where that is not known."""
        if self._depth > _MAX_DEPTH:
            return None
        self._depth += 1
        try:
            return self._truth(node, place)
        finally:
            self._depth -= 1

    def _value(self, node: ast.expr, place: Place) -> Value:
        if isinstance(node, ast.Constant):
            return Value() if node.value is None else Value((Item(str(node.value)),))
        if isinstance(node, ast.Name):
            return self._name(node.id, place)
        if isinstance(node, (ast.List, ast.Tuple, ast.Set)):
            return Value(tuple(self._elements(node.elts, place)), is_list=True)
        if isinstance(node, ast.Dict):
            parts = [self.value(part, place) for part in node.values]
            return Value(tuple(item for part in parts for item in part.items), is_list=True)
        if isinstance(node, ast.JoinedStr):
            return self._joined(node.values, place)
        if isinstance(node, ast.FormattedValue):
            return self.value(node.value, place)
        if isinstance(node, ast.BinOp):
            return self._operation(node, place)
        if isinstance(node, ast.BoolOp):
            return union([self.value(part, place) for part in node.values])
        if isinstance(node, ast.IfExp):
            return self._choice(node, place)
        if isinstance(node, (ast.ListComp, ast.GeneratorExp, ast.SetComp)):
            return Value(tuple(self._comprehension(node, place)), is_list=True)
        if isinstance(node, ast.Starred):
            return self.value(node.value, place)
        if isinstance(node, ast.Attribute):
            return self._attribute(node, place)
        if isinstance(node, ast.Call):
            return self._call(node, place)
        return UNKNOWN

    def _truth(self, node: ast.expr, place: Place) -> bool | None:
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            inner = self.truth(node.operand, place)
            return None if inner is None else not inner
        if isinstance(node, ast.BoolOp):
            answers = [self.truth(part, place) for part in node.values]
            decisive = isinstance(node.op, ast.Or)
            if decisive in answers:
                return decisive
            return None if None in answers else not decisive
        if isinstance(node, ast.Compare) and len(node.ops) == 1 and isinstance(node.ops[0], (ast.Eq, ast.NotEq)):
            left, right = self._single(node.left, place), self._single(node.comparators[0], place)
            if left is None or right is None:
                return None
            return (left == right) == isinstance(node.ops[0], ast.Eq)
        if isinstance(node, ast.Constant):
            return bool(node.value)
        if isinstance(node, ast.Name) and node.id not in place.variables:
            reaching = self._reaching(node.id, place)
            if len(reaching) == 1 and reaching[0][0].operation == "set" and reaching[0][0].value is not None:
                binding, where = reaching[0]
                return self.truth(binding.value, where) if binding.value is not None else None
            return None
        text = self._single(node, place)
        return None if text is None else bool(text)

    def chance(self, conditions: tuple[Condition, ...], scope: Scope, place: Place) -> Chance:
        """Return the chance that a build gets to where these conditions hold, if it gets to ``place``."""
        least = Chance.ALWAYS
        for position, (statement, branch) in enumerate(conditions):
            if any(statement is known for known, _ in place.conditions):
                continue
            if isinstance(statement, ast.If):
                variables = place.variables if scope is place.scope else {}
                before = Place(scope, statement.lineno, conditions[:position], variables)
                answer = self.truth(statement.test, before)
                least = min(least, Chance.of(answer if answer is None else answer is branch))
            elif not (isinstance(statement, ast.For) and branch):
                least = min(least, Chance.MAYBE)
        return least

    def _single(self, node: ast.expr, place: Place) -> str | None:
        value = self.value(node, place)
        if value.known and not value.is_list and len(value.items) == 1 and value.items[0].chance is Chance.ALWAYS:
            cell = value.items[0].cell
            return cell if isinstance(cell, str) and WILDCARD not in cell else None
        return None

    def _name(self, name: str, place: Place) -> Value:
        if name in place.variables:
            return place.variables[name]
        if name == "__file__":
            return Value((Item(self._file),))
        reaching = self._reaching(name, place)
        if not reaching:
            return UNKNOWN
        parts: list[Value] = []
        for binding, where in reaching:
            value = self.value(binding.value, where)
            if binding.operation == "append":
                value = value._replace(is_list=True)
            elif binding.operation == "each":
                value = value._replace(is_list=False)
            elif binding.operation == "unknown":
                value = UNKNOWN
            parts.append(value.under(self.chance(binding.conditions, where.scope, place)))
        return union(parts)

    def _reaching(self, name: str, place: Place) -> list[tuple[Binding, Place]]:
        """Return the bindings that a use of a name can see, each with the place to read it at."""
        scope: Scope | None = place.scope
        line, conditions = place.line, place.conditions
        while scope is not None:
            if name in scope.bindings:
                found: list[Binding] = []
                for binding in scope.bindings[name]:
                    if binding.line >= line or _exclusive(binding.conditions, conditions):
                        continue
                    if binding.operation == "set" and self.chance(binding.conditions, scope, place) is Chance.ALWAYS:
                        found.clear()
                    found.append(binding)
                variables = place.variables if scope is place.scope else {}
                return [(binding, Place(scope, binding.line, binding.conditions, variables)) for binding in found]
            # A function is called after the module was read, whatever the order of the text.
            scope, line, conditions = scope.parent, 1 << 30, ()
        return []

    def _elements(self, nodes: list[ast.expr], place: Place) -> Iterator[Item]:
        for node in nodes:
            if isinstance(node, ast.Tuple):
                parts = [self.value(part, place).texts() for part in node.elts]
                for combination in product(parts):
                    yield Item(tuple(item.cell for item in combination), least(combination))
            else:
                yield from self.value(node, place).items

    def _joined(self, nodes: list[ast.expr], place: Place) -> Value:
        return concatenate([self.value(node, place) for node in nodes])

    def _operation(self, node: ast.BinOp, place: Place) -> Value:
        left, right = self.value(node.left, place), self.value(node.right, place)
        if isinstance(node.op, ast.Div):
            return concatenate([left, right], posixpath.join)
        if not isinstance(node.op, ast.Add):
            return UNKNOWN
        if left.is_list or right.is_list:
            return union([left, right])._replace(is_list=True)
        return concatenate([left, right])

    def _choice(self, node: ast.IfExp, place: Place) -> Value:
        answer = self.truth(node.test, place)
        yes, no = self.value(node.body, place), self.value(node.orelse, place)
        if answer is not None:
            return yes if answer else no
        return union([yes.under(Chance.MAYBE), no.under(Chance.MAYBE)])

    def _comprehension(self, node: ast.ListComp | ast.GeneratorExp | ast.SetComp, place: Place) -> Iterator[Item]:
        def loop(position: int, variables: dict[str, Value], chance: Chance) -> Iterator[Item]:
            here = place._replace(variables={**place.variables, **variables})
            if position == len(node.generators):
                yield from self.value(node.elt, here).under(chance).items
                return
            generator = node.generators[position]
            for item in self._iterate(generator.iter, here):
                bound = dict(variables)
                _unpack(generator.target, item.cell, bound)
                inside = place._replace(variables={**place.variables, **bound})
                answers = [self.truth(test, inside) for test in generator.ifs]
                if False not in answers:
                    asked = Chance.of(None if None in answers else True)
                    yield from loop(position + 1, bound, min(chance, item.chance, asked))

        yield from itertools.islice(loop(0, {}, Chance.ALWAYS), MAX_CHOICES)

    def _iterate(self, node: ast.expr, place: Place) -> Iterator[Item]:
        if isinstance(node, ast.Call) and called_name(node) == "product" and not node.keywords:
            for combination in product([self.value(argument, place).items for argument in node.args]):
                yield Item(tuple(item.cell for item in combination), least(combination))
        else:
            yield from self.value(node, place).items

    def _attribute(self, node: ast.Attribute, place: Place) -> Value:
        base = self.value(node.value, place)
        if node.attr == "parent":
            return each(base, parent)
        if node.attr == "name":
            return each(base, posixpath.basename)
        if node.attr == "stem":
            return each(base, lambda path: posixpath.splitext(posixpath.basename(path))[0])
        return UNKNOWN

    def _call(self, node: ast.Call, place: Place) -> Value:
        name = called_name(node)
        arguments = [self.value(argument, place) for argument in node.args]
        if name in _SAME and arguments:
            return arguments[0]._replace(is_list=arguments[0].is_list or name in _LISTS)
        if name in ("resolve", "absolute", "as_posix") and isinstance(node.func, ast.Attribute):
            return self.value(node.func.value, place)
        if name in ("join", "joinpath") and isinstance(node.func, ast.Attribute):
            if name == "joinpath":
                arguments.insert(0, self.value(node.func.value, place))
            if arguments and not any(argument.is_list for argument in arguments):
                return concatenate(arguments, posixpath.join)
            return UNKNOWN
        if name == "dirname" and arguments:
            return each(arguments[0], parent)
        if name in ("glob", "rglob", "iglob") and arguments:
            if isinstance(node.func, ast.Attribute) and ast.unparse(node.func.value) != "glob":
                base = self.value(node.func.value, place)
                below = Value((Item("**"),)) if name == "rglob" else Value((Item(""),))
                arguments[0] = concatenate([base, below, arguments[0]], posixpath.join)
            return arguments[0]._replace(is_list=True)
        if name in ("getenv", "get") and len(arguments) == 2 and "env" in ast.unparse(node.func).lower():
            return arguments[1]
        return self._inline(name, node, arguments, place)

    def _inline(self, name: str, node: ast.Call, arguments: list[Value], place: Place) -> Value:
        """Return what a function of the same file can return for these arguments."""
        scope: Scope | None = place.scope
        while scope is not None and name not in scope.functions:
            scope = scope.parent
        if scope is None or not isinstance(node.func, ast.Name):
            return UNKNOWN
        definition, inner = scope.functions[name]
        parameters = [parameter.arg for parameter in definition.args.args]
        variables = dict(zip(parameters, arguments, strict=False))
        variables.update({keyword.arg: self.value(keyword.value, place) for keyword in node.keywords if keyword.arg})
        for parameter in parameters:
            variables.setdefault(parameter, UNKNOWN)
        if not inner.returns:
            return UNKNOWN
        body = Place(inner, 1 << 30, (), variables)
        return union([self.value(value, body._replace(conditions=conditions)) for value, conditions in inner.returns])


_SAME = frozenset("Path PurePath str list tuple sorted set fspath abspath realpath normpath".split())
_LISTS = frozenset(("list", "tuple", "sorted", "set"))


def called_name(node: ast.Call) -> str:
    """Return the last part of what a call calls, empty where that is no name."""
    if isinstance(node.func, ast.Attribute):
        return node.func.attr
    return node.func.id if isinstance(node.func, ast.Name) else ""


def _exclusive(one: tuple[Condition, ...], other: tuple[Condition, ...]) -> bool:
    """Tell whether two places stand in different branches of the same ``if``."""
    return any(a is b and in_a is not in_b for a, in_a in one for b, in_b in other if isinstance(a, ast.If))


def _unpack(target: ast.expr, cell: Cell, bound: dict[str, Value]) -> None:
    if isinstance(target, ast.Name):
        bound[target.id] = Value((Item(cell),)) if cell != WILDCARD else UNKNOWN
    elif isinstance(target, (ast.Tuple, ast.List)):
        cells = cell if isinstance(cell, tuple) and len(cell) == len(target.elts) else (WILDCARD,) * len(target.elts)
        for part, inner in zip(target.elts, cells, strict=True):
            _unpack(part, inner, bound)
