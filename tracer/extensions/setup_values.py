"""Which texts an expression of a setup.py can stand for, found by reading it; nothing is executed.

A build description is straight code: lists of file names, put together from constants, options and loops over
constants. So the answer is a set: everything that some setting of the options would give. A part that only the
building machine knows becomes ``*``, to be matched against the files that are there.
"""

from __future__ import annotations

import ast
import itertools
import posixpath
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import NamedTuple, Union

#: Starts the path of something inside the checkout that was built from ``__file__``.
ROOT = "\0"
WILDCARD = "*"

_MAX_CHOICES = 4096
_MAX_DEPTH = 60

#: What a list holds: a text, or a tuple as it stands in a list that a loop takes apart.
Cell = Union[str, "tuple[Cell, ...]"]
#: An enclosing ``if`` or loop, and which of its branches.
Condition = tuple[ast.stmt, bool]


class Item(NamedTuple):
    """One text that can occur, and whether it does in a build without any option or environment."""

    cell: Cell
    sure: bool = True


class Value(NamedTuple):
    """What an expression can stand for: the elements of a list, or the alternatives of a single text."""

    items: tuple[Item, ...] = ()
    is_list: bool = False
    known: bool = True

    def texts(self) -> tuple[Item, ...]:
        """Return the items that are texts."""
        return tuple(item for item in self.items if isinstance(item.cell, str))


UNKNOWN = Value((Item(WILDCARD, sure=False),), known=False)


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


def read_scopes(tree: ast.Module) -> Scope:
    """Return the module's scope, with its functions' scopes inside."""
    scope = Scope()
    _collect(tree.body, scope, ())
    return scope


def all_scopes(scope: Scope) -> Iterator[Scope]:
    """Yield a scope and those of its functions."""
    yield scope
    for _, inner in scope.functions.values():
        yield from all_scopes(inner)


def _collect(statements: list[ast.stmt], scope: Scope, conditions: tuple[Condition, ...]) -> None:
    for statement in statements:
        if isinstance(statement, ast.FunctionDef):
            inner = Scope(parent=scope)
            scope.functions[statement.name] = (statement, inner)
            _collect(statement.body, inner, ())
            continue
        if isinstance(statement, ast.ClassDef):
            continue
        if isinstance(statement, (ast.If, ast.While, ast.For)):
            if isinstance(statement, ast.For):
                _bind_target(statement.target, "each", statement.iter, statement, scope, conditions)
            head = statement.iter if isinstance(statement, ast.For) else statement.test
            _note_calls(head, scope, conditions)
            _collect(statement.body, scope, (*conditions, (statement, True)))
            _collect(statement.orelse, scope, (*conditions, (statement, False)))
        elif isinstance(statement, (ast.With, ast.Try)):
            _collect(statement.body, scope, conditions)
            if isinstance(statement, ast.Try):
                for handler in statement.handlers:
                    _collect(handler.body, scope, (*conditions, (statement, False)))
                _collect(statement.orelse + statement.finalbody, scope, conditions)
        else:
            _bind(statement, scope, conditions)
            _note_calls(statement, scope, conditions)


