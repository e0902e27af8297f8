"""Index sets, loop bounds, tile offsets and barriers: what the terms do not say."""

from __future__ import annotations

from tracer.dataflow.barriers import barrier_findings
from tracer.dataflow.compare import Comparison
from tracer.dataflow.coverage import coverage_findings
from tracer.dataflow.diagnose import Finding
from tracer.dataflow.match import main_loops
from tracer.dataflow.slices import slice_findings


def index_findings(comparison: Comparison) -> list[Finding]:
    """Return what is wrong with index sets, loop bounds, tile offsets and barriers."""
    graph, flags = comparison.kernel.graph, comparison.match.flags
    found = barrier_findings(graph, flags, main_loops(comparison.kernel))
    return found + coverage_findings(comparison) + slice_findings(comparison)
