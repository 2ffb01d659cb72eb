"""Several at once: callers in one group, two servers on one PostgreSQL, and a server that is killed."""

import concurrent.futures
import json
import threading
import time
import urllib.error
import urllib.request

import pytest

import doublesampling as ds
from doublesampling.errors import ConflictError, ContextError
from doublesampling.live.group_commit import Writer
from tests.service import served


@pytest.fixture
def writer():
    made = Writer()
    yield made
    made.close()


def held(writer):
    """Keep the writer's thread busy, so that what follows gathers in one group."""
    gate, inside = threading.Event(), threading.Event()

    def wait(items):
        inside.set()
        gate.wait(10)
        return items

    writer._put(("tell", "gate"), wait, None)
    inside.wait(10)
    return gate


def test_a_group_is_one_transaction_and_can_be_replayed(storage, writer):
    exp = ds.Experiment.create("trial", arms=["a", "b"], seed=1, storage=storage)
    gate = held(writer)
    waiting = [writer.ask(exp, f"u{i}", None, None, None) for i in range(20)]
    again = writer.ask(exp, "u3", None, None, None)
    gate.set()
    made = [each.result(30) for each in waiting]
    assert [d.unit for d in made] == [f"u{i}" for i in range(20)]
    assert again.result(30).id == made[3].id
    assert len({d.snapshot for d in made}) == 1  # decided from the same knowledge
    assert len({d.id for d in made}) == 20
    told = [writer.tell(exp, d.id, float(i % 2)) for i, d in enumerate(made)]
    assert all(not each.result(30).repeated for each in told)
    assert exp.summary()["outcomes"] == 20
    assert exp.replay().agrees


def test_one_refusal_in_a_group_refuses_nobody_else(storage, writer):
    exp = ds.Experiment.create("trial", arms=["a", "b"], seed=1, storage=storage)
    d = exp.ask()
    gate = held(writer)
    good, bad = writer.ask(exp, "good", None, None, None), writer.ask(exp, "bad", [1.0], None, None)
    first, second, same = (writer.tell(exp, d.id, reward) for reward in (1.0, 0.0, 1.0))
    gate.set()
    assert good.result(30).unit == "good"
    with pytest.raises(ContextError):
        bad.result(30)
    assert not first.result(30).repeated
    with pytest.raises(ConflictError):
        second.result(30)
    assert same.result(30).repeated
    assert exp.summary()["decisions"] == 2


def test_an_answer_comes_only_after_the_commit(sqlite_url, writer, monkeypatch):
    """Another connection sees the outcome as soon as the caller has its answer."""
    exp = ds.Experiment.create("trial", arms=["a", "b"], seed=1, storage=sqlite_url)
    seen = []
    for _ in range(20):
        d = writer.ask(exp, None, None, None, None).result(30)
        writer.tell(exp, d.id, 1.0).result(30)
        seen.append(exp.pending().empty)
    assert all(seen)


def send(address, method, path, content, timeout=30.0):
    data = json.dumps(content).encode()
    request = urllib.request.Request(address + path, data, {"Content-Type": "application/json"}, method=method)
    try:
        with urllib.request.urlopen(request, timeout=timeout) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as refused:
        return refused.code, json.load(refused)


def test_two_servers_on_one_postgresql_behave_as_one(postgres_url):
    """The recipe of docs/how-to/deploy.md: the same storage, two ports, requests to either."""
    trial = "/v1/experiments/trial"
    with served(postgres_url) as (one, _), served(postgres_url) as (two, _):
        assert send(one, "POST", "/v1/experiments", {"name": "trial", "arms": ["a", "b"], "seed": 1})[0] == 201
        status, made = send(two, "POST", f"{trial}/decisions", {"unit": "u"})
        assert (status, send(one, "POST", f"{trial}/decisions", {"unit": "u"})) == (
            201,
            (200, made | {"repeated": True}),
        )
        outcome = f"{trial}/decisions/{made['id']}/outcome"
        assert [send(where, "PUT", outcome, {"reward": 1})[0] for where in (one, two)] == [201, 200]
        assert send(two, "PUT", outcome, {"reward": 0})[0] == 409

        def pair(i):
            where, other = (one, two) if i % 2 else (two, one)
            made = send(where, "POST", f"{trial}/decisions", {"unit": f"p{i % 60}"})[1]  # each unit at both servers
            return send(other, "PUT", f"{trial}/decisions/{made['id']}/outcome", {"reward": i % 60 % 2})[0]

        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            found = list(pool.map(pair, range(120)))
        assert sorted(set(found)) == [200, 201]
        assert found.count(201) == 60
        views = [json.load(urllib.request.urlopen(where + trial)) for where in (one, two)]
        assert views[0] == views[1]
        assert views[0]["results"]["decisions"] == views[0]["results"]["outcomes"] == 61
        assert send(one, "POST", f"{trial}/pause", {})[0] == 200
        assert send(two, "POST", f"{trial}/decisions", {})[1]["code"] == "paused"
    assert ds.Experiment.load("trial", storage=postgres_url).replay().agrees


def test_a_killed_server_has_kept_every_acknowledged_outcome(sqlite_url):
    """A short form of benchmarks/load.py."""
    exp = ds.Experiment.create("trial", arms=["a", "b"], seed=1, storage=sqlite_url)
    acknowledged, stop = [], threading.Event()

    def work(address, worker):
        turn = 0
        while not stop.is_set():
            turn += 1
            try:
                made = send(address, "POST", "/v1/experiments/trial/decisions", {"unit": f"{worker}-{turn}"})[1]
                if (
                    send(address, "PUT", f"/v1/experiments/trial/decisions/{made['id']}/outcome", {"reward": 1})[0]
                    == 201
                ):
                    acknowledged.append(made["id"])
            except OSError:
                return

    with served(sqlite_url) as (address, process):
        threads = [threading.Thread(target=work, args=(address, i)) for i in range(8)]
        for thread in threads:
            thread.start()
        until = time.monotonic() + 60
        while len(acknowledged) < 50 and time.monotonic() < until:
            time.sleep(0.01)
        process.kill()
        stop.set()
        for thread in threads:
            thread.join()
    frame = exp.decisions()
    assert len(acknowledged) > 10
    assert set(acknowledged) <= set(frame[frame["status"] == "told"]["id"])
    assert exp.replay().agrees
