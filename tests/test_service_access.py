"""Who may do what: every route against a stranger, a wrong key and each role; and what a blind writer never sees."""

import json

import pytest

from doublesampling.live.stores import open_store
from doublesampling.service import keys
from doublesampling.service.app import create_app
from tests.service import asked, client, make_key, trial

EVERY, READ, WRITE, ADMIN = {"reader", "writer", "admin"}, {"reader", "admin"}, {"writer", "admin"}, {"admin"}
OPEN = {"stranger", "wrong", *EVERY}
E = "/v1/experiments/{name}"
ROUTES = {
    ("GET", "/healthz"): OPEN,
    ("GET", "/metrics"): READ,
    ("GET", "/v1/me"): EVERY,
    ("GET", "/v1/experiments"): EVERY,
    ("POST", "/v1/experiments"): ADMIN,
    ("GET", E): EVERY,
    ("POST", f"{E}/pause"): ADMIN,
    ("POST", f"{E}/resume"): ADMIN,
    ("POST", f"{E}/arms"): ADMIN,
    ("POST", f"{E}/arms/drop"): ADMIN,
    ("POST", f"{E}/history"): ADMIN,
    ("POST", f"{E}/decisions"): WRITE,
    ("POST", f"{E}/decisions/batch"): WRITE,
    ("GET", f"{E}/units"): WRITE,
    ("PUT", f"{E}/units/outcome"): WRITE,
    ("GET", f"{E}/waiting"): READ,
    ("GET", f"{E}/overview"): READ,
    ("GET", f"{E}/audit"): READ,
    ("GET", f"{E}/audit.csv"): READ,
    ("GET", f"{E}/audit.jsonl"): READ,
    ("GET", f"{E}/audit.parquet"): READ,
    ("POST", f"{E}/decisions/{{id}}/withdrawals"): ADMIN,
    ("POST", f"{E}/decisions/{{id}}/void"): ADMIN,
    ("GET", "/v1/access"): ADMIN,
    ("GET", "/v1/catalog"): EVERY,
    ("GET", f"{E}/decisions"): READ,
    ("GET", f"{E}/decisions/{{id}}"): READ,
    ("PUT", f"{E}/decisions/{{id}}/outcome"): WRITE,
    ("POST", f"{E}/decisions/{{id}}/amendments"): ADMIN,
    ("POST", f"{E}/outcomes"): WRITE,
    ("GET", f"{E}/posterior"): READ,
    ("GET", f"{E}/series"): READ,
    ("GET", f"{E}/sequence"): READ,
    ("GET", f"{E}/analysis"): READ,
    ("GET", f"{E}/exact-test"): READ,
    ("GET", f"{E}/protocol.html"): READ,
    ("GET", f"{E}/report.html"): READ,
    ("GET", f"{E}/health"): READ,
    ("GET", f"{E}/replay"): READ,
    ("GET", f"{E}/export.csv"): READ,
    ("GET", f"{E}/export.jsonl"): READ,
    ("GET", f"{E}/summary"): READ,
    ("GET", f"{E}/export.parquet"): READ,
    ("POST", f"{E}/what-if"): READ,
    ("GET", f"{E}/what-if/{{id}}"): READ,
    ("DELETE", f"{E}/what-if/{{id}}"): READ,
}
OUTSIDE_THE_SCHEMA = {"/", "/openapi.json", "/static"}
"""The dashboard's files and the schema hold no data; everybody may read them."""


def two_seconds_later(c):
    """Let the service read the keys again."""
    c.app.state.service.key_cache._read_at = -1e9


def documented(app):
    return {(m.upper(), path) for path, found in app.openapi()["paths"].items() for m in found}


def every_path(routes):
    for route in routes:
        inner = getattr(route, "original_router", None) or getattr(route, "routes", None)
        if hasattr(route, "path"):
            yield route.path
        elif inner is not None:
            yield from every_path(getattr(inner, "routes", inner))


def test_every_route_is_in_the_table(sqlite_url):
    app = create_app(sqlite_url)
    assert documented(app) == set(ROUTES)
    assert set(every_path(app.routes)) == {path for _, path in ROUTES} | OUTSIDE_THE_SCHEMA  # none is hidden
    app.state.service.close()


