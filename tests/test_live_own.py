"""Policies and beliefs of one's own in live experiments: decisions, checkpoints, explanations, replay."""

import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import sqlalchemy as sa

import doublesampling as ds
from doublesampling.errors import ContextError, SettingError
from doublesampling.live import state_cache
from doublesampling.live.checkpoints import truncate_state
from doublesampling.live.played import fold_belief
from doublesampling.live.queries.log import ExperimentLog
from doublesampling.live.replay import LogReplayer
from doublesampling.live.stores import open_store, schema
from doublesampling.live.verify import verify
from tests.own_policies import Commit, Counting, Forgetful, Growing, Sloped, Softmax, Spoiling, Witness

ARMS = ["a", "b", "c"]


def create(storage: Any, **changes: Any) -> ds.Experiment:
    return ds.Experiment.create("trial", **({"arms": ARMS, "seed": 7, "storage": storage} | changes))


def walk(exp: ds.Experiment, dice: random.Random, steps: int, context: bool = False) -> None:
    """Decisions, and outcomes that come late, are amended, withdrawn and voided."""
    waiting: list[str] = []
    told: list[str] = []
    for _ in range(steps):
        what = dice.random()
        if what < 0.5 or not waiting:
            x = [round(dice.uniform(-1, 1), 2)] if context else None
            waiting.append(exp.ask(context=x).id)
        elif what < 0.85:
            told.append(waiting.pop(dice.randrange(len(waiting))))
            exp.tell(told[-1], float(dice.randint(0, 1)))
        elif what < 0.92 and told:
            exp.amend(dice.choice(told), float(dice.randint(0, 1)), reason="checked")
        elif what < 0.96 and told:
            exp.withdraw(told.pop(dice.randrange(len(told))), reason="mistaken")
        else:
            exp.void(waiting.pop(), reason="not given")


@pytest.mark.parametrize("policy", [Commit(each=2), Softmax(temperature=0.3)], ids=["arm", "probabilities"])
def test_an_own_policy_from_create_to_export(storage: str, policy: Any, tmp_path: Path) -> None:
    exp = create(storage, policy=policy)
    exp.add_history(["a", "b"], [1.0, 0.0])
    walk(exp, random.Random(3), 40)
    exp.drop_arm("b")
    exp.add_arm("d")
    walk(exp, random.Random(4), 20)
    exp.ask_many(3)
    assert exp.replay().agrees
    last = exp.decisions().iloc[-1]
    explained = exp.explain(last["id"])
    assert explained.verified
    assert type(policy).__name__ in explained.why
    assert f"{type(policy).__name__}(" in explained.policy
    assert explained.arms[1]["propensity"] in (None, 0.0)
    assert exp.posterior().loc["b", "probability_optimal"] == 0.0
    exp.export("jsonl", tmp_path / "out.jsonl")
    assert len(pd.read_json(tmp_path / "out.jsonl", lines=True)) == len(exp.decisions())
    assert verify(open_store(storage)).ok
    with open_store(storage).reading() as connection:
        stored = json.loads(connection.execute(sa.select(schema.experiments.c.design)).scalar_one())
    assert stored["policy"]["class"] == f"tests.own_policies:{type(policy).__name__}"


REPLAYED = [(policy, belief) for policy in (None, Softmax()) for belief in (Growing(3), Counting(3), Sloped(3))]
REPLAYS = [("sqlite", *pair) for pair in REPLAYED] + [  # `make slow` replays all of them on PostgreSQL
    pytest.param("postgres", *pair, marks=pytest.mark.slow if 0 < i < len(REPLAYED) - 1 else ())
    for i, pair in enumerate(REPLAYED)
]


