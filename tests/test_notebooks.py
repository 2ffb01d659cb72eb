"""Every notebook of the tutorials is valid, runs, and prints what is stored in it."""

import copy
import importlib
import json
import runpy
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent
RUNNER = runpy.run_path(str(ROOT / "docs" / "notebooks.py"))
NOTEBOOKS = sorted(path.name for path in (ROOT / "docs" / "tutorials").glob("*.ipynb"))
LARGEST = 150_000  # bytes: outputs are committed small


def content_of(name: str) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((ROOT / "docs" / "tutorials" / name).read_text(encoding="utf-8"))
    return content


def texts(outputs: list[dict[str, Any]]) -> list[Any]:
    """What a reader sees of outputs: texts by line, and for a figure only that there is one."""
    found: list[Any] = []
    for output in outputs:
        data = output.get("data", {})
        text = RUNNER["text_of"](output.get("text", data.get("text/plain", "")))
        found.append("a figure" if "image/png" in data else [line.rstrip() for line in text.strip("\n").splitlines()])
    return found


def run(content: dict[str, Any], name: str) -> int:
    """Run a notebook and compare its outputs with those stored in it; return how many cells were compared."""
    compared = 0
    for cell, outputs in RUNNER["run_cells"](content, name):
        if "varies" not in cell["metadata"].get("tags", []):
            assert texts(outputs) == texts(cell["outputs"]), "".join(cell["source"])
            compared += bool(outputs)
    return compared


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_a_notebook_prints_what_is_stored_in_it(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(content_of(name), name) >= 4


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_a_notebook_is_valid_and_small(name: str) -> None:
    content = content_of(name)
    assert (content["nbformat"], content["nbformat_minor"]) == (4, 5)
    assert len({cell["id"] for cell in content["cells"]}) == len(content["cells"])
    for cell in content["cells"]:
        wanted = {"cell_type", "id", "metadata", "source"}
        wanted |= {"execution_count", "outputs"} if cell["cell_type"] == "code" else set()
        assert set(cell) == wanted
        assert cell["cell_type"] in ("code", "markdown")
        assert {output["output_type"] for output in cell.get("outputs", [])} <= {"stream", "execute_result"}
    assert (ROOT / "docs" / "tutorials" / name).stat().st_size < LARGEST


def test_the_notebook_format_is_kept() -> None:
    pytest.importorskip("nbformat", reason="The format's own check needs nbformat: pip install nbformat")
    validate = importlib.import_module("nbformat").validate
    for name in NOTEBOOKS:
        validate(content_of(name))


def test_every_notebook_is_on_the_site() -> None:
    front = (ROOT / "docs" / "index.md").read_text()
    assert len(NOTEBOOKS) == 5
    assert [name for name in NOTEBOOKS if f"\ntutorials/{name.removesuffix('.ipynb')}\n" not in front] == []


def cell_of(code: str, printed: str, tags: list[str]) -> dict[str, Any]:
    outputs = [{"output_type": "stream", "name": "stdout", "text": [printed]}]
    return {"cell_type": "code", "metadata": {"tags": tags}, "source": [code], "outputs": outputs}


def test_another_output_is_found_unless_it_may_vary() -> None:
    content = {"cells": [cell_of("a = 1\nprint(a)", "1\n", []), cell_of("print(a + 1)", "2\n", [])]}
    assert run(content, "page") == 2
    other = copy.deepcopy(content)
    other["cells"][1]["outputs"][0]["text"] = ["3\n"]
    with pytest.raises(AssertionError, match="a \\+ 1"):
        run(other, "page")
    other["cells"][1]["metadata"]["tags"] = ["varies"]
    assert run(other, "page") == 1


def test_a_page_shows_title_link_code_and_outputs() -> None:
    title = {"cell_type": "markdown", "metadata": {}, "source": ["# Title\n", "\n", "Words."]}
    page = RUNNER["to_markdown"](json.dumps({"cells": [title, cell_of("print(2)", "2\n", [])]}), "page.ipynb")
    parts = ["# Title", "{download}`", "```python\nprint(2)\n```", "```text\n2\n```"]
    places = [page.index(part) for part in parts]
    assert places == sorted(places)
