"""Compile-time features: what the match assumes to be off, and what else must match when it is on.

A flag that brings in operations or arguments which the algorithm does not have (a hyperbolic tangent, random bits,
slopes) is a feature of its own, reported as an assumption. Any other flag — a mask, an even length — must leave the
algorithm what it is, so the kernel is compared once more with it on.
"""

from __future__ import annotations

from collections.abc import Mapping

from tracer.dataflow.algebra import Term
from tracer.dataflow.compare import Comparison
from tracer.dataflow.diagnose import Finding
from tracer.dataflow.match import Matcher


def _flags(comparison: Comparison) -> list[str]:
    """Return the flags below the kernel's matched outputs."""
    found = {str(term.detail): None for term in _below(comparison, None) if term.op == "flag"}
    return list(found)


def _below(comparison: Comparison, flags: Mapping[str, bool] | None) -> list[Term]:
    """Return the terms below the matched outputs; with ``flags``, only what is compiled in (others are off)."""
    terms = comparison.kernel
    found: dict[int, Term] = {}
    waiting = [terms.outputs[k] for k in comparison.match.outputs.values() if k is not None]
    while waiting:
        term = waiting.pop()
        if term.number in found:
            continue
        found[term.number] = term
        if term.op == "flag" and flags is not None:
            waiting.append(term.args[0 if flags.get(str(term.detail), False) else 1])
        else:
            waiting += [*term.args, *(x for x in (term.step, term.start) if x is not None)]
    return list(found.values())


def _vocabulary(comparison: Comparison, flags: Mapping[str, bool]) -> set[str]:
    """Return the operations and arguments that are compiled in."""
    terms = _below(comparison, flags)
    return {f"{term.op} {term.detail}" if term.op == "input" else term.op for term in terms} - _NOTHING_NEW


_NOTHING_NEW = frozenset(("join", "undefined", "scalar", "flag", "constant"))


def _on(comparison: Comparison, flag: str) -> tuple[bool, set[str]]:
    """Match the kernel with one flag on: whether it matches, and what is new in it."""
    base = {name: value for name, value in comparison.match.flags.items() if name != flag}
    new = _vocabulary(comparison, {**base, flag: True}) - _vocabulary(comparison, {**base, flag: False})
    matcher = Matcher(comparison.paper, comparison.kernel, flags={flag: True})
    return matcher.match().ok, new


def features(comparison: Comparison) -> list[str]:
    """Return what the match assumes of the flags."""
    notes = []
    for flag in sorted(_flags(comparison)):
        if not comparison.match.ok:
            continue
        matches, new = _results(comparison)[flag]
        if not matches and new:
            notes.append(f"{flag} is false (it brings in {', '.join(sorted(_shown(name) for name in new))})")
        elif not matches:
            notes.append(f"{flag} is false")
    return notes


def _shown(name: str) -> str:
    return name.removeprefix("call ").removeprefix("input ")


_CACHE: dict[int, dict[str, tuple[bool, set[str]]]] = {}


def _results(comparison: Comparison) -> dict[str, tuple[bool, set[str]]]:
    key = id(comparison)
    if key not in _CACHE:
        _CACHE.clear()
        _CACHE[key] = {flag: _on(comparison, flag) for flag in _flags(comparison)}
    return _CACHE[key]


def feature_findings(comparison: Comparison) -> list[Finding]:
    """Return which flags change the algorithm although they bring nothing new into it."""
    found = []
    for flag, (matches, new) in _results(comparison).items():
        if not matches and not new:
            found.append(Finding("different", f"with {flag} on, the kernel does not compute the algorithm any more"))
    return found
