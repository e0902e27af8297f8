"""The command line: one function per command, which parses, calls the API and prints; one file per room."""
# ruff: noqa: I001  (importing a file registers its commands, in the order in which the help lists them)

from __future__ import annotations

from tracer.cli import route, symbols, kernel, traffic, reference  # noqa: F401
from tracer.cli.options import app

__all__ = ["app"]
