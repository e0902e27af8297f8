"""What git knows of a folder, and how the files of a ref are read without touching the work tree."""

from __future__ import annotations

import os
import posixpath
import re
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from tracer.checkout import cache
from tracer.checkout.folder import MAX_FILE_BYTES, Provenance
from tracer.checkout.identity import stated_repository, tidy_repository
from tracer.checkout.selection import is_inside, is_source_like, submodule_folders
from tracer.errors import CheckoutError, NameNotFound

if TYPE_CHECKING:
    import subprocess

_SHELF = "checkouts"


def folder_provenance(root: Path) -> Provenance:
    """Return commit, changed files and repository of a folder, in two or three short git calls.

    A folder without a ``.git`` of its own has no provenance here, even where it lies inside a repository: a release
    unpacked in somebody's project must not claim that project's commit.
    """
    if not (root / ".git").exists():
        return Provenance()
    status = _git(
        root, "status", "--porcelain=v2", "--branch", "-z", "--untracked-files=no", "--ignore-submodules=all",
        "--no-renames",
    )  # fmt: skip
    if status is None or status.returncode != 0:
        return Provenance()
    commit: str | None = None
    changed: set[str] = set()
    for entry in status.stdout.decode("utf-8", "surrogateescape").split("\0"):
        if entry.startswith("# branch.oid "):
            commit = entry.split(" ")[2]
        elif entry.startswith("1 "):
            changed.add(entry.split(" ", 8)[8])
        elif entry.startswith("u "):
            changed.add(entry.split(" ", 10)[10])
    if commit is None or not re.fullmatch(r"[0-9a-f]{40,64}", commit):
        return Provenance()
    repository = _published(root, commit, root)
    return Provenance(commit, frozenset(changed), repository, commit if repository else None)


def _ref_provenance(repository_folder: Path, commit: str, copy: Path) -> Provenance:
    repository = _published(repository_folder, commit, copy)
    return Provenance(commit, frozenset(), repository, commit if repository else None)


def open_ref(
    folder: Path, ref: str, *, keep: bool, progress: Callable[[str], None] | None
) -> tuple[Path, Callable[[], Provenance]]:
    """Return a folder with the source files of ``ref`` and what is known of their origin.

    Read from git's objects, so the work tree and the index stay as they are and a bare repository will do. Only
    source-like files are taken; submodules have no files of their own here, and an object that a partial clone lacks
    is left out.

    Raises:
        CheckoutError: if git is missing, the folder is no repository, or the ref holds nothing readable.
        NameNotFound: if there is no such tag, branch or commit, with the nearest ones.
    """
    commit = _commit_of(folder, ref)
    copy = cache.kept_copy(_SHELF, commit) if keep else None
    if copy is None:
        if progress is not None:
            progress(f"reading {ref} ({commit[:12]}) from {folder}")
        copy = cache.place(_SHELF, commit, partial(_fill, folder, commit), keep=keep, progress=progress)
    return copy, partial(_ref_provenance, folder, commit, copy)


