"""Looks of live experiments: made once, stored with their numbers, enforced or advised, and replayed."""

import json
import threading

import numpy as np
import pytest
import sqlalchemy as sa
from scipy import integrate, stats

import doublesampling as ds
from doublesampling.errors import ArmError, PausedError, SettingError, StoppedError, StorageBusyError
from doublesampling.live import looking
from doublesampling.live.stores import open_store, schema
from doublesampling.live.verify import verify
from tests import soak

ARMS = ["placebo", "10 mg", "20 mg"]


def create(storage, stopping, **changes):
    settings = {"arms": ARMS, "seed": 7, "storage": storage, "policy": ds.ThompsonSampling()} | changes
    return ds.Experiment.create("trial", stopping=stopping, **settings)


def play(exp, count, good="20 mg"):
    """Ask and tell until a look stops the experiment; the good arm always succeeds."""
    for i in range(count):
        try:
            d = exp.ask()
        except StoppedError as stopped:
            return i, stopped
        exp.tell(d.id, float(d.arm_name == good))
    return count, None


def test_a_look_is_made_at_its_number_and_its_numbers_are_exact(storage):
    exp = create(storage, ds.Stopping(looks=[10, 25], superiority=0.999999))
    play(exp, 9)
    assert exp.looks == []
    play(exp, 1)
    [look] = exp.looks
    assert (look.look, look.planned, look.outcomes, look.outcome, look.enforced) == (1, 10, 10, "continue", True)
    rows = exp.decisions()
    won = [int(rows["reward"][rows["arm"] == arm].sum()) for arm in range(3)]
    lost = [int((1 - rows["reward"][rows["arm"] == arm]).sum()) for arm in range(3)]
    laws = [stats.beta(1 + s, 1 + f) for s, f in zip(won, lost, strict=True)]
    for arm, name in enumerate(ARMS):
        others = [law for i, law in enumerate(laws) if i != arm]
        best = integrate.quad(lambda x, a=arm, o=others: laws[a].pdf(x) * o[0].cdf(x) * o[1].cdf(x), 0, 1)[0]
        assert look.probability_best[name] == pytest.approx(best, abs=1e-7)
    assert look.thresholds == {"superiority": 0.999999}
    play(exp, 20)
    assert [found.planned for found in exp.looks] == [10, 25]
    assert exp.replay().agrees
    assert exp.replay().looks == 2
    assert exp.audit()["kind"].tolist().count("look") == 2


def test_superiority_stops_the_experiment_and_outcomes_are_still_accepted(storage):
    exp = create(storage, ds.Stopping(looks=10, superiority=0.95))
    pending = exp.ask(unit="late")
    made, stopped = play(exp, 200)
    assert made < 200
    assert made % 10 == 0
    last = exp.looks[-1]
    assert (last.outcome, last.selected) == ("superiority", "20 mg")
    assert last.probability_best["20 mg"] > 0.95
    assert "'20 mg' is superior" in str(stopped)
    assert isinstance(stopped, PausedError)
    assert exp.summary()["status"] == "stopped"
    assert exp.summary()["looks"] == len(exp.looks)
    assert exp.ask(unit="late").id == pending.id  # a repeated request gets its stored decision
    looks = len(exp.looks)
    assert not exp.tell(pending.id, 0.0).repeated
    assert len(exp.looks) == looks
    exp.resume()
    with pytest.raises(StoppedError):
        exp.ask()
    again = ds.Experiment.load("trial", storage=storage)
    assert again.design == exp.design
    assert again.looks == exp.looks
    with pytest.raises(StoppedError):
        again.ask_many(2)
    assert exp.replay().agrees
    assert verify(open_store(storage)).ok


def test_inferior_arms_are_dropped_and_corrections_do_not_undo_it(storage):
    exp = create(storage, ds.Stopping(looks=20, inferiority=0.05))
    exp.add_history(["10 mg", "20 mg"] * 20, [1.0] * 40)
    exp.add_history(["placebo"] * 20, [0.0] * 20)
    assert exp.looks == []  # imported outcomes are not outcomes of the experiment
    made = [exp.ask() for _ in range(20)]
    for d in made:
        exp.tell(d.id, 1.0)
    [look] = exp.looks
    assert look.dropped == ("placebo",)
    assert exp.state.active == (1, 2)
    assert {exp.ask().arm_name for _ in range(20)} <= {"10 mg", "20 mg"}
    exp.amend(made[0].id, 0.0, reason="typing error")
    exp.void(made[1].id, reason="not carried out")
    exp.withdraw(made[2].id, reason="wrong patient")
    exp.tell(made[2].id, 1.0)
    assert len(exp.looks) == 1
    assert exp.state.active == (1, 2)
    assert exp.replay().agrees
    assert verify(open_store(storage)).ok


def test_a_rule_that_is_not_enforced_only_advises(storage):
    exp = create(storage, ds.Stopping(looks=10, superiority=0.9, inferiority=0.05, enforce=False))
    made, stopped = play(exp, 40)
    assert (made, stopped) == (40, None)
    assert len(exp.looks) == 4
    assert exp.looks[-1].outcome == "superiority"
    assert not exp.looks[-1].enforced
    assert exp.looks[-1].dropped
    assert exp.state.active == (0, 1, 2)
    assert "advice only" in exp.looks[-1].reason
    assert exp.summary()["status"] == "running"
    assert exp.replay().agrees


