"""Reads what Nsight Compute measured: the text of ``ncu --csv``, or an ``.ncu-rep`` file through ``ncu-report``."""

from __future__ import annotations

import csv
import os
import re
from collections.abc import Iterable, Sequence

from tracer.errors import MissingTool, TracerError
from tracer.records import dataclass

DRAM = "dram__bytes.sum"
DRAM_PARTS = ("dram__bytes_read.sum", "dram__bytes_write.sum")
L2 = "lts__t_bytes.sum"
TIME = "gpu__time_duration.sum"

_SCALES = {
    "": 1.0, "byte": 1.0, "b": 1.0, "kbyte": 1e3, "kb": 1e3, "mbyte": 1e6, "mb": 1e6, "gbyte": 1e9, "gb": 1e9,
    "tbyte": 1e12, "tb": 1e12, "second": 1.0, "s": 1.0, "msecond": 1e-3, "ms": 1e-3, "usecond": 1e-6, "us": 1e-6,
    "nsecond": 1e-9, "ns": 1e-9, "sector": 32.0, "ksector": 32e3, "msector": 32e6, "gsector": 32e9,
}  # fmt: skip
_WANTED = (DRAM, *DRAM_PARTS, L2, TIME)
_LARGEST_FILE = 1 << 28


class MeasurementError(TracerError):
    """A profile that cannot be read, or that lacks what is needed."""


@dataclass(frozen=True, slots=True)
class Measurement:
    """One profiled launch.

    Attributes:
        kernel: its name as the profiler shows it.
        number: of the launch within the profile.
        dram_bytes: ``dram__bytes.sum``, or reads and writes added up; None where not measured.
        l2_bytes: ``lts__t_bytes.sum``; None where not measured.
        seconds: ``gpu__time_duration.sum``; None where not measured.
    """

    kernel: str
    number: str
    dram_bytes: int | None
    l2_bytes: int | None
    seconds: float | None = None

    @property
    def base_name(self) -> str:
        """The kernel's name without return type, namespaces, template arguments and parameters."""
        return base_name(self.kernel)


