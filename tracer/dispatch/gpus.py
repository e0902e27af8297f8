"""The GPUs that people ask about, and any other one by its figures."""

from __future__ import annotations

import re
import sys
from functools import lru_cache
from pathlib import Path
from typing import Any

from tracer.dispatch.answers import Device
from tracer.errors import NameNotFound, TracerError

_FILE = Path(__file__).with_name("gpus.toml")
_MAKER_WORDS = re.compile(r"nvidia|geforce|tesla|quadro|tensor|core|gpu|[^a-z0-9]")


@lru_cache(maxsize=1)
def _table() -> dict[str, Any]:
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
    with _FILE.open("rb") as stream:
        return tomllib.load(stream)


@lru_cache(maxsize=1)
def devices() -> tuple[Device, ...]:
    """Return the known GPUs, oldest architecture first."""
    return tuple(_device(row) for row in _table()["gpu"])


def _device(row: dict[str, Any]) -> Device:
    limits = _table()["limits"]
    major, minor = map(int, row["capability"].split("."))
    per_sm, per_block = limits[row["capability"]]
    return Device(
        row["name"],
        major,
        minor,
        row["sm_count"],
        per_sm * 1024,
        per_block * 1024,
        int(row.get("l2_mib", 0) * 1024 * 1024),
        int(row.get("gb_per_second", 0) * 10**9),
        (*row["sources"], limits["source"]),
        int(row.get("half_tflops", 0) * 10**12),
    )


def device(name: str) -> Device:
    """Return a GPU by the name that people call it: ``A100``, ``rtx4090``, ``NVIDIA L40S``, ….

    Raises:
        NameNotFound: no such GPU; the message has the nearest ones.
    """
    known = devices()
    for found, row in zip(known, _table()["gpu"], strict=True):
        if _plain(name) in [_plain(spelling) for spelling in (row["name"], *row.get("aliases", ()))]:
            return found
    without_series = [found for found in known if _plain(found.name).removeprefix("rtx") == _plain(name)]
    if len(without_series) == 1:
        return without_series[0]
    raise NameNotFound("GPU", name, "the list of known GPUs", [found.name for found in known])


def custom_device(
    capability: str,
    sm_count: int,
    *,
    shared_memory_per_sm: int | None = None,
    shared_memory_per_block_optin: int | None = None,
) -> Device:
    """Return a GPU by its figures.

    Args:
        capability: the compute capability as ``86``, ``8.6`` or ``sm_86``.
        sm_count: streaming multiprocessors.
        shared_memory_per_sm: bytes; None for what this compute capability has.
        shared_memory_per_block_optin: bytes; None for what this compute capability has.

    Raises:
        TracerError: no compute capability, or one whose shared memory is not known and not given.
    """
    match = re.fullmatch(r"(?:sm_?)?(\d{1,2})\.?(\d)[af]?", capability.strip().lower())
    if match is None or sm_count < 1:
        raise TracerError(
            f"no GPU has compute capability '{capability}' and {sm_count} multiprocessors; write 86 or 8.6 and a count"
        )
    major, minor = int(match.group(1)), int(match.group(2))
    limits = _table()["limits"].get(f"{major}.{minor}", (0, 0))
    per_sm = shared_memory_per_sm if shared_memory_per_sm is not None else limits[0] * 1024
    per_block = shared_memory_per_block_optin if shared_memory_per_block_optin is not None else limits[1] * 1024
    if not per_sm or not per_block:
        raise TracerError(
            f"the shared memory of compute capability {major}.{minor} is not known; give it in bytes, for a "
            "multiprocessor and for a block"
        )
    return Device(f"sm_{major}{minor} with {sm_count} multiprocessors", major, minor, sm_count, per_sm, per_block)


def _plain(name: str) -> str:
    return _MAKER_WORDS.sub("", name.lower())
