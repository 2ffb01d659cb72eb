"""Show progress to whoever waits longer than two seconds: a bar in a terminal or a notebook, elsewhere some lines."""

import importlib
import sys
import threading
import time as clock
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from doublesampling import html

Wish = bool | Callable[[int, int], None] | None
"""True shows progress, False does not, None shows it in a terminal or notebook only; a function is called with
(done, total)."""

_PATIENCE = 2.0
_LINE_EVERY = 10.0
_REDRAW_EVERY = 0.2
COMPILING = "compiling for this machine, once"


def notebook_display() -> Any:
    """Return IPython's module of displays in a Jupyter notebook, and None anywhere else.

    Rich shows a moving bar in a notebook only with ipywidgets; IPython itself can redraw an output.
    """
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    if shell is None or not hasattr(shell, "kernel"):  # a terminal of IPython has none
        return None
    return importlib.import_module("IPython.display")


class NotebookBar:
    """A bar in the output of a notebook's cell, which is emptied at the end."""

    def __init__(self, display: Any, words: str) -> None:
        self._display, self._drawn = display, clock.monotonic()
        self._handle = display.display(display.HTML(html.line(words)), display_id=True)

    def show(self, words: str, share: float) -> None:
        """Draw the bar at a share, at most five times a second."""
        now = clock.monotonic()
        if now - self._drawn >= _REDRAW_EVERY or share >= 1.0:
            self._drawn = now
            track = "display:inline-block;width:14em;border:1px solid currentColor;border-radius:2px;margin-right:.6em"
            fill = f"display:block;height:.7em;width:{100 * min(share, 1.0):.1f}%;background:currentColor;opacity:.6"
            picture = f'<span style="{track}"><span style="{fill}"></span></span>{html.text(words)}'
            self._handle.update(self._display.HTML(f'<div role="status">{picture}</div>'))

    def stop(self) -> None:
        """Empty the output."""
        self._handle.update(self._display.HTML(""))


class Progress:
    """Shows nothing at first; after two seconds, what is being waited for.

    Until the first step is finished that may be the compiler, which ``compiling`` tells.
    """

    def __init__(self, wish: Wish, verb: str, compiling: Callable[[], bool] = lambda: False) -> None:
        self._call = wish if callable(wish) else None
        self._terminal, self._notebook = sys.stderr.isatty(), notebook_display()
        self._shown = (self._terminal or self._notebook is not None) if wish is None else wish is True
        self._verb, self._compiling = verb, compiling
        self._bar: Any = None
        self._status: Any = None
        self._done = self._total = 0
        self._began = self._said_at = 0.0
        self._unit = ""
        self._lock = threading.Lock()

    @contextmanager
    def over(self, total: int, done: int, unit: str) -> Iterator[None]:
        """Watch a stretch of work: so many units in all, some of them done before."""
        self._total, self._done, self._unit, self._began = total, done, unit, clock.monotonic()
        self._said_at = self._began
        waiting = threading.Timer(_PATIENCE, self._wait_for_the_first)
        waiting.daemon = True
        if self._shown and done < total:
            waiting.start()
        try:
            yield
        finally:
            waiting.cancel()
            with self._lock:
                for shown in (self._status, self._bar):
                    if shown is not None:
                        shown.stop()

    def advance(self, steps: int) -> None:
        """So many more are finished."""
        self._done += steps
        if self._call is not None:
            self._call(self._done, self._total)
        if not self._shown:
            return
        with self._lock:
            if self._status is not None:
                self._status.stop()
                self._status = None
            now = clock.monotonic()
            if self._notebook is not None:
                self._draw(now)
            elif self._terminal:
                if self._bar is None and now - self._began > _PATIENCE:
                    self._open()
                if self._bar is not None:
                    self._bar.update(self._task, completed=self._done)
            elif now - self._said_at > _LINE_EVERY:
                self._said_at = now
                self._say(f"{self._verb}, {self._done} of {self._total} {self._unit}")

    def _wait_for_the_first(self) -> None:
        with self._lock:
            words = COMPILING if self._compiling() else self._verb
            if self._bar is not None or self._status is not None:
                return
            if self._notebook is not None:
                self._bar = NotebookBar(self._notebook, f"{words} …")
                return
            if not self._terminal:
                self._say(f"{words} ...")
                return
            from rich.console import Console

            self._status = Console(stderr=True).status(f"{words} ...")
            self._status.start()

    def _draw(self, now: float) -> None:
        """Draw the bar of a notebook, with the time that is left at the present speed."""
        if self._bar is None:
            if now - self._began <= _PATIENCE:
                return
            self._bar = NotebookBar(self._notebook, self._verb)
        share = self._done / max(self._total, 1)
        left = (now - self._began) * (1.0 - share) / share if share > 0.0 else 0.0
        words = f"{self._verb}, {self._done:,} of {self._total:,} {self._unit}, {left:.0f} s left"
        self._bar.show(words, share)

    def _say(self, words: str) -> None:
        print(f"doublesampling: {words}", file=sys.stderr, flush=True)

    def _open(self) -> None:
        from rich import progress
        from rich.console import Console
        from rich.text import Text

        class Rate(progress.ProgressColumn):
            """How many are finished in a second."""

            def render(self, task: progress.Task) -> Text:
                return Text(f"{task.speed:.0f}/s" if task.speed else "")

        self._bar = progress.Progress(
            progress.TextColumn(self._verb),
            progress.BarColumn(),
            progress.TextColumn("{task.percentage:3.0f} %"),
            progress.TextColumn("{task.completed}/{task.total} " + self._unit),
            Rate(),
            progress.TimeRemainingColumn(),
            console=Console(stderr=True),
            transient=True,
        )
        self._task = self._bar.add_task("", total=self._total, completed=self._done)
        self._bar.start()
