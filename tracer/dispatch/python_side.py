"""What Python does before the call reaches C++: followed in the source, function by function, never executed.

The padding of the head dimension, defaults that depend on the call, views of packed tensors: all that decides the
arguments of the bound function is evaluated from the syntax tree. Which function a name means, the Python room has
already found out; this reader evaluates what lies between the calls.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import Any, NoReturn

from tracer.dispatch.answers import Decision, Device, Refusal, Unsupported
from tracer.dispatch.models.torch import Tensor as PythonTensor
from tracer.dispatch.python_models import BUILTINS, FUNCTIONS, METHODS, attribute, subscript
from tracer.graph import Program
from tracer.model import Definition, How, Location, Outcome, Target
from tracer.records import dataclass

_STATEMENTS = 100_000


@dataclass(frozen=True, slots=True)
class BoundCall:
    """A call that arrived at a binding.

    Attributes:
        binding: the name that Python calls.
        function: id of the C++ function behind it.
        arguments: in order, as Python passes them.
        location: of the call.
        route: the Python functions that were entered on the way, with the place of the call that entered each.
    """

    binding: Definition
    function: str
    arguments: tuple[Any, ...]
    location: Location
    route: tuple[tuple[str, Location], ...]


class _Arrived(Exception):
    """The call has left Python."""

    def __init__(self, call: BoundCall) -> None:
        self.call = call


class PythonRefusal(Exception):
    """Python itself refuses the call, by ``raise`` or ``assert``."""

    def __init__(self, refusal: Refusal) -> None:
        """Keep message and place."""
        super().__init__(refusal.message)
        self.refusal = refusal


class _Return(Exception):
    """A ``return`` on its way out; an exception because it can leave from inside of any block."""

    def __init__(self, value: Any) -> None:
        self.value = value


class Anything:
    """An object that only takes what it is given: the context of an autograd function."""

    def __init__(self, name: str) -> None:
        """Name it for messages."""
        self.name = name


@dataclass(slots=True)
class _Frame:
    """One function being evaluated."""

    id: str
    file: str
    names: dict[str, Any]
    sites: dict[tuple[int, int], tuple[Outcome, tuple[Target, ...], str]]
    enclosing: _Frame | None = None


@dataclass(slots=True)
class PythonRunner:
    """Evaluates Python functions of a checkout for one call.

    Attributes:
        program: the checkout.
        device: what ``torch.cuda`` answers.
        modules: syntax trees by file, shared between runners so that each file is parsed once.
        decisions: conditions on the way.
    """

    program: Program
    device: Device
    modules: dict[str, ast.Module] = field(default_factory=dict)
    decisions: list[Decision] = field(default_factory=list)
    _route: list[tuple[str, Location]] = field(default_factory=list)
    _steps: int = 0

    # -- questions ----------------------------------------------------------------------------------------------------
    def follow(self, id: str, arguments: Mapping[str, Any]) -> BoundCall:
        """Follow a call of a Python function to the binding that it reaches.

        Raises:
            PythonRefusal: Python refuses the call.
            Unsupported: Python does something on the way that is not known, or returns without reaching a binding.
        """
        try:
            self.call(id, (), arguments, None)
        except _Arrived as arrived:
            return arrived.call
        definition = self.program.definition(id)
        raise Unsupported(f"{definition.name}, which returns without calling an extension", definition.location)

    def call(self, id: str, positional: Sequence[Any], named: Mapping[str, Any], site: Location | None) -> Any:
        """Evaluate a function of the checkout and return what it returns."""
        function = self._function(id)
        definition = self.program.definition(id)
        self._route.append((definition.qualified_name, site or definition.location))
        frame = self._frame(id, definition.location.file, {})
        frame.names.update(self._bound(function.args, positional, named, frame, definition.name, site))
        return self._run(function.body, frame)

    def parameters(self, id: str) -> tuple[list[str], set[str]]:
        """Return the names of a function's parameters, and which of them have defaults."""
        arguments = self._function(id).args
        names = [a.arg for a in (*arguments.posonlyargs, *arguments.args)]
        defaults = set(names[len(names) - len(arguments.defaults) :])
        for keyword, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
            names.append(keyword.arg)
            if default is not None:
                defaults.add(keyword.arg)
        return names, defaults

    # -- functions ----------------------------------------------------------------------------------------------------
    def _function(self, id: str) -> ast.FunctionDef:
        _, file, qualname = id.split(":", 2)
        if file not in self.modules:
            self.modules[file] = ast.parse(self.program.checkout.read_text(file))
        line = self.program.definition(id).location.line
        name = qualname.rpartition(".")[2].partition("#")[0]
        for node in ast.walk(self.modules[file]):
            if isinstance(node, ast.FunctionDef) and node.name == name and node.lineno == line:
                return node
        raise Unsupported(f"{qualname}, which is no plain function", self.program.definition(id).location)

    def _frame(self, id: str, file: str, names: dict[str, Any]) -> _Frame:
        sites = {
            (site.location.line, site.location.column): (site.outcome, site.targets, site.reason)
            for site in self.program.call_sites(id)
        }
        return _Frame(id, file, names, sites)

    def _bound(
        self, declared: ast.arguments, positional: Sequence[Any], named: Mapping[str, Any], frame: _Frame, name: str,
        site: Location | None,
    ) -> dict[str, Any]:  # fmt: skip
        names = [a.arg for a in (*declared.posonlyargs, *declared.args)]
        bound = dict(zip(names, positional, strict=False))
        if len(positional) > len(names):
            if declared.vararg is None:
                raise Unsupported(f"{len(positional)} arguments for the {len(names)} parameters of {name}", site)
            bound[declared.vararg.arg] = tuple(positional[len(names) :])
        keywords = [a.arg for a in declared.kwonlyargs]
        for key, value in named.items():
            if key not in names and key not in keywords:
                raise Unsupported(f"keyword {key}, which {name} does not have", site)
            bound[key] = value
        defaults = dict(zip(reversed(names), reversed(declared.defaults), strict=False))
        defaults |= {k: d for k, d in zip(keywords, declared.kw_defaults, strict=True) if d is not None}
        for key in (*names, *keywords):
            if key not in bound:
                if key not in defaults:
                    raise Unsupported(f"a call of {name} without {key}", site)
                bound[key] = self._value(defaults[key], frame)
        return bound

    def _run(self, body: Sequence[ast.stmt], frame: _Frame) -> Any:
        try:
            self._block(body, frame)
        except _Return as result:
            return result.value
        return None

    # -- statements ---------------------------------------------------------------------------------------------------
    def _block(self, body: Sequence[ast.stmt], frame: _Frame) -> None:
        for statement in body:
            self._steps += 1
            if self._steps > _STATEMENTS:
                self._fail("a loop that does not end", statement, frame)
            self._statement(statement, frame)

    def _statement(self, node: ast.stmt, frame: _Frame) -> None:
        if isinstance(node, ast.Assign):
            value = self._value(node.value, frame)
            for target in node.targets:
                self._assign(target, value, frame)
        elif isinstance(node, ast.AnnAssign):
            if node.value is not None:
                self._assign(node.target, self._value(node.value, frame), frame)
        elif isinstance(node, ast.AugAssign):
            loaded = ast.copy_location(ast.BinOp(_loaded(node.target), node.op, node.value), node)
            self._assign(node.target, self._value(loaded, frame), frame)
        elif isinstance(node, ast.Expr):
            if not isinstance(node.value, ast.Constant):
                self._value(node.value, frame)
        elif isinstance(node, ast.If):
            self._block(node.body if self._decide(node.test, frame) else node.orelse, frame)
        elif isinstance(node, ast.Return):
            raise _Return(self._value(node.value, frame) if node.value is not None else None)
        elif isinstance(node, ast.Assert):
            if not self._truth(self._value(node.test, frame), node, frame):
                self._refuse("AssertionError", node.msg, node, frame)
        elif isinstance(node, ast.Raise):
            self._raise(node, frame)
        elif isinstance(node, ast.With):
            for item in node.items:
                self._value(item.context_expr, frame)
            self._block(node.body, frame)
        elif isinstance(node, ast.Import | ast.ImportFrom | ast.Pass | ast.Global | ast.Nonlocal):
            pass
        else:
            self._fail(f"a Python {type(node).__name__.lower()} statement", node, frame)

    def _assign(self, target: ast.expr, value: Any, frame: _Frame) -> None:
        if isinstance(target, ast.Name):
            frame.names[target.id] = value
        elif isinstance(target, ast.Tuple | ast.List):
            if not isinstance(value, tuple | list) or len(value) != len(target.elts):
                self._fail("unpacking into another number of names", target, frame)
            for part, item in zip(target.elts, value, strict=True):
                self._assign(part, item, frame)
        elif isinstance(target, ast.Attribute) and isinstance(self._value(target.value, frame), Anything):
            pass  # what the backward will find; nothing reads it before the call
        else:
            self._fail(f"an assignment to {ast.unparse(target)}", target, frame)

    def _decide(self, test: ast.expr, frame: _Frame) -> bool:
        outcome = self._truth(self._value(test, frame), test, frame)
        function = frame.id.rpartition(":")[2]
        value = "true" if outcome else "false"
        place = self._place(test, frame)
        self.decisions.append(Decision("if", ast.unparse(test), value, (), place, function, False))
        return outcome

    def _raise(self, node: ast.Raise, frame: _Frame) -> NoReturn:
        raised = node.exc
        if isinstance(raised, ast.Call):
            self._refuse(ast.unparse(raised.func), raised.args[0] if raised.args else None, node, frame)
        self._refuse(ast.unparse(raised) if raised is not None else "an exception", None, node, frame)

    def _refuse(self, kind: str, message: ast.expr | None, node: ast.AST, frame: _Frame) -> NoReturn:
        text = str(self._value(message, frame)) if message is not None else ""
        raise PythonRefusal(Refusal(f"{kind}: {text}" if text else kind, self._place(node, frame)))

    # -- expressions --------------------------------------------------------------------------------------------------
    def _value(self, node: ast.expr, frame: _Frame) -> Any:
        evaluate = _EXPRESSIONS.get(type(node))
        if evaluate is None:
            self._fail(f"a Python {type(node).__name__.lower()} expression", node, frame)
        return evaluate(self, node, frame)

    def _name(self, node: ast.Name, frame: _Frame) -> Any:
        scope: _Frame | None = frame
        while scope is not None:
            if node.id in scope.names:
                return scope.names[node.id]
            scope = scope.enclosing
        for statement in self.modules[frame.file].body:
            if isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Constant):
                if any(isinstance(target, ast.Name) and target.id == node.id for target in statement.targets):
                    return statement.value.value
        if node.id in ("int", "float", "bool", "str", "tuple", "list"):
            return BUILTINS[node.id]
        self._fail(f"the name {node.id}", node, frame)

    def _attribute(self, node: ast.Attribute, frame: _Frame) -> Any:
        text = ast.unparse(node)
        if text in FUNCTIONS or text.startswith(("torch.float", "torch.int", "torch.bfloat", "torch.half")):
            return text
        base = self._value(node.value, frame)
        found = attribute(base, node.attr)
        if found is None:
            self._fail(f"attribute {text}", node, frame)
        return found[0]

    def _binary(self, node: ast.BinOp, frame: _Frame) -> Any:
        operate = _OPERATORS.get(type(node.op))
        left, right = self._value(node.left, frame), self._value(node.right, frame)
        plain = (int, float, bool, str, tuple, list)
        if operate is None or not isinstance(left, plain) or not isinstance(right, plain):
            self._fail(f"{ast.unparse(node)}", node, frame)
        return operate(left, right)

    def _unary(self, node: ast.UnaryOp, frame: _Frame) -> Any:
        value = self._value(node.operand, frame)
        if isinstance(node.op, ast.Not):
            return not self._truth(value, node, frame)
        if isinstance(value, int | float) and isinstance(node.op, ast.USub | ast.UAdd):
            return -value if isinstance(node.op, ast.USub) else +value
        self._fail(ast.unparse(node), node, frame)

    def _boolean(self, node: ast.BoolOp, frame: _Frame) -> Any:
        value: Any = None
        for part in node.values:
            value = self._value(part, frame)
            if self._truth(value, part, frame) == isinstance(node.op, ast.Or):
                return value
        return value

    def _compare(self, node: ast.Compare, frame: _Frame) -> Any:
        left = self._value(node.left, frame)
        for operator, right_node in zip(node.ops, node.comparators, strict=True):
            right = self._value(right_node, frame)
            compare = _COMPARISONS.get(type(operator))
            if compare is None:
                self._fail(ast.unparse(node), node, frame)
            if isinstance(left, PythonTensor | Anything) and not isinstance(operator, ast.Is | ast.IsNot):
                self._fail(f"a comparison of tensors, {ast.unparse(node)}", node, frame)
            if not compare(left, right):
                return False
            left = right
        return True

    def _choice(self, node: ast.IfExp, frame: _Frame) -> Any:
        return self._value(node.body if self._decide(node.test, frame) else node.orelse, frame)

    def _several(self, node: ast.Tuple | ast.List, frame: _Frame) -> Any:
        values: list[Any] = []
        for part in node.elts:
            if isinstance(part, ast.Starred):
                values.extend(self._value(part.value, frame))
            else:
                values.append(self._value(part, frame))
        return tuple(values) if isinstance(node, ast.Tuple) else values

    def _subscript(self, node: ast.Subscript, frame: _Frame) -> Any:
        base, index = self._value(node.value, frame), self._value(node.slice, frame)
        found = subscript(base, index)
        if found is None:
            self._fail(f"subscript {ast.unparse(node)}", node, frame)
        return found[0]

    def _slice(self, node: ast.Slice, frame: _Frame) -> Any:
        parts = [None if part is None else self._value(part, frame) for part in (node.lower, node.upper, node.step)]
        return slice(*parts)

    def _comprehension(self, node: ast.ListComp | ast.GeneratorExp, frame: _Frame) -> Any:
        if len(node.generators) != 1:
            self._fail("a comprehension over several sequences", node, frame)
        generator = node.generators[0]
        inner = _Frame(frame.id, frame.file, {}, frame.sites, frame)
        values = []
        for item in self._value(generator.iter, frame):
            self._assign(generator.target, item, inner)
            if all(self._truth(self._value(test, inner), test, inner) for test in generator.ifs):
                values.append(self._value(node.elt, inner))
        return values

    def _lambda(self, node: ast.Lambda, frame: _Frame) -> Any:
        def call(positional: Sequence[Any], named: Mapping[str, Any], site: Location) -> Any:
            inner = _Frame(frame.id, frame.file, {}, frame.sites, frame)
            inner.names.update(self._bound(node.args, positional, named, frame, "a lambda", site))
            return self._value(node.body, inner)

        return call

    def _text(self, node: ast.JoinedStr, frame: _Frame) -> Any:
        parts = []
        for part in node.values:
            if isinstance(part, ast.Constant):
                parts.append(str(part.value))
            elif isinstance(part, ast.FormattedValue):
                parts.append(str(self._value(part.value, frame)))
        return "".join(parts)

    # -- calls --------------------------------------------------------------------------------------------------------
    def _call(self, node: ast.Call, frame: _Frame) -> Any:
        positional: list[Any] = []
        place = self._place(_name_of(node.func), frame)
        outcome, targets, reason = frame.sites.get((place.line, place.column), (Outcome.UNRESOLVED, (), ""))
        for argument in node.args:
            if isinstance(argument, ast.Starred):
                positional.extend(self._value(argument.value, frame))
            else:
                positional.append(self._value(argument, frame))
        named = {keyword.arg: self._value(keyword.value, frame) for keyword in node.keywords if keyword.arg}
        if len(named) != len(node.keywords):
            self._fail("a call with ** arguments", node, frame)
        if isinstance(node.func, ast.Name):
            scope: _Frame | None = frame
            while scope is not None:
                if callable(scope.names.get(node.func.id)):
                    return scope.names[node.func.id](positional, named, place)
                scope = scope.enclosing
        if outcome is Outcome.RESOLVED and targets:
            return self._enter(targets[0], positional, named, place)
        if isinstance(node.func, ast.Attribute) and reason not in FUNCTIONS:
            base = self._value(node.func.value, frame)
            if isinstance(base, Anything):
                return None
            method = METHODS.get((type(base), node.func.attr))
            if method is not None:
                return self._modelled(method, (base, *positional), named, node, frame)
        function = FUNCTIONS.get(reason) or FUNCTIONS.get(ast.unparse(node.func))
        if function is None:
            self._fail(f"function {ast.unparse(node.func)}", node, frame)
        if reason == "torch.cuda.get_device_capability":
            return self.device.major, self.device.minor
        return self._modelled(function, positional, named, node, frame)

    def _modelled(
        self, model: Callable[..., Any], positional: Sequence[Any], named: Mapping[str, Any], node: ast.Call,
        frame: _Frame,
    ) -> Any:  # fmt: skip
        try:
            return model(*positional, **named)
        except (TypeError, ValueError, IndexError, AttributeError) as error:
            self._fail(f"{ast.unparse(node.func)} with these arguments ({error})", node, frame)

    def _enter(self, target: Target, positional: list[Any], named: dict[str, Any], site: Location) -> Any:
        if target.id.startswith("binding:"):
            if named:
                raise Unsupported("a binding called with keywords", site)
            functions = [edge.target for edge in self.program.edges(target.id)]
            if len(functions) != 1:
                raise Unsupported(f"a binding of {len(functions)} functions", site)
            binding = self.program.definition(target.id)
            raise _Arrived(BoundCall(binding, functions[0], tuple(positional), site, tuple(self._route)))
        if target.how is How.AUTOGRAD:
            positional = [Anything("the context of an autograd function"), *positional]
        return self.call(target.id, positional, named, site)

    # -- errors -------------------------------------------------------------------------------------------------------
    def _truth(self, value: Any, node: ast.AST, frame: _Frame) -> bool:
        if isinstance(value, PythonTensor | Anything):
            self._fail("the truth of a tensor", node, frame)
        return bool(value)

    def _place(self, node: ast.AST, frame: _Frame) -> Location:
        line, column = getattr(node, "lineno", 1), getattr(node, "col_offset", 0) + 1
        return Location(frame.file, line, column, getattr(node, "end_lineno", line) or line)

    def _fail(self, construct: str, node: ast.AST, frame: _Frame) -> NoReturn:
        raise Unsupported(construct, self._place(node, frame))


