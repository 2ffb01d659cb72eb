"""Every belief, walked at random through asks, tells, amendments and reloads: the log and the state agree."""

import random
from typing import Any

import numpy as np
import pytest
import sqlalchemy as sa

import doublesampling as ds
from doublesampling.live import state_cache
from doublesampling.live.stores import schema
from doublesampling.live.visibility import Snapshot
from tests.test_live_experiment import oracle

BELIEFS: dict[str, Any] = {
    "beta": ds.BetaBernoulli(arms=3),
    "beta-per-arm": ds.BetaBernoulli(arms=3, alpha=[1, 2, 3]),
    "beta-odd-prior": ds.BetaBernoulli(arms=3, alpha=0.1, beta=0.3),
    "fractional": ds.BetaBernoulli(arms=3, fractional=True),
    "gaussian": ds.Gaussian(arms=3, mean=0.0),
    "linear": ds.LinearGaussian(arms=3, dimension=2),
    "beta-forgets": ds.BetaBernoulli(arms=3, discount=0.9),
    "linear-forgets": ds.LinearGaussian(arms=3, dimension=2, covariance=10.0, discount=0.9),  # no power of two
    "poisson": ds.GammaPoisson(arms=3),
    "exponential": ds.GammaExponential(arms=3, discount=0.95),
    "categorical": ds.DirichletCategorical(arms=3, values=[0, 1, 5]),
    "logistic": ds.Logistic(arms=3, dimension=2),
    "hybrid": ds.HybridLinearGaussian(arms=3, dimension=2),
}


def reward(name: str, dice: random.Random) -> float:
    if name == "fractional":
        return dice.random()
    if name == "poisson":
        return float(dice.randrange(9))
    if name == "exponential":
        return dice.expovariate(1.0)
    if name == "categorical":
        return float(dice.choice([0, 1, 5]))
    return float(dice.random() < 0.5) if name.startswith(("beta", "logistic")) else dice.gauss(0.3, 1.0)


def walk(exp: ds.Experiment, name: str, dice: random.Random, steps: int) -> None:
    """A random life of an experiment."""
    opened: list[str] = []
    told: list[str] = []
    for step in range(steps):
        what = dice.choice(
            ["ask", "ask", "tell", "tell", "impute", "amend", "history", "many", "reload", "withdraw", "void"]
        )
        context = [dice.random(), 1.0] if BELIEFS[name].dimension is not None else None
        if what == "ask":
            opened.append(exp.ask(context=context).id)
        elif what == "many":
            contexts = None if context is None else [context] * 3
            opened.extend(d.id for d in exp.ask_many(3, contexts=contexts))
        elif what == "tell" and opened:
            told.append(opened.pop(dice.randrange(len(opened))))
            exp.tell(told[-1], reward(name, dice))
        elif what == "impute" and opened:
            exp.tell(opened[0], 1.0, imputed=True)
        elif what == "amend" and told:
            exp.amend(dice.choice(told), reward(name, dice), reason=f"step {step}")
        elif what == "withdraw" and told:
            opened.append(told.pop(dice.randrange(len(told))))
            exp.withdraw(opened[-1], reason=f"step {step}")
        elif what == "void" and opened + told:
            gone = dice.choice(opened + told)
            exp.void(gone, reason=f"step {step}")
            opened, told = [d for d in opened if d != gone], [d for d in told if d != gone]
        elif what == "history":
            arms = [dice.randrange(3) for _ in range(2)]
            exp.add_history(arms, [reward(name, dice) for _ in arms], None if context is None else [context] * 2)
        elif what == "reload":
            exp = ds.Experiment.load(exp.name, storage=exp.session.store)
        if step == steps // 2 and "per-arm" not in name:
            exp.add_arm("new")
        if step == 2 * steps // 3:
            exp.drop_arm("b")


ON_BOTH = ("beta-per-arm", "linear-forgets", "categorical", "hybrid")  # `make slow` walks all of them on PostgreSQL
WALKS = [("sqlite", name) for name in BELIEFS] + [
    pytest.param("postgres", name, marks=() if name in ON_BOTH else pytest.mark.slow) for name in BELIEFS
]


