"""Simulations that live in the store: two services on one store, servers that end, and the experiment's own design."""

import time
from typing import Any

import numpy as np
import pytest
import sqlalchemy as sa
from scipy import stats

import doublesampling as ds
from doublesampling.errors import ArmError, SettingError
from doublesampling.live.operating_characteristics import characteristics
from doublesampling.live.stores import open_store
from doublesampling.live.stores.schema import simulations
from doublesampling.service import simulation_jobs
from tests.chance import FALSE_ALARM
from tests.own_policies import Softmax
from tests.service import client, problem, trial

ARMS = ["placebo", "10 mg", "20 mg"]
DESIGN: dict[str, Any] = {
    "policy": {"kind": "ThompsonSampling", "settings": {}},
    "allocation": {"minimum": 0.2, "update": "look"},
    "stopping": {"looks": 20, "superiority": 0.95, "inferiority": 0.02},
}
WANTED: dict[str, Any] = {"truth": [0.2, 0.3, 0.8], "realizations": 60, "horizon": 60, "delay": 5, "dropout": 0.1}


def until_done(c, where, patience=120.0):
    until = time.monotonic() + patience
    job = c.get(where).json()
    while job["status"] in ("waiting", "running") and time.monotonic() < until:
        time.sleep(0.05)
        job = c.get(where).json()
    return job


def change(storage, **values):
    with open_store(storage).writing() as connection:
        connection.execute(sa.update(simulations).values(values))


@pytest.fixture
def held(monkeypatch):
    """Servers whose simulations wait until the test runs them."""
    waiting = []
    monkeypatch.setattr(
        "doublesampling.service.pools.DaemonPool.submit", lambda self, work, *given: waiting.append((work, given))
    )
    return waiting


def test_two_servers_of_one_store_are_one(storage):
    with client(storage) as a, client(storage) as b:
        address = trial(a, **DESIGN)
        begun = a.post(f"{address}/what-if", json=WANTED)
        assert begun.status_code == 202, begun.text
        where = f"{address}/what-if/{begun.json()['id']}"
        job = until_done(b, where)
        assert (job["status"], job["progress"]) == ("done", 1.0), job
        assert a.get(where).json() == job
        found = job["result"]
        assert found["realizations"] == 60
        assert set(found["ends"]) == {"superiority", "equivalence", "futility", "maximum"}
        assert sum(end["value"] for end in found["ends"].values()) == pytest.approx(1.0)
        assert found["size"]["value"] < 60
        assert found["selected"][2]["value"] > 0.8


def test_a_simulation_is_stopped_on_another_server(storage, held):
    with client(storage) as a, client(storage) as b:
        address = trial(a, **DESIGN)
        where = f"{address}/what-if/{a.post(f'{address}/what-if', json=WANTED).json()['id']}"
        assert b.get(where).json()["status"] == "waiting"
        assert b.delete(where).json()["status"] == "stopped"
        [(work, given)] = held
        work(*given)  # the server that had it
        assert a.get(where).json() == b.get(where).json()
        assert a.get(where).json()["status"] == "stopped"
        assert a.get(where).json()["result"] is None
        problem(b.get(f"{trial(b, 'other')}/what-if/{where.rpartition('/')[2]}"), 404, "not-found")


def test_a_running_simulation_notices_that_it_was_stopped(storage, held, monkeypatch):
    with client(storage) as a, client(storage) as b:
        address = trial(a, **DESIGN)
        where = f"{address}/what-if/{a.post(f'{address}/what-if', json=WANTED).json()['id']}"
        made = []

        def play(*given, **settings):
            made.append(characteristics(*given, **settings))
            if len(made) == 2:
                assert b.get(where).json()["progress"] == pytest.approx(1 / 20)
                b.delete(where)
            return made[-1]

        monkeypatch.setattr("doublesampling.live.operating_characteristics.characteristics", play)
        [(work, given)] = held
        work(*given)
        assert len(made) == 2
        assert a.get(where).json()["status"] == "stopped"
        assert a.get(where).json()["result"]["realizations"] == 3


