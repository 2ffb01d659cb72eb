"""Live experiments whose shares are renewed at looks only: propensities, corrections, arms that change, replay."""

import json
import threading

import numpy as np
import pytest
import sqlalchemy as sa
from scipy import integrate, stats

import doublesampling as ds
from doublesampling.errors import StoppedError
from doublesampling.live.records import Receipt
from doublesampling.live.stores import open_store, schema
from doublesampling.live.verify import verify
from tests.oracle_allocation import clip_and_rescale
from tests.own_policies import Softmax

ARMS = ["placebo", "10 mg", "20 mg"]
GOOD = {"placebo": 1 / 3, "10 mg": 1 / 2, "20 mg": 2 / 3}


def create(storage, allocation=None, stopping=None, **changes):
    settings = {"arms": ARMS, "seed": 7, "storage": storage, "policy": ds.ThompsonSampling()} | changes
    return ds.Experiment.create(
        "trial",
        allocation=allocation or ds.Allocation(minimum=0.2, update="look"),
        stopping=stopping or ds.Stopping(looks=10, superiority=0.999999),
        **settings,
    )


def play(exp: ds.Experiment, count: int) -> list[Receipt]:
    """Ask and tell; every arm succeeds at regular times. Return the decisions."""
    made: list[Receipt] = []
    for _ in range(count):
        d = exp.ask()
        before = sum(each.arm == d.arm for each in made)
        exp.tell(d.id, float((before * GOOD[d.arm_name]) % 1 < GOOD[d.arm_name]))
        made.append(d)
    return made


def exact_best(rows):
    """P(best) of every arm from the rewards in a table of decisions, by quadrature of SciPy."""
    laws = []
    for arm in range(3):
        told = rows["reward"][rows["arm"] == arm].dropna()
        laws.append(stats.beta(1 + told.sum(), 1 + (1 - told).sum()))
    return [
        integrate.quad(
            lambda x, a=arm: laws[a].pdf(x) * np.prod([laws[o].cdf(x) for o in range(3) if o != a]), 0, 1
        )[0]
        for arm in range(3)
    ]  # fmt: skip


def test_shares_are_those_of_the_last_look_and_are_exact(storage):
    exp = create(storage)
    made = play(exp, 35)
    assert np.allclose([d.propensities for d in made[:10]], 1 / 3)  # the prior's, whatever is known since
    rows = exp.decisions()
    for look in (1, 2, 3):
        wanted = clip_and_rescale(exact_best(rows[: 10 * look]), [0.2] * 3, [1.0] * 3, [None] * 3)
        drawn = [d.propensities for d in made[10 * look : 10 * look + 10]]
        assert np.allclose(drawn, np.array(wanted, dtype=float), atol=1e-7)
        assert list(exp.looks[look - 1].shares.values()) == drawn[0].tolist()
        assert made[10 * look].probability_optimal == pytest.approx(exact_best(rows[: 10 * look]), abs=1e-7)
    assert len({d.arm for d in made[10:20]}) > 1  # drawn anew each time
    assert exp.replay().agrees
    assert verify(open_store(storage)).ok
    again = ds.Experiment.load("trial", storage=storage)
    assert again.design.allocation == exp.design.allocation
    assert again.ask().propensities.tolist() == made[-1].propensities.tolist()
    assert "at the look before it" in exp.explain(made[-1].id).why


def test_corrections_and_arms_that_change_wait_for_the_next_look(storage):
    exp = create(storage)
    made = play(exp, 10)
    shares = exp.ask().propensities
    exp.amend(made[0].id, 0.0 if exp.decisions()["reward"][0] else 1.0, reason="typing error")
    exp.void(made[1].id, reason="not carried out")
    exp.withdraw(made[2].id, reason="wrong patient")
    exp.add_history(["placebo"] * 30, [1.0] * 30)
    assert exp.ask().propensities.tolist() == shares.tolist()
    exp.add_arm("40 mg")
    with_fourth = exp.ask().propensities
    assert with_fourth[3] == pytest.approx(0.2)  # its minimum until the next look
    exp.drop_arm("10 mg")
    assert exp.ask().propensities[1] == 0.0
    assert exp.looks[0].shares.keys() == set(ARMS)
    while len(exp.looks) < 2:
        d = exp.ask()
        exp.tell(d.id, 1.0)
    assert exp.looks[1].shares.keys() == {"placebo", "20 mg", "40 mg"}
    assert exp.ask().propensities[[0, 2, 3]].tolist() == list(exp.looks[1].shares.values())
    found = exp.replay()
    assert found.agrees, found.differences
    assert verify(open_store(storage)).ok


