"""Parser processes: started, asked, ended. They can be started before it is known what they will parse."""

from __future__ import annotations

import contextlib
import os
import selectors
import subprocess
import sys
from pathlib import Path
from typing import Any

from tracer.cpp.wire import receive, send

_PATIENCE_SECONDS = 120.0
_PACKAGE_ROOT = Path(__file__).resolve().parents[2]


class Died(Exception):
    """The parser process ended without an answer."""


class ParserProcess:
    """One parser process."""

    def __init__(self) -> None:
        """Start it; it imports what it needs and waits."""
        environment = {**os.environ, "PYTHONPATH": str(_PACKAGE_ROOT), "PYTHONDONTWRITEBYTECODE": "1"}
        environment.pop("PYTHONDONTWRITEBYTECODE") if os.access(_PACKAGE_ROOT, os.W_OK) else None
        # -S would hide libclang; -P is not in Python 3.10, so the working folder is the package's own root.
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tracer.cpp.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=_PACKAGE_ROOT,
            env=environment,
        )

    def send(self, request: tuple[Any, ...]) -> None:
        """Send one request.

        Raises:
            Died: the process ended.
        """
        assert self.process.stdin is not None
        try:
            send(self.process.stdin, request)
        except (BrokenPipeError, OSError):
            raise Died from None

    def receive(self) -> Any:
        """Wait for one answer.

        Raises:
            Died: the process ended or did not answer in time.
        """
        assert self.process.stdout is not None
        if sys.platform != "win32":  # pipes cannot be waited for there
            with selectors.DefaultSelector() as selector:
                selector.register(self.process.stdout, selectors.EVENT_READ)
                if not selector.select(_PATIENCE_SECONDS):
                    self.close()
                    raise Died
        try:
            return receive(self.process.stdout)
        except (EOFError, OSError):
            raise Died from None

    def close(self) -> None:
        """End it."""
        self.process.kill()
        self.process.wait()
        for stream in (self.process.stdin, self.process.stdout):
            if stream is not None:
                with contextlib.suppress(OSError):  # what could not be sent any more
                    stream.close()


_early: list[ParserProcess] = []


def start_early(count: int) -> None:
    """Start processes for the parsers that will be needed, so that they are ready when there is something to parse."""
    _early.extend(ParserProcess() for _ in range(count))


def take() -> ParserProcess:
    """Return a process that was started early, or a new one."""
    return _early.pop() if _early else ParserProcess()


def end_unused() -> None:
    """End the processes that were started early and never taken."""
    while _early:
        _early.pop().close()
