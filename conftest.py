"""Run the examples of docstrings in an empty folder, so that they may write files."""

from collections.abc import Iterator

import pytest
from _pytest.doctest import DoctestItem


@pytest.fixture(autouse=True)
def _examples_write_to_an_empty_folder(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> Iterator[None]:
    if not isinstance(request.node, DoctestItem):
        yield
        return
    monkeypatch.chdir(tmp_path_factory.mktemp("example"))
    yield
    from doublesampling.live.stores.urls import close_stores

    close_stores()  # examples name the same file, each in a folder of its own
