"""The command line: one function per command, which parses, calls the API and prints; one file per room."""

from __future__ import annotations

import sys
from importlib import import_module

#: Of each command, the room that registers it, in the order in which the help lists them.
ROOMS = {
    "trace": "route",
    "graph": "route",
    "report": "route",
    "symbols": "symbols",
    "check": "symbols",
    "kernel": "kernel",
    "decode": "kernel",
    "io": "traffic",
    "validate": "reference",
}


def app() -> None:
    """Run the command that the arguments name. Only its room is imported; all are for help and for a wrong name."""
    from tracer.cli.options import app as program

    asked = sys.argv[1] if len(sys.argv) > 1 else ""
    for room in [ROOMS[asked]] if asked in ROOMS else dict.fromkeys(ROOMS.values()):
        import_module(f"tracer.cli.{room}")
    program()


__all__ = ["ROOMS", "app"]
