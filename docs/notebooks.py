"""Run the notebooks of the tutorials without Jupyter, and turn them into Markdown for the site.

``python docs/notebooks.py`` runs all cells of every notebook in ``docs/tutorials`` in an empty folder and writes their
outputs back; ``python docs/notebooks.py FILE ...`` does it for some. A cell with the tag "varies" prints times or other
things that differ from run to run: its outputs are written, but the tests do not compare them.
"""

import ast
import base64
import contextlib
import io
import json
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "tutorials"
COLOURS = 64  # of a figure's palette: lines stay smooth, and a figure has 10 to 20 kB


def read(path: Path) -> dict[str, Any]:
    """Return a notebook's content."""
    content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return content


def text_of(part: str | list[str]) -> str:
    """Return a text that the notebook format stores as one string or as a list of lines."""
    return part if isinstance(part, str) else "".join(part)


def lines_of(text: str) -> list[str]:
    """Return a text as the notebook format stores it."""
    return text.splitlines(keepends=True)


def run_cells(content: dict[str, Any], name: str) -> Iterator[tuple[dict[str, Any], list[dict[str, Any]]]]:
    """Run the code cells in one namespace; yield each cell with its outputs in the notebook format."""
    names: dict[str, Any] = {"__name__": "__main__"}
    number = 0
    for cell in content["cells"]:
        if cell["cell_type"] == "code":
            number += 1
            yield cell, run_cell(text_of(cell["source"]), names, f"{name}, code cell {number}", number)


def run_cell(code: str, names: dict[str, Any], where: str, number: int) -> list[dict[str, Any]]:
    """Run one cell; return what it printed, and its last value as Jupyter would show it."""
    tree = ast.parse(code, where)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    value = None
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(compile(tree, where, "exec"), names)
        if isinstance(last, ast.Expr) and not code.rstrip().endswith(";"):
            value = eval(compile(ast.Expression(last.value), where, "eval"), names)
    outputs: list[dict[str, Any]] = []
    if printed.getvalue():
        outputs.append({"output_type": "stream", "name": "stdout", "text": lines_of(printed.getvalue())})
    if value is not None:
        data = shown(value)
        outputs.append({"output_type": "execute_result", "execution_count": number, "data": data, "metadata": {}})
    return outputs


def shown(value: Any) -> dict[str, Any]:
    """Return the forms in which a notebook shows a value."""
    data: dict[str, Any] = {"text/plain": lines_of(repr(value))}
    if hasattr(value, "_repr_png_"):
        data["image/png"] = base64.b64encode(small_png(value._repr_png_())).decode() + "\n"
    elif hasattr(value, "_repr_html_"):
        data["text/html"] = lines_of(value._repr_html_())
    return data


def small_png(picture: bytes) -> bytes:
    """Return a picture with few colours."""
    from PIL import Image  # comes with Matplotlib

    small = io.BytesIO()
    Image.open(io.BytesIO(picture)).convert("RGB").quantize(COLOURS).save(small, "PNG", optimize=True)
    return small.getvalue()


def to_markdown(text: str, file: str) -> str:
    """Return a notebook as a Markdown page: its texts, its code and the outputs that are stored in it."""
    parts = [f"{{download}}`Download this page as a Jupyter notebook <{file}>`."]
    for number, cell in enumerate(json.loads(text)["cells"]):
        source = text_of(cell["source"])
        parts.append(source if cell["cell_type"] == "markdown" else f"```python\n{source}\n```")
        parts += [output_markdown(output) for output in cell.get("outputs", [])]
        if number == 0:
            parts = parts[::-1]  # the title first, then the link
    return "\n\n".join(parts) + "\n"


def output_markdown(output: dict[str, Any]) -> str:
    """Return an output as Markdown: a picture, a table, or text."""
    data = output.get("data", {})
    if "image/png" in data:
        return f"![Figure]({'data:image/png;base64,' + text_of(data['image/png']).strip()})"
    if "text/html" in data:
        return f'```{{raw}} html\n<div class="notebook-output">{text_of(data["text/html"])}</div>\n```'
    return f"```text\n{text_of(output.get('text', data.get('text/plain', ''))).rstrip()}\n```"


def write_outputs(path: Path) -> None:
    """Run a notebook in an empty folder and store its outputs in it."""
    content, here = read(path), Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            for number, (cell, outputs) in enumerate(run_cells(content, path.name), 1):
                cell["outputs"], cell["execution_count"] = outputs, number
        finally:
            os.chdir(here)
    path.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def main() -> None:
    """Run the notebooks that are named on the command line, or all."""
    for path in [Path(name).resolve() for name in sys.argv[1:]] or sorted(FOLDER.glob("*.ipynb")):
        write_outputs(path)
        print(f"{path.name}: {path.stat().st_size // 1024} kB")


if __name__ == "__main__":
    main()