def test_a_server_takes_over_where_another_one_ended(storage, held, monkeypatch):
    with client(storage) as whole:
        address = trial(whole, **DESIGN)
        where = f"{address}/what-if/{whole.post(f'{address}/what-if', json=WANTED).json()['id']}"
        held[-1][0](*held[-1][1])
        wanted = whole.get(where).json()["result"]
    with client(storage) as b:
        with client(storage) as a:
            where = f"{address}/what-if/{a.post(f'{address}/what-if', json=WANTED).json()['id']}"
            calls = []

            def die(*given, **settings):
                calls.append(given)
                if len(calls) == 8:
                    raise SystemExit  # what no handler of ours catches
                return characteristics(*given, **settings)

            with monkeypatch.context() as broken:
                broken.setattr("doublesampling.live.operating_characteristics.characteristics", die)
                with pytest.raises(SystemExit):
                    held[-1][0](*held[-1][1])
            assert b.get(where).json()["status"] == "running"  # not silent for long enough
            assert len(held) == 2
        change(storage, beat=simulation_jobs._LONG_AGO)
        assert b.get(where).json()["status"] == "waiting"
        assert len(held) == 3
        assert b.get(where).json()["progress"] == pytest.approx(7 / 20)
        held[-1][0](*held[-1][1])
        job = b.get(where).json()
        assert job["status"] == "done"
        assert job["result"] == wanted  # nothing lost, nothing counted twice


def test_a_server_that_is_shut_down_leaves_its_simulations_at_once(storage, held):
    with client(storage) as b:
        with client(storage) as a:
            address = trial(a, **DESIGN)
            where = f"{address}/what-if/{a.post(f'{address}/what-if', json=WANTED).json()['id']}"
        assert b.get(where).json()["status"] == "waiting"
        held[0][0](*held[0][1])  # the one that was shut down no longer writes
        assert b.get(where).json()["progress"] == 0.0
        held[1][0](*held[1][1])
        assert b.get(where).json()["status"] == "done"


def test_a_simulation_that_ends_its_servers_is_given_up(sqlite_url, held):
    with client(sqlite_url) as c:
        address = trial(c, **DESIGN)
        where = f"{address}/what-if/{c.post(f'{address}/what-if', json=WANTED).json()['id']}"
        for attempt in range(2, 4):
            change(sqlite_url, beat=simulation_jobs._LONG_AGO)
            assert c.get(where).json()["status"] == "waiting"
            assert len(held) == attempt
        change(sqlite_url, beat=simulation_jobs._LONG_AGO)
        job = c.get(where).json()
        assert job["status"] == "failed"
        assert "3 servers ended" in job["detail"]


def test_old_simulations_are_deleted(sqlite_url, held, monkeypatch):
    monkeypatch.setattr(simulation_jobs, "KEPT", 3)
    with client(sqlite_url) as c:
        address = trial(c, **DESIGN)
        made = []
        for _ in range(5):
            made.append(c.post(f"{address}/what-if", json=WANTED).json()["id"])
            c.delete(f"{address}/what-if/{made[-1]}")
        states = [c.get(f"{address}/what-if/{which}").status_code for which in made]
    assert states == [404, 404, 200, 200, 200]


@pytest.mark.parametrize(
    ("wrong", "code", "said"),
    [
        ({"horizon": 10}, "setting", "looks must be at most the horizon, 10, got 20"),
        ({"delay": {"law": "poisson"}}, "setting", "law, mean"),
        ({"delay": -1}, "invalid", ""),
        ({"dropout": 2}, "invalid", ""),
        ({"truth": [0.2, 0.3]}, "setting", "one number per arm"),
    ],
)
def test_bad_simulations_are_refused_before_anything_is_stored(sqlite_url, wrong, code, said):
    with client(sqlite_url) as c:
        address = trial(c, **DESIGN)
        refused = c.post(f"{address}/what-if", json=WANTED | wrong)
        problem(refused, 422, code)
        assert said in refused.text
    with open_store(sqlite_url).reading() as connection:
        assert connection.execute(sa.select(simulations)).all() == []


