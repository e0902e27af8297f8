"""One Python file as a syntax tree with its scopes, true places and ids."""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterator
from dataclasses import field

from tracer.errors import SourceError
from tracer.model import Definition, Language, Location
from tracer.records import dataclass

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
MODULE_SCOPE = "<module>"


@dataclass(eq=False, slots=True)
class Scope:
    """A body of statements that binds names: a module, a class, a function, or a lambda that was given a name.

    Attributes:
        name: the last component; ``<module>`` for the module itself.
        qualname: as Python's ``__qualname__``; ``<module>`` for the module itself.
        place: where the name stands.
    """

    module: Module
    node: ast.Module | ast.ClassDef | FunctionNode
    parent: Scope | None
    name: str
    qualname: str
    place: Location

    @property
    def id(self) -> str:
        """The definition's id."""
        return f"python:{self.module.file}:{self.qualname}"

    @property
    def owner(self) -> Scope | None:
        """The class whose method this is, if it is one."""
        if self.parent is not None and isinstance(self.parent.node, ast.ClassDef) and self.is_function:
            return self.parent
        return None

    @property
    def is_function(self) -> bool:
        """Whether calling this runs its statements."""
        return isinstance(self.node, FunctionNode)

    @property
    def kind(self) -> str:
        """The kind of definition, before decorators are looked at."""
        if isinstance(self.node, ast.Module):
            return "module"
        if isinstance(self.node, ast.ClassDef):
            return "class"
        return "method" if self.owner is not None else "function"

    def definition(self, kind: str = "") -> Definition:
        """Return this scope as the shared vocabulary names it."""
        dotted = self.module.dotted
        whole = isinstance(self.node, ast.Module)
        return Definition(
            id=self.id,
            name=dotted.rpartition(".")[2] if whole else self.name,
            qualified_name=dotted if whole else f"{dotted}.{self.qualname}",
            language=Language.PYTHON,
            kind=kind or self.kind,
            location=self.place,
        )

    def decorated_with(self, name: str) -> bool:
        """Whether a decorator's last component is ``name``."""
        if isinstance(self.node, ast.Lambda | ast.Module):
            return False
        for decorator in self.node.decorator_list:
            plain = decorator.func if isinstance(decorator, ast.Call) else decorator
            if (isinstance(plain, ast.Name) and plain.id == name) or (
                isinstance(plain, ast.Attribute) and plain.attr == name
            ):
                return True
        return False


@dataclass(eq=False, slots=True)
class Module:
    """A parsed file.

    Attributes:
        dotted: the path as a dotted name, without ``__init__``.
        scopes: every scope by its qualified name, in source order.
        scope_of: the same by the identity of its node.
    """

    file: str
    dotted: str
    text: str
    tree: ast.Module
    lines: list[str] = field(default_factory=list)
    scopes: dict[str, Scope] = field(default_factory=dict)
    scope_of: dict[int, Scope] = field(default_factory=dict)

    @property
    def top(self) -> Scope:
        """The module's own scope."""
        return self.scopes[MODULE_SCOPE]

    @property
    def package(self) -> str:
        """The folder against which a relative import of one dot is read."""
        return self.file.rpartition("/")[0]

    def place(self, node: ast.expr | ast.stmt | ast.alias | ast.arg) -> Location:
        """Return where a node begins."""
        return self.at(node.lineno, node.col_offset, node.end_lineno or node.lineno)

    def at(self, line: int, byte_offset: int, end_line: int) -> Location:
        """Return a location; the parser counts bytes of UTF-8, people count characters."""
        written = self.lines[line - 1] if line <= len(self.lines) else ""
        column = byte_offset
        if not written.isascii():
            column = len(written.encode("utf-8", "surrogatepass")[:byte_offset].decode("utf-8", "ignore"))
        return Location(self.file, line, column + 1, end_line)

    def callee_place(self, call: ast.Call) -> Location:
        """Return where the callee's last name stands; the end is that of the whole call."""
        callee = call.func
        while isinstance(callee, ast.Subscript | ast.Call):
            callee = callee.value if isinstance(callee, ast.Subscript) else callee.func
        end_line = call.end_lineno or call.lineno
        if isinstance(callee, ast.Attribute) and callee.end_lineno and callee.end_col_offset is not None:
            return self.at(callee.end_lineno, callee.end_col_offset - len(callee.attr.encode()), end_line)
        return self.at(callee.lineno, callee.col_offset, end_line)

    def written(self, node: ast.expr) -> str:
        """Return an expression as the source writes it, on one line."""
        if isinstance(node, ast.Name):
            return node.id
        first, last, end = node.lineno, node.end_lineno or node.lineno, node.end_col_offset or 0
        rows = [row.encode() for row in self.lines[first - 1 : last]]
        if not rows:
            return ast.unparse(node)
        rows[-1] = rows[-1][:end]
        rows[0] = rows[0][node.col_offset :]
        return " ".join(b" ".join(rows).decode("utf-8", "replace").split())