@pytest.mark.parametrize(("storage", "name"), WALKS, indirect=["storage"])
def test_a_random_life_is_replayed_to_the_bit(storage, name, monkeypatch):
    monkeypatch.setattr(state_cache, "EVERY", 7)  # many snapshots, so that amendments reach behind them
    dice = random.Random(f"{name} {storage[:6]}")
    exp = ds.Experiment.create("walk", arms=["a", "b", "c"], belief=BELIEFS[name], seed=3, storage=storage)
    other = ds.Experiment.load("walk", storage=storage)
    walk(exp, name, dice, 80)
    assert exp.state.belief_state == oracle(exp)  # folded on the way
    assert other.state.belief_state == exp.state.belief_state  # folded at the end, in one go
    assert ds.Experiment.load("walk", storage=storage).state.digest == exp.state.digest  # from a snapshot
    found = exp.replay()
    assert found.agrees, found.differences
    summary = exp.summary()
    assert found.decisions == exp.state.decisions + summary["voided"] > 20
    assert summary["voided"] > 0
    assert summary["outcomes"] + summary["history"] == exp.state.belief_state.observations
    for i, which in enumerate(exp.decisions()["id"]):
        if i % 5 == 0:  # what was known then, from stored folds, has the digest of then
            told = exp.explain(which)
            assert told.verified
            assert told.unknown_then == came_later(exp, exp.decision(which))


def came_later(exp: ds.Experiment, receipt: Any) -> int:
    """Outcomes that count now and did not when the decision was made, counted from the table itself."""
    seen = Snapshot.parse(receipt.snapshot)
    then: dict[Any, bool] = {}
    now: dict[Any, bool] = {}
    with exp.session.store.reading() as connection:
        for row in connection.execute(sa.select(schema.outcomes).order_by(schema.outcomes.c.seq)):
            key = row.decision or row.seq
            now[key] = row.reward is not None
            if seen.sees(row.xid):
                then[key] = row.reward is not None
    return sum(counts and not then.get(key, False) for key, counts in now.items())


@pytest.mark.parametrize("name", BELIEFS)
def test_update_in_order_is_update_repeated(name):
    from doublesampling.live.checkpoints import OutcomeRow, update_in_order

    belief, dice = BELIEFS[name], random.Random(1)
    state, rows, rewards = belief.prior(), list[OutcomeRow](), list[float]()
    for i in range(50):
        context = [dice.random(), 1.0] if BELIEFS[name].dimension is not None else None
        rows.append(
            OutcomeRow(i, i, None, 1, "history", dice.randrange(3), reward(name, dice), None, i,
                None if context is None else str(context))
        )  # fmt: skip
        rewards.append(float(rows[-1].reward or 0.0))
        state = belief.update(state, rows[-1].arm, rewards[-1], context)
    assert update_in_order(belief, belief.prior(), rows, rewards) == state


def test_contexts_are_kept(storage):
    belief = ds.LinearGaussian(arms=2, dimension=3)
    exp = ds.Experiment.create("c", arms=["a", "b"], belief=belief, storage=storage, seed=1)
    d = exp.ask(context=np.array([0.1, 0.2, 0.3]))
    assert exp.decision(d.id).context == [0.1, 0.2, 0.3]
    exp.tell(d.id, 2.5)
    assert exp.state.belief_state == belief.update(belief.prior(), d.arm, 2.5, [0.1, 0.2, 0.3])
    assert exp.posterior(context=[1, 0, 0])["mean"].shape == (2,)
    assert exp.explain(d.id).verified


@pytest.mark.parametrize("name", BELIEFS)
def test_the_posterior_of_the_arms_that_are_left(sqlite_url, name):
    """Also where a belief has no law that is known, only draws: a categorical one raised AttributeError here."""
    belief, dice = BELIEFS[name], random.Random(2)
    context = [0.5, 1.0] if belief.dimension is not None else None
    exp = ds.Experiment.create("p", arms=["a", "b", "c"], belief=belief, seed=3, storage=sqlite_url)
    for _ in range(9):
        exp.tell(exp.ask(context=context).id, reward(name, dice))
    exp.drop_arm("b")
    found = exp.posterior(context)
    assert found.loc["b", "probability_optimal"] == 0.0
    assert found["probability_optimal"].sum() == pytest.approx(1.0)
    current = exp.state
    alone = current.belief.marginals(current.belief_state, context).only([0, 2]).probability_optimal
    assert found["probability_optimal"].iloc[[0, 2]].tolist() == pytest.approx(alone.tolist())
