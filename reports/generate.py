"""Write the reports, and what else the repository keeps of its own answers. Tests compare them with those of now.

Usage: ``python reports/generate.py [VERSION …]``.
"""

from __future__ import annotations

import sys
from pathlib import Path

from tracer.checkout import open_checkout
from tracer.dataflow import counterpart
from tracer.dataflow.reference import Reference
from tracer.graph import Program
from tracer.render.output import write, write_folder
from tracer.report import make_report

VERSIONS = ("2.8.3", "2.0.0.post1")
FOLDER = Path(__file__).parent


def files(version: str) -> dict[str, str]:
    """Return the files of one release's report: name to content."""
    with Program(open_checkout(f"pypi:{version}")) as program:
        # One layout program by name, so that the pictures are the same wherever this runs.
        return make_report(program, programs=("graphviz-pure",))


def main() -> None:
    """Write what the reference kernel comes to, and the reports of the versions named, or of all."""
    with Reference() as reference:
        write(str(counterpart.KEPT), counterpart.as_text(reference))
    for version in sys.argv[1:] or VERSIONS:
        write_folder(str(FOLDER / version), files(version))
        print(FOLDER / version / "report.md")


if __name__ == "__main__":
    main()
