"""The API reference: every public name has a docstring with an example, and a place on the reference pages."""

import inspect
import re
from pathlib import Path

import pytest

import doublesampling as ds

REFERENCE = Path(__file__).parent.parent / "docs" / "reference"
NAMES = [name for name in ds.__all__ if not name.startswith("__")]


@pytest.mark.parametrize("name", NAMES)
def test_every_public_name_has_an_example(name: str) -> None:
    """pytest runs the examples (--doctest-modules); here they only have to exist."""
    assert ">>> " in (inspect.getdoc(getattr(ds, name)) or ""), f"The docstring of ds.{name} has no example."


def test_no_name_is_in_the_reference_twice() -> None:
    """Names that no page lists are added to reference/others.md by the build (docs/conf.py)."""
    pages = "\n".join(page.read_text() for page in sorted(REFERENCE.glob("*.md")))
    listed = re.findall(r"auto(?:class|function|exception|data):: doublesampling\.(\w+)$", pages, re.MULTILINE)
    assert len(listed) >= 37
    assert len(listed) == len(set(listed))
    assert set(listed) <= set(NAMES)