def test_a_look_that_drops_an_arm_shares_among_those_that_remain(storage):
    exp = create(storage, ds.Allocation(update="look"), ds.Stopping(looks=15, inferiority=0.1, superiority=0.99))
    made = [exp.ask() for _ in range(15)]
    for d in made:
        exp.tell(d.id, float(d.arm != 0))
    assert exp.looks[0].dropped == ("placebo",)
    drawn = exp.ask().propensities
    assert drawn[0] == 0.0
    assert drawn[1:].tolist() == list(exp.looks[0].shares.values())
    known = [sum(d.arm == arm for d in made) for arm in (1, 2)]
    ahead = integrate.quad(lambda x: stats.beta(1 + known[0], 1).pdf(x) * stats.beta(1 + known[1], 1).cdf(x), 0, 1)[0]
    assert drawn[1] == pytest.approx(ahead, abs=1e-7)
    assert exp.replay().agrees


def test_blocks_and_burn_in_use_the_shares_of_the_look(storage):
    allocation = ds.Allocation(burn_in=2, block=6, minimum=0.2, update="look")
    exp = create(storage, allocation, ds.Stopping(looks=12, superiority=0.999999))
    made = play(exp, 24)
    assert np.bincount([d.arm for d in made[:6]]).tolist() == [2, 2, 2]
    assert np.bincount([d.arm for d in made[6:12]]).tolist() == [2, 2, 2]  # a third each, from the prior
    shares = np.array(list(exp.looks[0].shares.values()))
    slots = np.bincount([d.arm for d in made[12:18]], minlength=3)
    assert (np.abs(slots - 6 * shares) < 1.0).all()
    assert np.allclose(made[12].propensities * 6, np.rint(made[12].propensities * 6))
    assert exp.replay().agrees


def test_advice_renews_shares_and_a_stop_keeps_none(storage):
    exp = create(storage, stopping=ds.Stopping(looks=10, superiority=0.34, enforce=False))
    play(exp, 12)
    assert exp.looks[0].outcome == "superiority"
    assert exp.ask().propensities.tolist() == list(exp.looks[0].shares.values())
    other = ds.Experiment.create(
        "stopped", arms=ARMS, seed=3, storage=storage, allocation=ds.Allocation(update="look"),
        stopping=ds.Stopping(looks=4, superiority=0.4), policy=ds.ThompsonSampling(),
    )  # fmt: skip
    for d in other.ask_many(4):
        other.tell(d.id, float(d.arm == 1))
    with pytest.raises(StoppedError):
        other.ask()
    assert other.looks[-1].shares == {}
    assert exp.replay().agrees
    assert other.replay().agrees


def test_concurrent_asks_and_tells_replay(storage):
    exp = create(storage, stopping=ds.Stopping(looks=5, superiority=0.999999))
    loaded = [exp, ds.Experiment.load("trial", storage=storage)]

    def work(one):
        for _ in range(15):
            d = one.ask()
            one.tell(d.id, float(d.number % 2))

    threads = [threading.Thread(target=work, args=(one,)) for one in loaded]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(exp.looks) == 6
    found = exp.replay()
    assert found.agrees, found.differences
    known = {tuple(look.shares.values()) for look in exp.looks} | {(1 / 3, 1 / 3, 1 / 3)}
    drawn = np.array([json.loads(text) if isinstance(text, str) else text for text in exp.decisions()["propensities"]])
    assert all(min(np.abs(np.array(list(known)) - each).max(axis=1)) < 1e-12 for each in drawn)


def test_a_trial_with_shares_at_looks_becomes_an_experiment(sqlite_url):
    trial = ds.Trial(
        arms=ARMS, policy=ds.ThompsonSampling(), allocation=ds.Allocation(fixed={0: 0.3}, update="look"),
        stopping=ds.Stopping(looks=10, superiority=0.999), horizon=30,
    )  # fmt: skip
    exp = ds.Experiment.create("trial", storage=sqlite_url, design=trial, seed=7)
    made = play(exp, 30)
    assert np.allclose([d.propensity for d in made if d.arm == 0], 0.3)
    assert [look.planned for look in exp.looks] == [10, 20, 30]
    assert exp.replay().agrees


def test_a_policy_of_ones_own_is_asked_at_looks_only(sqlite_url):
    exp = create(sqlite_url, policy=Softmax())
    made = play(exp, 25)
    assert all(d.propensities.tolist() == made[10].propensities.tolist() for d in made[10:20])
    assert exp.replay().agrees


def test_a_replay_notices_changed_shares(sqlite_url):
    exp = create(sqlite_url)
    play(exp, 12)
    with open_store(sqlite_url).writing() as connection:
        for name in (
            connection.execute(sa.text("SELECT name FROM sqlite_master WHERE type = 'trigger'")).scalars().all()
        ):
            connection.execute(sa.text(f"DROP TRIGGER {name}"))
        content = json.loads(connection.execute(sa.select(schema.events.c.content)).scalar_one())
        content["policy"]["propensities"] = [0.5, 0.1, 0.4]
        connection.execute(sa.update(schema.events).values(content=json.dumps(content)))
    found = ds.Experiment.load("trial", storage=sqlite_url).replay()
    assert found.different == 3  # the look, and the two decisions after it
    assert any("look 1: policy" in text for text in found.differences)
