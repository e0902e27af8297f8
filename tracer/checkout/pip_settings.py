"""Which package index the user's pip is set to.

pip offers no library interface for its settings, so they are read where its documentation says that they are: the
``PIP_*`` variables, then the configuration files of the environment, the user and the machine. Running ``pip config``
instead would need a pip beside this package — an isolated install has none — and half a second.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from tracer.records import dataclass

#: Sections that apply to fetching an archive; a later one overrides an earlier one.
_SECTIONS = ("global", "download")


@dataclass(frozen=True, slots=True)
class PipSettings:
    """Where pip would fetch from.

    Attributes:
        index: URL of the index, or None for pip's own default.
        extra_indexes: further index URLs.
        find_links: folders or pages that hold archives.
        no_index: whether the index is switched off.
        trusted_hosts: hosts whose certificate is not checked.
        certificate: file or folder of certificates to trust, or None for the usual ones.
        proxy: URL of a proxy, or None for what the environment says.
        timeout: of a connection, in seconds.
    """

    index: str | None = None
    extra_indexes: tuple[str, ...] = ()
    find_links: tuple[str, ...] = ()
    no_index: bool = False
    trusted_hosts: tuple[str, ...] = ()
    certificate: str | None = None
    proxy: str | None = None
    timeout: float = 15.0


def read_pip_settings() -> PipSettings:
    """Return the settings that pip would use in this process; unreadable configuration files count as absent."""
    values: dict[str, str] = {}
    for path in _configuration_files():
        values.update(_read(path))
    for key, value in os.environ.items():
        if key.startswith("PIP_") and value:
            values[_option(key[4:])] = value
    timeout = values.get("timeout", values.get("default-timeout", ""))
    return PipSettings(
        index=values.get("index-url") or values.get("pypi-url"),
        extra_indexes=tuple(values.get("extra-index-url", "").split()),
        find_links=tuple(values.get("find-links", "").split()),
        no_index=values.get("no-index", "").lower() in ("1", "true", "yes", "on", "y", "t"),
        trusted_hosts=tuple(values.get("trusted-host", "").split()),
        certificate=values.get("cert") or None,
        proxy=values.get("proxy") or None,
        timeout=float(timeout) if timeout.replace(".", "", 1).isdigit() else 15.0,
    )


def _option(name: str) -> str:
    return name.lower().replace("_", "-").removeprefix("--")


def _read(path: Path) -> dict[str, str]:
    import configparser

    parser = configparser.RawConfigParser()
    try:
        parser.read(path)
    except (configparser.Error, OSError, UnicodeDecodeError):
        return {}
    values: dict[str, str] = {}
    for section in _SECTIONS:
        if parser.has_section(section):
            values.update({_option(key): value for key, value in parser.items(section) if value})
    return values


def _configuration_files() -> list[Path]:
    """Return pip's configuration files in the order in which a later one overrides an earlier one."""
    import platformdirs

    name = "pip.ini" if sys.platform == "win32" else "pip.conf"
    chosen = os.environ.get("PIP_CONFIG_FILE")
    if chosen == os.devnull:
        return []
    files: list[Path] = [Path(chosen)] if chosen else []
    machine = platformdirs.site_config_dir("pip", appauthor=False, multipath=True).split(os.pathsep)
    if sys.platform not in ("win32", "darwin"):
        machine.append("/etc")
    files.extend(Path(folder) / name for folder in machine)
    if not (chosen and os.path.exists(chosen)):
        files.append(Path.home() / ("pip" if sys.platform == "win32" else ".pip") / name)
        user = Path(platformdirs.user_config_dir("pip", appauthor=False, roaming=True))
        if sys.platform == "darwin" and not user.is_dir():
            user = Path.home() / ".config" / "pip"
        files.append(user / name)
    files.append(Path(sys.prefix) / name)
    return files