def dotted_name(file: str) -> str:
    """Return a file's path as the dotted name of a module."""
    parts = file.removesuffix(".py").split("/")
    if parts[-1] == "__init__" and len(parts) > 1:
        parts.pop()
    return ".".join(parts)


def parse(file: str, text: str) -> Module:
    """Parse one file.

    Raises:
        SourceError: the text is no Python, or nested too deeply to be read; the message names the line.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(text)
    except SyntaxError as error:
        line = error.lineno or _line_of_null(text) or 1
        raise SourceError(f"{file}:{line}: not readable as Python: {error.msg}; check that line") from None
    except ValueError as error:
        line = _line_of_null(text) or 1
        raise SourceError(f"{file}:{line}: not readable as Python: {error}; the file looks binary") from None
    except (RecursionError, MemoryError):
        raise too_deep(file, text) from None
    module = Module(file, dotted_name(file), text, tree, text.replace("\r\n", "\n").replace("\r", "\n").split("\n"))
    top = Scope(module, tree, None, MODULE_SCOPE, MODULE_SCOPE, Location(file, 1, 1, len(module.lines)))
    _add(module, top)
    try:
        _collect(module, top, tree.body, "")
    except RecursionError:
        raise too_deep(file, text) from None
    return module


def too_deep(file: str, text: str) -> SourceError:
    """Return the error for a file whose expressions nest deeper than they can be followed."""
    line, deepest = 1, -1
    for number, written in enumerate(text.splitlines(), 1):
        weight = len(re.findall(r"[-+*/%(\[{.,:~]|\bnot\b|\band\b|\bor\b", written))
        if weight > deepest:
            line, deepest = number, weight
    return SourceError(f"{file}:{line}: nested too deeply to be read; simplify the longest expression near that line")


def blocks(statement: ast.stmt) -> Iterator[list[ast.stmt]]:
    """Yield the lists of statements that a statement holds without opening a scope."""
    for name in ("body", "orelse", "finalbody"):
        block = getattr(statement, name, None)
        if block:
            yield block
    for part in (*getattr(statement, "handlers", ()), *getattr(statement, "cases", ())):
        yield part.body


def _line_of_null(text: str) -> int:
    place = text.find("\0")
    return text.count("\n", 0, place) + 1 if place >= 0 else 0


def _add(module: Module, scope: Scope) -> None:
    name, number = scope.qualname, 2
    while scope.qualname in module.scopes:
        scope.qualname = f"{name}#{number}"
        number += 1
    module.scopes[scope.qualname] = scope
    module.scope_of[id(scope.node)] = scope


def _collect(module: Module, parent: Scope, body: list[ast.stmt], prefix: str) -> None:
    for statement in body:
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            place = _name_place(module, statement)
            scope = Scope(module, statement, parent, statement.name, prefix + statement.name, place)
            _add(module, scope)
            inner = "." if isinstance(statement, ast.ClassDef) else ".<locals>."
            _collect(module, scope, statement.body, scope.qualname + inner)
            continue
        if isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Lambda):
            target = statement.targets[0]
            if isinstance(target, ast.Name):
                place = module.at(target.lineno, target.col_offset, statement.end_lineno or target.lineno)
                _add(module, Scope(module, statement.value, parent, target.id, prefix + target.id, place))
            continue
        for block in blocks(statement):
            _collect(module, parent, block, prefix)


def _name_place(module: Module, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> Location:
    written = module.lines[node.lineno - 1] if node.lineno <= len(module.lines) else ""
    found = re.compile(r"(?:async\s+)?(?:def|class)\s+").match(written, node.col_offset)
    offset = found.end() if found and written[: found.end()].isascii() else node.col_offset
    return module.at(node.lineno, offset, node.end_lineno or node.lineno)
