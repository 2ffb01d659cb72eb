"""Long reads wait in a queue of their own: writes, keys and /healthz never wait for them."""

import concurrent.futures
import threading
import time

import pytest

from doublesampling.live.experiment import Experiment
from doublesampling.live.replay import Replay
from doublesampling.service.pools import LONG_PER_CALLER
from tests.service import asked, client, make_key, problem, trial
from tests.test_service_access import two_seconds_later


@pytest.fixture
def gate(monkeypatch):
    """Replays and explanations that take until the gate is opened."""
    opened = threading.Event()

    def slow(self, *_):
        opened.wait(60)
        return Replay(0, 0)

    monkeypatch.setattr(Experiment, "replay", slow)
    monkeypatch.setattr(Experiment, "explain", slow)
    yield opened
    opened.set()


def test_a_reader_who_asks_for_everything_stops_nobody(sqlite_url, gate):
    admin, reader = make_key(sqlite_url, "admin"), make_key(sqlite_url, "reader")
    with client(sqlite_url) as c, concurrent.futures.ThreadPoolExecutor(60) as crowd:
        address = trial(c, headers=admin)
        made = asked(c, address, headers=admin)
        paths = [f"{address}/replay", f"{address}/decisions/{made}"] * 20
        waiting = [crowd.submit(c.get, path, headers=reader) for path in paths]
        until = time.monotonic() + 20
        while sum(each.done() for each in waiting) < 10 and time.monotonic() < until:
            time.sleep(0.02)
        refused = [each.result() for each in waiting if each.done()]
        assert len(refused) >= 10
        for answer in refused:
            assert "long reads" in problem(answer, 429, "too-many")
            assert answer.headers["retry-after"] == "1"
        begun = time.monotonic()
        for i in range(5):
            two_seconds_later(c)  # keys are read again
            assert c.get("/healthz").status_code == 200
            told = f"{address}/decisions/{asked(c, address, f'u{i}', headers=admin)}/outcome"
            assert c.put(told, json={"reward": 1}, headers=admin).status_code == 201
            assert c.get(address, headers=admin).status_code == 200
            assert c.get(f"{address}/posterior", headers=reader).status_code == 200
        assert time.monotonic() - begun < 25  # below the 30 s after which a parked request is given up
        assert not all(each.done() for each in waiting)  # they were still there
        gate.set()


def test_one_reader_leaves_places_for_another(sqlite_url, gate):
    admin, greedy, other = (make_key(sqlite_url, role) for role in ("admin", "reader", "reader"))
    with client(sqlite_url) as c, concurrent.futures.ThreadPoolExecutor(40) as crowd:
        address = trial(c, headers=admin)
        made = asked(c, address, headers=admin)
        path = f"{address}/decisions/{made}"
        waiting = [crowd.submit(c.get, path, headers=greedy) for _ in range(2 * LONG_PER_CALLER)]
        until = time.monotonic() + 20
        while sum(each.done() for each in waiting) < LONG_PER_CALLER and time.monotonic() < until:
            time.sleep(0.02)
        assert {each.result().status_code for each in waiting if each.done()} == {429}
        patient = crowd.submit(c.get, path, headers=other)
        time.sleep(0.3)
        assert not patient.done()  # it waits for its turn, and is not refused
        gate.set()


def test_files_at_once_are_counted(sqlite_url):
    with client(sqlite_url) as c:
        address, service = trial(c), c.app.state.service
        with service.exporting("somebody"), service.exporting("somebody"):
            assert c.get(f"{address}/export.csv").status_code == 200
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr("doublesampling.service.pools.EXPORTS", 2)
                problem(c.get(f"{address}/export.csv"), 429, "too-many")
        assert service._exports.total() == 0
        assert c.get(f"{address}/export.jsonl").status_code == 200


def test_health_looks_once_a_second_and_tells_a_store_that_hangs(sqlite_url, monkeypatch):
    with client(sqlite_url) as c:
        service, looks = c.app.state.service, []
        monkeypatch.setattr(service, "_check_store", lambda: looks.append(1))
        assert all(c.get("/healthz").status_code == 200 for _ in range(20))
        assert len(looks) <= 3
        monkeypatch.setattr("doublesampling.service.state._TIMEOUT", 0.2)
        monkeypatch.setattr("doublesampling.service.state._HEALTH", 0.0)
        stuck = threading.Event()
        monkeypatch.setattr(service, "_check_store", lambda: stuck.wait(30))
        problem(c.get("/healthz"), 503, "storage")
        assert c.get("/v1/me").status_code == 200  # keys are not held up by it
        stuck.set()
