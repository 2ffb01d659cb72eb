"""A document of headings, paragraphs, pictures and tables, as Markdown and as one HTML page that needs no network."""

import base64
import html
from dataclasses import dataclass
from pathlib import Path

_STYLE = """
:root { color-scheme: light dark; --ink: #1a1c1e; --soft: #5b6168; --line: #d9dde2; --paper: #ffffff; --tint: #f4f6f8;
  --good: #00674a; --note: #8a5300; --bad: #a3282c; }
@media (prefers-color-scheme: dark) { :root { --ink: #e8eaed; --soft: #a6adb5; --line: #3a4048; --paper: #16181b;
  --tint: #1f2327; --good: #5fd0a5; --note: #f0b35a; --bad: #ff8f8f; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--paper); color: var(--ink); font: 16px/1.55 system-ui, sans-serif; }
main { max-width: 62rem; margin: 0 auto; padding: 1.5rem 1.1rem 5rem; }
h1 { font-size: 1.9rem; line-height: 1.2; margin: 1.2rem 0 .4rem; } h2 { font-size: 1.35rem; margin: 2.6rem 0 .4rem;
  border-top: 1px solid var(--line); padding-top: 1.4rem; } h3 { font-size: 1.05rem; margin: 1.6rem 0 .3rem; }
p { margin: .6rem 0; max-width: 46rem; } figure { margin: 1rem 0; } img { width: 100%; height: auto; background: #fff;
  border: 1px solid var(--line); border-radius: 6px; } figcaption { color: var(--soft); font-size: .9rem; }
.scroll { overflow-x: auto; margin: .8rem 0; } table { border-collapse: collapse; width: 100%; font-size: .92rem; }
th, td { text-align: left; vertical-align: top; padding: .45rem .6rem; border-bottom: 1px solid var(--line); }
th { background: var(--tint); font-weight: 600; } td.n, th.n { text-align: right;
  font-variant-numeric: tabular-nums; } td.n { white-space: nowrap; } .good { color: var(--good); font-weight: 600; }
.note { color: var(--note); font-weight: 600; } .bad { color: var(--bad); font-weight: 600; }
code { font-size: .9em; background: var(--tint); overflow-wrap: anywhere; padding: .1em .3em; border-radius: 4px; }
a { color: inherit; }
@media print { .scroll { overflow: visible; } table { font-size: .72rem; } th, td { padding: .2rem .3rem; }
  td.n { white-space: normal; } h2 { break-after: avoid; } tr, figure { break-inside: avoid; } }
@media (max-width: 40rem) { body { font-size: 15px; } .wide { overflow-x: auto; } .wide img { min-width: 44rem; }
  table.cards thead { display: none; }
  table.cards tr { display: block; border-bottom: 2px solid var(--line); padding: .5rem 0; }
  table.cards td { display: block; border: 0; padding: .15rem 0; }
  table.cards td::before { content: attr(data-name) ": "; color: var(--soft); font-size: .85em; } }
"""


@dataclass(frozen=True)
class Heading:
    """A heading; level 1 is the title."""

    text: str
    level: int = 2


@dataclass(frozen=True)
class Paragraph:
    """Some sentences; words between backticks are code."""

    text: str


@dataclass(frozen=True)
class Picture:
    """A PNG file, with words for those who cannot see it."""

    path: Path
    caption: str


@dataclass(frozen=True)
class Table:
    """Columns, rows of text, which columns are numbers, and words that stand out: text -> good, note or bad."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    numbers: tuple[int, ...] = ()
    marks: tuple[tuple[str, str], ...] = ()
    wordy: bool = False  # long cells: on a phone each row becomes a card


Block = Heading | Paragraph | Picture | Table


def to_markdown(blocks: list[Block], folder: Path) -> str:
    """Markdown, with pictures by their path from the folder."""
    return "\n\n".join(_markdown(block, folder) for block in blocks) + "\n"


def _markdown(block: Block, folder: Path) -> str:
    match block:
        case Heading(text, level):
            return f"{'#' * level} {text}"
        case Paragraph(text):
            return text
        case Picture(path, caption):
            return f"![{caption}]({path.relative_to(folder).as_posix()})\n\n*{caption}*"
        case Table(columns, rows, numbers):
            rule = " | ".join("---:" if i in numbers else "---" for i in range(len(columns)))
            lines = [" | ".join(columns), rule, *(" | ".join(cell.replace("|", "\\|") for cell in row) for row in rows)]
            return "\n".join(f"| {line} |" for line in lines)


def to_html(blocks: list[Block], title: str) -> str:
    """One page with everything in it."""
    body = "\n".join(_html(block) for block in blocks)
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta name="viewport" content="width=device-width, initial-scale=1"><title>{html.escape(title)}</title>'
        f"<style>{_STYLE}</style></head><body><main>\n{body}\n</main></body></html>\n"
    )


def _text(text: str) -> str:
    """Escaped, with `code` between backticks."""
    parts = html.escape(text, quote=False).split("`")
    return "".join(f"<code>{part}</code>" if i % 2 else part for i, part in enumerate(parts))


def _html(block: Block) -> str:
    match block:
        case Heading(text, level):
            return f"<h{level}>{_text(text)}</h{level}>"
        case Paragraph(text):
            return f"<p>{_text(text)}</p>"
        case Picture(path, caption):
            data = base64.b64encode(path.read_bytes()).decode()
            words = html.escape(caption)
            image = f'<img alt="{words}" src="data:image/png;base64,{data}">'
            return f'<figure><div class="wide">{image}</div><figcaption>{words}</figcaption></figure>'
        case Table():
            return _html_table(block)


def _html_table(table: Table) -> str:
    marks = dict(table.marks)

    def cell(i: int, text: str, tag: str) -> str:
        names = (["n"] if i in table.numbers else []) + ([marks[text]] if tag == "td" and text in marks else [])
        classes = f' class="{" ".join(names)}"' if names else ""
        label = f' data-name="{html.escape(table.columns[i])}"' if tag == "td" else ""
        return f"<{tag}{classes}{label}>{_text(text)}</{tag}>"

    head = "".join(cell(i, name, "th") for i, name in enumerate(table.columns))
    rows = "\n".join(
        "<tr>" + "".join(cell(i, text, "td") for i, text in enumerate(row)) + "</tr>" for row in table.rows
    )
    kind = ' class="cards"' if table.wordy else ""
    return f'<div class="scroll"><table{kind}><thead><tr>{head}</tr></thead><tbody>\n{rows}\n</tbody></table></div>'
