"""Policies, beliefs and worlds of one's own: in ``simulate``, mixed with ours, on the same luck."""

from concurrent.futures import ProcessPoolExecutor
from typing import Any

import numpy as np
import pytest

import doublesampling as ds
from doublesampling.custom import WorldStep
from doublesampling.errors import DrawsError, SettingError
from doublesampling.evidence import Played
from tests.chance import assert_mean


class Counting(ds.OwnBelief):
    """A Beta belief, as a user might write it."""

    def __init__(self, arms: int) -> None:
        self.arms = arms

    def start(self) -> Any:
        """One of each."""
        return [[1, 1] for _ in range(self.arms)]

    def learn(self, value: Any, arm: int, reward: float, context: Any) -> Any:
        """One more."""
        wins, losses = value[arm]
        return [*value[:arm], [wins + reward, losses + 1 - reward], *value[arm + 1 :]]

    def draws(self, value: Any, context: Any, samples: int, rng: np.random.Generator) -> Any:
        """From NumPy's generator."""
        wins, losses = np.array(value, dtype=float).T
        return rng.beta(wins, losses, (samples, self.arms))


class Told(Counting):
    """A belief that trusts what it is shown."""

    def draws(self, value: Any, context: Any, samples: int, rng: np.random.Generator) -> Any:
        """The arm that is named is best."""
        return np.tile(np.arange(2) == context, (samples, 1)).astype(float)


class Broken(Counting):
    """Its draws break down after three observations."""

    def draws(self, value: Any, context: Any, samples: int, rng: np.random.Generator) -> Any:
        """Not a number."""
        found = super().draws(value, context, samples, rng)
        if sum(map(sum, value)) > 2 * self.arms + 2:
            found[0, 0] = np.nan
        return found


class Greedy:
    """Ours, written once more."""

    def choose(self, evidence: Any) -> int:
        """The highest posterior mean."""
        return int(np.argmax(evidence.expected_rewards()))


class Exp3:
    """Exponential weights (Auer et al., 2002); it keeps weights of its own, and answers with probabilities."""

    def __init__(self, rate: float = 0.1) -> None:
        self.rate = rate
        self.gain: Any = None
        self.chances: Any = None

    def choose(self, evidence: Any) -> Any:
        """Mix the weights with uniform play."""
        if self.gain is None:
            self.gain = np.zeros(evidence.arms)
        elif evidence.last is not None:
            arm, reward = evidence.last
            self.gain[arm] += reward / self.chances[arm]
        weights = np.exp(self.rate / evidence.arms * (self.gain - self.gain.max()))
        self.chances = (1 - self.rate) * weights / weights.sum() + self.rate / evidence.arms
        return self.chances


class Commit:
    """Explore each arm a few times, then commit."""

    def __init__(self, each: int = 5) -> None:
        self.each = each

    def choose(self, evidence: Any) -> int:
        """The least played until all have been played enough, then the best mean."""
        if evidence.counts.min() < self.each:
            return int(np.argmin(evidence.counts))
        return int(np.argmax(evidence.sums / evidence.counts))


class Drifting:
    """A world whose best arm changes with time."""

    arms = 2

    def step(self, time: int, rng: np.random.Generator) -> WorldStep:
        """The first arm is best for ten steps, then the second."""
        means = np.array([0.9, 0.1]) if time <= 10 else np.array([0.1, 0.9])
        return WorldStep(None, means, (rng.random(2) < means).astype(float))


class Showing:
    """A world that names its best arm."""

    arms = 2

    def step(self, time: int, rng: np.random.Generator) -> WorldStep:
        """The context is the best arm."""
        best = int(rng.integers(2))
        means = np.where(np.arange(2) == best, 0.9, 0.1)
        return WorldStep(best, means, (rng.random(2) < means).astype(float))


BANDITS = [
    ds.BernoulliBandit([0.3, 0.8]),
    ds.ChangingBernoulliBandit([[0.2, 0.8], [0.8, 0.2]], every=3),
    ds.PoissonBandit([1.0, 2.0]),
    ds.ExponentialBandit([1.0, 2.0]),
    ds.GaussianBandit([0.1, 0.5], noise=0.3),
    ds.LinearGaussianBandit(weights=[[0.4, 0.1], [0.2, 0.8]]),
    ds.LogisticBandit(weights=[[1.0, -1.0], [0.0, 0.5]], path="shared"),
    ds.CategoricalBandit([[0.5, 0.3, 0.2], [0.4, 0.3, 0.3]], values=(0, 1, 5)),
]


