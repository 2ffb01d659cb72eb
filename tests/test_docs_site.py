"""The documentation site builds without warnings, its links lead somewhere, and it loads nothing from elsewhere."""

import os
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

import doublesampling as ds

pytest.importorskip("furo", reason="The site needs Sphinx: pip install 'doublesampling[docs]'")

ROOT = Path(__file__).parent.parent
problems = runpy.run_path(str(ROOT / "docs" / "check_site.py"))["problems"]
PAGE = '<a href="{}">x</a><h2 id="there">y</h2><link rel="stylesheet" href="{}">'


@pytest.mark.slow  # CI runs make docs
def test_the_site_builds_without_warnings(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-b", "html", "-d", str(tmp_path / "trees")]
    done = subprocess.run(
        [*command, str(ROOT / "docs"), str(tmp_path / "site")], env=os.environ, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert problems(tmp_path / "site") == []
    assert "propens" in (tmp_path / "site" / "searchindex.js").read_text()  # words are stemmed
    pages = [page.read_text() for page in (tmp_path / "site" / "reference").glob("*.html")]
    missing = [name for name in ds.__all__ if not any(f'id="doublesampling.{name}"' in page for page in pages)]
    assert missing == ["__version__"]


@pytest.mark.parametrize(
    ("link", "style", "found"),
    [
        ("#there", "own.css", ""),
        ("other.html", "own.css", "other.html, which is not there"),
        ("#nowhere", "own.css", "no such heading"),
        ("#there", "https://cdn.example/x.css", "loads https://cdn.example/x.css"),
        ("https://example.org/a", "own.css", ""),
    ],
)
def test_the_check_finds(link: str, style: str, found: str, tmp_path: Path) -> None:
    (tmp_path / "own.css").write_text("p {}")
    (tmp_path / "index.html").write_text(PAGE.format(link, style))
    shown = problems(tmp_path)
    assert (found in shown[0]) if found else shown == []
