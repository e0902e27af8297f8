"""The symbol table and the cross-check as plain data for JSON, in the shapes that ``tracer/schemas`` lays down."""

from __future__ import annotations

from typing import Any

from tracer.crosscheck import CrossCheck, KernelCheck, Problem
from tracer.model import Location
from tracer.render import json_data
from tracer.symbols import Row, SymbolTable, Variable

Data = dict[str, Any]

SYMBOLS = "flashtracer/symbols/1"
CHECK = "flashtracer/check/1"


def symbols(table: SymbolTable) -> Data:
    """Return a symbol table as ``flashtracer/symbols/1``."""
    return {
        "schema": SYMBOLS,
        "checkout": json_data.checkout(table.checkout),
        "algorithm": table.algorithm,
        "function": {"name": table.function.qualified_name, "location": _location(table.function.location)},
        "rows": [_row(row) for row in table.rows],
        "loops": [
            {
                "index": loop.index,
                "location": _location(loop.location),
                "variable": loop.variable,
                "order": loop.order,
                "masked": loop.is_masked,
            }
            for loop in table.loops
        ],
        "sizes": [
            {"symbol": size.symbol, "name": size.name, "location": _location(size.location), "note": size.note}
            for size in table.sizes
        ],
        "masks": [_location(mask) for mask in table.masks],
        "assumptions": list(table.check.assumptions),
        "steps": {"matched": table.check.matched, "total": len(table.check.steps)},
        "missing_steps": [_problem(problem) for problem in table.check.problems],
    }


def check(answer: CrossCheck) -> Data:
    """Return a cross-check as ``flashtracer/check/1``."""
    return {
        "schema": CHECK,
        "checkout": json_data.checkout(answer.checkout),
        "agrees": answer.ok,
        "steps": {"matched": answer.matched, "total": answer.steps},
        "checks": [_check(found) for found in answer.checks],
        "problems": [_problem(problem) for problem in answer.problems],
        "not_checked": list(answer.not_checked),
        "blind_spots": list(answer.blind_spots),
    }


def _row(row: Row) -> Data:
    return {
        "symbol": row.symbol,
        "meaning": row.meaning,
        "shape": row.shape,
        "paper_line": row.paper_line,
        "variables": [_variable(variable) for variable in row.variables],
        "defined_at": _defined_at(row),
        "reference": _reference(row),
        "reference_variables": [_variable(variable) for variable in row.reference],
        "status": row.status,
        "evidence": list(row.evidence),
    }


def _defined_at(row: Row) -> list[Data | None]:
    places = dict.fromkeys(holding.at for variable in row.variables for holding in variable.holds)
    return [_location(place) for place in places]


def _reference(row: Row) -> Data | None:
    if not row.reference:
        return None
    return {"name": row.reference[0].name, "location": _location(row.reference[0].location)}


def _variable(variable: Variable) -> Data:
    return {
        "name": variable.name,
        "qualified_name": variable.qualified_name,
        "location": _location(variable.location),
        "storage": variable.storage,
        "form": variable.form,
        "view": variable.is_view,
        "holds": [
            {"at": _location(held.at), "until": _location(held.until), "operation": held.operation}
            for held in variable.holds
        ],
    }


def _check(found: KernelCheck) -> Data:
    return {
        "role": found.role,
        "algorithm": found.algorithm,
        "function": {"name": found.function.qualified_name, "location": _location(found.function.location)},
        "kernel": {"name": found.kernel.qualified_name, "location": _location(found.kernel.location)},
        "agrees": found.ok,
        "matched": found.matched,
        "steps": [
            {
                "number": step.number,
                "title": step.title,
                "formula": step.formula,
                "operand": step.operand,
                "result": step.result,
                "paper_line": step.paper_line,
                "checkout": step.checkout,
                "reference": step.reference,
                "location": _location(step.location),
                "reference_location": _location(step.reference_location),
            }
            for step in found.steps
        ],
        "problems": [_problem(problem) for problem in found.problems],
        "assumptions": list(found.assumptions),
        "confirmed": found.confirmed,
        "inputs": dict(found.inputs),
        "outputs": dict(found.outputs),
        "unknown": [{"name": name, "location": _location(place)} for name, place in found.unknown],
    }


def _problem(problem: Problem) -> Data:
    return {
        "kind": problem.kind,
        "title": problem.title,
        "message": problem.message,
        "location": _location(problem.location),
        "chain": [_location(place) for place in problem.chain],
        "where": problem.where,
    }


def _location(location: Location | None) -> Data | None:
    if location is None:
        return None
    return {
        "file": location.file, "line": location.line, "column": location.column, "end_line": location.end_line,
    }  # fmt: skip