@pytest.fixture(scope="module")
def house(tmp_path_factory):
    """A service with a key of each role, and a decision that has an outcome."""
    url = f"sqlite:///{tmp_path_factory.mktemp('house') / 'trial.db'}"
    headers = {role: make_key(url, role) for role in sorted(EVERY)}
    headers |= {"stranger": {}, "wrong": {"Authorization": "Bearer ds_wrong"}}
    with client(url) as c, pytest.MonkeyPatch.context() as patch:
        patch.setattr("doublesampling.reports.final._scenarios", lambda exp: {})  # a report need not simulate here
        address = trial(c, headers=headers["admin"])
        made = asked(c, address, headers=headers["admin"])
        c.put(f"{address}/decisions/{made}/outcome", json={"reward": 1}, headers=headers["admin"])
        yield c, headers, made, url


BODIES = {
    "/v1/experiments": {"name": "another", "arms": ["a", "b"]},
    f"{E}/decisions/{{id}}/outcome": {"reward": 1},
    f"{E}/decisions/{{id}}/amendments": {"reward": 0, "reason": "r"},
    f"{E}/decisions/{{id}}/withdrawals": {"reason": "r"},
    f"{E}/decisions/{{id}}/void": {"reason": "r"},
    f"{E}/decisions/batch": {"count": 2},
    f"{E}/units/outcome": {"unit": "u", "reward": 1},
    f"{E}/arms": {"name": "new"},
    f"{E}/arms/drop": {"arm": "b"},
    f"{E}/history": {"arms": ["a"], "rewards": [1]},
    f"{E}/what-if": {"truth": [0.1, 0.2, 0.3], "realizations": 20, "horizon": 5},
}


@pytest.mark.parametrize("who", ["stranger", "wrong", "reader", "writer", "admin"])
@pytest.mark.parametrize(("method", "path"), sorted(ROUTES))
def test_who_may_come_in(house, who, method, path):
    c, headers, made, _ = house
    body = {"outcomes": [{"decision": made, "reward": 1}]} if path.endswith("outcomes") else BODIES.get(path)
    answer = c.request(method, path.format(name="trial", id=made), json=body, headers=headers[who])
    if who in ROUTES[method, path]:
        assert answer.status_code not in (401, 403), answer.text
        assert answer.status_code < 500
    else:
        assert answer.status_code == (401 if who in ("stranger", "wrong") else 403)
        assert answer.json()["code"] == ("unauthorized" if who in ("stranger", "wrong") else "forbidden")
    if answer.status_code == 401:
        assert answer.headers["www-authenticate"] == "Bearer"


@pytest.mark.parametrize(("method", "path"), sorted(r for r in ROUTES if "{name}" in r[1]))
@pytest.mark.parametrize("name", ["trial", "not-there"])
def test_a_key_of_one_experiment_opens_no_other(house, method, path, name):
    c, headers, made, url = house
    if c.get("/v1/experiments/narrow", headers=headers["admin"]).status_code == 404:
        trial(c, "narrow", headers=headers["admin"])
    narrow = make_key(url, "admin", "narrow")
    two_seconds_later(c)
    answer = c.request(method, path.format(name=name, id=made), json=BODIES.get(path), headers=narrow)
    assert (answer.status_code, answer.json()["code"]) == (403, "forbidden")


def test_a_key_of_one_experiment_elsewhere(house):
    c, _, _, url = house
    narrow = make_key(url, "admin", "trial")
    two_seconds_later(c)
    assert [e["name"] for e in c.get("/v1/experiments", headers=narrow).json()["experiments"]] == ["trial"]
    assert c.post("/v1/experiments", json=BODIES["/v1/experiments"], headers=narrow).status_code == 403
    assert c.get("/metrics", headers=narrow).status_code == 403
    assert c.get("/v1/access", params={"experiment": "other"}, headers=narrow).status_code == 403
    assert c.get("/v1/experiments/trial/posterior", headers=narrow).status_code == 200


RESULTS = ("propens", "probab", "candidates", "votes", "observations", "digest", "mean")


def test_a_writer_is_blind(house):
    """Nothing that a writer can read says how the arms do, not even by whom a conflict is made."""
    c, headers, _, _ = house
    address, writer = "/v1/experiments/trial", headers["writer"]
    made = c.post(f"{address}/decisions", json={"unit": "blind"}, headers=writer)
    assert set(made.json()) == {"id", "unit", "arm", "arm_name", "asked_at", "repeated"}
    again = c.post(f"{address}/decisions", json={"unit": "blind"}, headers=writer)
    outcome = f"{address}/decisions/{made.json()['id']}/outcome"
    told = c.put(outcome, json={"reward": 1}, headers=writer)
    other = c.put(outcome, json={"reward": 0}, headers=writer)
    batch = {"outcomes": [{"decision": made.json()["id"], "reward": 0}]}
    several = c.post(f"{address}/outcomes", json=batch, headers=writer)
    assert [a.status_code for a in (made, again, told, other, several)] == [201, 200, 201, 200, 200]
    seen = c.get(address, headers=writer)
    assert seen.json()["results"] is None
    assert "etag" not in seen.headers
    for answer in (made, again, told, other, several, seen, c.get("/v1/experiments", headers=writer)):
        assert not any(word in json.dumps(answer.json()) for word in RESULTS), answer.text


