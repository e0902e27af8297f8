"""The paper's value flow as a Mermaid graph, with the checkout's and the reference kernel's names on each node."""

from __future__ import annotations

from tracer.render import symbols_wording as wording
from tracer.render.escape import visible
from tracer.symbols import Row, SymbolTable

_COLOURS = {
    "agrees": "fill:#e8f3ec,stroke:#2f7d4f",
    "differs": "fill:#fbe9e7,stroke:#b3261e",
    "missing": "fill:#f4f4f4",
}


def flow(table: SymbolTable) -> str:
    """Return the value flow of a symbol table: one node a symbol, one arrow where one enters another's operation."""
    numbers = {row.symbol: f"s{number}" for number, row in enumerate(table.rows)}
    lines = ["flowchart TD"]
    lines += [f'  {numbers[row.symbol]}["{_label(row)}"]:::{row.status}' for row in table.rows]
    arrows: dict[tuple[str, str], str] = {}
    for step in table.check.steps:
        if step.operand in numbers and step.result in numbers:
            arrows.setdefault((step.operand, step.result), step.checkout)
    for (operand, result), verdict in arrows.items():
        arrow = "-->" if verdict == "agrees" else "-.->"
        lines.append(f"  {numbers[operand]} {arrow} {numbers[result]}")
    lines += [f"  classDef {status} {style}" for status, style in _COLOURS.items()]
    return "\n".join(lines) + "\n"


def _label(row: Row) -> str:
    held = wording.main_variables(row, limit=1)
    names = [f"{visible(held[0].name)} {wording.place(held[0].location)}"] if held else ["no variable of its own"]
    if row.reference:
        names.append(f"reference: {visible(row.reference[0].name)}")
    parts = [f"<b>{_escaped(wording.symbol(row.symbol))}</b>", *[_escaped(name) for name in names]]
    return "<br>".join(parts)


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace('"', "&quot;")
