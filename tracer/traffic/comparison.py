"""Measured against predicted: which launch a profiled kernel is, the ratios, and what a mismatch points to."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

from tracer.records import dataclass
from tracer.traffic.answer import IoRow
from tracer.traffic.counts import LaunchBytes
from tracer.traffic.measured import Measurement, MeasurementError, short_names

#: How far measured and predicted may differ before it says something.
REQUESTS_TOLERANCE = 0.10
DRAM_TOLERANCE = 0.15

#: Words in a kernel's name that tell which launch of a pass it is, the more telling ones first.
_WORDS = (
    ("combine", r"combine|reduce_?split"),
    ("convert", r"convert|postprocess"),
    ("sum heads", r"(?<![a-z])(sum|reduce)(?![a-z])"),
    ("D", r"dot|preprocess|delta|_d$"),
    ("gradients", r"bwd|backward|dgrad"),
    ("attention", r"fwd|forward|fprop|attention|attn|fmha"),
)

#: Takes a kernel's name apart: its tile's B_r and B_c, or None.
TileDecoder = Callable[[str], tuple[int, int] | None]


@dataclass(frozen=True, slots=True)
class Comparison:
    """One kernel of a profile against the launch that it is.

    Attributes:
        kernel: its name without namespaces and arguments.
        times: how many launches of it were profiled; the bytes are their mean.
        launch: the launch it was taken for, with the predicted bytes.
        dram_bytes: measured; None where it was not.
        l2_bytes: measured; None where it was not.
        level: ``agrees``, or the level that a mismatch points to: ``tile traffic``, ``L2`` or ``compulsory``.
        verdict: one sentence.
    """

    kernel: str
    times: int
    launch: LaunchBytes
    dram_bytes: float | None
    l2_bytes: float | None
    level: str
    verdict: str

    @property
    def dram_ratio(self) -> float | None:
        """Measured by predicted DRAM bytes."""
        return _ratio(self.dram_bytes, self.launch.dram_bytes)

    @property
    def l2_ratio(self) -> float | None:
        """Measured bytes at L2 by predicted tile traffic."""
        return _ratio(self.l2_bytes, self.launch.tile_bytes)


def compare(
    measurements: Sequence[Measurement],
    row: IoRow,
    *,
    kernels: Mapping[str, str] | None = None,
    decode: TileDecoder | None = None,
) -> tuple[Comparison, ...]:
    """Match profiled kernels with the launches of a prediction.

    Args:
        measurements: from ``read_measurements``.
        row: the prediction.
        kernels: launch by kernel name, from a checkout's dispatch answer; without it the words in the names decide.
        decode: takes a kernel's name apart, so that a profile of another tile is noticed.

    Returns:
        One entry per kernel of the profile that belongs to the prediction, in order of appearance.

    Raises:
        MeasurementError: no kernel of the profile belongs to it.
    """
    launches = {launch.launch: launch for launch in row.launches}
    found = []
    for name in short_names(measurements):
        alike = [one for one in measurements if one.base_name == name]
        launch = launches.get((kernels or {}).get(name) or _launch_by_words(name, launches))
        if launch is None:
            continue
        dram = _mean([one.dram_bytes for one in alike])
        l2 = _mean([one.l2_bytes for one in alike])
        level, verdict = _verdict(launch, dram, l2, _other_tile(alike[0], row, decode))
        found.append(Comparison(name, len(alike), launch, dram, l2, level, verdict))
    if not found:
        known = ", ".join(short_names(measurements)[:4])
        raise MeasurementError(
            f"no kernel of the profile is a launch of {row.algorithm} ({', '.join(launches)}); profiled: {known}"
        )
    return tuple(found)


def _launch_by_words(name: str, launches: Mapping[str, LaunchBytes]) -> str:
    for launch, words in _WORDS:
        if re.search(words, name, re.IGNORECASE):
            return launch if launch in launches else ""
    return ""


def _other_tile(measurement: Measurement, row: IoRow, decode: TileDecoder | None) -> str:
    tile = decode(measurement.kernel) if decode is not None else None
    if tile is None or row.tile is None or tile == (row.tile.block_m, row.tile.block_n):
        return ""
    return (
        f"the profiled kernel has tile {tile[0]} × {tile[1]}, the model counted {row.tile.block_m} × {row.tile.block_n}"
    )


def _verdict(launch: LaunchBytes, dram: float | None, l2: float | None, other_tile: str) -> tuple[str, str]:
    if other_tile:
        return "tile traffic", other_tile
    requested = _ratio(l2, launch.tile_bytes)
    if requested is not None and requested > 1 + REQUESTS_TOLERANCE:
        return "tile traffic", (
            "more is requested than the tiles need: another tile, tiles that the mask should have skipped, or "
            "registers spilled to memory"
        )
    if requested is not None and requested < 1 - REQUESTS_TOLERANCE:
        return "tile traffic", (
            "less reaches L2 than the tiles request: L1 or multicast serves a part, or the profile is of a smaller call"
        )
    if dram is None or launch.dram_bytes is None:
        said = (
            "requests as modelled" if requested is not None else "nothing to compare: name a GPU to predict DRAM bytes"
        )
        return "agrees" if requested is not None else "L2", said
    if dram < (1 - DRAM_TOLERANCE) * launch.compulsory_bytes:
        return "compulsory", (
            "less than the tensors themselves came from DRAM: they were in L2 before, or results stayed there; profile "
            "with --cache-control all"
        )
    ratio = dram / launch.dram_bytes
    if ratio > 1 + DRAM_TOLERANCE:
        near = " (near the tile traffic: as if nothing were kept)" if dram > 0.8 * launch.tile_bytes else ""
        return "L2", f"L2 keeps less than simulated{near}: other work shares it, or its halves hold tiles twice"
    if ratio < 1 - DRAM_TOLERANCE:
        return "L2", "L2 keeps more than simulated"
    return "agrees", "as predicted"


def _ratio(measured: float | None, predicted: int | None) -> float | None:
    return measured / predicted if measured is not None and predicted else None


def _mean(values: Sequence[int | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None
