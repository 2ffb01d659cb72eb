"""Keys never fail open: a process that has seen a key never serves without one, whatever happens to the store."""

import shutil
import socket
import threading
import time

import pytest
import sqlalchemy as sa
import uvicorn

from doublesampling.live.stores import open_store
from doublesampling.service import keys
from doublesampling.service.app import create_app
from tests.service import asked, client, free_port, make_key, problem, trial
from tests.test_service_access import two_seconds_later


def drop_keys(url):
    """What a restored copy from before the keys, or a hand in the database, leaves behind."""
    with open_store(url).changing() as connection:
        if connection.dialect.name == "sqlite":
            for (name,) in connection.execute(
                sa.text("SELECT name FROM sqlite_master WHERE type='trigger' AND tbl_name='ds_keys'")
            ).all():
                connection.execute(sa.text(f"DROP TRIGGER {name}"))
        else:
            connection.execute(sa.text("ALTER TABLE ds_keys DISABLE TRIGGER ALL"))
        connection.execute(sa.text("DELETE FROM ds_keys"))


def test_a_store_that_loses_its_keys_is_refused(storage):
    admin = make_key(storage, "admin")
    with client(storage) as c:
        address = trial(c, headers=admin)
        assert c.get("/v1/me", headers=admin).status_code == 200
        drop_keys(storage)
        two_seconds_later(c)
        for headers in ({}, admin):
            assert "lost its keys" in problem(c.get("/v1/me", headers=headers), 503, "no-keys")
            problem(c.post(f"{address}/decisions", headers=headers), 503, "no-keys")
            problem(c.get(f"{address}/posterior", headers=headers), 503, "no-keys")
        problem(c.get("/healthz"), 503, "no-keys")  # a server that lets nobody in is not healthy
        again = make_key(storage, "admin")
        two_seconds_later(c)
        assert c.get("/v1/me", headers=again).status_code == 200


def test_a_process_that_saw_the_first_key_being_made_needs_one_from_then_on(sqlite_url):
    with client(sqlite_url) as c:
        assert c.get("/v1/me").json()["keyless"]
        make_key(sqlite_url, "admin")
        two_seconds_later(c)
        assert c.get("/v1/me").status_code == 401
        drop_keys(sqlite_url)
        two_seconds_later(c)
        problem(c.get("/v1/me"), 503, "no-keys")


def test_a_revoked_key_stays_revoked_where_an_older_copy_knows_nothing_of_it(sqlite_url, tmp_path):
    """The store is replaced by a copy from before the revocation; the file is swapped below the running process."""
    header = make_key(sqlite_url, "reader")
    store = open_store(sqlite_url)
    (key,) = keys.read(store).values()
    with client(sqlite_url) as c:
        keys.revoke(store, key.id)
        two_seconds_later(c)
        assert c.get("/v1/me", headers=header).status_code == 401
        with store.changing() as connection:
            connection.execute(sa.text("DROP TRIGGER ds_keys_no_delete"))
            connection.execute(sa.text("DELETE FROM ds_keys WHERE kind = 'revoked'"))
        two_seconds_later(c)
        assert c.get("/v1/me", headers=header).status_code == 401


def test_keys_that_are_required_and_missing_let_nobody_in(sqlite_url):
    with client(sqlite_url, require_keys=True) as c:
        assert "has no keys" in problem(c.get("/v1/me"), 503, "no-keys")
        header = make_key(sqlite_url, "admin")
        two_seconds_later(c)
        assert c.get("/v1/me", headers=header).status_code == 200
        assert c.get("/v1/me").status_code == 401


FORWARDED = ["X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto", "X-Real-IP", "Forwarded", "Via"]


@pytest.mark.parametrize("name", FORWARDED)
def test_without_keys_nothing_that_a_proxy_has_passed_on_is_served(sqlite_url, name):
    with client(sqlite_url) as c:
        assert "proxy" in problem(c.get("/v1/me", headers={name: "127.0.0.1"}), 403, "host")
        assert c.get("/v1/me").status_code == 200


@pytest.mark.parametrize("peer", ["192.0.2.7", "::ffff:192.0.2.7", "2001:db8::1", "fe80::1%eth0"])
def test_without_keys_nobody_else_is_served_whatever_they_say_their_host_is(sqlite_url, peer):
    from starlette.testclient import TestClient

    with TestClient(create_app(sqlite_url), base_url="http://localhost", client=(peer, 1)) as c:
        problem(c.get("/v1/me", headers={"Host": "localhost"}), 403, "host")


def own_address():
    """An address of this machine that is not loopback, or None."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))
        except OSError:
            return None
        return probe.getsockname()[0]


def test_an_app_that_another_server_binds_everywhere_stays_closed(sqlite_url):
    """uvicorn started by hand on every address, with a store without keys: only loopback connections are served."""
    address = own_address()
    if address is None or address.startswith("127."):
        pytest.skip("this machine has no address but loopback")
    port = free_port()
    server = uvicorn.Server(uvicorn.Config(create_app(sqlite_url), host="0.0.0.0", port=port, log_level="critical"))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    try:
        until = time.monotonic() + 30
        while not server.started and time.monotonic() < until:
            time.sleep(0.02)
        assert raw(address, port) == 403
        assert raw("127.0.0.1", port) == 200
    finally:
        server.should_exit = True
        thread.join(20)


def raw(address, port):
    """The status of a request that claims to be for localhost."""
    with socket.create_connection((address, port), timeout=20) as s:
        s.sendall(b"GET /v1/me HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        return int(s.recv(100)[9:12])


def test_a_swapped_file_without_keys_opens_nothing(sqlite_url, tmp_path):
    """mv other.db trial.db, where other.db never had a key."""
    other = f"sqlite:///{tmp_path / 'other.db'}"
    with client(other) as c:
        asked(c, trial(c))
    open_store(other).close()
    admin = make_key(sqlite_url, "admin")
    with client(sqlite_url) as c:
        assert c.get("/v1/me", headers=admin).status_code == 200
        for end in ("", "-wal", "-shm"):
            (tmp_path / f"trial.db{end}").unlink(missing_ok=True)
        shutil.copy(tmp_path / "other.db", tmp_path / "trial.db")
        open_store(sqlite_url).close()  # as a pool does when it makes new connections
        two_seconds_later(c)
        assert c.get("/v1/me").status_code in (401, 503)
        assert c.get("/v1/experiments/trial/posterior").status_code in (401, 503)
