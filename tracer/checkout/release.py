"""A release from the package index: its source archive, fetched once, unpacked without running anything in it."""

from __future__ import annotations

import os
import posixpath
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from tracer.checkout import cache
from tracer.checkout.folder import MAX_FILE_BYTES, Provenance
from tracer.checkout.identity import identify, stated_repository, stated_tag
from tracer.checkout.selection import is_inside, is_source_like, submodule_folders
from tracer.errors import CheckoutError, NameNotFound

if TYPE_CHECKING:
    import ssl
    import tarfile

    from unearth import Package, PackageFinder

#: The distribution whose releases ``pypi:VERSION`` names.
DISTRIBUTION = "flash-attn"

_SHELF = "releases"
_MAX_ARCHIVE_BYTES = 1024 * 1024 * 1024


def release_provenance(root: Path) -> Provenance:
    """Return repository and tag of an unpacked release, as far as its own files state them."""
    repository = stated_repository(root)
    tag = stated_tag(root, identify(root).version)
    return Provenance(repository=repository, ref=tag)


def open_release(version: str, *, keep: bool, progress: Callable[[str], None] | None) -> Path:
    """Return the folder of an unpacked release; one that is in the cache needs no network.

    Args:
        version: as on the package index, a leading ``v`` is ignored; empty or ``latest`` for the newest.
        keep: whether to use and fill the cache.
        progress: told what takes time.

    Raises:
        NameNotFound: if the index has no source archive of that version, with the nearest ones.
        CheckoutError: if the index cannot be reached, or the archive is damaged or hostile.
    """
    wanted = re.sub(r"^v(?=\d)", "", version.strip())
    newest = wanted in ("", "latest")
    if not newest and not re.fullmatch(r"[0-9A-Za-z.!+_-]+", wanted):
        raise CheckoutError(f"'{version}' is no version; write pypi:VERSION, such as pypi:latest")
    if keep and not newest:
        copy = cache.kept_copy(_SHELF, wanted) or cache.kept_copy(_SHELF, _canonical(wanted))
        if copy is not None:
            return copy
    return _fetch("" if newest else wanted, keep, progress)


def kept_releases() -> list[str]:
    """Return the versions of the releases that are in the cache, oldest first."""
    return sorted(cache.kept_names(_SHELF), key=lambda name: [int(part) for part in re.findall(r"\d+", name)])


def source_archives() -> tuple[str, ...]:
    """Return the versions of all releases whose source archive the package index has, newest first.

    Raises:
        CheckoutError: the index cannot be reached.
    """
    from packaging.version import Version

    releases, _, failures = _releases()
    if not releases:
        raise CheckoutError(f"the package index that pip is set to lists no release: {'; '.join(failures) or 'empty'}")
    return tuple(sorted(releases, key=Version, reverse=True))


def _canonical(version: str) -> str:
    """Return the one spelling of a version, ``2.0.0-post1`` as ``2.0.0.post1``; what is none stays as it is."""
    from packaging.version import InvalidVersion, Version

    try:
        return str(Version(version))
    except InvalidVersion:
        return version


def _fetch(wanted: str, keep: bool, progress: Callable[[str], None] | None) -> Path:
    from packaging.version import Version

    if progress is not None:
        progress(f"asking the package index for {DISTRIBUTION} {wanted or '(newest)'}")
    with _reasons() as reasons:
        releases, finder, failures = _releases()
        if not releases:
            what = "cannot be reached" if failures else f"has no source archive of {DISTRIBUTION}"
            why = ": " + (failures + reasons)[0] if failures + reasons else ""
            raise CheckoutError(f"the package index that pip is set to {what}{why}; {_instead()}")
        final = [version for version in releases if not Version(version).is_prerelease] or list(releases)
        version = _canonical(wanted) if wanted else max(final, key=Version)
        if version not in releases:
            # Someone who types 2.0.0 wants 2.0.0.post1 before 2.5.0, which is spelled more alike.
            known = [release for release in releases if release.startswith(f"{version}.")] or releases
            raise NameNotFound("release", wanted, f"{DISTRIBUTION}'s source archives on the package index", known)
        copy = cache.kept_copy(_SHELF, version) if keep else None
        if copy is not None:
            return copy
        fill = partial(_download, finder, releases[version], progress)
        return cache.place(_SHELF, version, fill, keep=keep, progress=progress)


def _instead() -> str:
    kept = kept_releases()
    if not kept:
        return "give a checkout's folder instead, no release is cached"
    latest = ", ".join(f"pypi:{name}" for name in kept[:-6:-1])
    more = f" and {len(kept) - 5} more" if len(kept) > 5 else ""
    return f"give a checkout's folder instead, or a cached release: {latest}{more}"


def _releases() -> tuple[dict[str, Package], PackageFinder, list[str]]:
    """Return the source archives by version, from every place that pip would look at, and the places' failures."""
    finder = _finder()
    sources = list(finder.sources)
    releases: dict[str, Package] = {}
    failures: list[str] = []
    for source in sources:
        finder.sources = [source]
        try:
            found = list(finder.find_all_packages(DISTRIBUTION, allow_yanked=True))
        except Exception as error:  # whatever the HTTP library under unearth raises; its names change between versions
            failures.append(_one_line(error))
            continue
        for package in found:
            if package.version:
                releases.setdefault(_canonical(package.version), package)
    finder.sources = sources
    return releases, finder, failures