def test_one_look_per_number_with_concurrent_tells(storage):
    exp = create(storage, ds.Stopping(looks=5, superiority=0.999999))
    made = exp.ask_many(40)
    open_ones = [exp, *(ds.Experiment.load("trial", storage=storage) for _ in range(3))]
    ready = threading.Barrier(4)

    def tell(which):
        ready.wait()
        for d in made[which::4]:
            open_ones[which].tell(d.id, float(d.number % 2))  # no arm is superior in any order

    threads = [threading.Thread(target=tell, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [look.planned for look in exp.looks] == list(range(5, 41, 5))
    assert all(look.outcomes >= look.planned for look in exp.looks)
    assert exp.replay().agrees
    assert exp.replay().looks == 8


@pytest.mark.parametrize("later", ["tell", "ask", "other process"])
def test_a_look_that_failed_is_made_with_the_next_request(storage, monkeypatch, caplog, later):
    exp = create(storage, ds.Stopping(looks=4, superiority=0.6))
    made = exp.ask_many(5)
    with monkeypatch.context() as broken:
        broken.setattr(looking, "_make_look", lambda session: (_ for _ in ()).throw(StorageBusyError("busy")))
        for d in made[:4]:
            assert not exp.tell(d.id, float(d.arm == 2)).repeated
    assert exp.looks == []
    assert "made with the next tell or ask" in caplog.text
    assert exp.summary()["outcomes"] == 4
    if later == "tell":
        exp.tell(made[4].id, 1.0)
    elif later == "ask":
        with pytest.raises(StoppedError):
            exp.ask()
    else:
        assert "StoppedError" in soak.ask_elsewhere(storage, "trial")
    [look] = exp.looks
    assert look.planned == 4
    assert look.outcomes == (5 if later == "tell" else 4)
    assert exp.replay().agrees


def test_a_trial_becomes_an_experiment_of_the_same_design(storage):
    trial = ds.Trial(
        arms=ARMS, policy=ds.ThompsonSampling(), allocation=ds.Allocation(floor=0.1), horizon=25,
        stopping=ds.Stopping(looks=10, futility=0.99, futility_margin=0.0, control=0),
    )  # fmt: skip
    exp = ds.Experiment.create("trial", storage=storage, design=trial, seed=7)
    stored = json.loads(exp.design.to_json())
    assert stored["stopping"] == {"looks": [10, 20, 25], "futility": 0.99, "futility_margin": 0.0, "control": "placebo"}
    assert stored["participants"] == 25
    assert exp.design.allocation == trial.allocation
    with pytest.raises(StoppedError, match="at most 25"):
        exp.ask_many(26)
    rewards = np.tile([0.0, 1.0], 13)[:25]
    exp.tell_many([(d.id, float(reward)) for d, reward in zip(exp.ask_many(25), rewards, strict=True)])
    with pytest.raises(StoppedError, match="at most 25"):
        exp.ask()
    assert [look.planned for look in exp.looks] == [10, 20, 25]
    assert all(look.outcomes == 25 for look in exp.looks)  # all were told at once
    assert set(exp.looks[0].probability_better) == {"10 mg", "20 mg"}
    with pytest.raises(ArmError, match="control"):
        exp.drop_arm("placebo")
    assert exp.replay().agrees


def test_a_design_without_a_rule_is_stored_as_before(sqlite_url):
    exp = create(sqlite_url, None)
    assert "stopping" not in exp.design.to_json()
    assert "participants" not in exp.design.to_json()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"stopping": 5}, "stopping must be one such as"),
        ({"stopping": ds.Stopping(looks=5, superiority=0.9, control="none")}, "control must be one of the arms"),
        ({"stopping": ds.Stopping(looks=5, inferiority=0.4)}, "inferiority must be below 1/3"),
        ({"stopping": ds.Stopping(looks=5, superiority=0.9), "belief": ds.LinearGaussian(arms=3, dimension=2)},
         "Use a belief without contexts"),
        ({"design": 5, "arms": None, "policy": None}, "design must be a ds.Trial"),
        ({"design": ds.Trial(arms=["a", "b"], horizon=9)}, "arms is part of the design already"),
        ({"arms": None}, "arms must be a list of names"),
    ],
)  # fmt: skip
def test_bad_rules_are_refused_before_anything_is_stored(sqlite_url, options, said):
    with pytest.raises(SettingError, match=said):
        create(sqlite_url, **({"stopping": None} | options))
    assert ds.Experiment.list(sqlite_url) == []


def test_a_replay_notices_a_changed_look(sqlite_url):
    exp = create(sqlite_url, ds.Stopping(looks=5, superiority=0.999))
    play(exp, 6)
    with open_store(sqlite_url).writing() as connection:
        for name in (
            connection.execute(sa.text("SELECT name FROM sqlite_master WHERE type = 'trigger'")).scalars().all()
        ):
            connection.execute(sa.text(f"DROP TRIGGER {name}"))
        events = schema.events
        content = json.loads(connection.execute(sa.select(events.c.content)).scalar_one())
        content["probability_best"]["20 mg"] -= 0.01
        connection.execute(sa.update(events).values(content=json.dumps(content)))
    found = ds.Experiment.load("trial", storage=sqlite_url).replay()
    assert not found.agrees
    assert "look 1: probability_best" in found.differences[0]