@pytest.mark.parametrize(
    ("storage", "policy", "belief"),
    REPLAYS,
    indirect=["storage"],
    ids=lambda v: v if isinstance(v, str) else type(v).__name__,
)
def test_an_own_belief_is_replayed_to_the_bit(
    storage: str, belief: Any, policy: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Through checkpoints, amendments, added and dropped arms, and a second process that starts from a checkpoint."""
    monkeypatch.setattr(state_cache, "EVERY", 4)
    exp = create(storage, belief=belief, policy=policy or ds.DoubleSampling(samples=50, max_candidates=20))
    context = belief.dimension is not None
    walk(exp, random.Random(1), 30, context)
    if isinstance(belief, Growing):
        exp.add_arm("d")
    exp.drop_arm("a")
    walk(exp, random.Random(2), 20, context)
    exp.session.cache.save_checkpoint()
    loaded = ds.Experiment.load("trial", storage=storage)
    for each in (exp, loaded):
        walk(each, random.Random(5), 8, context)
    assert exp.replay().agrees
    found = verify(open_store(storage))
    assert found.ok, found.problems
    assert found.experiments[0]["checkpoints"] > 0
    state = belief.prior() if not isinstance(belief, Growing) else Growing(4).prior()
    assert loaded.state.digest == exp.state.digest
    table = loaded.posterior(context=[0.5] if context else None)
    assert (table["sd"] > 0).all()
    assert (table["low"] < table["mean"]).all()
    assert table["observations"].tolist() == loaded.state.belief_state.counts.tolist()
    assert loaded.explain(loaded.decisions()["id"].iloc[0]).verified
    assert loaded.explain(loaded.decisions()["id"].iloc[-1]).verified
    assert state.counts.size == len(loaded.state.arms)
    assert loaded.export("csv", tmp_path / "out.csv") == tmp_path / "out.csv"


def test_evidence_is_what_was_observed_before_the_decision(storage: str) -> None:
    """Counts and sums with history, the last outcome of a decision in the order of the log, dropped arms left out."""
    Witness.seen.clear()
    exp = create(storage, policy=Witness(), belief=ds.Gaussian(arms=3))
    assert Witness.seen.pop() == ([0, 0, 0], [0.0, 0.0, 0.0], None)
    exp.add_history(["b", "c", "c"], [2.0, 3.0, 4.0])
    first, second, third = exp.ask_many(3)
    assert Witness.seen[-3:] == [([0, 1, 2], [0.0, 2.0, 7.0], None)] * 3, "history is counted and is no decision's"
    exp.tell(second.id, 0.25)
    exp.tell(first.id, 0.5)
    exp.ask()
    assert Witness.seen[-1] == ([2, 1, 2], [0.75, 2.0, 7.0], (0, 0.5))
    exp.amend(second.id, 1.25, reason="corrected")
    exp.ask()
    assert Witness.seen[-1] == ([2, 1, 2], [1.75, 2.0, 7.0], (0, 0.5)), "an amendment keeps its place in the order"
    exp.withdraw(first.id, reason="mistaken")
    exp.ask()
    assert Witness.seen[-1] == ([1, 1, 2], [1.25, 2.0, 7.0], (0, 1.25))
    exp.drop_arm("a")
    made = exp.ask()
    assert Witness.seen[-1] == ([1, 2], [2.0, 7.0], None), "what was seen of a dropped arm is left out"
    assert made.arm_name == "b"
    exp.tell(made.id, 9.0)
    exp.tell(third.id, 8.0)
    exp.ask()
    assert Witness.seen[-1] == ([2, 2], [11.0, 7.0], (0, 9.0)), "the last outcome among the arms that are left"
    live = list(Witness.seen)
    Witness.seen.clear()
    assert exp.replay().agrees
    assert Witness.seen == live


def test_policies_of_ours_keep_no_record_of_what_was_played(sqlite_url: str) -> None:
    exp = create(sqlite_url)
    exp.tell(exp.ask().id, 1.0)
    assert exp.state.played is None
    assert "sums" not in exp.state.belief_state.to_json()


def test_an_own_policy_is_made_anew_for_every_decision(sqlite_url: str) -> None:
    """What it keeps would not be replayed, so it keeps nothing."""
    policy = Forgetful()
    exp = create(sqlite_url, policy=policy)
    assert [d.arm for d in exp.ask_many(3)] == [0, 0, 0]
    assert exp.ask().arm == 0
    assert policy.calls == 0
    assert exp.replay().agrees


def test_code_of_a_belief_cannot_change_the_state(sqlite_url: str) -> None:
    exp = create(sqlite_url, belief=Spoiling(3))
    for _ in range(3):
        exp.posterior()
        exp.tell(exp.ask().id, 1.0)
        exp.posterior()
    assert sum(map(sum, exp.state.belief_state.value)) == 9.0
    assert exp.replay().agrees
    assert exp.explain(exp.decisions()["id"].iloc[-1]).verified


def test_contexts_are_the_numbers_that_are_stored(sqlite_url: str) -> None:
    exp = create(sqlite_url, belief=Sloped(3), policy=Softmax())
    for context in ([0.1], (0.2,), np.array([0.3]), [1]):
        exp.tell(exp.ask(context=context).id, 1.0)
    exp.add_history(["a", "b"], [1.0, 2.0], contexts=[[0.5], [0.25]])
    exp.ask(context=[1])
    assert exp.replay().agrees
    with pytest.raises(ContextError, match="must have 1 numbers"):
        exp.ask(context=[1.0, 2.0])
    with pytest.raises(ContextError, match="numbers in a regular array"):
        exp.ask(context="blue")


def test_adding_an_arm_needs_a_belief_that_can_be_resized(sqlite_url: str) -> None:
    exp = create(sqlite_url, belief=Counting(3))
    with pytest.raises(SettingError, match=r"Counting has no method resized\(arms\)"):
        exp.add_arm("d")
    assert len(exp.state.arms) == 3
    exp.ask()


def test_a_snapshot_with_fewer_arms_than_an_earlier_one(sqlite_url: str) -> None:
    """On PostgreSQL a decision may not see an arm that an earlier snapshot saw: its state is folded again."""
    exp = create(sqlite_url, belief=Growing(3), policy=Softmax())
    walk(exp, random.Random(1), 20)
    fold = fold_belief(exp.design)
    with exp.session.store.reading() as connection:
        replayer = LogReplayer(fold, ExperimentLog(connection, exp.session.id, fold).rows(0), [])
        seen = exp.session.store.moment(connection, exp.session.id).snapshot
    more = replayer.state_at(seen, fold.resized(4))
    assert more.counts.size == 4
    assert truncate_state(more, fold, replayer).to_json() == exp.state.played_state.to_json()  # type: ignore[union-attr]


def test_operating_characteristics_of_an_own_policy(sqlite_url: str) -> None:
    from doublesampling.live.operating_characteristics import characteristics

    exp = create(sqlite_url, policy=Commit(each=3))
    found = characteristics(exp.design, [0.1, 0.5, 0.9], horizon=30, realizations=20)
    assert found.shares[2][0] > 0.5
    with pytest.raises(SettingError, match="Counting cannot be simulated here"):
        characteristics(exp.design.__class__(**{**exp.design.__dict__, "belief": Counting(3)}), [0.1, 0.5, 0.9])
