"""Small HTML for notebooks: tables and lines that follow the theme, with every text escaped."""

import math
from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

import numpy as np

_MOST_ROWS = 20
_TABLE = "border-collapse:collapse;border:none;color:inherit;font-size:inherit"
_CELL = "padding:.15em .7em;border:none;background:none;color:inherit"
_LINE = "border-bottom:1px solid;border-color:currentColor"


def text(value: Any) -> str:
    """Return a value as readable text, escaped: numbers short, lists with their first entries.

    >>> text(0.123456), text(float("nan")), text("<b>")
    ('0.1235', '–', '&lt;b&gt;')
    """
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if value is None or (isinstance(value, (float, np.floating)) and math.isnan(value)):
        return "–"
    if isinstance(value, (bool, np.bool_)):
        return "yes" if value else "no"
    if isinstance(value, (float, np.floating)):
        return f"{value:.4g}"
    if isinstance(value, (int, np.integer)):
        return f"{value:,}"
    if isinstance(value, (list, tuple)):
        shown = ", ".join(text(each) for each in value[:6])
        return f"[{shown}{', …' if len(value) > 6 else ''}]"
    return escape(str(value))


def line(*parts: Any, bold: bool = False) -> str:
    """Return a line of text."""
    weight = ";font-weight:600" if bold else ""
    return f'<div style="margin:.2em 0{weight}">{" ".join(text(part) for part in parts)}</div>'


def bar(share: float) -> "Html":
    """Return a bar of a share from 0 to 1, with the share in per cent."""
    if not math.isfinite(share):
        return Html("–")
    filled = f"display:inline-block;height:.7em;width:{5 * min(max(share, 0.0), 1.0):.2f}em"
    return Html(
        f'<span style="display:inline-block;width:5em;text-align:left;margin-right:.5em">'
        f'<span style="{filled};background:currentColor;opacity:.45"></span></span>{100 * share:.1f} %'
    )


class Html(str):
    """Text that is HTML already and is not escaped again."""

    __slots__ = ()


def table(
    rows: Iterable[Sequence[Any]], headings: Sequence[str], *, caption: str = "", marked: int | None = None
) -> str:
    """Return rows as an HTML table; the first column is text, others are aligned to the right, one row may be marked.

    >>> print(table([("a", 0.5)], ["arm", "mean"]).count("<td"))
    2
    """
    every = list(rows)
    head = "".join(_cell("th", heading, i, _LINE) for i, heading in enumerate(headings))
    body = "".join(_row(cells, row == marked) for row, cells in enumerate(every[:_MOST_ROWS]))
    more = line(f"and {len(every) - _MOST_ROWS:,} more rows") if len(every) > _MOST_ROWS else ""
    return (
        f"{line(caption, bold=True) if caption else ''}"
        f'<table style="{_TABLE}"><thead><tr>{head}</tr></thead>'
        f"<tbody>{body}</tbody></table>{more}"
    )


def _row(cells: Sequence[Any], marked: bool) -> str:
    style = "font-weight:600" if marked else ""
    return f"<tr>{''.join(_cell('td', value, i, style) for i, value in enumerate(cells))}</tr>"


def _cell(tag: str, value: Any, column: int, style: str) -> str:
    align = "left" if column == 0 else "right"
    shown = str(value) if isinstance(value, Html) else text(value)
    return f'<{tag} style="{_CELL};text-align:{align}{";" + style if style else ""}">{shown}</{tag}>'


def block(*parts: str) -> str:
    """Return parts of HTML as one block."""
    return f'<div class="doublesampling">{"".join(parts)}</div>'
