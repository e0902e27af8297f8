"""Naive attention as a list of operators, each of which reads its operands from memory and writes its results there.

The operators are those of Dao et al. 2022 (arXiv 2205.14135), Algorithm 0 and, for the backward pass, Algorithm 3 of
appendix B; the mask and dropout as operators of their own are what unfused frameworks add. Products are counted as if
each operand were read once; inside a product the library tiles again, which nobody outside can see.
"""

from __future__ import annotations

from tracer.records import dataclass
from tracer.traffic.counting import Convention
from tracer.traffic.counts import Access, Kind, Reuse
from tracer.traffic.shapes import Shape

#: Bytes of one element of a dropout mask.
MASK_BYTES = 1


@dataclass(frozen=True, slots=True)
class Operator:
    """One operator: what it reads and what it writes, by name."""

    name: str
    reads: tuple[str, ...]
    writes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Operand:
    """A tensor of naive attention.

    Attributes:
        kind: what it is to the pass.
        width: bytes of one element.
        elements: over all query heads and sequences.
        distinct: different ones among them; fewer for K and V where query heads share a key head.
        before: a workspace that the forward pass left.
    """

    kind: Kind
    width: int
    elements: int
    distinct: int
    before: bool = False


def forward_operators(convention: Convention) -> tuple[Operator, ...]:
    """Return the operators of the forward pass (Algorithm 0), with those that the convention adds."""
    scores, probabilities = "S", "P"
    operators = [Operator("S = Q Kᵀ", ("Q", "K"), ("S",))]
    if convention.mask_pass:
        operators.append(Operator("mask S", ("S",), ("S_masked",)))
        scores = "S_masked"
    operators.append(Operator("P = softmax(S)", (scores,), ("P",)))
    if convention.dropout:
        operators.append(Operator("drop P", ("P",), ("P_dropped", "mask")))
        probabilities = "P_dropped"
    operators.append(Operator("O = P V", (probabilities, "V"), ("O",)))
    return tuple(operators)


def backward_operators(convention: Convention) -> tuple[Operator, ...]:
    """Return the operators of the backward pass (Algorithm 3), with those that the convention adds."""
    probabilities, gradient = ("P_dropped", "dP_dropped") if convention.dropout else ("P", "dP")
    operators = [
        Operator("dV = Pᵀ dO", (probabilities, "dO"), ("dV",)),
        Operator("dP = dO Vᵀ", ("dO", "V"), (gradient,)),
    ]
    if convention.dropout:
        operators.append(Operator("drop dP", (gradient, "mask"), ("dP",)))
    operators += [
        Operator("dS = P ∘ (dP − D)", ("P", "dP"), ("dS",)),
        Operator("dQ = dS K", ("dS", "K"), ("dQ",)),
        Operator("dK = dSᵀ Q", ("dS", "Q"), ("dK",)),
    ]
    return tuple(operators)


def operands(shape: Shape, operators: tuple[Operator, ...]) -> dict[str, Operand]:
    """Return the tensors that operators read or write, by name."""
    names = dict.fromkeys(name for operator in operators for name in (*operator.reads, *operator.writes))
    written = {name for operator in operators for name in operator.writes}
    return {name: _operand(shape, name, name in written) for name in names}


def _operand(shape: Shape, name: str, written: bool) -> Operand:
    width = MASK_BYTES if name == "mask" else shape.element_bytes
    if name in ("Q", "O", "dO", "dQ"):
        elements = shape.heads * shape.rows_q * shape.head_dim
        return Operand(Kind.OUTPUT if written else Kind.INPUT, width, elements, elements)
    if name in ("K", "V", "dK", "dV"):
        elements = shape.heads * shape.rows_k * shape.head_dim
        distinct = elements if written else shape.heads_k * shape.rows_k * shape.head_dim
        return Operand(Kind.OUTPUT if written else Kind.INPUT, width, elements, distinct)
    return Operand(Kind.WORKSPACE, width, shape.scores, shape.scores, before=not written)


def accesses(shape: Shape, operators: tuple[Operator, ...]) -> list[Access]:
    """Return what each operator moves."""
    tensors = operands(shape, operators)
    found = []
    for operator in operators:
        for name in operator.reads:
            of = tensors[name]
            once = of.distinct
            found.append(
                Access(operator.name, name, of.kind, Reuse.OPERAND, of.width, read=of.elements, distinct_read=once)
            )
        for name in operator.writes:
            of = tensors[name]
            once = of.distinct
            found.append(
                Access(
                    operator.name, name, of.kind, Reuse.OPERAND, of.width, written=of.elements, distinct_written=once
                )
            )
    return found


def saved_bytes(shape: Shape, convention: Convention) -> int:
    """Return what the forward pass keeps for the backward pass: Q, K, V, P, and with dropout the mask and what is left.

    Linear attention memory is what the flash algorithms are about: this grows with the square of the length.
    """
    per_score = shape.element_bytes + (shape.element_bytes + MASK_BYTES if convention.dropout else 0)
    inputs = (shape.heads * shape.rows_q + 2 * shape.heads_k * shape.rows_k) * shape.head_dim
    return inputs * shape.element_bytes + shape.scores * per_score
