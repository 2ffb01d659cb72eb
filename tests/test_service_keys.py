"""Keys in the store: a store from before keys gets them by an upgrade, and loses nothing by it."""

import pytest
import sqlalchemy as sa

import doublesampling as ds
from doublesampling.errors import TooOldError
from doublesampling.live import schema, upgrade
from doublesampling.live.opening import open_store
from doublesampling.service import keys


def test_a_store_from_before_keys_is_upgraded(storage):
    exp = ds.Experiment.create("trial", arms=["a", "b"], seed=1, storage=storage)
    exp.tell(exp.ask(unit="u").id, 1.0)
    store = open_store(storage)
    with store.changing() as connection:  # as version 0.1 left it
        for table in ("ds_keys", "ds_reads"):
            connection.execute(sa.text(f"DROP TABLE {table}"))
        connection.execute(sa.text(f"UPDATE {schema.VERSION_TABLE} SET version_num = '0001'"))
    with pytest.raises(TooOldError, match="db upgrade"):
        ds.Experiment.load("trial", storage=storage)
    assert upgrade.upgrade(store) == (1, upgrade.HEAD)
    assert keys.read(store) == {}
    made, token = keys.create(store, "reader", "trial")
    assert keys.read(store) == {keys.digest(token): made}
    again = ds.Experiment.load("trial", storage=storage)
    assert again.summary()["outcomes"] == 1
    assert again.replay().agrees


def test_keys_of_schema_2_keep_their_rights_but_writers_no_longer_amend(storage):
    """A store of the version before scopes: its keys work on, with the scopes of their roles."""
    ds.Experiment.create("trial", arms=["a", "b"], seed=1, storage=storage)
    store = open_store(storage)
    made = {role: keys.create(store, role) for role in ("reader", "writer", "admin")}
    with store.changing() as connection:  # as schema 2 left it
        connection.execute(sa.text("DROP TABLE ds_reads"))
        for column in ("expires", "scopes", "replaces"):
            connection.execute(sa.text(f"ALTER TABLE ds_keys DROP COLUMN {column}"))
        connection.execute(sa.text(f"UPDATE {schema.VERSION_TABLE} SET version_num = '0002'"))
    assert upgrade.upgrade(store) == (2, upgrade.HEAD)
    found = keys.read(store)
    scopes = {role: found[keys.digest(token)].scopes for role, (_, token) in made.items()}
    assert scopes == {"reader": {"read"}, "writer": {"ask", "tell"}, "admin": {"ask", "tell", "amend", "read", "admin"}}
