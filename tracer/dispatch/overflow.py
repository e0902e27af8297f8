"""Offsets of a kernel that do not fit into 32 bits, although they are kept in 64.

``index_t offset = a * b`` with ``int`` operands overflows before it is widened, and the kernel then reads or writes
elsewhere. The kernel is followed at its last block, straight through; what depends on loops, threads or memory is left
open, so a warning is certain and silence is not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracer.cpp.tree import Node, walk
from tracer.dispatch.answers import Launch, Unsupported, Warned
from tracer.dispatch.host_code import Code
from tracer.dispatch.models.cuda import Extent
from tracer.dispatch.numbers import Number, arithmetic_type, integer
from tracer.dispatch.run import Refused
from tracer.dispatch.scope import Scope
from tracer.dispatch.values import Cell, Function, NamedType, Pointer, Unknown, Value

if TYPE_CHECKING:
    from tracer.dispatch.engine import Engine

_WIDE = frozenset(("long", "unsigned long", "long long", "unsigned long long"))
_LIMIT = 2**31
_DEPTH = 4  # kernel, its wrapper, the function that does the work, one more


def may_overflow(launch: Launch, largest_dimension: int) -> bool:
    """Tell whether an offset of the kernel can reach 2^31 at all: cheap, and true too often rather than too rarely."""
    blocks = launch.grid[0] * launch.grid[1] * launch.grid[2]
    return blocks * launch.block[0] * max(largest_dimension, 1) >= _LIMIT


def overflows(
    engine: Engine, launch: Launch, code: Code, template_arguments: tuple[Value, ...], arguments: tuple[Value, ...]
) -> list[Warned]:
    """Return the wide offsets that overflow in the last block of a launch."""
    names: dict[str, Cell] = {
        "blockIdx": Cell(Extent(*(integer(n - 1, "unsigned int") for n in launch.grid))),
        "gridDim": Cell(Extent(*(integer(n, "unsigned int") for n in launch.grid))),
        "blockDim": Cell(Extent(*(integer(n, "unsigned int") for n in launch.block))),
    }
    found: list[Warned] = []
    _follow(engine, code, template_arguments, list(arguments), Scope(names=names), found, _DEPTH)
    return list(dict.fromkeys(found))


def _follow(
    engine: Engine, code: Code, template_arguments: tuple[Value, ...], arguments: list[Value], built_in: Scope,
    found: list[Warned], depth: int,
) -> None:  # fmt: skip
    names = {p.text: Cell(a) for p, a in zip(code.template_parameters, template_arguments, strict=False)}
    for parameter, value in zip(code.parameters, arguments, strict=False):
        if isinstance(value, Number) and parameter.type is not None:
            value = engine.coerced(value, parameter.type, built_in)
        names[parameter.text] = Cell(value)
    scope = Scope(built_in, names)
    with engine.inside(code.id), engine.run.aside():
        for statement in code.body.children:
            for node in statement.children if statement.kind == "declare" else (statement,):
                if node.kind == "variable":
                    _variable(engine, code, node, scope, found)
                elif node.kind == "alias":
                    _quietly(engine, node, scope)
                elif node.kind == "call" and depth:
                    _call(engine, node, scope, built_in, found, depth)


def _variable(engine: Engine, code: Code, node: Node, scope: Scope, found: list[Warned]) -> None:
    value = _value(engine, node.children[0], scope) if node.children else Unknown("a variable of the kernel")
    if isinstance(value, Number) and node.type is not None:
        value = engine.coerced(value, node.type, scope)
    scope.names[node.text] = Cell(value)
    if node.type is None or not isinstance(value, Unknown) or not value.reason.startswith("the overflow of"):
        return
    try:
        type_ = engine.types.of(node.type, scope)
    except Unsupported:
        return
    if (
        isinstance(type_, NamedType)
        and arithmetic_type(type_.name) in _WIDE
        and _is_used(engine, code, node.text, scope)
    ):
        what = value.reason.removeprefix("the overflow of ").partition(" at ")[0]
        found.append(Warned(f"int32 overflow in {node.text}: {what} is beyond {_LIMIT - 1}", engine.location(node)))


def _is_used(engine: Engine, code: Code, name: str, scope: Scope) -> bool:
    """Tell whether the offset is added to a pointer that is not null in this call."""
    pointers = []
    for node in walk(code.body):
        if node.kind == "binary" and node.text == "+" and any(part.text == name for part in node.children):
            for part in node.children:
                if part.text != name:
                    pointers.append(_value(engine, part, scope))
    known = [pointer for pointer in pointers if isinstance(pointer, Pointer)]
    return not known or any(pointer.target is not None for pointer in known)


def _call(engine: Engine, node: Node, scope: Scope, built_in: Scope, found: list[Warned], depth: int) -> None:
    function = _value(engine, node.children[0], scope)
    if not isinstance(function, Function) or len(function.usrs) != 1:
        return
    id = engine.host.source.id(function.usrs[0])
    if id is None:
        return
    code = engine.host.code(id)
    arguments = [_value(engine, argument, scope) for argument in node.children[1:]]
    _follow(engine, code, function.arguments or (), arguments, built_in, found, depth - 1)


def _value(engine: Engine, node: Node, scope: Scope) -> Value:
    try:
        return engine.evaluate(node, scope)
    except (Unsupported, Refused) as error:
        return Unknown(str(error))


def _quietly(engine: Engine, node: Node, scope: Scope) -> None:
    try:
        engine.execute(node, scope)
    except (Unsupported, Refused):
        return
