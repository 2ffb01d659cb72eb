"""Beliefs of one's own: simulated in plain Python, against the compiled engine and across processes."""

from concurrent.futures import ProcessPoolExecutor
from typing import Any

import numpy as np
import pytest

import doublesampling as ds
from doublesampling.errors import DrawsError, SettingError
from doublesampling.own import Moment, simulate_own
from tests.chance import assert_mean


class Counting:
    """A Beta belief, as a user might write it: wins and losses in a tuple."""

    def __init__(self, arms: int) -> None:
        self.arms = arms

    def prior(self) -> tuple[tuple[int, int], ...]:
        """One of each."""
        return ((1, 1),) * self.arms

    def update(self, state: Any, arm: int, reward: float, context: Any) -> Any:
        """One more."""
        new = list(state)
        new[arm] = (state[arm][0] + int(reward), state[arm][1] + 1 - int(reward))
        return tuple(new)

    def draws(self, state: Any, context: Any, samples: int, seed: int) -> np.ndarray:
        """From NumPy's generator."""
        wins, losses = np.array(state, dtype=float).T
        return np.random.default_rng(seed).beta(wins, losses, (samples, self.arms))


class Broken(Counting):
    """Its draws break down."""

    def draws(self, state: Any, context: Any, samples: int, seed: int) -> np.ndarray:
        """Not a number, after three observations."""
        found = super().draws(state, context, samples, seed)
        if sum(map(sum, state)) > 2 * self.arms + 2:
            found[0, 0] = np.nan
        return found


class Shifting:
    """A world whose best arm is shown."""

    arms = 2

    def moment(self, seed: int) -> Moment:
        """The context is the best arm."""
        rng = np.random.default_rng(seed)
        best = int(rng.integers(2))
        means = np.where(np.arange(2) == best, 0.9, 0.1)
        return Moment(best, means, (rng.random(2) < means).astype(float))


class Told(Counting):
    """A belief that trusts what it is shown."""

    def draws(self, state: Any, context: Any, samples: int, seed: int) -> np.ndarray:
        """The arm that is named is best."""
        return np.tile(np.arange(2) == context, (samples, 1)).astype(float)


def test_it_has_the_law_of_the_engine() -> None:
    """The same belief, written twice: the mean regret of the compiled one."""
    bandit, policy = ds.BernoulliBandit([0.3, 0.8]), ds.DoubleSampling(samples=50)
    mine = simulate_own(bandit, [policy], Counting(2), horizon=25, realizations=400, seed=1, samples=50)
    engine = ds.simulate(bandit, [policy], horizon=25, realizations=40_000, seed=2, device="cpu")
    assert_mean(mine.final_regret.values[0], float(engine.cumulative_regret[0, 0, -1]))


def test_processes_give_the_same_numbers() -> None:
    """Two workers, or none; policies meet the same luck."""
    options: dict[str, Any] = {"horizon": 12, "realizations": 6, "seed": 3, "samples": 40}
    policies = {"a": ds.ThompsonSampling(), "b": ds.DoubleSampling(), "c": ds.ThompsonSampling()}
    alone = simulate_own(ds.BernoulliBandit([0.3, 0.8]), policies, Counting(2), **options)
    with ProcessPoolExecutor(2) as pool:
        assert alone.equals(
            simulate_own(ds.BernoulliBandit([0.3, 0.8]), policies, Counting(2), executor=pool, **options)
        )
    assert (alone.final_regret.sel(policy="a").values == alone.final_regret.sel(policy="c").values).all()


def test_a_world_of_ones_own_shows_contexts() -> None:
    """Who trusts the context has no regret; who does not see it has."""
    options: dict[str, Any] = {"horizon": 20, "realizations": 5, "samples": 20}
    told = simulate_own(Shifting(), [ds.DoubleSampling()], Told(2), **options)
    blind = simulate_own(Shifting(), [ds.DoubleSampling()], Counting(2), **options)
    assert float(told.cumulative_regret[0, -1]) == 0.0
    assert (told.optimal_arm_rate == 1).all()
    assert float(blind.cumulative_regret[0, -1]) > 2.0


