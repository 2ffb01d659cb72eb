"""Request keys belong to who sent them, also in stores that were made before keys had owners."""

import datetime
import json
import threading
from typing import Any

import pytest
import sqlalchemy as sa

import doublesampling as ds
from doublesampling.errors import ConflictError
from doublesampling.live.design import make_design
from doublesampling.live.group_commit import Writer
from doublesampling.live.stores import open_store, schema, upgrade
from tests.test_live_experiment import create


def test_the_same_key_of_two_owners_is_two_requests(storage):
    exp = create(storage)
    mine, theirs = exp.ask(request_key="visit-1", scope="ward a"), exp.ask(request_key="visit-1", scope="ward b")
    plain = exp.ask(request_key="visit-1")
    assert len({mine.id, theirs.id, plain.id}) == 3
    assert exp.ask(request_key="visit-1", scope="ward a").id == mine.id
    assert exp.ask(request_key="visit-1", scope="ward b", unit=None).id == theirs.id
    again = ds.Experiment.load("trial", storage=storage, actor="somebody@another.host")
    assert again.ask(request_key="visit-1").id == plain.id  # plain Python: one scope, whoever and wherever
    assert exp.add_history([0], [1], request_key="2019", scope="ward a") == 1
    assert exp.add_history([1], [1], request_key="2019", scope="ward b") == 1
    assert exp.add_history([0], [1], request_key="2019", scope="ward a") == 0
    assert exp.replay().agrees


def test_items_of_ask_many_and_single_asks_cannot_meet(storage):
    exp = create(storage)
    batch = exp.ask_many(3, request_key="a")
    singles = [exp.ask(request_key=key) for key in ("a", "a/0", "a/1", "a/2")]
    assert len({d.id for d in [*batch, *singles]}) == 7
    assert [d.id for d in exp.ask_many(3, request_key="a")] == [d.id for d in batch]
    assert [d.id for d in exp.ask_many(3, request_key="a", scope="other")] != [d.id for d in batch]
    assert exp.ask(request_key="a/1").id == singles[2].id


def test_a_group_takes_in_every_actor_and_scope(storage, monkeypatch):
    """One transaction for callers of many keys; each row says whose it is, and one refusal leaves the others alone."""
    exp = create(storage)
    store, calls = exp.session.store, list[Any]()
    attempt = store.run_transaction
    writer = Writer()
    try:
        first = writer.ask(exp, "busy", None, None, "x")  # compiles; what follows gathers behind it
        first.result()

        def counted(work: Any, **options: Any) -> Any:
            calls.append(work)
            return attempt(work, **options)

        monkeypatch.setattr(store, "run_transaction", counted)
        writer._jobs.put(None)  # the thread ends, and jobs gather
        writer._thread.join()
        asked = [writer.ask(exp, f"u{i}", None, "visit-1", f"key {i}", f"scope {i}") for i in range(20)]
        wrong = writer.ask(exp, "u", [1.0, 2.0], None, "key 3", "scope 3")  # this belief takes no context
        writer._thread = threading.Thread(target=writer._run)
        writer._thread.start()
        ids = [each.result().id for each in asked]
        with pytest.raises(ds.DoubleSamplingError, match="context"):
            wrong.result()
        assert len(calls) == 1
    finally:
        writer.close()
    assert len(set(ids)) == 20
    frame = exp.decisions().set_index("id").loc[ids]
    assert frame["actor"].tolist() == [f"key {i}" for i in range(20)]
    assert exp.replay().agrees


