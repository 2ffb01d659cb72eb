"""A progress bar for whoever waits longer than two seconds."""

import sys
import time as clock
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

_PATIENCE = 2.0


class Progress:
    """Shows nothing at first, a bar with rate and time left after two seconds; or calls a function instead."""

    def __init__(self, wish: bool | Callable[[int, int], None] | None) -> None:
        self._call = wish if callable(wish) else None
        self._shown = sys.stderr.isatty() if wish is None else wish is True
        self._bar: Any = None
        self._done = self._total = 0
        self._began = 0.0
        self._what = ""

    @contextmanager
    def over(self, total: int, done: int, what: str) -> Iterator[None]:
        """The stretch of work to show."""
        self._total, self._done, self._what, self._began = total, done, what, clock.monotonic()
        try:
            yield
        finally:
            if self._bar is not None:
                self._bar.stop()

    def advance(self, steps: int) -> None:
        """So many more are finished."""
        self._done += steps
        if self._call is not None:
            self._call(self._done, self._total)
        elif self._shown and self._bar is None and clock.monotonic() - self._began > _PATIENCE:
            self._open()
        if self._bar is not None:
            self._bar.update(self._task, completed=self._done)

    def _open(self) -> None:
        from rich import progress
        from rich.console import Console
        from rich.text import Text

        class Rate(progress.ProgressColumn):
            """How many are finished in a second."""

            def render(self, task: progress.Task) -> Text:
                return Text(f"{task.speed:.0f}/s" if task.speed else "")

        self._bar = progress.Progress(
            progress.TextColumn("simulating"),
            progress.BarColumn(),
            progress.TextColumn("{task.percentage:3.0f} %"),
            progress.TextColumn("{task.completed}/{task.total} " + self._what),
            Rate(),
            progress.TimeRemainingColumn(),
            console=Console(stderr=True),
            transient=True,
        )
        self._task = self._bar.add_task("", total=self._total, completed=self._done)
        self._bar.start()
