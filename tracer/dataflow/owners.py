"""Whether what the host passes for a tensor belongs to that tensor: its pointer, its strides, the order of Q, K and V.

PyTorch's ``Tensor.stride(n)`` is the distance of elements along dimension n. The host function that fills the kernel's
argument struct takes tensors; a stride that it takes of one of them must not move the pointer of another.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from tracer.dataflow.addresses import Address
from tracer.dataflow.compare import Comparison
from tracer.dataflow.cuda import Kernel
from tracer.dataflow.diagnose import Finding
from tracer.dataflow.host import HostCode
from tracer.dataflow.ir import Value
from tracer.dataflow.match import main_loops
from tracer.dataflow.names import plain
from tracer.dataflow.tiles import Access, accesses_of

_STRIDE = re.compile(r"stride<(\w+)>")
#: The order in which the interface takes tensors.
_ORDERS = (("Q", "K", "V"), ("dK", "dV"))


def owner_findings(comparison: Comparison, host: HostCode) -> list[Finding]:
    """Return the tensors whose pointers or strides are another tensor's, as far as the host code tells."""
    kernel = comparison.kernel.graph
    assert isinstance(kernel, Kernel)
    accesses, _ = accesses_of(comparison, main_loops(comparison.kernel))
    names = {symbol: name for symbol, name in comparison.match.inputs.items()}
    names |= {symbol: name for symbol, name in comparison.match.outputs.items() if name is not None}
    fields = {symbol: name.rpartition(".")[2] for symbol, name in names.items() if "." in name}
    found: dict[str, Finding] = {}
    for filled in host.filled(fields.values()):
        owners = {symbol: _input(filled, field) for symbol, field in fields.items()}
        for finding in (*_exchanged(filled, owners, fields), *_foreign(kernel, filled, owners, accesses)):
            found.setdefault(finding.message, finding)
    return list(found.values())[:1]


def _input(filled: Kernel, field: str) -> str:
    """Return the argument of a host function that a member is made of; empty where that is not one."""
    value = _assigned(filled, field)
    return value.text if value is not None and value.op == "input" else ""


def _assigned(filled: Kernel, field: str) -> Value | None:
    for name, storage in filled.inputs.items():
        if name.rpartition(".")[2] == field and storage in filled.state:
            value = filled.state[storage]
            if value is not filled.roots[storage]:
                return plain(value)
    return None


def _exchanged(filled: Kernel, owners: dict[str, str], fields: dict[str, str]) -> Iterator[Finding]:
    """Yield the tensors that the host function takes in another order than the interface does."""
    for order in _ORDERS:
        known = [symbol for symbol in order if owners.get(symbol) in filled.parameter_names]
        places = [filled.parameter_names.index(owners[symbol]) for symbol in known]
        for number in range(1, len(known)):
            if places[number] < places[number - 1]:
                one, other = known[number - 1], known[number]
                value = _assigned(filled, fields[one])
                message = (
                    f"{one} and {other} are exchanged: the kernel takes as {one} what the host gets as "
                    f"{owners[one]}, and as {other} what it gets as {owners[other]}"
                )
                yield Finding("swapped", message, None, filled.location(value.site if value is not None else None))


def _foreign(kernel: Kernel, filled: Kernel, owners: dict[str, str], accesses: Sequence[Access]) -> Iterator[Finding]:
    """Yield the tensors whose place is computed with a stride of another one, or with that of another dimension."""
    rows: dict[str, tuple[str, int]] = {}
    for access in accesses:
        owner = owners.get(access.symbol, "")
        location, chain = kernel.location(access.value.site), kernel.calls(access.value.chain)
        for leaf in _leaves(kernel, access.address) if owner else ():
            strides = _strides(filled, leaf.rpartition(".")[2])
            if strides and all(tensor != owner for tensor, _ in strides):
                name = access.value.storage.name if access.value.storage is not None else access.symbol
                message = (
                    f"{name}, which the host makes of {owner}, is addressed with {leaf}, a stride of {strides[0][0]}"
                )
                yield Finding("bounds", message, None, location, chain)
        if owner and access.address.rows is not None:
            value = kernel.tuples.get(plain(access.address.rows.strides).number, ())
            leaf = plain(value[access.address.rows.number]).text if value else ""
            for _, dimension in _strides(filled, leaf.rpartition(".")[2]):
                rows[access.symbol] = leaf, dimension
    for symbol, (leaf, dimension) in rows.items():
        others = {other: row for other, row in rows.items() if row[1] != dimension}
        if len(others) > len(rows) / 2:
            other, (their_leaf, theirs) = next(iter(others.items()))
            message = (
                f"the rows of {symbol} are taken to be along dimension {dimension} of its tensor ({leaf}), "
                f"those of {other} along dimension {theirs} ({their_leaf})"
            )
            value_ = _assigned(filled, leaf.rpartition(".")[2])
            yield Finding("bounds", message, None, filled.location(value_.site if value_ is not None else None))


def _strides(filled: Kernel, field: str) -> list[tuple[str, int]]:
    """Return the strides that a member is made of: (argument of the host function, dimension)."""
    value = _assigned(filled, field) if field else None
    found = []
    for inner in _below([value] if value is not None else []):
        match = _STRIDE.fullmatch(inner.text) if inner.op == "shape" else None
        dimension = plain(inner.args[0]).constant if match is not None and inner.args else None
        if match is not None and isinstance(dimension, int):
            found.append((match.group(1), dimension))
    return found


def _leaves(kernel: Kernel, address: Address) -> list[str]:
    """Return the members of the argument struct that an address depends on, whatever conditions say."""
    values = [step.index for step in address.steps]
    modes = [step.mode for step in address.steps] + [address.rows]
    for mode in modes:
        parts = kernel.components(mode.strides) if mode is not None else ()
        values += parts[mode.number : mode.number + 1] if mode is not None else ()
    values += [move.index for walk, _ in address.walks for move in walk.moves]
    found = {value.text for value in _below(values) if value.op == "input" and "." in value.text}
    return sorted(found)


def _below(values: Iterable[Value]) -> Iterator[Value]:
    waiting, seen = list(values), set()
    while waiting:
        value = plain(waiting.pop())
        if value.number not in seen:
            seen.add(value.number)
            yield value
            waiting += value.args
