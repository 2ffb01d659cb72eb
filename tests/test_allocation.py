"""ds.Allocation in decide, decide_from_draws and decide_many, with every policy."""

from itertools import product

import numpy as np
import pytest

import doublesampling as ds
from doublesampling.errors import SettingError
from tests.chance import assert_counts

BELIEF = ds.BetaBernoulli(arms=3)
STATE = BELIEF.update_batch(
    BELIEF.prior(),
    arms=[0] * 5 + [1] * 6 + [2] * 9,
    rewards=[0, 0, 1, 0, 0, 1, 1, 0, 1, 0, 1, 1, 1, 1, 1, 1, 0, 1, 1, 1],
)
POLICIES = [
    ds.DoubleSampling(),
    ds.DoubleSampling(samples=None, horizon=100),
    ds.ThompsonSampling(),
    ds.TopTwo(),
    ds.BayesUCB(),
    ds.UCB1(),
    ds.KLUCB(),
    ds.IMED(),
    ds.Greedy(),
    ds.EpsilonGreedy(),
    ds.InformationDirected(),
]


class Halves:
    """A policy of one's own that knows its probabilities."""

    def choose(self, evidence):
        return [0.5, 0.5, 0.0]


class JustAnArm:
    """A policy of one's own that does not."""

    def choose(self, evidence):
        return 1


class TestDecide:
    @pytest.mark.parametrize("policy", [*POLICIES, Halves()], ids=lambda policy: type(policy).__name__)
    def test_a_floor_is_added_to_the_propensities_of_every_policy(self, policy):
        without = ds.decide(policy, BELIEF, STATE, seed=4)
        within = ds.decide(policy, BELIEF, STATE, seed=4, allocation=ds.Allocation(floor=0.1))
        assert within.propensities == pytest.approx(0.1 + 0.7 * without.propensities, abs=1e-12)
        assert (within.candidates, within.votes.tolist()) == (without.candidates, without.votes.tolist())
        assert within.allocation == ds.Allocation(floor=0.1)
        assert "Allocation(floor=0.1)" in str(within)
        assert not within.propensities.flags.writeable

    def test_linear_belief(self):
        belief = ds.LinearGaussian(arms=2, dimension=2)
        given = ds.Allocation(floor=0.2)
        found = ds.decide(ds.LinUCB(), belief, belief.prior(), context=[1.0, 0.5], seed=1, allocation=given)
        assert sorted(found.propensities) in ([0.5, 0.5], pytest.approx([0.2, 0.8]))

    def test_the_arm_follows_the_propensities(self):
        given = ds.Allocation(minimum=0.2)
        arms = [ds.decide(ds.Greedy(), BELIEF, STATE, seed=1, time=t, allocation=given).arm for t in range(1, 3001)]
        assert_counts(np.bincount(arms, minlength=3), [0.2, 0.2, 0.6])

    def test_from_draws(self):
        draws = np.random.default_rng(1).normal([0.0, 1.0, 5.0], 0.1, size=(1000, 3))
        given = ds.Allocation(fixed={0: 0.3})
        found = ds.decide_from_draws(ds.ThompsonSampling(), draws, seed=1, allocation=given)
        assert found.propensities == pytest.approx([0.3, 0.0, 0.7])
        burning = ds.Allocation(burn_in=2)
        with pytest.raises(SettingError, match="Pass assigned="):
            ds.decide_from_draws(ds.ThompsonSampling(), draws, seed=1, allocation=burning)
        found = ds.decide_from_draws(ds.ThompsonSampling(), draws, seed=1, allocation=burning, assigned=[2, 1, 1])
        assert found.propensities.tolist() == [0.0, 0.5, 0.5]

    @pytest.mark.parametrize("policy", [JustAnArm(), ds.BayesUCB(samples=100)], ids=["own", "samples"])
    def test_unknown_propensities_are_refused(self, policy):
        with pytest.raises(SettingError, match="does not know with which probability"):
            ds.decide(policy, BELIEF, STATE, seed=1, allocation=ds.Allocation(floor=0.1))

    @pytest.mark.parametrize(
        ("given", "said"),
        [
            (ds.Allocation(floor=0.4), "floor can be at most 0.333"),
            (ds.Allocation(control="placebo"), "'placebo'"),
            (0.1, "Allocation"),
        ],
    )
    def test_bad_allocations_are_refused(self, given, said):
        with pytest.raises(SettingError, match=said):
            ds.decide(ds.Greedy(), BELIEF, STATE, seed=1, allocation=given)
        with pytest.raises(SettingError, match=said):
            ds.decide_many(ds.Greedy(), BELIEF, [STATE], seed=1, allocation=given)


