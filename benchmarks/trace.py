"""A cold and a cached forward trace of 2.8.3, against doxygen's XML of the same sources, process start included."""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path

from benchmarks.measure import Timing, in_turn, ratio
from tracer.checkout import open_checkout

ROUNDS = 7
VERSION = "2.8.3"


def main() -> None:
    root = open_checkout(f"pypi:{VERSION}").root
    trace = [sys.executable, "-m", "tracer", "trace", str(root)]
    with tempfile.TemporaryDirectory() as folder:
        kept = {"FLASHTRACER_CACHE": folder}
        cold, cached = Timing(f"trace {VERSION}, cold"), Timing(f"trace {VERSION}, cached")
        rows = [(cold, [*trace, "--no-cache"], kept), (cached, trace, kept)]
        peer = Timing("doxygen, XML of csrc/flash_attn + flash_attn")
        if shutil.which("doxygen"):
            settings = Path(folder) / "Doxyfile"
            # What it takes for doxygen to know calls: macros expanded, sources browsed, references recorded.
            settings.write_text(
                f"INPUT={root}/csrc/flash_attn {root}/flash_attn\nRECURSIVE=YES\nGENERATE_XML=YES\nGENERATE_HTML=NO\n"
                f"GENERATE_LATEX=NO\nOUTPUT_DIRECTORY={folder}/xml\nQUIET=YES\nWARNINGS=NO\nEXTRACT_ALL=YES\n"
                "EXTENSION_MAPPING=cu=C++ cuh=C++\nFILE_PATTERNS=*.h *.cuh *.cu *.cpp *.py\nMACRO_EXPANSION=YES\n"
                "SOURCE_BROWSER=YES\nREFERENCES_RELATION=YES\nREFERENCED_BY_RELATION=YES\nCALL_GRAPH=YES\nHAVE_DOT=NO\n"
            )
            rows.append((peer, ["doxygen", str(settings)], {}))
        in_turn(ROUNDS, *rows)
        for timing, _, _ in rows:
            print(timing)
        print(f"cached / cold   {ratio(cached, cold)}   aim: at most 0.50")
        if peer.wall:
            print(f"cold / doxygen  {ratio(cold, peer)}   aim: at most 0.33")
        else:
            print("cold / doxygen  not measured: doxygen is not installed")