def read_measurements(source: str | os.PathLike[str]) -> tuple[Measurement, ...]:
    """Read a profile.

    Args:
        source: path of a file — ``.ncu-rep``, or the output of ``ncu --csv``, with the lines of the profiled program
            before it — or that output itself, which has line breaks.

    Returns:
        One entry per profiled launch, in order.

    Raises:
        MeasurementError: no such file, not a profile, or one without DRAM and L2 bytes.
        MissingTool: an ``.ncu-rep`` file, and the package that reads it is not installed.
    """
    text = os.fspath(source)
    if "\n" in text:
        return read_csv(text, "the given text")
    if not os.path.isfile(text):
        raise MeasurementError(f"no profile at '{text}'; give the output of ncu --csv, or an .ncu-rep file")
    if text.endswith(".ncu-rep"):
        return read_report(text)
    if os.path.getsize(text) > _LARGEST_FILE:
        raise MeasurementError(
            f"'{text}' is larger than {_LARGEST_FILE >> 20} MiB; profile fewer kernels: --kernel-name"
        )
    with open(text, "rb") as file:
        content = file.read()
    if content[:4] == b"NVR\0" or b"\0" in content[:4096] and content[:2] not in (b"\xff\xfe", b"\xfe\xff"):
        raise MeasurementError(f"'{text}' is binary; name a report .ncu-rep, or print it with ncu --import … --csv")
    encoding = "utf-16" if content[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"
    return read_csv(content.decode(encoding, "replace"), f"'{text}'")


def read_csv(text: str, where: str) -> tuple[Measurement, ...]:
    """Read the text of ``ncu --csv``, with one line per metric or, with ``--page raw``, one per launch.

    Args:
        text: the output.
        where: where it is from, for messages.

    Raises:
        MeasurementError: it holds no such table, or no metric that is needed.
    """
    header: list[str] = []
    found: dict[tuple[int, str, str], dict[str, float]] = {}
    units: list[str] = []
    names: set[str] = set()
    table = 0
    for fields in csv.reader(line for line in text.splitlines() if not line.startswith("==")):
        if "Kernel Name" in fields:
            header, units, table = fields, [], table + 1
            continue
        if not header or len(fields) != len(header):
            continue
        row = dict(zip(header, fields, strict=True))
        if "Metric Name" not in header and not row.get("ID", "").strip():
            units = fields  # --page raw has a line of units below the names
            continue
        launch = found.setdefault((table, row.get("ID", ""), row["Kernel Name"]), {})
        if "Metric Name" in header:
            names.add(row["Metric Name"])
            _keep(launch, row["Metric Name"], row.get("Metric Value", ""), row.get("Metric Unit", ""), where)
            continue
        for number, (name, value) in enumerate(row.items()):
            if "__" in name:
                names.add(name)
                _keep(launch, name, value, units[number] if units else "", where)
    if not header:
        raise MeasurementError(
            f"{where} has no table of ncu --csv, which begins with a line of names, 'Kernel Name' among them"
        )
    return _measurements(((kernel, number, found[_, number, kernel]) for _, number, kernel in found), names, where)


def read_report(path: str) -> tuple[Measurement, ...]:
    """Read an ``.ncu-rep`` file.

    Raises:
        MissingTool: the package ``ncu-report`` is not installed.
        MeasurementError: it cannot be read as a report, or lacks the metrics.
    """
    try:
        import ncu_report  # type: ignore[import-not-found, import-untyped, unused-ignore]
    except ImportError as error:
        raise MissingTool(
            f"reading '{path}' needs the package ncu-report: pip install 'flashtracer[ncu]', or print the report as "
            f"text with: ncu --import {path} --page raw --csv"
        ) from error
    names: set[str] = set()
    launches: list[tuple[str, str, dict[str, float]]] = []
    try:
        report = ncu_report.load_report(path)
        for range_index in range(report.num_ranges()):
            profiled = report.range_by_idx(range_index)
            for index in range(profiled.num_actions()):
                action = profiled.action_by_idx(index)
                values: dict[str, float] = {}
                for name in action.metric_names():
                    names.add(name)
                    if name in _WANTED:
                        metric = action.metric_by_name(name)
                        values[name] = float(metric.as_double()) * _scale(str(metric.unit()))
                kernel = str(action.name(action.NameBase_DEMANGLED))
                launches.append((kernel, str(len(launches)), values))
    except (RuntimeError, OSError, ValueError, AttributeError, TypeError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise MeasurementError(f"'{path}' cannot be read as an Nsight Compute report: {reason}") from error
    return _measurements(launches, names, f"'{path}'")


def base_name(kernel: str) -> str:
    """Return a kernel's name without return type, namespaces, template arguments and parameters.

    A mangled name is demangled first; what cannot be taken apart is returned as it is.
    """
    text = kernel.strip()
    if text.startswith("_Z"):
        text = _demangled(text)
    text = text.replace("(anonymous namespace)::", "")
    head = re.split(r"[<(]", text, maxsplit=1)[0]
    return re.split(r"::|\s", head.strip())[-1] or kernel


def _demangled(text: str) -> str:
    try:
        from itanium_demangler import parse  # type: ignore[import-untyped]

        return str(parse(text) or text)
    except (ImportError, NotImplementedError):
        return text


def _measurements(
    launches: Iterable[tuple[str, str, dict[str, float]]], names: set[str], where: str
) -> tuple[Measurement, ...]:
    found = []
    for kernel, number, values in launches:
        dram = values.get(DRAM)
        if dram is None and all(part in values for part in DRAM_PARTS):
            dram = sum(values[part] for part in DRAM_PARTS)
        l2 = values.get(L2)
        whole = None if dram is None else round(dram)
        found.append(Measurement(kernel, number, whole, None if l2 is None else round(l2), values.get(TIME)))
    if not found:
        raise MeasurementError(f"{where} holds no profiled kernel; does --kernel-name match one that runs?")
    if all(one.dram_bytes is None and one.l2_bytes is None for one in found):
        known = ", ".join(sorted(names)[:4]) + (", …" if len(names) > 4 else "") if names else "no metric at all"
        raise MeasurementError(f"{where} has neither {DRAM} nor {L2} but {known}; profile with --metrics {DRAM},{L2}")
    return tuple(found)


def _keep(launch: dict[str, float], name: str, value: str, unit: str, where: str) -> None:
    if name not in _WANTED or not value.strip() or value.strip().lower() in ("n/a", "nan", "(!) n/a"):
        return
    launch[name] = _number(value, name, where) * _scale(unit)


def _scale(unit: str) -> float:
    known = _SCALES.get(unit.strip().lower())
    if known is None:
        raise MeasurementError(f"unknown unit '{unit}' in a profile; print it with ncu --print-units base")
    return known


def _number(text: str, name: str, where: str) -> float:
    """Read a number that may have separators of thousands, in either custom of comma and point."""
    plain = re.sub(r"[\s'\u00a0\u202f]", "", text)
    comma, point = plain.rfind(","), plain.rfind(".")
    if comma >= 0 and point >= 0:
        plain = plain.replace(",", "") if point > comma else plain.replace(".", "").replace(",", ".")
    elif comma >= 0:
        plain = plain.replace(",", "") if re.fullmatch(r"-?\d{1,3}(,\d{3})+", plain) else plain.replace(",", ".")
    elif plain.count(".") > 1:
        plain = plain.replace(".", "")
    try:
        value = float(plain)
    except ValueError:
        raise MeasurementError(f"{where} gives {name} as '{text}', which is no number") from None
    if not 0 <= value < float("inf"):
        raise MeasurementError(f"{where} gives {name} as '{text}', which is no number of bytes")
    return value


def short_names(measurements: Sequence[Measurement]) -> tuple[str, ...]:
    """Return the different kernels of a profile by their short names, in order of appearance."""
    return tuple(dict.fromkeys(one.base_name for one in measurements))
