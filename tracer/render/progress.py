"""What a person at a terminal sees while a command works: nothing in the first second, then the stage it is in."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType

_QUIET_SECONDS = 1.0
_REDRAW_SECONDS = 0.2


class Stages:
    """Names the stages of a command, shows the present one on a terminal, and keeps how long each took."""

    def __init__(self, verbose: bool = False) -> None:
        """Start the clock.

        Args:
            verbose: print how long each stage took when the command ends.
        """
        self.verbose = verbose
        self.seconds: dict[str, float] = {}
        self._began = time.perf_counter()
        self._now = ""
        self._stop = threading.Event()
        self._shown = False
        self._watched = sys.stderr.isatty()
        self._thread: threading.Thread | None = None

    def __enter__(self) -> Stages:
        """Watch the stages in the background if a terminal shows standard error."""
        if self._watched:
            self._thread = threading.Thread(target=self._watch, daemon=True)
            self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: TracebackType | BaseException | None) -> None:
        """Clear the line, and tell the times if asked to."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join()
        if self.verbose and kind is None:
            for name, seconds in self.seconds.items():
                print(f"{seconds * 1000:7.0f} ms  {name}", file=sys.stderr)
            print(f"{(time.perf_counter() - self._began) * 1000:7.0f} ms  in all", file=sys.stderr)

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Do one stage of the work."""
        outer, self._now = self._now, name
        began = time.perf_counter()
        try:
            yield
        finally:
            self.seconds[name] = self.seconds.get(name, 0.0) + time.perf_counter() - began
            self._now = outer

    def say(self, message: str) -> None:
        """Replace what is shown of the present stage, such as how much of a download has arrived."""
        self._now = message

    def _watch(self) -> None:
        while not self._stop.wait(_REDRAW_SECONDS):
            if self._now and time.perf_counter() - self._began > _QUIET_SECONDS:
                sys.stderr.write(f"\r\033[K{self._now} …")
                sys.stderr.flush()
                self._shown = True
        if self._shown:
            sys.stderr.write("\r\033[K")
            sys.stderr.flush()