def test_gaussian_worlds_pay_real_numbers() -> None:
    """Greedy on draws that name the best arm earns it."""
    world = ds.GaussianBandit([0.0, 1.0], noise=0.0)
    found = simulate_own(world, [ds.Greedy()], Counting(2), horizon=5, realizations=2, samples=20)
    assert found.cumulative_regret.sizes == {"policy": 1, "time": 5}


def test_bad_input_is_named() -> None:
    """Missing members, other arms, draws that break down: where and what."""
    bandit = ds.BernoulliBandit([0.3, 0.8])
    with pytest.raises(SettingError, match="needs prior, update, draws"):
        simulate_own(bandit, [ds.Greedy()], Shifting(), horizon=2, realizations=1)
    with pytest.raises(SettingError, match="3 arms and the world 2"):
        simulate_own(bandit, [ds.Greedy()], Counting(3), horizon=2, realizations=1)
    with pytest.raises(SettingError, match="moment"):
        simulate_own(object(), [ds.Greedy()], Counting(3), horizon=2, realizations=1)
    with pytest.raises(DrawsError, match="Realization 0, time 4"):
        simulate_own(bandit, [ds.Greedy()], Broken(2), horizon=9, realizations=1)


def test_policies_and_draws_of_the_wrong_kind_are_named() -> None:
    """One policy will do, none will not; draws for other arms are no draws."""
    world = ds.BernoulliBandit([0.2, 0.7])
    found = simulate_own(world, ds.DoubleSampling(), Counting(2), horizon=3, realizations=2)
    assert found.sizes["policy"] == 1
    for policies in ([], [ds.DoubleSampling], 3):
        with pytest.raises(SettingError, match=r"needs a policy|policy must be"):
            simulate_own(world, policies, Counting(2), horizon=3, realizations=2)

    class TooMany(Counting):
        def draws(self, *given: Any) -> Any:
            drawn = super().draws(*given)
            return np.column_stack([drawn, drawn[:, 0] - 1.0])

    with pytest.raises(DrawsError, match=r"Realization 0, time 1: draws must have the shape \(samples, 2\)"):
        simulate_own(world, [ds.DoubleSampling()], TooMany(2), horizon=3, realizations=2)


class Silent:
    """A policy without a repr of its own; two of them print alike."""

    def __init__(self, arm: int) -> None:
        self.arm = arm

    def __repr__(self) -> str:
        return "Silent()"

    def choose(self, evidence: Any) -> int:
        """Always the same."""
        return self.arm


def test_policies_that_print_alike_are_not_merged() -> None:
    """Both are played, each with its own results."""
    found = simulate_own(
        ds.BernoulliBandit([0.1, 0.9]), [Silent(0), Silent(1)], Counting(2), horizon=10, realizations=2
    )  # fmt: skip
    assert found.policy.values.tolist() == ["Silent()", "Silent() (2)"]
    assert found.cumulative_regret.values[:, -1] == pytest.approx([8.0, 0.0])
    with pytest.raises(SettingError, match="listed twice"):
        simulate_own(
            ds.BernoulliBandit([0.1, 0.9]), [ds.Greedy(), ds.Greedy()], Counting(2), horizon=3, realizations=2
        )  # fmt: skip


def test_wrong_types_are_named() -> None:
    """Classes instead of objects, and things that are neither."""
    bandit = ds.BernoulliBandit([0.1, 0.9])
    for world, policies, belief, words in (
        (bandit, [ds.Greedy()], Counting, "got the class Counting"),
        (bandit, [ds.Greedy()], 3, "belief needs arms, prior"),
        (bandit, [ds.Greedy], Counting(2), r"Write Greedy\(\)"),
        (bandit, "greedy", Counting(2), "policy must be one such as"),
        (bandit, [], Counting(2), "needs a policy"),
        (7, [ds.Greedy()], Counting(2), "world must have arms and moment"),
        (bandit, [Silent(5)], Counting(2), "from 0 to 1, got 5"),
    ):
        with pytest.raises(SettingError, match=words):
            simulate_own(world, policies, belief, horizon=3, realizations=2)


def test_one_realization_has_no_error() -> None:
    found = simulate_own(ds.BernoulliBandit([0.1, 0.9]), [ds.Greedy()], Counting(2), horizon=3, realizations=1)
    assert np.isnan(found.cumulative_regret_error.values).all()