def _commit_of(folder: Path, ref: str) -> str:
    found = _git(folder, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{ref}^{{commit}}")
    if found is None:
        raise CheckoutError(
            f"git is not installed, but {folder}@{ref} asks for a ref; check it out and give the folder"
        )
    if found.returncode == 0:
        return found.stdout.decode("ascii").strip()
    names = _git(folder, "for-each-ref", "--format=%(refname)", "refs/tags", "refs/heads", "refs/remotes")
    if names is None or names.returncode != 0:
        reason = names.stderr.decode("utf-8", "replace").strip().splitlines() if names else []
        raise CheckoutError(
            f"{folder} is no git repository that can be read, so there is no ref '{ref}' in it"
            + (f" ({reason[0]})" if reason else "")
            + "; give the folder of a clone"
        )
    known = [name.split("/", 2)[2] for name in names.stdout.decode("utf-8", "replace").splitlines()]
    raise NameNotFound("tag, branch or commit", ref, str(folder), known)


def _fill(folder: Path, commit: str, copy: Path) -> None:
    listing = _git(folder, "ls-tree", "-r", "-z", "-l", "--full-tree", commit)
    if listing is None or listing.returncode != 0:
        reason = listing.stderr.decode("utf-8", "replace").strip() if listing else "git is not installed"
        raise CheckoutError(f"cannot list the files of commit {commit} in {folder}: {reason}; fetch it completely")
    wanted: dict[str, str] = {}
    for entry in listing.stdout.split(b"\0"):
        if not entry:
            continue
        facts, _, name = entry.partition(b"\t")
        mode, kind, blob, size = facts.decode("ascii").split()
        file = name.decode("utf-8", "surrogateescape")
        # Links (120000) are left out: a copy must not be able to lead out of itself.
        regular = kind == "blob" and mode.startswith("100")
        if regular and is_source_like(file) and (not size.isdigit() or int(size) <= MAX_FILE_BYTES) and _is_safe(file):
            wanted[file] = blob
    contents = dict(_blobs(folder, sorted(set(wanted.values()))))
    skipped: set[str] = set()
    for file, blob in wanted.items():
        if posixpath.basename(file) == "setup.py" and blob in contents:
            skipped.update(submodule_folders(contents[blob].decode("utf-8", "replace"), posixpath.dirname(file)))
    written = 0
    for file, blob in wanted.items():
        if blob in contents and not is_inside(file, tuple(skipped)):
            cache.write_file(copy, file, contents[blob])
            written += 1
    if not written:
        raise CheckoutError(
            f"commit {commit} in {folder} holds no source file that can be read; is the clone complete?"
        )


def _is_safe(file: str) -> bool:
    parts = file.split("/")
    return not file.startswith("/") and not any(part in ("", ".", "..") or part.lower() == ".git" for part in parts)


def _blobs(folder: Path, blobs: list[str]) -> Iterator[tuple[str, bytes]]:
    """Yield every object that is there; git answers ``<name> missing`` for the others."""
    batch = _git(folder, "cat-file", "--batch", feed="\n".join(blobs).encode("ascii") + b"\n")
    output = batch.stdout if batch is not None else b""
    at = 0
    while at < len(output):
        end = output.index(b"\n", at)
        words = output[at:end].decode("ascii", "replace").split()
        at = end + 1
        if len(words) == 3 and words[2].isdigit():
            size = int(words[2])
            yield words[0], output[at : at + size]
            at += size + 1


def _published(folder: Path, commit: str, files: Path) -> str | None:
    """Return the URL of the public repository that holds this commit, or None where that is not sure.

    A clone knows which commits its remote has. A bare repository without a remote is a mirror: nobody commits into
    it, so the URL that the files state is the one of its commits.
    """
    remotes = _git(folder, "config", "--get-regexp", r"^(remote\..*\.url|core\.bare)$")
    settings = (
        [line.partition(" ")[::2] for line in remotes.stdout.decode("utf-8", "replace").splitlines()] if remotes else []
    )
    urls = {key: value for key, value in settings if key.endswith(".url")}
    bare = not (folder / ".git").exists()
    if not urls:
        return stated_repository(files) if bare else None
    containing = _git(folder, "for-each-ref", "--contains", commit, "--format=%(refname)", "refs/remotes")
    names = containing.stdout.decode("utf-8", "replace").split() if containing and containing.returncode == 0 else []
    remotes_with = {name.split("/")[2] for name in names}
    order = sorted(urls, key=lambda key: (key != "remote.origin.url", key))
    for key in order:
        if key.split(".", 1)[1].rsplit(".", 1)[0] in remotes_with or bare:
            url = tidy_repository(urls[key])
            if url:
                return url
    return None


def _git(folder: Path, *arguments: str, feed: bytes | None = None) -> subprocess.CompletedProcess[bytes] | None:
    """Run git on a folder without locks, prompts, network or monitors; None where git is not installed."""
    import subprocess

    environment = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
    environment |= {"GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0", "GIT_NO_LAZY_FETCH": "1", "LC_ALL": "C"}
    # Never the repository above: what was named is what is asked.
    environment["GIT_CEILING_DIRECTORIES"] = str(folder.parent)
    command = ["git", "-c", "core.fsmonitor=false", "-C", str(folder), *arguments]
    try:
        return subprocess.run(command, input=feed, capture_output=True, env=environment, check=False)
    except FileNotFoundError:
        return None