def _note_calls(node: ast.AST, scope: Scope, conditions: tuple[Condition, ...]) -> None:
    for call in ast.walk(node):
        if isinstance(call, ast.Call) and _called(call).endswith("Extension"):
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
            return _union([self.value(part, place) for part in node.values])
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

    def holds(self, conditions: tuple[Condition, ...], place: Place) -> bool:
        """Tell whether a build without options certainly gets through all these conditions."""
        for statement, branch in conditions:
            if any(statement is known for known, _ in place.conditions):
                continue
            if not isinstance(statement, ast.If) or self.truth(statement.test, place) is not branch:
                return False
        return True

    def _single(self, node: ast.expr, place: Place) -> str | None:
        value = self.value(node, place)
        if value.known and not value.is_list and len(value.items) == 1 and value.items[0].sure:
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
            if not self.holds(binding.conditions, place):
                value = value._replace(items=tuple(item._replace(sure=False) for item in value.items))
            parts.append(value)
        return _union(parts)

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
                    if binding.operation == "set" and set(binding.conditions) <= set(conditions):
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
                for combination in _product(parts):
                    yield Item(tuple(item.cell for item in combination), all(item.sure for item in combination))
            else:
                yield from self.value(node, place).items

    def _joined(self, nodes: list[ast.expr], place: Place) -> Value:
        return _concatenate([self.value(node, place) for node in nodes])

    def _operation(self, node: ast.BinOp, place: Place) -> Value:
        left, right = self.value(node.left, place), self.value(node.right, place)
        if isinstance(node.op, ast.Div):
            return _concatenate([left, right], posixpath.join)
        if not isinstance(node.op, ast.Add):
            return UNKNOWN
        if left.is_list or right.is_list:
            return _union([left, right])._replace(is_list=True)
        return _concatenate([left, right])

    def _choice(self, node: ast.IfExp, place: Place) -> Value:
        answer = self.truth(node.test, place)
        yes, no = self.value(node.body, place), self.value(node.orelse, place)
        branches = ((yes, answer is True), (no, answer is False))
        items = [item._replace(sure=item.sure and taken) for part, taken in branches for item in part.items]
        return Value(tuple(items), yes.is_list or no.is_list, yes.known and no.known)

    def _comprehension(self, node: ast.ListComp | ast.GeneratorExp | ast.SetComp, place: Place) -> Iterator[Item]:
        def loop(position: int, variables: dict[str, Value], sure: bool) -> Iterator[Item]:
            here = place._replace(variables={**place.variables, **variables})
            if position == len(node.generators):
                for item in self.value(node.elt, here).items:
                    yield item._replace(sure=item.sure and sure)
                return
            generator = node.generators[position]
            for item in self._iterate(generator.iter, here):
                bound = dict(variables)
                _unpack(generator.target, item.cell, bound)
                inside = place._replace(variables={**place.variables, **bound})
                answers = [self.truth(test, inside) for test in generator.ifs]
                if False not in answers:
                    yield from loop(position + 1, bound, sure and item.sure and None not in answers)

        yield from itertools.islice(loop(0, {}, True), _MAX_CHOICES)

    def _iterate(self, node: ast.expr, place: Place) -> Iterator[Item]:
        if isinstance(node, ast.Call) and _called(node) == "product" and not node.keywords:
            for combination in _product([self.value(argument, place).items for argument in node.args]):
                yield Item(tuple(item.cell for item in combination), all(item.sure for item in combination))
        else:
            yield from self.value(node, place).items

    def _attribute(self, node: ast.Attribute, place: Place) -> Value:
        base = self.value(node.value, place)
        if node.attr == "parent":
            return _each(base, _parent)
        if node.attr == "name":
            return _each(base, posixpath.basename)
        if node.attr == "stem":
            return _each(base, lambda path: posixpath.splitext(posixpath.basename(path))[0])
        return UNKNOWN

    def _call(self, node: ast.Call, place: Place) -> Value:
        name = _called(node)
        arguments = [self.value(argument, place) for argument in node.args]
        if name in _SAME and arguments:
            return arguments[0]._replace(is_list=arguments[0].is_list or name in _LISTS)
        if name in ("resolve", "absolute", "as_posix") and isinstance(node.func, ast.Attribute):
            return self.value(node.func.value, place)
        if name in ("join", "joinpath") and isinstance(node.func, ast.Attribute):
            if name == "joinpath":
                arguments.insert(0, self.value(node.func.value, place))
            if arguments and not any(argument.is_list for argument in arguments):
                return _concatenate(arguments, posixpath.join)
            return UNKNOWN
        if name == "dirname" and arguments:
            return _each(arguments[0], _parent)
        if name in ("glob", "rglob", "iglob") and arguments:
            if isinstance(node.func, ast.Attribute) and ast.unparse(node.func.value) != "glob":
                base = self.value(node.func.value, place)
                below = Value((Item("**"),)) if name == "rglob" else Value((Item(""),))
                arguments[0] = _concatenate([base, below, arguments[0]], posixpath.join)
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
        return _union([self.value(value, body._replace(conditions=conditions)) for value, conditions in inner.returns])


_SAME = frozenset("Path PurePath str list tuple sorted set fspath abspath realpath normpath".split())
_LISTS = frozenset(("list", "tuple", "sorted", "set"))


def _called(node: ast.Call) -> str:
    if isinstance(node.func, ast.Attribute):
        return node.func.attr
    return node.func.id if isinstance(node.func, ast.Name) else ""


def _exclusive(one: tuple[Condition, ...], other: tuple[Condition, ...]) -> bool:
    """Tell whether two places stand in different branches of the same ``if``."""
    return any(a is b and in_a is not in_b for a, in_a in one for b, in_b in other if isinstance(a, ast.If))


def _union(values: list[Value]) -> Value:
    items: dict[Cell, bool] = {}
    for value in values:
        for item in value.items:
            items[item.cell] = items.get(item.cell, False) or item.sure
    is_list = any(value.is_list for value in values)
    return Value(tuple(Item(cell, sure) for cell, sure in items.items()), is_list, all(value.known for value in values))


def _product(parts: list[tuple[Item, ...]]) -> Iterator[tuple[Item, ...]]:
    size = 1
    for part in parts:
        size *= max(1, len(part))
    if size > _MAX_CHOICES:
        parts = [part if len(part) == 1 else UNKNOWN.items for part in parts]
    return itertools.product(*parts)


def _concatenate(parts: list[Value], join: object = None) -> Value:
    """Return every text that the parts can make, side by side or as the parts of a path."""
    items: dict[str, bool] = {}
    for combination in _product([part.texts() for part in parts]):
        texts = [str(item.cell) for item in combination]
        text = posixpath.join(*texts) if join is posixpath.join else "".join(texts)
        while WILDCARD * 3 in text:
            text = text.replace(WILDCARD * 3, WILDCARD * 2)
        items[text] = items.get(text, False) or all(item.sure for item in combination)
    return Value(tuple(Item(text, sure) for text, sure in items.items()))


def _each(value: Value, change: object) -> Value:
    assert callable(change)
    return value._replace(items=tuple(Item(change(item.cell), item.sure) for item in value.texts()))


def _parent(path: str) -> str:
    if path == ROOT:
        return posixpath.join(ROOT, "..")
    return posixpath.dirname(path)


def _unpack(target: ast.expr, cell: Cell, bound: dict[str, Value]) -> None:
    if isinstance(target, ast.Name):
        bound[target.id] = Value((Item(cell),)) if cell != WILDCARD else UNKNOWN
    elif isinstance(target, (ast.Tuple, ast.List)):
        cells = cell if isinstance(cell, tuple) and len(cell) == len(target.elts) else (WILDCARD,) * len(target.elts)
        for part, inner in zip(target.elts, cells, strict=True):
            _unpack(part, inner, bound)