def test_a_design_is_simulated_as_its_trial(sqlite_url):
    """The numbers are those of the same trial with the same seed."""
    settings: dict[str, Any] = {
        "policy": ds.ThompsonSampling(),
        "allocation": ds.Allocation(minimum=0.2, update="look"),
        "stopping": ds.Stopping(looks=20, superiority=0.95, inferiority=0.02),
    }
    exp = ds.Experiment.create("t", arms=ARMS, storage=sqlite_url, **settings)
    found = characteristics(
        exp.current_design, [0.2, 0.3, 0.8], horizon=60, realizations=200, seed=5, delay=5, dropout=0.1, trend=0.1
    )
    data = ds.Trial(arms=ARMS, horizon=60, **settings).simulate(
        [[0.2, 0.3, 0.8]], 200, delay=5, dropout=0.1, trend=0.1, seed=5
    )
    assert found.ends is not None
    assert found.size is not None
    for how, (value, error) in found.ends.items():
        assert value == pytest.approx(float(data[f"probability_{how}"][0]))
        assert error == pytest.approx(float(data[f"probability_{how}_error"][0]))
    assert found.size == pytest.approx((float(data.expected_size[0]), float(data.expected_size_error[0])))
    assert found.failures is not None
    assert found.failures[0] == pytest.approx(float(data.expected_failures[0]))
    assert found.failures_of_equal_allocation == pytest.approx(float(data.expected_failures_equal[0]))
    assert [share for share, _ in found.shares] == pytest.approx(data.expected_share[0].values.tolist())
    assert found.best_arm_wins is not None
    assert found.best_arm_wins[0] == pytest.approx(float(data.probability_best_selected[0]))


def test_an_allocation_alone_is_simulated_as_a_trial(sqlite_url):
    exp = ds.Experiment.create(
        "t",
        arms=ARMS,
        storage=sqlite_url,
        policy=ds.ThompsonSampling(),
        allocation=ds.Allocation(fixed={"10 mg": 0.25}),
    )
    truth = [0.2, 0.3, 0.8]
    found = characteristics(exp.current_design, truth, horizon=40, realizations=400)
    assert (found.size, found.ends, found.selected) == (None, None, None)
    shares = [share for share, _ in found.shares]
    limit = stats.norm.isf(FALSE_ALARM / 2) * np.sqrt(0.25 * 0.75 / (40 * 400))
    assert shares[1] == pytest.approx(0.25, abs=limit)
    assert found.regret[0] == pytest.approx(40 * (0.8 - np.dot(shares, truth)))
    assert found.failures_of_equal_allocation == pytest.approx(40 * (1 - np.mean(truth)))


def test_what_cannot_be_simulated_says_why(sqlite_url):
    limits = ds.Allocation(floor=0.1)
    exp = ds.Experiment.create("own", arms=ARMS, storage=sqlite_url, policy=Softmax(), allocation=limits)
    with pytest.raises(SettingError, match="beliefs and policies of this package only"):
        characteristics(exp.current_design, [0.2, 0.3, 0.8])


def test_a_promoted_control_is_the_one_of_the_simulated_design(sqlite_url):
    rule = ds.Stopping(looks=10, superiority=0.8, control="placebo", promote=True)
    exp = ds.Experiment.create("t", arms=ARMS, storage=sqlite_url, policy=ds.ThompsonSampling(), stopping=rule, seed=2)
    for _ in range(30):
        made = exp.ask()
        exp.tell(made.id, float(made.arm == 2))
        if exp.looks and exp.looks[-1].promoted:
            break
    now = exp.current_design
    assert now.stopping is not None
    assert now.stopping.control == exp.looks[-1].control == "20 mg"
    ended = ds.Stopping(looks=10, superiority=0.6, inferiority=0.2)
    other = ds.Experiment.create("u", arms=["a", "b"], storage=sqlite_url, policy=ds.ThompsonSampling(), stopping=ended)
    other.tell_many([(d.id, float(d.arm)) for d in other.ask_many(30)])
    with pytest.raises(ArmError, match="Only the arm 'b' is left"):
        other.current_design  # noqa: B018
