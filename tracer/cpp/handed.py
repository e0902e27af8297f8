"""Arguments that are not handed on as they are: in each other's place, or something else in their place.

``f(k, q)`` where ``f`` is declared as ``f(q, k)``; ``f(1.f)`` where it is declared as ``f(scale)`` and the caller has
an argument ``scale`` itself; ``a = b`` in a function with the parameters a and b. No name is known here: the names of a
call are compared with those of the declaration that it means.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from tracer.cpp.tree import Node, walk

#: From the USR of a function to the names of its parameters and of its template parameters; None for one not known.
Parameters = Callable[[str], "tuple[Sequence[str], Sequence[str]] | None"]
#: Where, what happens in words, and whether a template parameter is given a constant: helpers are called like that.
Handed = tuple[Node, str, bool]


def exchanged(body: Node, own: tuple[Sequence[str], Sequence[str]], parameters_of: Parameters) -> Iterator[Handed]:
    """Yield where a body does not hand on its arguments as they are.

    Args:
        body: the body of a function.
        own: the names of its parameters and of its template parameters.
        parameters_of: tells the same of what a name means.
    """
    for node in walk(body):
        if node.kind in ("assign", "initialise"):
            for found in _assigned(node, own[0]):
                yield *found, False
        if node.kind in ("call", "launch", "construct"):
            callee = node.children[0] if node.kind != "construct" and node.children else node
            first = 1 + int(node.text or 0) if node.kind == "launch" else int(node.kind == "call")
            names = parameters_of(callee.targets[0]) if callee.targets else None
            if names is not None:
                arguments = node.children[first:]
                for found in (
                    *_swapped(node, callee.text, arguments, names[0]),
                    *_other(callee.text, arguments, names[0], own[0]),
                ):
                    yield *found, False
        elif node.kind in ("name", "member") and node.targets:
            names = parameters_of(node.targets[0])
            if names is not None:
                arguments = node.children[node.kind == "member" :]
                for found in _swapped(node, node.text, arguments, names[1]):
                    yield *found, False
                for found in _other(node.text, arguments, names[1], own[1]):
                    yield *found, True


def _other(
    callee: str, arguments: Sequence[Node], names: Sequence[str], own: Sequence[str]
) -> Iterator[tuple[Node, str]]:
    """Yield the arguments for which the caller has one of the same name, but hands on a constant or a multiple."""
    for argument, name in zip(arguments, names, strict=False):
        if name not in own:
            continue
        if argument.kind == "literal":
            yield argument, f"{callee} gets {argument.text} as its {name}, though there is an argument {name}"
        elif argument.kind == "binary" and argument.text in ("*", "/"):
            if name in [_bare(part) for part in argument.children]:
                yield argument, f"{callee} gets a multiple of the argument {name} as its {name}"


def _swapped(node: Node, callee: str, arguments: Sequence[Node], names: Sequence[str]) -> Iterator[tuple[Node, str]]:
    """Yield the pairs of arguments of which each has the name of the parameter that gets the other."""
    given = [_bare(argument) for argument in arguments[: len(names)]]
    for later, name in enumerate(given):
        for earlier in range(later):
            if name and name == names[earlier] != names[later] == given[earlier]:
                yield node, f"{name} and {given[earlier]} are handed to {callee} in each other's place"


def _assigned(node: Node, own: Sequence[str]) -> Iterator[tuple[Node, str]]:
    """Yield an assignment of one parameter to a member that has another parameter's name."""
    if node.kind == "initialise":
        target, value = node.text, _bare(node.children[0]) if node.children else ""
    else:
        left = node.children[0]
        target = left.text if left.kind == "member" and node.text == "=" else ""
        value = _bare(node.children[1])
    if target != value and target in own and value in own:
        yield node, f"{target} gets the argument {value}, though there is an argument {target}"


def _bare(node: Node) -> str:
    """Return the name that an argument is, nothing more; empty for any other."""
    while node.kind == "cast" and node.children:
        node = node.children[-1]
    if node.kind == "name" and not node.children and "::" not in node.text:
        return node.text
    return node.text if node.kind == "member" and len(node.children) == 1 else ""
