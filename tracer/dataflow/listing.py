"""The front end for the papers' listings: a NumPy function, read as syntax, as value flow."""

from __future__ import annotations

import ast
import math
from functools import lru_cache
from importlib.resources import files
from typing import Any

from tracer.dataflow.graph import Graph
from tracer.dataflow.ir import Formula, Loop, Ref, Site, Storage, Value
from tracer.errors import TracerError
from tracer.model import Location
from tracer.records import dataclass

_BINARY = {ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.Div: "div", ast.MatMult: "matmul"}
_FUNCTIONS = {"exp": "exp", "log": "log", "maximum": "max", "minimum": "min", "tanh": "tanh", "abs": "abs"}
_REDUCTIONS = {"max": "max", "min": "min", "sum": "add"}


class ListingError(TracerError):
    """A listing that says nothing, or that uses a form which this front end does not read."""


@dataclass(frozen=True, slots=True)
class Symbol:
    """One symbol of a paper's algorithm.

    Attributes:
        name: as the listing spells it.
        meaning: what it is.
        shape: its shape in the paper's letters.
        line: of the printed algorithm.
    """

    name: str
    meaning: str
    shape: str
    line: int


class Listing(Graph):
    """The value flow of a listing.

    Attributes:
        name: of the module.
        algorithm: what the paper calls it.
        symbols: in the paper's order.
    """

    def __init__(self, name: str, text: str) -> None:
        """Read the text of a listing.

        Raises:
            ListingError: it has no function ``algorithm`` that returns something.
        """
        super().__init__()
        self.name, self.file = name, f"{name}.py"
        tree = ast.parse(text)
        constants = {
            node.targets[0].id: ast.literal_eval(node.value)
            for node in tree.body
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)
        }
        self.algorithm = str(constants.get("ALGORITHM", name))
        table = constants.get("SYMBOLS", {})
        self.symbols = tuple(Symbol(symbol, *row) for symbol, row in table.items())
        functions = [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == "algorithm"]
        if not functions:
            raise ListingError(
                f"the listing {self.file} has no function named 'algorithm'; nothing can be checked with it"
            )
        self.names: dict[str, Storage] = {}
        for argument in functions[0].args.args:
            storage = self.input(argument.arg, self._site(argument))
            storage.declared = self._site(argument)
            self.names[argument.arg] = storage
        self._body(functions[0].body)
        if not self.outputs:
            raise ListingError(f"the listing {self.file} returns nothing; nothing can be checked with it")

    def location(self, site: Site) -> Location:
        """Return where a site is."""
        return site if isinstance(site, Location) else Location(self.file, 1)

    def _site(self, node: Any) -> Location:
        return Location(self.file, node.lineno, node.col_offset + 1, node.end_lineno or node.lineno)

    # -- statements ---------------------------------------------------------------------------------------------------
    def _body(self, body: list[ast.stmt]) -> None:
        for node in body:
            self._statement(node)

    def _statement(self, node: ast.stmt) -> None:
        site = self._site(node)
        if isinstance(node, ast.Assign):
            target, value = node.targets[0], node.value
            if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
                pairs = [(left, self._value(right)) for left, right in zip(target.elts, value.elts, strict=True)]
            else:
                pairs = [(target, self._value(value))]
            for left, contents in pairs:
                self._assign(left, contents, site)
        elif isinstance(node, ast.AugAssign):
            op = _BINARY[type(node.op)]
            old = self._value(node.target)
            self._assign(node.target, self.value(op, [old, self._value(node.value)], site), site)
        elif isinstance(node, ast.For):
            assert isinstance(node.target, ast.Name) and isinstance(node.iter, ast.Call)
            name = node.target.id
            start, stop, step = [self._value(argument) for argument in node.iter.args]
            counter = self.names.setdefault(name, self.store(name, site))
            self.state[counter] = start

            def follow(loop: Loop) -> None:
                for carried in self.names.values():  # they come first in a formula, as the papers write it
                    self.state.get(carried)
                loop.condition = ("test", self.value("lt", [self.state[counter], stop], site))
                self._body(node.body)

            def follow_step(loop: Loop) -> None:
                self.state[counter] = self.value("add", [self.state[counter], step], site)

            self.loop(site, [counter], follow, follow_step)
        elif isinstance(node, ast.If):
            formula: Formula = ("flag", ast.unparse(node.test))

            def then() -> bool:
                self._body(node.body)
                return False

            def other() -> bool:
                self._body(node.orelse)
                return False

            self.branch(formula, then, other, site)
        elif isinstance(node, ast.Return) and node.value is not None:
            values = node.value.elts if isinstance(node.value, ast.Tuple) else [node.value]
            for value in values:
                assert isinstance(value, ast.Name)
                self.outputs[value.id] = self.state[self.names[value.id]]

    def _assign(self, target: ast.expr, contents: Value, site: Location) -> None:
        if isinstance(target, ast.Tuple):
            for element in target.elts:
                self._assign(element, contents, site)
            return
        indices: tuple[Value, ...] = ()
        if isinstance(target, ast.Subscript):
            indices = tuple(self._indices(target.slice))
            target = target.value
        assert isinstance(target, ast.Name)
        storage = self.names.get(target.id)
        if storage is None:
            storage = self.names[target.id] = self.store(target.id, site)
        if indices and storage in self.roots:
            storage.space = "global"
        loops = frozenset().union(*[index.loops for index in indices]) if indices else frozenset()
        self.write(Ref(storage, target.id, storage.declared, loops=loops), contents, site)

    # -- expressions --------------------------------------------------------------------------------------------------
    def _indices(self, node: ast.expr) -> list[Value]:
        parts = node.elts if isinstance(node, ast.Tuple) else [node]
        values: list[Value] = []
        for part in parts:
            bounds = [part.lower, part.upper] if isinstance(part, ast.Slice) else [part]
            values += [self._value(bound) for bound in bounds if bound is not None]
        return values

    def _value(self, node: ast.expr) -> Value:
        site = self._site(node)
        if isinstance(node, ast.Constant):
            return self.const(node.value if isinstance(node.value, int | float) else 0, site)
        if isinstance(node, ast.Name):
            if node.id in self.names:
                return self.contents(self.names[node.id])
            return self.value("param", (), site, node.id)
        if isinstance(node, ast.UnaryOp):
            inner = self._value(node.operand)
            if inner.op == "const" and isinstance(inner.constant, int | float):
                return self.const(-inner.constant, site)
            return self.value("neg", [inner], site)
        if isinstance(node, ast.BinOp):
            return self.value(_BINARY[type(node.op)], [self._value(node.left), self._value(node.right)], site)
        if isinstance(node, ast.Attribute):
            if node.attr == "inf":
                return self.const(math.inf, site)
            return self._value(node.value) if node.attr == "T" else self.value("opaque", (), site, node.attr)
        if isinstance(node, ast.Subscript):
            return self._element(node, site)
        if isinstance(node, ast.Compare):
            return self.value("lt", [self._value(node.left), self._value(node.comparators[0])], site)
        if isinstance(node, ast.Call):
            return self._call(node, site)
        return self.value("opaque", (), site, type(node).__name__)

    def _element(self, node: ast.Subscript, site: Location) -> Value:
        if isinstance(node.value, ast.Name) and node.value.id in self.inputs:
            storage = self.inputs[node.value.id]
            storage.space = "global"
            storage.loaded_in |= {loop.number for loop in self.open_loops}
        if isinstance(node.value, ast.Attribute) and node.value.attr == "shape":
            return self.value("opaque", (), site, ast.unparse(node))
        return self.value("element", [self._value(node.value), *self._indices(node.slice)], site)

    def _call(self, node: ast.Call, site: Location) -> Value:
        if isinstance(node.func, ast.Name):
            return self.value("opaque", (), site, ast.unparse(node))
        assert isinstance(node.func, ast.Attribute)
        name = node.func.attr
        is_numpy = isinstance(node.func.value, ast.Name) and node.func.value.id == "np"
        if not is_numpy and name in _REDUCTIONS:
            return self.value("reduce", [self._value(node.func.value)], site, _REDUCTIONS[name])
        if name in _FUNCTIONS:
            return self.value(_FUNCTIONS[name], [self._value(argument) for argument in node.args], site)
        if name == "zeros":
            return self.const(0.0, site)
        if name == "full":
            return self._value(node.args[1])
        if name == "empty":
            return self.undefined
        if name == "where":
            test, then, other = [self._value(argument) for argument in node.args]
            return self.select(("test", test), then, other, site)
        return self.value("opaque", [self._value(argument) for argument in node.args], site, name)


@lru_cache(maxsize=16)
def listing(name: str) -> Listing:
    """Return the listing of a module of :mod:`tracer.dataflow.paper`.

    Raises:
        ListingError: there is no such listing, or it says nothing.
    """
    source = files("tracer.dataflow.paper").joinpath(f"{name}.py")
    if not source.is_file():
        raise ListingError(f"there is no listing named '{name}' beside {__name__}")
    return Listing(name, source.read_text(encoding="utf-8"))
