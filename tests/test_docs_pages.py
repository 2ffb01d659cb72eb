"""Every Python block of every page runs, in order, and prints what the page shows below it."""

import contextlib
import io
import re
from pathlib import Path

import pytest

from doublesampling.live.stores.urls import close_stores

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"```python\n(.*?)```(?:\s*```(?:text)?\n(.*?)```)?", re.DOTALL)


def blocks(page: Path) -> list[tuple[str, str]]:
    """The Python blocks of a page, each with the output block that follows it at once, or ""."""
    return BLOCK.findall(page.read_text())


ELSEWHERE = {"docs/how-to/client.md"}  # tests/test_client_docs.py runs it against a service
WITH_CODE = [name for page in PAGES if blocks(page) and (name := page.relative_to(ROOT).as_posix()) not in ELSEWHERE]


def run(page: str, text: list[tuple[str, str]]) -> str:
    """Run the blocks in one namespace, as in a notebook; return what they printed."""
    names: dict[str, object] = {"__name__": "__main__"}
    printed = []
    for number, (code, shown) in enumerate(text, 1):
        if not shown:  # long simulations, made short where nobody compares their numbers
            code = re.sub(r"realizations=[\d_]{3,}", "realizations=64", code)
        with contextlib.redirect_stdout(io.StringIO()) as out:
            exec(compile(code, f"{page}, block {number}", "exec"), names)
        printed.append(out.getvalue())
        if shown:
            assert lines(out.getvalue()) == lines(shown), f"{page}, block {number} prints\n{out.getvalue()}"
    return "".join(printed)


def lines(text: str) -> list[str]:
    return [line.rstrip() for line in text.strip("\n").splitlines()]


@pytest.mark.parametrize("page", WITH_CODE)
def test_every_block_of_a_page_runs(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    close_stores()  # pages name the same file, each in a folder of its own
    run(page, blocks(ROOT / page))
    close_stores()


def test_the_first_pages_show_code() -> None:
    assert {"README.md", "docs/index.md", "docs/how-to/choose.md"} <= set(WITH_CODE)


def test_a_page_that_shows_another_output_is_found() -> None:
    with pytest.raises(AssertionError, match="block 1 prints"):
        run("page", [("print(1)\n", "2\n")])
