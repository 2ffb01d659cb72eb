"""The Python blocks of the how-to pages run, in order, and print what a reader expects."""

import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parent.parent / "docs"


@pytest.mark.parametrize(
    ("page", "shown"),
    [
        ("add_a_policy.md", "play arm 1"),
        ("add_a_belief.md", "play arm 1"),
        ("exact.md", "above the optimum"),
        ("allocation.md", "[0.101 0.11  0.789] Allocation(floor=0.1)"),
        ("trials.md", "superiority True"),
    ],
)
def test_every_block_of_a_page_runs(
    page: str,
    shown: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    """All blocks of a page share one namespace, as they would in a notebook."""
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", (DOCS / page).read_text(), re.DOTALL)
    assert len(blocks) >= 4
    names: dict[str, object] = {"__name__": "__main__"}
    for number, block in enumerate(blocks, 1):
        exec(compile(block, f"{page}, block {number}", "exec"), names)
    assert shown in capsys.readouterr().out
