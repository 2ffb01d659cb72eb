"""Run the examples of docstrings in an empty folder, so that they may write files."""

from pathlib import Path

import pytest
from _pytest.doctest import DoctestItem


@pytest.fixture(autouse=True)
def _examples_write_to_an_empty_folder(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    if isinstance(request.node, DoctestItem):
        folder: Path = tmp_path_factory.mktemp("example")
        monkeypatch.chdir(folder)
