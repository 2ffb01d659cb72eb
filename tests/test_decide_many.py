"""Many decisions at once are the decisions of ``decide``, one by one."""

from typing import Any

import numpy as np
import pytest

import doublesampling as ds
from doublesampling.beliefs import BetaState
from doublesampling.beliefs.marginals import address_words
from doublesampling.decision import make_decision
from doublesampling.errors import SettingError, StateError
from doublesampling.evidence import BeliefEvidence


def one_by_one(policy: Any, belief: Any, states: list[Any], contexts: Any, found: ds.Decisions) -> None:
    for i, state in enumerate(states):
        seed, _, number, time = (int(word) for word in found.words[i])
        context = None if contexts is None else contexts[i]
        words = address_words(seed, time, realization=number)
        evidence = BeliefEvidence(belief.marginals(state, context), words, time, belief, state, context)
        assert make_decision(policy, evidence, found[i].address) == found[i]


POLICIES = [
    ds.DoubleSampling(),
    ds.DoubleSampling(samples=None, horizon=90),
    ds.ThompsonSampling(),
    ds.BayesUCB(),
]


@pytest.mark.parametrize("policy", POLICIES, ids=repr)
@pytest.mark.parametrize("arms", [2, 3])
def test_beta_states(policy: Any, arms: int) -> None:
    belief = ds.BetaBernoulli(arms=arms)
    rng = np.random.default_rng(1)
    wins, losses = rng.integers(0, 9, (2, 12, arms))
    states = [BetaState((w + f).astype(np.int64), 1.0 + w, 1.0 + f) for w, f in zip(wins, losses, strict=True)]
    found = ds.decide_many(policy, belief, states, seed=4)
    assert len(found) == 12
    one_by_one(policy, belief, states, None, found)
    if not isinstance(policy, ds.BayesUCB):
        stacked = BetaState((wins + losses).astype(np.int64), 1.0 + wins, 1.0 + losses)
        assert np.array_equal(ds.decide_many(policy, belief, stacked, seed=4).arm, found.arm)


def test_one_state_at_many_contexts() -> None:
    belief = ds.LinearGaussian(arms=3, dimension=2)
    state = belief.update_batch(belief.prior(), [0, 1, 2, 0], [1.0, 2.0, 0.5, 0.1], [[1, 0], [0, 1], [1, 1], [0, 2]])
    contexts = np.random.default_rng(2).normal(size=(9, 2))
    for policy in (ds.DoubleSampling(), ds.LinUCB()):
        found = ds.decide_many(policy, belief, state, contexts, seed=1, times=np.arange(5, 14))
        assert found.words[:, 3].tolist() == list(range(5, 14))
        one_by_one(policy, belief, [state] * 9, contexts, found)


def test_many_rows_go_over_several_threads_alike() -> None:
    belief = ds.BetaBernoulli(arms=2)
    state = belief.update_batch(belief.prior(), [0, 1, 1], [0, 1, 1])
    many = ds.decide_many(ds.DoubleSampling(), belief, [state] * 10_000, seed=1)
    few = ds.decide_many(ds.DoubleSampling(), belief, [state] * 100, seed=1)
    assert np.array_equal(many.arm[:100], few.arm)
    assert 0.0 < many.arm.mean() < 1.0


def test_bad_input_is_named() -> None:
    belief = ds.BetaBernoulli(arms=2)
    with pytest.raises(StateError, match="empty"):
        ds.decide_many(ds.DoubleSampling(), belief, [])
    with pytest.raises(StateError, match="another belief"):
        ds.decide_many(ds.DoubleSampling(), belief, [ds.BetaBernoulli(arms=3).prior()])
    with pytest.raises(SettingError, match="times must be 1 whole numbers"):
        ds.decide_many(ds.DoubleSampling(), belief, [belief.prior()], times=[0])
