"""From what a person typed to a checkout."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

from tracer.checkout.folder import AskedOnce, Checkout, Provenance
from tracer.checkout.identity import identify, missing_folder
from tracer.errors import CheckoutError

_RELEASE = "pypi:"


def open_checkout(spec: str, *, cache: bool = True, progress: Callable[[str], None] | None = None) -> Checkout:
    """Open a checkout.

    Args:
        spec: a folder; ``FOLDER@REF`` with a git tag, branch or commit; or ``pypi:VERSION``, where ``pypi:`` alone
            and ``pypi:latest`` mean the newest release. A folder whose own name contains ``@`` is a folder.
        cache: whether unpacked copies are taken from the cache and kept in it.
        progress: told, in one line each, what takes longer than opening a folder.

    Raises:
        CheckoutError: if there is no such folder, it is no checkout, or the release cannot be fetched.
        NameNotFound: if the ref or the version does not exist, with the nearest ones.
    """
    if not spec.strip():
        raise CheckoutError("no checkout given; give a checkout's root, FOLDER@REF or pypi:VERSION")
    if "\0" in spec:
        raise CheckoutError(f"{spec!r} is no path; give a checkout's root, FOLDER@REF or pypi:VERSION")
    path = _path(spec)
    if spec.startswith(_RELEASE) and not path.exists():
        from tracer.checkout.release import open_release, release_provenance

        root = open_release(spec.removeprefix(_RELEASE), keep=cache, progress=progress)
        return _checkout(spec, root, "pypi", partial(release_provenance, root))
    if path.is_dir():
        from tracer.checkout.git_ref import folder_provenance

        root = path.absolute()
        return _checkout(spec, root, "folder", partial(folder_provenance, root))
    if path.exists():
        raise CheckoutError(f"{path} is a file, not a folder; give a checkout's root, FOLDER@REF or pypi:VERSION")
    folder, at, ref = spec.rpartition("@")
    while at and ref:
        # A ref may contain an @ as well as a folder; the longest folder that exists decides.
        if _path(folder).is_dir():
            from tracer.checkout.git_ref import open_ref

            root, provenance = open_ref(_path(folder).absolute(), ref, keep=cache, progress=progress)
            return _checkout(spec, root, "git", provenance)
        folder, at, rest = folder.rpartition("@")
        ref = f"{rest}@{ref}"
    raise missing_folder(_path(spec.partition("@")[0] or spec).absolute())


def _path(text: str) -> Path:
    try:
        path = Path(text).expanduser()
        path.exists()
    except (OSError, RuntimeError) as error:
        # A name that is too long, or ~somebody whom this machine does not know.
        reason = getattr(error, "strerror", None) or error
        raise CheckoutError(
            f"{text[:80]} cannot be looked up: {reason}; give a checkout's root or pypi:VERSION"
        ) from error
    return path


def _checkout(spec: str, root: Path, source: str, provenance: Callable[[], Provenance]) -> Checkout:
    identity = identify(root)
    return Checkout(spec, root, identity.flavour, identity.version, source, AskedOnce(provenance))