def _finder() -> PackageFinder:
    """Return unearth's finder, set to where the user's pip is set to; without any setting it has its own default."""
    from unearth import PackageFinder
    from unearth.auth import MultiDomainBasicAuth
    from unearth.fetchers.sync import PyPIClient

    from tracer.checkout.pip_settings import read_pip_settings

    settings = read_pip_settings()
    options: dict[str, object] = {"timeout": settings.timeout, "follow_redirects": True}
    if settings.proxy:
        options["proxy"] = settings.proxy
    if settings.certificate:
        options["verify"] = _certificates(settings.certificate)
    session = PyPIClient(trusted_hosts=settings.trusted_hosts, **options)  # type: ignore[arg-type]
    finder = PackageFinder(
        session,  # type: ignore[arg-type]  # unearth's own client lacks a protocol's optional member
        index_urls=[settings.index] if settings.index else [],
        trusted_hosts=settings.trusted_hosts,
        ignore_compatibility=True,
        no_binary=[DISTRIBUTION],
    )
    if settings.no_index:
        finder.sources.clear()
    else:
        for url in settings.extra_indexes:
            finder.add_index_url(url)
    # A trace that asks for a password in the middle would hang in a script; stored credentials still apply.
    session.auth = MultiDomainBasicAuth(prompting=False, index_urls=[source["url"] for source in finder.sources])
    for place in settings.find_links:
        if "://" in place or os.path.exists(place):
            finder.add_find_links(place)
    return finder


def _certificates(place: str) -> ssl.SSLContext:
    import ssl

    folder = os.path.isdir(place)
    try:
        return ssl.create_default_context(cafile=None if folder else place, capath=place if folder else None)
    except OSError as error:
        raise CheckoutError(
            f"pip's certificate file {place} cannot be read: {error.strerror}; correct pip's setting"
        ) from error


@contextmanager
def _reasons() -> Iterator[list[str]]:
    """Collect what unearth logs instead of raising, so that it ends up in the one message and not beside it."""
    import logging

    reasons: list[str] = []

    class Collect(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            reasons.append(record.getMessage().splitlines()[0])

    logger = logging.getLogger("unearth")
    handler = Collect(level=logging.WARNING)
    propagates = logger.propagate
    logger.addHandler(handler)
    logger.propagate = False
    try:
        yield reasons
    finally:
        logger.removeHandler(handler)
        logger.propagate = propagates


def _download(finder: PackageFinder, package: Package, progress: Callable[[str], None] | None, copy: Path) -> None:
    import tempfile

    def report(link: object, completed: int, total: int | None) -> None:
        if progress is not None and total:
            progress(f"fetching {package.link.filename}: {100 * completed // total} % of {total / 2**20:.1f} MiB")

    with tempfile.TemporaryDirectory(prefix="flashtracer-") as folder:
        try:
            archive = finder.download(package.link, folder, download_reporter=report)
        except Exception as error:  # see _releases
            raise CheckoutError(
                f"{package.link.filename} cannot be fetched from the package index: {_one_line(error)}; {_instead()}"
            ) from error
        if progress is not None:
            progress(f"unpacking {package.link.filename}")
        unpack_source_archive(archive, copy)


def unpack_source_archive(archive: Path, target: Path) -> None:
    """Unpack the source files of a release's archive into ``target``, without its one top folder.

    Left out: what is not source-like (pictures, wheels), links and devices, files larger than a source file may be,
    and the libraries that the release's own setup.py would fetch as git submodules (CUTLASS, composable_kernel): no
    route leads through them, and they are nine tenths of the archive.

    Raises:
        CheckoutError: if the archive is damaged, is no tar archive, or names a file outside of itself.
    """
    import tarfile
    import zlib

    try:
        with tarfile.open(archive) as content:
            skipped = _submodules(archive.name, content)
        with tarfile.open(archive) as content:
            written = 0
            for member, file in _members(archive.name, content):
                if not is_source_like(file) or is_inside(file, skipped) or member.size > MAX_FILE_BYTES:
                    continue
                handle = content.extractfile(member)
                if handle is not None:
                    cache.write_file(target, file, handle.read())
                    written += 1
    except (tarfile.TarError, EOFError, zlib.error) as error:
        raise CheckoutError(
            f"{archive.name} is damaged or no tar archive: {_one_line(error)}; fetch it again"
        ) from error
    if not written:
        raise CheckoutError(f"{archive.name} holds no source file; it is no source archive of {DISTRIBUTION}")


def _members(archive: str, content: tarfile.TarFile) -> Iterator[tuple[tarfile.TarInfo, str]]:
    """Yield the regular files with their paths below the top folder."""
    total = 0
    for member in content:
        parts = member.name.replace("\\", "/").split("/")
        if member.name.startswith(("/", "\\")) or ".." in parts or ":" in parts[0]:
            raise CheckoutError(f"{archive} names a file outside of itself, '{member.name}'; it is not unpacked")
        total += member.size
        if total > _MAX_ARCHIVE_BYTES:
            raise CheckoutError(f"{archive} unpacks to more than {_MAX_ARCHIVE_BYTES >> 20} MiB; it is not unpacked")
        parts = [part for part in parts if part not in ("", ".")]
        if member.isreg() and len(parts) > 1:
            yield member, "/".join(parts[1:])


def _submodules(archive: str, content: tarfile.TarFile) -> tuple[str, ...]:
    folders: set[str] = set()
    for member, file in _members(archive, content):
        if posixpath.basename(file) == "setup.py" and member.size <= MAX_FILE_BYTES:
            handle = content.extractfile(member)
            if handle is not None:
                folders.update(submodule_folders(handle.read().decode("utf-8", "replace"), posixpath.dirname(file)))
    return tuple(sorted(folders))


def _one_line(error: BaseException) -> str:
    text = str(error).strip().splitlines()
    return text[0] if text else type(error).__name__
