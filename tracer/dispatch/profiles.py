"""Kernel names with counts and times out of what profilers write.

Understood are a torch profiler trace (``.json``, ``.json.gz``), an Nsight Systems export (``.sqlite``, or the CSV of
its kernel summary), an Nsight Compute export (CSV), and plain text with one name a line.
"""

from __future__ import annotations

import csv
import gzip
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tracer.errors import TracerError
from tracer.records import dataclass

_SQLITE_HEAD = b"SQLite format 3\0"
_SCALE = {"ns": 1.0, "nsecond": 1.0, "us": 1e3, "usecond": 1e3, "ms": 1e6, "msecond": 1e6, "s": 1e9, "second": 1e9}


@dataclass(frozen=True, slots=True)
class KernelTime:
    """One kernel name of a profile.

    Attributes:
        name: as the profiler wrote it.
        count: launches.
        nanoseconds: their time on the GPU together; 0 where the profile does not say.
    """

    name: str
    count: int
    nanoseconds: float


def read_profile(path: Path) -> tuple[KernelTime, ...]:
    """Return the kernels of a profile, most time first, then most launches.

    Raises:
        TracerError: the file cannot be read, or is none of the formats above.
    """
    try:
        data = path.read_bytes()
        if data[:2] == b"\x1f\x8b":
            data = gzip.decompress(data)
    except (OSError, EOFError) as error:
        raise TracerError(f"the profile {path.name} cannot be read: {error}") from None
    if data.startswith(_SQLITE_HEAD):
        return _summed(_from_sqlite(path))
    text = data.decode("utf-8", "replace")
    if text.lstrip()[:1] in ("{", "["):
        return _summed(_from_trace(text, path.name))
    return kernels_in_text(text)


def kernels_in_text(text: str) -> tuple[KernelTime, ...]:
    """Return the kernels of a CSV export or of plain lines."""
    rows = list(csv.reader(line for line in text.splitlines() if not line.startswith("==")))
    for number, row in enumerate(rows):
        if "Name" in row and any(cell.startswith("Total Time") for cell in row):
            return _summed(_from_systems(row, rows[number + 1 :]))
        if "Kernel Name" in row:
            return _summed(_from_compute(row, rows[number + 1 :]))
    return _summed(KernelTime(line.strip(), 1, 0) for line in text.splitlines() if line.strip())


def _summed(kernels: Iterable[KernelTime]) -> tuple[KernelTime, ...]:
    counts: dict[str, list[float]] = {}
    for kernel in kernels:
        row = counts.setdefault(kernel.name, [0, 0.0])
        row[0] += kernel.count
        row[1] += kernel.nanoseconds
    found = [KernelTime(name, int(count), time) for name, (count, time) in counts.items()]
    return tuple(sorted(found, key=lambda kernel: (-kernel.nanoseconds, -kernel.count)))


def _from_trace(text: str, file: str) -> Iterable[KernelTime]:
    try:
        trace: Any = json.loads(text)
        events = trace["traceEvents"] if isinstance(trace, dict) else trace
        return [
            KernelTime(str(event["name"]), 1, float(event.get("dur", 0)) * 1e3)
            for event in events
            if event.get("ph") == "X" and str(event.get("cat", "")).lower() == "kernel"
        ]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise TracerError(f"{file} is JSON, but no trace of the torch profiler ({error})") from None


def _from_systems(header: list[str], rows: list[list[str]]) -> Iterable[KernelTime]:
    time = next(number for number, cell in enumerate(header) if cell.startswith("Total Time"))
    scale = _SCALE.get(header[time].partition("(")[2].rstrip(")"), 1.0)
    count = header.index("Instances") if "Instances" in header else None
    name = header.index("Name")
    for row in rows:
        if len(row) == len(header):
            yield KernelTime(
                row[name], int(_number(row[count])) if count is not None else 1, _number(row[time]) * scale
            )


def _from_compute(header: list[str], rows: list[list[str]]) -> Iterable[KernelTime]:
    name = header.index("Kernel Name")
    metric, unit, value = (header.index(cell) if cell in header else None
                           for cell in ("Metric Name", "Metric Unit", "Metric Value"))  # fmt: skip
    launch = header.index("ID") if "ID" in header else None
    seen: set[str] = set()
    for row in rows:
        if len(row) != len(header):
            continue
        key = row[launch] if launch is not None else str(len(seen))
        if key not in seen:
            seen.add(key)
            yield KernelTime(row[name], 1, 0)
        if metric is not None and value is not None and row[metric] in ("gpu__time_duration.sum", "Duration"):
            scale = _SCALE.get(row[unit], 1.0) if unit is not None else 1.0
            yield KernelTime(row[name], 0, _number(row[value]) * scale)


def _number(text: str) -> float:
    try:
        return float(text.replace(",", ""))
    except ValueError:
        return 0.0


def _from_sqlite(path: Path) -> Iterable[KernelTime]:
    import sqlite3

    query = (
        "SELECT s.value, COUNT(*), SUM(k.end - k.start) FROM CUPTI_ACTIVITY_KIND_KERNEL k "
        "JOIN StringIds s ON s.id = k.demangledName GROUP BY s.value"
    )
    try:
        with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as database:
            return [KernelTime(str(name), int(count), float(time)) for name, count, time in database.execute(query)]
    except sqlite3.Error as error:
        raise TracerError(f"{path.name} is a database, but no export of Nsight Systems ({error})") from None
