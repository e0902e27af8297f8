"""What a later kernel does with an output that the main kernel leaves without a factor."""

from __future__ import annotations

import math
from collections.abc import Callable

from tracer.dataflow.algebra import Term
from tracer.dataflow.graph import Graph
from tracer.dataflow.terms import Terms


class Unread(Exception):
    """A later kernel reads the output, but what it makes of it is not a product that can be told."""


def applied_factor(graph: Graph, name: str, passed: Callable[[str], float | None]) -> float | None:
    """Return by what a kernel multiplies an input before it stores it; None where it does not read that input.

    Args:
        graph: the later kernel.
        name: the input, by the kernel's name.
        passed: tells the value that the host passes for a member of the argument struct.

    Raises:
        Unread: the kernel reads the input, but does not simply multiply it.
    """
    if name not in graph.inputs:
        return None
    terms = Terms(graph, exact=True, only_outputs=True)
    reading = [term for output, term in terms.outputs.items() if output != name and _reads(term, name, set())]
    if not reading:
        return None
    product = 1.0
    for factor in _factors(reading[0], name):
        product *= _number(factor, passed)
    return product


def _number(term: Term, passed: Callable[[str], float | None]) -> float:
    """Return the value of a term that no data enters."""
    value = passed(str(term.detail).rpartition(".")[2]) if term.op == "scalar" else term.detail
    if term.op in ("scalar", "constant") and isinstance(value, float):
        return value
    if term.op == "mul":
        return math.prod(_number(argument, passed) for argument in term.args)
    if term.op == "div":
        return _number(term.args[0], passed) / _number(term.args[1], passed)
    raise Unread(str(term.detail or term.op))


def _reads(term: Term, name: str, seen: set[int]) -> bool:
    if term.number in seen:
        return False
    seen.add(term.number)
    return (term.op == "input" and term.detail == name) or any(_reads(argument, name, seen) for argument in term.args)


def _factors(term: Term, name: str) -> list[Term]:
    """Return the factors of a product with an input; a sum of it over several copies counts as the input."""
    if term.op == "input" and term.detail == name:
        return []
    data = [argument for argument in term.args if _reads(argument, name, set())]
    if term.op == "mul" and len(data) == 1 and sum(argument.is_data for argument in term.args) == 1:
        return [argument for argument in term.args if argument is not data[0]] + _factors(data[0], name)
    if term.op in ("rowsum", "flag", "join", "either", "guarded") and data:
        return _factors(data[0], name)
    raise Unread(term.op)
