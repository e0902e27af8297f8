"""Which C++ functions an extension module offers to Python, and under which names.

The stub headers turn a module's definition into a function with a name of ours, so that its body is read like any
other: ``m.def("fwd", &mha_fwd)``, ``m.impl("fwd", …)``, in pybind11's form and in the dispatcher library's.
"""

from __future__ import annotations

from collections.abc import Iterator

from tracer.cpp.tree import Node, walk
from tracer.cpp.unit import Unit
from tracer.records import dataclass

_PYBIND = "flashtracer_pybind_"
_LIBRARY_IMPL = "flashtracer_library_impl_"
_LIBRARY = "flashtracer_library_"


@dataclass(frozen=True, slots=True)
class Bound:
    """One name that Python can call; positions are (file index, byte offset).

    Attributes:
        module: ``pybind`` for an attribute of the extension module, else the operator namespace as written.
        name: the name in Python.
        usrs: the C++ functions behind it; empty for a schema that another place implements.
    """

    module: str
    name: str
    usrs: tuple[str, ...]
    file: int
    offset: int
    end: int


def read_bindings(unit: Unit) -> Iterator[Bound]:
    """Yield the bindings that a unit makes, in source order."""
    for function in unit.functions:
        module = _module(function.declaration.name)
        if module is None or not function.defined:
            continue
        body = unit.body(function.key)
        if body is None:
            continue
        for node in walk(body):
            bound = _bound(unit, node, module)
            if bound is not None:
                yield bound


def _module(function_name: str) -> str | None:
    if function_name.startswith(_PYBIND):
        return "pybind"
    for prefix in (_LIBRARY_IMPL, _LIBRARY):
        if function_name.startswith(prefix):
            rest = function_name[len(prefix) :]
            return rest.rpartition("__")[0] if prefix == _LIBRARY_IMPL else rest.partition("__")[0] or rest
    return None


def _bound(unit: Unit, node: Node, module: str) -> Bound | None:
    if node.kind != "call" or len(node.children) < 2:
        return None
    callee, name = node.children[0], _string(node.children[1])
    if callee.kind != "member" or callee.text not in ("def", "impl") or name is None:
        return None
    usrs: list[str] = []
    for argument in node.children[2:]:
        for part in walk(argument):
            usrs += [usr for usr in part.targets if unit.is_inside(usr) and usr in unit.by_usr and usr not in usrs]
    # `m.def("schema(...)")` chained over several lines: the call node begins at the first m; the name says the place.
    return Bound(module, name.partition("(")[0].strip(), tuple(usrs), node.file, _name_offset(unit, node), node.end)


def _string(node: Node) -> str | None:
    for part in walk(node):
        if part.kind == "literal" and part.text2 == "string":
            return part.text.strip('"')
    return None


def _name_offset(unit: Unit, node: Node) -> int:
    callee = node.children[0]
    base = callee.children[0] if callee.children else callee
    start = base.end if base.file == node.file and base.end >= node.start else node.start
    at = unit.slice(node.file, start, node.end).find(callee.text)
    return start + max(at, 0)
