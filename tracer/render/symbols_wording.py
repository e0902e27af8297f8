"""Words and places that every format of the symbol table and of the cross-check shares."""

from __future__ import annotations

import posixpath

from tracer.crosscheck import CrossCheck, KernelCheck, Problem
from tracer.model import Location
from tracer.render.escape import visible
from tracer.symbols import Row, SymbolTable, Variable

_GREEK = {"alpha": "α", "beta": "β"}
_ROLES = {
    "forward": "forward", "split": "one range of keys", "combine": "ranges put together", "backward": "backward",
    "row sums": "row sums for the backward",
}  # fmt: skip


def symbol(name: str) -> str:
    """Return a symbol as the papers print it."""
    if name in _GREEK:
        return _GREEK[name]
    return "ℓ" + name[1:] if name == "l" or name.startswith("l_") else name


def formula(text: str) -> str:
    """Return a step's formula with the papers' letters."""
    words = text.replace("<-", "←").split(" ")
    return " ".join(_word(word) for word in words)


def _word(word: str) -> str:
    bare = word.strip("(),")
    return (
        word.replace(bare, symbol(bare)) if bare and (bare in _GREEK or bare.startswith("l_") or bare == "l") else word
    )


def role(check: KernelCheck) -> str:
    """Return what a kernel function does."""
    return _ROLES.get(check.role, check.role)


def place(location: Location | None, home: str = "") -> str:
    """Return a place: the file's last component, or only the line where the file is ``home``."""
    if location is None:
        return ""
    name = visible(posixpath.basename(location.file))
    return f":{location.line}" if name == home else f"{name}:{location.line}"


def main_variables(row: Row, limit: int = 2) -> tuple[Variable, ...]:
    """Return the variables to show first: those that own what they hold, of at most ``limit`` names."""
    owning = [variable for variable in row.variables if not variable.is_view] or list(row.variables)
    names = list(dict.fromkeys(variable.name for variable in owning))[:limit]
    return tuple(variable for variable in owning if variable.name in names)


def same_name(variables: tuple[Variable, ...]) -> list[tuple[str, str]]:
    """Return (name, places) of variables, those of one name and file together."""
    found: dict[tuple[str, str], list[str]] = {}
    for variable in variables:
        file = posixpath.basename(variable.location.file)
        found.setdefault((visible(variable.name), visible(file)), []).append(str(variable.location.line))
    return [(name, f"{file}:{','.join(lines)}") for (name, file), lines in found.items()]


def verdict(table: SymbolTable) -> str:
    """Return the table's verdict in a few words."""
    total = len(table.rows)
    if table.agreeing == total and table.check.ok:
        return f"{total} symbols, all agree with the reference kernel"
    return f"{table.agreeing} of {total} symbols agree"


def chain(problem: Problem) -> str:
    """Return where a problem is, and the calls through which that place is reached."""
    if problem.location is None:
        return ""
    text = str(problem.location)
    for site in problem.chain:
        text += f", called at {place(site)}"
    return text


def summary(answer: CrossCheck) -> str:
    """Return the cross-check's verdict in a few words."""
    word = "agrees" if answer.ok else "differs"
    return f"{word:<10}{answer.matched} of {answer.steps} steps of {len(answer.checks)} kernel functions"
