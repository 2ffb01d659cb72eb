"""`doublesampling serve` and `doublesampling key` as people type them."""

import json
import subprocess
import sys
import urllib.request

import pytest

from doublesampling.cli.main import main
from doublesampling.live.stores import open_store
from doublesampling.service.access_log import AccessLog
from tests.service import make_key, served, served_by_command


def command(capsys, *words):
    status = main([str(word) for word in words])
    said = capsys.readouterr()
    return status, said.out, said.err


def test_keys_are_made_listed_and_revoked(capsys, sqlite_url):
    where = ("--storage", sqlite_url)
    status, out, err = command(capsys, "key", "list", "--json", *where)
    assert (status, json.loads(out)["error"]) == (1, "not-found")
    status, out, err = command(capsys, "key", "create", "--role", "writer", "--label", "ward 3", *where)
    assert status == 0
    assert out.startswith("ds_")
    assert len(out.strip()) == 46  # 256 bits
    assert "shown only now" in err
    status, listed, _ = command(capsys, "key", "list", *where)
    assert "ward 3" in listed
    assert out.strip() not in listed
    (key,) = json.loads(command(capsys, "key", "list", "--json", *where)[1])
    assert command(capsys, "key", "revoke", key["id"], *where)[0] == 0
    assert "revoked" in command(capsys, "key", "list", *where)[1]
    status, _, err = command(capsys, "key", "revoke", key["id"], *where)
    assert (status, "before" in err) == (1, True)
    assert "No key" in command(capsys, "key", "revoke", "nobody", *where)[2]


def test_keys_expire_rotate_and_leave_a_log(capsys, sqlite_url):
    where = ("--storage", sqlite_url)
    made = json.loads(command(capsys, "key", "create", "--scopes", "tell,ask", "--expires", "90d", "--json", *where)[1])
    assert (made["role"], made["scopes"]) == ("writer", ["ask", "tell"])
    assert made["expires_at"] is not None
    status, out, err = command(capsys, "key", "rotate", made["id"], "--overlap", "24h", *where)
    assert (status, out.startswith("ds_")) == (0, True)
    assert f"It replaces {made['id']}, which ends in 24h" in err
    old, new = json.loads(command(capsys, "key", "list", "--json", *where)[1])
    assert (old["revoked"], new["replaces"], new["expires_at"]) == (False, [made["id"]], made["expires_at"])
    assert "rotated, ends" in command(capsys, "key", "list", *where)[1]
    status, _, err = command(capsys, "key", "create", "--role", "reader", "--expires", "2020-01-01", *where)
    assert (status, "in the future" in err) == (1, True)
    assert "access log is empty" in command(capsys, "key", "log", *where)[1]
    log = AccessLog(open_store(sqlite_url))
    log.note("key 1 (ward)", "export_csv", "trial")
    log.flush()
    log.close()
    assert "export_csv" in command(capsys, "key", "log", *where)[1]
    (entry,) = json.loads(command(capsys, "key", "log", "--experiment", "trial", "--json", *where)[1])
    assert (entry["actor"], entry["count"]) == ("key 1 (ward)", 1)


def test_keys_can_be_required(capsys, sqlite_url):
    status, _, err = command(capsys, "serve", "--require-keys", "--storage", sqlite_url)
    assert (status, "--require-keys: the store has no keys" in err) == (1, True)


def test_a_key_for_an_experiment_that_is_not_there(capsys, sqlite_url):
    words = ("key", "create", "--role", "reader", "--experiment", "nobody", "--storage", sqlite_url)
    status, out, err = command(capsys, *words)
    assert (status, out) == (1, "")
    assert "Create it first" in err


def test_a_role_must_be_named(capsys, sqlite_url):
    for words in ((), ("--role", "writer", "--scopes", "ask"), ("--scopes", "ask,fly"), ("--scopes", "ask,admin")):
        status, out, err = command(capsys, "key", "create", "--storage", sqlite_url, *words)
        assert (status, out) == (1, "")
        assert "--role" in err or "scopes must be" in err


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1"])
def test_without_keys_only_this_machine_is_served(capsys, sqlite_url, host):
    status, _, err = command(capsys, "serve", "--host", host, "--storage", sqlite_url)
    assert status == 1
    assert "has no keys" in err
    assert "key create" in err


def test_a_port_that_is_taken_is_refused_in_a_line(capsys, sqlite_url):
    import socket

    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = str(other.getsockname()[1])
        status, out, err = command(capsys, "serve", "--port", port, "--storage", sqlite_url)
    assert (status, out) == (1, "")
    assert f"Cannot listen at 127.0.0.1 port {port}" in err
    assert "Choose another --port" in err


def test_serve_says_where_it_is_and_that_it_has_no_keys(sqlite_url):
    with served_by_command(sqlite_url) as (address, process):
        with urllib.request.urlopen(f"{address}/v1/me") as answer:
            assert json.load(answer)["keyless"]
        process.terminate()
        out, err = process.communicate(timeout=30)
    assert f"Dashboard: {address}/" in out
    assert "trial.db, which is new" in out
    assert "No keys: only this machine is served" in out
    assert f"doublesampling key create --role admin --storage {sqlite_url}" in out
    assert "Traceback" not in err


def test_serve_with_keys_may_listen_anywhere(sqlite_url):
    header = make_key(sqlite_url, "reader")
    with served(sqlite_url, "--host", "0.0.0.0") as (address, _):
        request = urllib.request.Request(f"{address}/v1/experiments", headers=header)
        with urllib.request.urlopen(request) as answer:
            assert json.load(answer) == {"experiments": []}


def test_without_the_extra_serve_says_what_to_install(sqlite_url):
    code = (
        "import sys; sys.modules['uvicorn'] = None\n"
        f"from doublesampling.cli.main import main; sys.exit(main(['serve', '--storage', {sqlite_url!r}]))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 1
    assert "pip install '.[service]'" in done.stderr
