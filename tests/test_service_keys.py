"""Keys in the store: old stores get them by an upgrade, and they expire, rotate and end as they should."""

import datetime

import pytest
import sqlalchemy as sa

import doublesampling as ds
from doublesampling.cli.key import parse_duration, parse_expiry
from doublesampling.errors import ConflictError, SettingError, TooOldError
from doublesampling.live.stores import open_store, schema, upgrade
from doublesampling.service import keys
from tests.service import asked, client, trial
from tests.test_service_access import two_seconds_later

SPAN = datetime.timedelta(hours=1)


def old_store(storage, version):
    """A store as an earlier version of the package made it."""
    store = open_store(storage)
    with store.changing() as connection:
        upgrade.migrate(connection, version)
    return store


def test_a_store_from_before_keys_is_upgraded(storage):
    store = old_store(storage, "0001")
    with pytest.raises(TooOldError, match="db upgrade"):
        ds.Experiment.load("trial", storage=storage)
    assert upgrade.upgrade(store) == (1, schema.HEAD)
    assert keys.read(store) == {}
    exp = ds.Experiment.create("trial", arms=["a", "b"], seed=1, storage=storage)
    exp.tell(exp.ask(unit="u").id, 1.0)
    made, token = keys.create(store, "reader", "trial")
    assert keys.read(store) == {keys.digest(token): made}
    assert exp.replay().agrees


def test_keys_from_before_scopes_keep_their_rights_but_writers_no_longer_amend(storage):
    store = old_store(storage, "0002")
    now = datetime.datetime.now(datetime.UTC).isoformat()
    with store.changing() as connection:
        for role in ("reader", "writer", "admin"):
            connection.execute(
                sa.text("INSERT INTO ds_keys (key, kind, digest, role, actor, at, version) "
                        "VALUES (:key, 'made', :key, :role, 'x', :at, '0')"), {"key": role, "role": role, "at": now},
            )  # fmt: skip
    upgrade.upgrade(store)
    scopes = {key.role: key.scopes for key in keys.read(store).values()}
    assert scopes == {"reader": {"read"}, "writer": {"ask", "tell"}, "admin": {"ask", "tell", "amend", "read", "admin"}}


def header(token):
    return {"Authorization": f"Bearer {token}"}


def test_an_expired_key_opens_nothing(storage):
    store = open_store(storage)
    upgrade.ensure(store)
    soon = datetime.datetime.now(datetime.UTC) + SPAN
    made, token = keys.create(store, "reader", expires=soon)
    with client(storage) as c:
        assert c.get("/v1/me", headers=header(token)).status_code == 200
        assert not made.ended(soon - datetime.timedelta(seconds=1))
        with pytest.MonkeyPatch.context() as patch:

            class Later(datetime.datetime):
                @classmethod
                def now(cls, tz=None):
                    return soon

            patch.setattr("doublesampling.service.key_cache.datetime.datetime", Later)
            assert "expired" in c.get("/v1/me", headers=header(token)).json()["detail"]
            assert c.get("/v1/me").status_code == 401
    with pytest.raises(SettingError, match="in the future"):
        keys.create(store, "reader", expires=soon - 2 * SPAN)


def test_a_rotated_key_keeps_its_units_and_its_idempotency_keys(storage):
    store = open_store(storage)
    upgrade.ensure(store)
    _, admin = keys.create(store, "admin")
    first, token = keys.create(store, "writer", label="ward 3")
    with client(storage) as c:
        address = trial(c, headers=header(admin))
        key = {"Idempotency-Key": "visit-1"}
        made = c.post(f"{address}/decisions", headers=header(token) | key).json()
        second, fresh = keys.rotate(store, first.id, overlap=SPAN)
        two_seconds_later(c)
        assert (second.role, second.label, second.scopes) == (first.role, first.label, first.scopes)
        assert second.actors == (second.actor, first.actor)
        again = c.post(f"{address}/decisions", headers=header(fresh) | key)
        assert (again.status_code, again.json()["id"]) == (200, made["id"])
        assert asked(c, address, headers=header(token))  # the old one works during the overlap
        other = c.post(f"{address}/decisions", headers=header(admin) | key)
        assert other.status_code == 201  # the same words of another key are another request
        third, newest = keys.rotate(store, second.id, overlap=datetime.timedelta(0))
        two_seconds_later(c)
        assert c.get("/v1/me", headers=header(fresh)).status_code == 401
        assert c.post(f"{address}/decisions", headers=header(newest) | key).json()["id"] == made["id"]
    assert third.owner == first.id
    with pytest.raises(ConflictError, match="rotated before"):
        keys.rotate(store, second.id, overlap=SPAN)


@pytest.mark.parametrize("text", ["90", "5y", "-1d", "soon", "2020-01-01x"])
def test_times_that_cannot_be_read(text):
    with pytest.raises(SettingError):
        parse_expiry(text)
    with pytest.raises(SettingError):
        parse_duration(text)


def test_times():
    assert parse_expiry(None) is None
    assert parse_expiry("2027-06-30") == datetime.datetime(2027, 6, 30, tzinfo=datetime.UTC)
    assert parse_expiry("2027-06-30T12:00+02:00") == datetime.datetime(2027, 6, 30, 10, tzinfo=datetime.UTC)
    assert parse_duration("2w") == datetime.timedelta(days=14)
