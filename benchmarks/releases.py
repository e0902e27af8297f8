"""A route on every 2.x release that the package index has: complete, and how long each takes."""

from __future__ import annotations

import time

from tracer.checkout import open_checkout
from tracer.checkout.release import source_archives
from tracer.graph import Program
from tracer.route import trace


def main() -> None:
    seconds = []
    for version in source_archives():
        if not version.startswith("2."):
            continue
        checkout = open_checkout(f"pypi:{version}")
        began = time.perf_counter()
        with Program(checkout, cache=False) as program:
            route = trace(program)
        seconds.append(time.perf_counter() - began)
        unresolved = len(route.coverage.unresolved)
        print(f"{version:12s} {len(route.steps):3d} steps  {unresolved} unresolved  {seconds[-1] * 1000:5.0f} ms")
    print(f"{len(seconds)} releases, {sum(seconds):.1f} s")