def _name_of(function: ast.expr) -> ast.expr:
    """Return a node that stands where the callee's own name stands."""
    if isinstance(function, ast.Attribute) and function.end_col_offset is not None:
        name = ast.Name(function.attr)
        name.lineno = function.end_lineno or function.lineno
        name.col_offset = function.end_col_offset - len(function.attr.encode())
        name.end_lineno = name.lineno
        return name
    return function


def _loaded(target: ast.expr) -> ast.expr:
    return (
        ast.Name(target.id, ast.Load(), lineno=target.lineno, col_offset=0) if isinstance(target, ast.Name) else target
    )


_OPERATORS: dict[type, Callable[[Any, Any], Any]] = {
    ast.Add: lambda a, b: a + b, ast.Sub: lambda a, b: a - b, ast.Mult: lambda a, b: a * b,
    ast.Div: lambda a, b: a / b, ast.FloorDiv: lambda a, b: a // b, ast.Mod: lambda a, b: a % b,
    ast.Pow: lambda a, b: a**b,
}  # fmt: skip
_COMPARISONS: dict[type, Callable[[Any, Any], bool]] = {
    ast.Eq: lambda a, b: a == b, ast.NotEq: lambda a, b: a != b, ast.Lt: lambda a, b: a < b,
    ast.LtE: lambda a, b: a <= b, ast.Gt: lambda a, b: a > b, ast.GtE: lambda a, b: a >= b,
    ast.Is: lambda a, b: a is b, ast.IsNot: lambda a, b: a is not b, ast.In: lambda a, b: a in b,
    ast.NotIn: lambda a, b: a not in b,
}  # fmt: skip
_EXPRESSIONS: dict[type, Callable[[PythonRunner, Any, _Frame], Any]] = {
    ast.Constant: lambda runner, node, frame: node.value, ast.Name: PythonRunner._name,
    ast.Attribute: PythonRunner._attribute, ast.BinOp: PythonRunner._binary, ast.UnaryOp: PythonRunner._unary,
    ast.BoolOp: PythonRunner._boolean, ast.Compare: PythonRunner._compare, ast.IfExp: PythonRunner._choice,
    ast.Tuple: PythonRunner._several, ast.List: PythonRunner._several, ast.Subscript: PythonRunner._subscript,
    ast.Slice: PythonRunner._slice, ast.ListComp: PythonRunner._comprehension,
    ast.GeneratorExp: PythonRunner._comprehension, ast.Lambda: PythonRunner._lambda, ast.JoinedStr: PythonRunner._text,
    ast.Call: PythonRunner._call,
}  # fmt: skip
