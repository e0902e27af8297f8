"""Writes results so that a reader finds either all of a result or none of it."""

from __future__ import annotations

import contextlib
import errno
import os
import sys
import tempfile
from collections.abc import Mapping

from tracer.errors import OutputError

STANDARD_OUTPUT = "-"


def write(target: str, text: str) -> None:
    """Write one result to a file, or to standard output if ``target`` is ``-``.

    Raises:
        OutputError: the file cannot be written; what was there before is untouched.
        BrokenPipeError: the reader of standard output went away.
    """
    if target == STANDARD_OUTPUT:
        try:
            sys.stdout.flush()
            sys.stdout.buffer.write(_bytes(text))
            sys.stdout.buffer.flush()
        except BrokenPipeError:
            raise
        except OSError as error:
            # What is left in the buffer would fail once more when the interpreter ends, with a traceback.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise OutputError(f"cannot write to standard output: {_why(error)}") from error
        return
    if os.path.isdir(target):
        raise OutputError(f"cannot write '{target}': it is a folder; name a file in it")
    folder = os.path.dirname(target) or "."
    if not os.path.isdir(folder):
        raise OutputError(f"cannot write '{target}': there is no folder '{folder}'; create it first")
    try:
        if os.path.exists(target) and not os.path.isfile(target):
            # A device or a pipe: renaming a file over it would destroy it.
            with open(target, "wb") as stream:
                stream.write(_bytes(text))
        else:
            _replace(target, text)
    except OSError as error:
        raise OutputError(f"cannot write '{target}': {_why(error)}") from error


def check_folder(target: str) -> None:
    """Raise now what :func:`write_folder` would raise after the work is done.

    Raises:
        OutputError: the folder cannot be created or written.
    """
    if os.path.exists(target) and not os.path.isdir(target):
        raise OutputError(f"cannot write into '{target}': it is a file, not a folder")
    parent = os.path.dirname(os.path.abspath(target))
    if not os.path.isdir(parent):
        raise OutputError(f"cannot create folder '{target}': there is no folder '{parent}'; create it first")
    if not os.access(target if os.path.isdir(target) else parent, os.W_OK):
        raise OutputError(f"cannot write into folder '{target}': {_why(OSError(errno.EACCES, ''))}")


def write_folder(target: str, files: Mapping[str, str | bytes]) -> None:
    """Write several files into a folder, which is created if its parent exists.

    All files are written beside their places first, and only then moved there; other files in the folder stay.

    Args:
        target: the folder.
        files: content by name; a name may hold forward slashes.

    Raises:
        OutputError: the folder or a file cannot be written.
    """
    check_folder(target)
    created = False
    waiting: list[tuple[str, str]] = []
    try:
        if not os.path.isdir(target):
            os.mkdir(target)
            created = True
        for name, content in files.items():
            path = os.path.join(target, *name.split("/"))
            if os.path.isdir(path):
                raise OutputError(f"cannot write '{path}': it is a folder")
            os.makedirs(os.path.dirname(path), exist_ok=True)
            waiting.append((_beside(path, content), path))
        while waiting:
            temporary, path = waiting[0]
            os.replace(temporary, path)
            waiting.pop(0)
    except OSError as error:
        raise OutputError(f"cannot write into folder '{target}': {_why(error)}") from error
    finally:
        for temporary, _ in waiting:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
        if created and waiting:
            with contextlib.suppress(OSError):
                os.rmdir(target)


def _replace(path: str, content: str | bytes) -> None:
    path = os.path.realpath(path)  # a symbolic link keeps leading to the file that it names
    temporary = _beside(path, content)
    try:
        os.replace(temporary, path)
    except OSError:
        os.unlink(temporary)
        raise


def _beside(path: str, content: str | bytes) -> str:
    """Write a temporary file in the folder of ``path``, on the same file system, and return its path."""
    handle, temporary = tempfile.mkstemp(prefix=".", suffix=".part", dir=os.path.dirname(path) or ".")
    try:
        with open(handle, "wb") as file:
            file.write(_bytes(content))
        mask = os.umask(0)
        os.umask(mask)
        os.chmod(temporary, 0o666 & ~mask)
    except OSError:
        os.unlink(temporary)
        raise
    return temporary


def _bytes(content: str | bytes) -> bytes:
    """Encode text; a file name of the checkout that was no valid UTF-8 must not stop the output."""
    return content.encode("utf-8", "backslashreplace") if isinstance(content, str) else content


def _why(error: OSError) -> str:
    known = {
        errno.EACCES: "permission denied",
        errno.EPERM: "permission denied",
        errno.EROFS: "the file system is read-only",
        errno.ENOSPC: "no space left on the disk",
        errno.EDQUOT: "the disk quota is used up",
        errno.ENAMETOOLONG: "the name is too long",
        errno.ENOTDIR: "a part of the path is a file, not a folder",
    }
    return known.get(error.errno or 0, error.strerror or str(error))
