"""How the commands print: consoles and tables that never cut a name, in a terminal or in a pipe."""

from collections.abc import Iterable
from typing import Any

from rich.console import Console
from rich.table import Table

_PIPE = 4000
"""Columns of a pipe or a file: nothing there needs to be folded."""


def open_console(**options: Any) -> Console:
    """Return a console for standard output that folds in a terminal and never in a pipe."""
    console = Console(highlight=False, **options)
    return console if console.is_terminal else Console(highlight=False, width=_PIPE, **options)


def new_table(columns: Iterable[str], left: Iterable[str] = ()) -> Table:
    """Return a table without lines; the columns named in ``left`` hold words, which are folded and never cut."""
    words = set(left)
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in columns:
        wordy = name in words
        table.add_column(name, justify="left" if wordy else "right", overflow="fold", no_wrap=not wordy)
    return table