class TestPast:
    def test_burn_in_counts_the_observations_of_the_state(self):
        given = ds.Allocation(burn_in=6)
        found = ds.decide(ds.Greedy(), BELIEF, STATE, seed=1, allocation=given)
        assert found.propensities.tolist() == [1.0, 0.0, 0.0]
        found = ds.decide(ds.Greedy(), BELIEF, STATE, seed=1, allocation=ds.Allocation(burn_in=5))
        assert found.propensities.tolist() == [0.0, 0.0, 1.0]

    @pytest.mark.parametrize("given", [{"burn_in": 1, "block": 4}, {"block": 3, "floor": 0.25}, {"block": 5}])
    def test_all_paths_have_probability_one(self, given):
        """Over every sequence of seven decisions: products of propensities add up to 1, blocks hold their shares."""
        allocation = ds.Allocation(**given)
        belief = ds.BetaBernoulli(arms=2)
        state = belief.update_batch(belief.prior(), arms=[0, 1, 1, 1, 1], rewards=[0, 1, 1, 0, 1])
        total, sizes = 0.0, set()
        for path in product(range(2), repeat=7):
            chance, counts, previous, slots = 1.0, np.zeros(2, dtype=int), None, []
            for t, arm in enumerate(path, 1):
                made = ds.decide(
                    ds.ThompsonSampling(), belief, state, seed=3, time=t, allocation=allocation, assigned=counts,
                    previous=previous,
                )  # fmt: skip
                chance *= made.propensities[arm]
                if chance == 0.0:
                    break
                object.__setattr__(made, "arm", arm)
                counts, previous = counts + np.eye(2, dtype=int)[arm], made
                slots.append(arm)
            total += chance
            if chance > 0.0 and "burn_in" not in given:
                sizes.add(sum(slots[: given["block"]]))
        assert total == pytest.approx(1.0)
        assert len(sizes) == (0 if "burn_in" in given else 1)

    def test_a_decision_inside_a_block_needs_the_one_before(self):
        given = ds.Allocation(block=6)
        with pytest.raises(SettingError, match=r"inside a block of 6\. Pass previous="):
            ds.decide(ds.Greedy(), BELIEF, STATE, seed=1, allocation=given)
        with pytest.raises(SettingError, match="assigned must be 3 whole numbers"):
            ds.decide(ds.Greedy(), BELIEF, STATE, seed=1, allocation=given, assigned=[1, 2])
        with pytest.raises(SettingError, match="assigned must be 3 whole numbers"):
            ds.decide(ds.Greedy(), BELIEF, STATE, seed=1, allocation=given, assigned=[1, 2, -3])

    def test_a_block_follows_the_burn_in(self):
        """Decision 4 of 6 begins a block of three slots: nothing of the burn-in is taken for a block."""
        given = ds.Allocation(burn_in=1, block=6)
        state = BELIEF.prior()
        last = ds.decide(ds.ThompsonSampling(), BELIEF, state, seed=1, time=3, allocation=given, assigned=[1, 1, 0])
        assert last.propensities.tolist() == [0.0, 0.0, 1.0]
        found = ds.decide(
            ds.ThompsonSampling(), BELIEF, state, seed=1, time=4, allocation=given, assigned=[1, 1, 1], previous=last
        )
        assert found.propensities == pytest.approx([1 / 3] * 3)


class TestMany:
    @pytest.mark.parametrize("policy", [ds.DoubleSampling(), ds.Greedy()], ids=["compiled", "one by one"])
    def test_as_one_by_one(self, policy):
        given = ds.Allocation(floor=0.1, cap=0.6)
        found = ds.decide_many(policy, BELIEF, [STATE] * 50, seed=9, allocation=given)
        without = ds.decide_many(policy, BELIEF, [STATE] * 50, seed=9)
        for i in range(50):
            one = ds.decide(Fixed(without.propensities[i]), BELIEF, STATE, seed=1, allocation=given)
            assert found.propensities[i] == pytest.approx(one.propensities, abs=1e-12)
        first = ds.decide(policy, BELIEF, STATE, seed=9, time=int(found.words[0, 3]), allocation=given)
        assert found.arm[0] == first.arm
        assert found[0].propensities == pytest.approx(first.propensities, abs=1e-12)
        assert found[0].allocation == given

    def test_the_past_is_refused(self):
        with pytest.raises(SettingError, match="decide_many makes each on its own"):
            ds.decide_many(ds.Greedy(), BELIEF, [STATE], seed=1, allocation=ds.Allocation(block=4))


class Fixed:
    """A policy that answers given probabilities."""

    def __init__(self, p):
        self.p = p

    def choose(self, evidence):
        return self.p
