"""flashtracer: follow one attention call through a flash-attention checkout, from Python to the CUDA kernel.

The names in ``__all__`` are the public interface; everything else may change. Importing this package costs nothing:
each name is loaded when it is first used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tracer.checkout import Checkout, open_checkout
    from tracer.crosscheck import check
    from tracer.errors import TracerError
    from tracer.graph import Program
    from tracer.picture import Picture, draw
    from tracer.report import make_report
    from tracer.route import Route, Wanted, trace
    from tracer.symbols import symbol_table

__version__ = "0.1.0"

__all__ = [
    "Checkout",
    "Picture",
    "Program",
    "Route",
    "TracerError",
    "Wanted",
    "check",
    "draw",
    "make_report",
    "open_checkout",
    "symbol_table",
    "trace",
]

_ROOMS = {
    "Checkout": "checkout",
    "open_checkout": "checkout",
    "TracerError": "errors",
    "Program": "graph",
    "Picture": "picture",
    "draw": "picture",
    "check": "crosscheck",
    "make_report": "report",
    "symbol_table": "symbols",
    "Route": "route",
    "Wanted": "route",
    "trace": "route",
}


def __getattr__(name: str) -> Any:
    """Load a public name from its room."""
    room = _ROOMS.get(name)
    if room is None:
        raise AttributeError(f"module 'tracer' has no attribute '{name}'")
    return getattr(importlib.import_module(f"tracer.{room}"), name)
