"""Index sets and barriers."""

from __future__ import annotations

from tracer.dataflow.compare import Comparison
from tracer.dataflow.diagnose import Finding


def index_findings(comparison: Comparison) -> list[Finding]:
    """Return what is wrong with index sets, loop bounds and barriers."""
    return []