def test_rows_are_signed_by_the_key(house):
    c, headers, _, _ = house
    asked(c, "/v1/experiments/trial", "signed", headers=headers["writer"])
    page = c.get("/v1/experiments/trial/decisions", headers=headers["reader"]).json()
    assert next(r for r in page["decisions"] if r["unit"] == "signed")["actor"].startswith("key ")


def test_only_digests_are_stored_and_a_revoked_key_is_dead(sqlite_url, tmp_path):
    header = make_key(sqlite_url, "reader")
    token = header["Authorization"].removeprefix("Bearer ")
    with client(sqlite_url) as c:
        assert c.get("/v1/me", headers=header).json()["role"] == "reader"
        store = open_store(sqlite_url)
        (key,) = keys.read(store).values()
        assert not any(token.encode() in file.read_bytes() for file in tmp_path.iterdir())
        keys.revoke(store, key.id)
        two_seconds_later(c)
        assert c.get("/v1/me", headers=header).status_code == 401
        assert c.get("/v1/me").status_code == 401  # revoking the last key opens nothing


def test_making_the_first_key_closes_the_door(sqlite_url):
    with client(sqlite_url) as c:
        me = c.get("/v1/me").json()
        assert (me["role"], me["experiment"], me["keyless"]) == ("admin", None, True)
        assert me["scopes"] == ["ask", "tell", "amend", "read", "admin"]
        make_key(sqlite_url, "admin")
        two_seconds_later(c)
        assert c.get("/v1/me").status_code == 401


STRANGE = [
    ({"Host": "evil.example"}, 403),
    ({"Host": "evil.example:8000"}, 403),
    ({"Host": "localhost.evil.example"}, 403),
    ({"Origin": "http://evil.example"}, 403),
    ({"Origin": "null"}, 403),
    ({"Origin": "http://localhost:9999"}, 403),
    ({"Sec-Fetch-Site": "cross-site"}, 403),
    ({"Origin": "http://localhost"}, 200),
    ({"Host": "127.0.0.1:8000"}, 200),
    ({"Host": "[::1]:8000"}, 200),
]


@pytest.mark.parametrize(("headers", "status"), STRANGE)
def test_without_keys_other_pages_cannot_use_it(sqlite_url, headers, status):
    """A page of another origin can send requests to this machine; a name that points here can read the answers."""
    with client(sqlite_url) as c:
        answer = c.get("/v1/experiments", headers=headers)
        assert answer.status_code == status
        if status == 403:
            assert answer.json()["code"] == "host"
            assert c.post("/v1/experiments", json={}, headers=headers).status_code == 403


def test_with_keys_any_host_will_do(sqlite_url):
    header = make_key(sqlite_url, "reader")
    with client(sqlite_url) as c:
        assert c.get("/v1/experiments", headers={"Host": "trials.example", **header}).status_code == 200


def test_a_writer_who_repeats_a_tell_learns_nothing_new(house):
    """What became of an outcome since, why, and by whom, is a result."""
    c, headers, _, _ = house
    address = trial(c, "blind", headers=headers["admin"])
    made = asked(c, address, headers=headers["writer"])
    place = f"{address}/decisions/{made}"
    first = c.put(f"{place}/outcome", json={"reward": 1}, headers=headers["writer"]).json()
    c.post(f"{place}/amendments", json={"reward": 0, "reason": "unblinded committee"}, headers=headers["admin"])
    again = c.put(f"{place}/outcome", json={"reward": 1}, headers=headers["writer"])
    batch = c.post(
        f"{address}/outcomes", json={"outcomes": [{"decision": made, "reward": 1}]}, headers=headers["writer"]
    )
    for found in (again.json(), batch.json()["outcomes"][0]):
        assert set(found) == set(first) == {"decision", "repeated", "detail"}
        assert found["repeated"]
    for text in (again.text, batch.text):
        assert "committee" not in text
        assert "adm" not in text
    seen = c.put(f"{place}/outcome", json={"reward": 1}, headers=headers["admin"]).json()
    assert (seen["reward"], seen["reason"]) == (0.0, "unblinded committee")
