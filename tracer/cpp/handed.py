"""Arguments that are handed on in each other's place: the names that the checkout itself gives them tell.

``f(k, q)`` where ``f`` is declared as ``f(q, k)``, or ``a = b`` in a function with the parameters a and b. No name is
known here; two names of a call are compared with two names of the declaration that it means.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from tracer.cpp.tree import Node, walk

#: From the USR of a function to the names of its parameters and of its template parameters; None for one not known.
Parameters = Callable[[str], "tuple[Sequence[str], Sequence[str]] | None"]


def exchanged(body: Node, own: Sequence[str], parameters_of: Parameters) -> Iterator[tuple[Node, str]]:
    """Yield where a body hands on its arguments in each other's place, and what it does in words.

    Args:
        body: the body of a function.
        own: the names of its parameters.
        parameters_of: tells the names of parameters of what a name means.
    """
    for node in walk(body):
        if node.kind in ("assign", "initialise"):
            yield from _assigned(node, own)
        if node.kind in ("call", "launch", "construct"):
            callee = node.children[0] if node.kind != "construct" and node.children else node
            first = 1 + int(node.text or 0) if node.kind == "launch" else int(node.kind == "call")
            names = parameters_of(callee.targets[0]) if callee.targets else None
            if names is not None:
                yield from _swapped(node, callee.text, node.children[first:], names[0])
        elif node.kind in ("name", "member") and node.targets:
            names = parameters_of(node.targets[0])
            if names is not None:
                yield from _swapped(node, node.text, node.children[node.kind == "member" :], names[1])


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