_QUICK = (ds.BernoulliBandit, ds.PoissonBandit, ds.LinearGaussianBandit)


@pytest.mark.parametrize(
    "bandit",
    [pytest.param(b, marks=() if isinstance(b, _QUICK) else pytest.mark.slow) for b in BANDITS],
    ids=[type(b).__name__ for b in BANDITS],
)
def test_own_policies_meet_the_luck_of_compiled_ones(bandit: Any) -> None:
    """The greedy policy, ours and written once more: the same arms, rewards and regret on every bandit."""
    found = ds.simulate(
        bandit, {"ours": ds.Greedy(ties="first"), "own": Greedy()}, horizon=12, realizations=5, seed=3,
        keep="trajectories", progress=False,
    )  # fmt: skip
    ours, own = found.sel(policy="ours"), found.sel(policy="own")
    assert np.array_equal(ours.trajectory_arm, own.trajectory_arm)
    np.testing.assert_allclose(own.trajectory_reward, ours.trajectory_reward, rtol=1e-12)
    np.testing.assert_allclose(own.cumulative_regret, ours.cumulative_regret, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(own.cumulative_regret_std, ours.cumulative_regret_std, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(own.optimal_arm_rate, ours.optimal_arm_rate)
    assert np.isnan(own.probability_optimal).all()


def test_policies_of_ones_own_learn() -> None:
    """Exponential weights and explore-then-commit do better than nothing, and worse than what knows."""
    found = ds.simulate(
        ds.BernoulliBandit([0.2, 0.8]), {"exp3": Exp3(0.2), "commit": Commit(), "oracle": ds.Oracle()},
        horizon=200, realizations=20, seed=1, progress=False,
    )  # fmt: skip
    last = found.cumulative_regret.isel(bandit=0, time=-1)
    assert float(last.sel(policy="oracle")) == 0.0
    assert 2.0 <= float(last.sel(policy="commit")) < 20.0
    assert 2.0 < float(last.sel(policy="exp3")) < 0.5 * 200 * 0.6


def test_each_realization_begins_with_a_fresh_policy() -> None:
    """What a policy keeps does not reach the next realization, nor the caller's object."""
    policy = Exp3()
    run: dict[str, Any] = {"horizon": 30, "seed": 2, "progress": False, "keep": "trajectories"}
    many = ds.simulate(ds.BernoulliBandit([0.4, 0.6]), policy, realizations=3, **run)
    one = ds.simulate(ds.BernoulliBandit([0.4, 0.6]), policy, realizations=1, **run)
    assert np.array_equal(many.trajectory_arm.isel(realization=0), one.trajectory_arm.isel(realization=0))
    assert policy.gain is None


def test_a_belief_of_ones_own_has_the_law_of_the_engine() -> None:
    """The same belief, written twice: the mean regret of the compiled one."""
    bandit, policy = ds.BernoulliBandit([0.3, 0.8]), ds.DoubleSampling(samples=50)
    mine = ds.simulate(bandit, policy, belief=Counting(2), horizon=25, realizations=320, seed=1, progress=False)
    engine = ds.simulate(bandit, policy, horizon=25, realizations=40_000, seed=2, device="cpu", progress=False)
    assert_mean(mine.final_regret.values[0, 0], float(engine.cumulative_regret[0, 0, -1]))


def test_worlds_of_ones_own_know_the_time_and_show_contexts() -> None:
    """A world that drifts, with a belief of ours; one that shows its best arm, with a belief that trusts it."""
    run: dict[str, Any] = {"horizon": 20, "realizations": 6, "seed": 1, "progress": False}
    drifting = ds.simulate(Drifting(), ds.Greedy(), belief=ds.BetaBernoulli(arms=2), **run)
    assert drifting.optimal_arm_rate[0, 0, 5:10].mean() > drifting.optimal_arm_rate[0, 0, 11:14].mean()
    told = ds.simulate(Showing(), ds.DoubleSampling(), belief=Told(2), **run)
    assert (told.optimal_arm_rate == 1).all()


def test_processes_give_the_same_numbers() -> None:
    """Two workers, or none."""
    policies = {"own": Exp3(), "ours": ds.ThompsonSampling()}
    run: dict[str, Any] = {"horizon": 10, "realizations": 70, "seed": 3, "belief": Counting(2), "progress": False}
    alone = ds.simulate(ds.BernoulliBandit([0.3, 0.8]), policies, threads=1, **run)
    with ProcessPoolExecutor(max_workers=2) as pool:
        spread = ds.simulate(ds.BernoulliBandit([0.3, 0.8]), policies, executor=pool, **run)
    assert alone.identical(spread.assign_attrs(alone.attrs))


def test_decide_takes_what_was_played() -> None:
    belief = ds.BetaBernoulli(arms=2)
    with pytest.raises(SettingError, match=r"pass\s+played=Played"):
        ds.decide(Commit(), belief, belief.prior(), seed=1)
    played = Played(np.array([5, 5]), np.array([1.0, 4.0]), (1, 1.0))
    assert ds.decide(Commit(), belief, belief.prior(), seed=1, played=played).arm == 1
    assert ds.decide(ds.DoubleSampling(), Counting(2), Counting(2).prior(), seed=1).propensities.sum() == pytest.approx(
        1.0
    )


def test_states_of_ones_own_go_to_json_and_back() -> None:
    belief = Counting(2)
    state = belief.update_batch(belief.prior(), [0, 1, 1], [1, 0, 1])
    assert belief.state_from_json(state.to_json()) == state
    assert state.observations == 3


@pytest.mark.parametrize(
    ("bandit", "policies", "belief", "words"),
    [
        (ds.BernoulliBandit([0.1, 0.9]), [ds.Greedy()], Counting, "belief must be one such as"),
        (ds.BernoulliBandit([0.1, 0.9]), [ds.Greedy()], 3, "Subclass OwnBelief"),
        (ds.BernoulliBandit([0.1, 0.9]), [ds.Greedy()], Counting(3), "3 arms and the bandit 2"),
        (ds.BernoulliBandit([0.1, 0.9]), [ds.Greedy], Counting(2), r"Write Greedy\(\)"),
        (ds.BernoulliBandit([0.1, 0.9]), "greedy", None, "policy must be one such as"),
        (ds.BernoulliBandit([0.1, 0.9]), [], None, "needs a policy"),
        (Drifting(), [ds.Greedy()], None, "pass the belief"),
        (Drifting(), [ds.Greedy()], Counting(3), "3 arms and the world 2"),
        (7, [ds.Greedy()], None, "a world with arms and step"),
    ],
)
def test_wrong_types_are_named(bandit: Any, policies: Any, belief: Any, words: str) -> None:
    with pytest.raises(SettingError, match=words):
        ds.simulate(bandit, policies, belief=belief, horizon=3, realizations=2, progress=False)


def test_wrong_answers_are_named_with_their_step() -> None:
    class Wrong:
        def __init__(self, answer: Any) -> None:
            self.answer = answer

        def choose(self, evidence: Any) -> Any:
            return self.answer

    bandit = ds.BernoulliBandit([0.1, 0.9])
    for answer, words in ((5, "from 0 to 1, got 5"), ([0.5, 0.6], "add up to 1"), (None, "arm"), ([1.0], "shape")):
        with pytest.raises(SettingError, match=rf"Realization 0, step 1: .*{words}"):
            ds.simulate(bandit, [Wrong(answer)], horizon=3, realizations=2, progress=False)
    with pytest.raises(DrawsError, match="Realization 0, step 4"):
        ds.simulate(bandit, [ds.Greedy()], belief=Broken(2), horizon=9, realizations=1, progress=False)
    with pytest.raises(SettingError, match=r"numba-cuda|GPU"):
        ds.simulate(bandit, [Commit()], horizon=3, realizations=2, device="cuda")


def test_policies_that_print_alike_are_not_merged() -> None:
    class Silent:
        def __init__(self, arm: int) -> None:
            self.arm = arm

        def __repr__(self) -> str:
            return "Silent()"

        def choose(self, evidence: Any) -> int:
            return self.arm

    found = ds.simulate(
        ds.BernoulliBandit([0.1, 0.9]), [Silent(0), Silent(1)], horizon=10, realizations=2, progress=False
    )
    assert found.policy.values.tolist() == ["Silent()", "Silent() (2)"]
    assert found.cumulative_regret.values[0, :, -1] == pytest.approx([8.0, 0.0])
