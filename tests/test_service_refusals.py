"""What the service refuses, and how little it tells of itself when it does."""

import logging
import time

import pytest

import doublesampling as ds
from doublesampling import errors
from doublesampling.service.middleware import BODY
from tests.service import asked, client, problem, trial


@pytest.fixture
def c(storage):
    with client(storage) as made:
        yield made


REFUSED = [
    ({"arms": ["a"]}, "invalid"),
    ({"arms": ["a", "a"]}, "name-taken"),
    ({"policy": {"kind": "Nobody"}}, "setting"),
    ({"policy": {"kind": "DoubleSampling", "settings": {"colour": 1}}}, "setting"),
    ({"policy": {"kind": "DoubleSampling", "settings": {"samples": -1}}}, "setting"),
    ({"policy": {"kind": "Oracle"}}, "setting"),
    ({"belief": {"kind": "BetaBernoulli", "settings": {"alpha": "x"}}}, "setting"),
    ({"belief": {"kind": "BetaState"}}, "setting"),
    ({"name": "a/b"}, "setting"),
    ({"name": ""}, "invalid"),
    ({"seed": -1}, "invalid"),
    ({"extra": 1}, "invalid"),
]


@pytest.mark.parametrize(("change", "code"), REFUSED)
def test_designs_that_cannot_be(sqlite_url, change, code):
    with client(sqlite_url) as c:
        answer = c.post("/v1/experiments", json={"name": "trial", "arms": ["a", "b"], **change})
        problem(answer, 409 if code == "name-taken" else 422, code)


def test_what_is_not_there(c):
    address = trial(c)
    other = trial(c, "other")
    made = asked(c, other)
    assert "lists them" in problem(c.get("/v1/experiments/nobody"), 404, "not-found")
    problem(c.get(f"{address}/decisions/nothing"), 404, "not-found")
    problem(c.put(f"{address}/decisions/{made}/outcome", json={"reward": 1}), 404, "other-experiment")
    problem(c.get("/v1/nothing"), 404, "not-found")
    problem(c.delete("/v1/experiments"), 405, "method")
    problem(c.put(f"{other}/decisions/{made}/outcome", json={"reward": 0.5}), 422, "reward")
    problem(c.post(f"{other}/decisions/{made}/amendments", json={"reward": 1, "reason": "r"}), 409, "conflict")


def test_large_bodies_are_refused_whether_or_not_they_say_so(sqlite_url):
    with client(sqlite_url) as c:
        address = trial(c)
        problem(c.post(f"{address}/outcomes", content=b"x" * (BODY + 1)), 413, "too-large")
        pieces = (b"x" * 100_000 for _ in range(20))
        problem(c.post(f"{address}/outcomes", content=pieces), 413, "too-large")


def test_a_request_that_takes_too_long_is_given_up(sqlite_url, monkeypatch):
    ds.Experiment.create("trial", arms=["a", "b"], seed=1, storage=sqlite_url)
    with client(sqlite_url, seconds=1.0) as c:
        address = "/v1/experiments/trial"
        monkeypatch.setattr("doublesampling.service.routes.results._posterior", lambda *_: time.sleep(3.0))
        answer = c.get(f"{address}/posterior")
        assert "nothing counts twice" in problem(answer, 503, "timeout")
        assert answer.headers["retry-after"] == "1"


def test_no_trace_leaves_the_server(sqlite_url, monkeypatch, caplog):
    def broken(*_):
        raise RuntimeError("secret words")

    with client(sqlite_url) as c:
        address = trial(c)
        monkeypatch.setattr("doublesampling.service.routes.results._posterior", broken)
        with caplog.at_level(logging.ERROR):
            answer = c.get(f"{address}/posterior")
        assert "secret" not in answer.text
        problem(answer, 500, "internal")
        assert "secret words" in caplog.text


def test_a_store_that_fails_is_not_described_to_strangers(sqlite_url, monkeypatch, caplog):
    def full(*_):
        raise errors.StorageFullError("No room is left for sqlite:////home/me/trial.db.")

    with client(sqlite_url) as c:
        address = trial(c)
        monkeypatch.setattr("doublesampling.live.asking.ask_each", full)
        problem(c.post(f"{address}/decisions"), 507, "storage-full")
        assert "/home/me" in caplog.text


def test_headers_forbid_everything_that_is_not_needed(sqlite_url):
    with client(sqlite_url) as c:
        for path in ("/", "/healthz", "/nothing", "/static/style.css"):
            headers = c.get(path).headers
            assert "default-src 'none'" in headers["content-security-policy"]
            assert "unsafe" not in headers["content-security-policy"]
            assert headers["x-content-type-options"] == "nosniff"
        assert c.get("/v1/experiments").headers["cache-control"] == "no-store"


def test_simulations_wait_in_a_short_queue(sqlite_url, monkeypatch):
    monkeypatch.setattr("doublesampling.service.pools.DaemonPool.submit", lambda self, work, *more: None)
    with client(sqlite_url) as c:
        address = trial(c)
        wish = {"truth": [0.1, 0.2, 0.3], "realizations": 20}
        assert [c.post(f"{address}/what-if", json=wish).status_code for _ in range(5)] == [202] * 5
        problem(c.post(f"{address}/what-if", json=wish), 429, "too-many")