def old_store(storage):
    """A store of schema 2 with decisions that were asked with keys."""
    store = open_store(storage)
    with store.changing() as connection:
        upgrade.migrate(connection, "0002")
    design = make_design(["a", "b"], None, None, 7, "once")
    now = datetime.datetime.now(datetime.UTC).isoformat()
    signed = {"at": now, "version": "0"}
    with store.engine.begin() as connection:
        connection.execute(
            sa.text("INSERT INTO ds_experiments (id, name, design, actor, at, version) VALUES "
                    "(1, 'old', :design, 'x', :at, :version)"), {"design": design.to_json()} | signed,
        )  # fmt: skip
        store.prepare(connection, 1)
        connection.execute(
            sa.text("INSERT INTO ds_keys (key, kind, digest, role, actor, at, version) VALUES "
                    "('0123abcd', 'made', 'd', 'writer', 'x', :at, :version)"), signed,
        )  # fmt: skip
        row: dict[str, Any] = {"experiment": 1, "time": 1, "position": 0, "arm": 0, "propensities": "[0.5, 0.5]",
               "probability_optimal": "[0.5, 0.5]", "candidates": 1, "votes": "[1, 0]", "observations": 0,
               "digest": "d", "snapshot": "1:1:", "xid": 1} | signed  # fmt: skip
        rows: list[dict[str, Any]] = [
            {"id": "plain", "unit": "Ame\u0301lie", "request_key": "k", "actor": "me@host"},
            {"id": "keyed", "unit": "u2", "request_key": "visit-1", "actor": "key 0123abcd (ward a)"},
            {"id": "many0", "unit": None, "request_key": "night/0", "actor": "me@host"},
            {"id": "many1", "unit": None, "request_key": "night/1", "actor": "me@host"},
            {"id": "alike", "unit": None, "request_key": "strange", "actor": "key nobody00 (?)"},
        ]
        for number, each in enumerate(rows, start=1):
            full = row | each | {"number": number, "unit_once": each["unit"]}
            names = ", ".join(full)
            connection.execute(
                sa.text(f"INSERT INTO ds_decisions ({names}) VALUES ({', '.join(':' + n for n in full)})"), full
            )
        event = {"experiment": 1, "revision": 1, "kind": "pause", "content": json.dumps({}), "request_key": "k",
                 "xid": 1, "actor": "key 0123abcd"} | signed  # fmt: skip
        names = ", ".join(event)
        connection.execute(
            sa.text(f"INSERT INTO ds_events ({names}) VALUES ({', '.join(':' + n for n in event)})"), event
        )
        if "postgres" in storage:
            connection.execute(sa.text("SELECT setval('ds_numbers_1', 5)"))
    return store


def test_keys_used_before_the_upgrade_are_still_recognized(storage):
    store = old_store(storage)
    assert upgrade.upgrade(store) == (2, schema.HEAD)
    exp = ds.Experiment.load("old", storage=storage)
    assert exp.ask(request_key="k").id == "plain"
    assert exp.ask(unit="Am\u00e9lie").id == "plain"  # stored with a combining accent
    assert exp.ask(unit="Ame\u0301lie", request_key="k").id == "plain"
    assert exp.ask(request_key="visit-1", scope="0123abcd").id == "keyed"
    assert [d.id for d in exp.ask_many(2, request_key="night")] == ["many0", "many1"]
    assert exp.ask(request_key="night/1").id == "many1"
    assert exp.ask(request_key="strange").id == "alike"  # of no key that the store knows
    assert exp.resume()
    assert not exp.ask(request_key="visit-1").repeated
    assert not exp.ask(request_key="k", scope="0123abcd").repeated
    with pytest.raises(ConflictError, match="Use a new key"):
        exp.add_history([0], [1], request_key="k", scope="0123abcd")
    with store.engine.connect() as connection, pytest.raises(sa.exc.DBAPIError, match="append-only"):
        connection.execute(sa.text("UPDATE ds_decisions SET key_scope = ''"))


def test_an_upgraded_store_has_the_schema_of_a_new_one(storage):
    from alembic.autogenerate import compare_metadata
    from alembic.migration import MigrationContext

    store = old_store(storage)
    upgrade.upgrade(store)
    with store.reading() as connection:
        context = MigrationContext.configure(connection, opts={"version_table": schema.VERSION_TABLE})
        assert compare_metadata(context, schema.metadata) == []
