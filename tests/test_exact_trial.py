"""Exact operating characteristics and exact tests of two binary arms: against enumeration, SciPy and simulations."""

import functools
from typing import Any

import numpy as np
import pytest
from scipy import stats

import doublesampling as ds
from doublesampling.errors import SettingError
from doublesampling.looks import evaluate_look
from doublesampling.stopping import Stopping
from doublesampling.trials import Trial
from tests.chance import FALSE_ALARM
from tests.test_exact import todays_rule

ARMS = ["old", "new"]
BELIEF = ds.BetaBernoulli(arms=2)
NULLS = [(0.3, 0.3), (0.5, 0.5), (0.9, 0.9), (0.3, 0.5)]


def law_of(successes: tuple[int, int], failures: tuple[int, int]) -> Any:
    arms = [0] * (successes[0] + failures[0]) + [1] * (successes[1] + failures[1])
    rewards = [1] * successes[0] + [0] * failures[0] + [1] * successes[1] + [0] * failures[1]
    return BELIEF.update_batch(BELIEF.prior(), arms, rewards)


def enumerate_ends(trial: Trial, theta: tuple[float, float]) -> dict[tuple[Any, ...], float]:
    """The probability of every end (outcome, selected, s1, f1, s2, f2), one decision after another, from decide."""
    looks = () if trial.stopping is None else trial.stopping.schedule(trial.horizon)
    burn_in = 0 if trial.allocation is None else trial.allocation.burn_in

    @functools.cache
    def share(state: tuple[int, int, int, int]) -> float:
        s1, f1, s2, f2 = state
        n1, n2 = s1 + f1, s2 + f2
        if min(n1, n2) < burn_in:
            return 0.5 if n1 == n2 else float(n1 < n2)
        limits = None if trial.allocation is None else ds.Allocation(floor=trial.allocation.floor)
        w = ds.decide(trial.policy, BELIEF, law_of((s1, s2), (f1, f2)), time=n1 + n2 + 1).propensities[0]
        return float(w if limits is None else limits.floor + (1 - 2 * limits.floor) * w)

    ends: dict[tuple[Any, ...], float] = {}
    now = {(0, 0, 0, 0): 1.0}
    for time in range(1, trial.horizon + 1):
        after: dict[tuple[int, int, int, int], float] = {}
        for state, chance in now.items():
            first = share(state)
            for arm, p in ((0, first), (1, 1 - first)):
                for miss, q in ((0, theta[arm]), (1, 1 - theta[arm])):
                    new = tuple(n + (i == 2 * arm + miss) for i, n in enumerate(state))
                    after[new] = after.get(new, 0.0) + chance * p * q  # type: ignore[arg-type,index]
        now = {}
        for state, chance in after.items():
            said, selected = "continue", None
            if time in looks:
                s1, f1, s2, f2 = state
                found = evaluate_look(
                    trial.stopping,  # type: ignore[arg-type]
                    BELIEF.marginals(law_of((s1, s2), (f1, f2))),
                    [s1 + f1, s2 + f2],
                    look=looks.index(time),
                    control=trial.control,
                )
                said, selected = found.outcome, found.selected
            if said != "continue" or time == trial.horizon:
                end = (said.replace("continue", "maximum"), selected, *state)
                ends[end] = ends.get(end, 0.0) + chance
            else:
                now[state] = chance
    return ends


DESIGNS = [
    Trial(arms=ARMS, policy=ds.ThompsonSampling(), horizon=7),
    Trial(arms=ARMS, policy=todays_rule(9), allocation=ds.Allocation(floor=0.15, burn_in=2), horizon=7),
    Trial(
        arms=ARMS,
        policy=ds.ThompsonSampling(),
        stopping=Stopping(looks=[3, 5, 7], superiority=[0.95, 0.9, 0.85], inferiority=0.08, minimum=1),
        horizon=8,
    ),
    Trial(
        arms=ARMS,
        policy=ds.DoubleSampling(samples=None),
        allocation=ds.Allocation(floor=0.1),
        stopping=Stopping(
            looks=2, superiority=0.9, inferiority=0.1, equivalence=0.6, equivalence_margin=0.3, futility=0.7,
            futility_margin=0.1, control="old",
        ),
        horizon=8,
    ),
]  # fmt: skip


@pytest.mark.parametrize("trial", DESIGNS, ids=["no looks", "floor and burn-in", "looks", "control and margins"])
def test_every_end_of_a_small_trial(trial):
    """All ends are enumerated with decide and evaluate_look, which share no code with the forward pass."""
    thetas = [(0.35, 0.8), (0.5, 0.5)]
    found = trial.exact(thetas)
    for place, theta in enumerate(thetas):
        ends = enumerate_ends(trial, theta)
        assert sum(ends.values()) == pytest.approx(1.0)
        here = found.isel(scenario=place)
        for name in ("superiority", "equivalence", "futility", "maximum"):
            expected = sum(p for end, p in ends.items() if end[0] == name)
            assert float(here[f"probability_{name}"]) == pytest.approx(expected, abs=1e-9), name
        states = np.array([end[2:] for end in ends], dtype=float)
        chance = np.array(list(ends.values()))
        size, played = states.sum(axis=1), np.column_stack([states[:, :2].sum(axis=1), states[:, 2:].sum(axis=1)])
        assert float(here.expected_size) == pytest.approx(chance @ size)
        assert float(here.size_std) == pytest.approx(np.sqrt(max(chance @ size**2 - (chance @ size) ** 2, 0)), abs=1e-6)
        assert float(here.expected_successes) == pytest.approx(chance @ (states[:, 0] + states[:, 2]))
        assert float(here.expected_failures) == pytest.approx(chance @ (states[:, 1] + states[:, 3]))
        np.testing.assert_allclose(here.expected_share, chance @ (played / size[:, None]))
        best = np.array(theta) == max(theta)
        assert float(here.expected_inferior) == pytest.approx(float(chance @ played @ ~best))
        both = (played > 0).all(axis=1)
        rates = states[both][:, [0, 2]] / played[both]
        effect, given = rates[:, 1] - rates[:, 0], chance[both] / chance[both].sum()
        assert float(here.effect_bias[1]) == pytest.approx(given @ effect - (theta[1] - theta[0]), abs=1e-10)
        assert float(here.effect_rmse[1]) == pytest.approx(np.sqrt(given @ (effect - theta[1] + theta[0]) ** 2))
        width = 1.959963984540054 * np.sqrt((rates * (1 - rates) / played[both]).sum(axis=1))
        covers = np.abs(effect - theta[1] + theta[0]) <= width
        assert float(here.naive_coverage[1]) == pytest.approx(given @ covers, abs=1e-10)
        one = played[:, 0] > 0
        alone = chance[one] / chance[one].sum()
        assert float(here.bias[0]) == pytest.approx(alone @ (states[one, 0] / played[one, 0]) - theta[0], abs=1e-10)


def test_rejection_rates_of_adaptive_allocation():
    """Values of another implementation: with and without a floor, and with equal allocation."""

    def check(found: Any, *percent: float) -> None:
        for value, expected in zip(100 * found.values, percent, strict=True):
            assert value == pytest.approx(expected, abs=0.5 if isinstance(expected, int) else 0.06)

    found = Trial(arms=ARMS, policy=todays_rule(100), horizon=100).exact(NULLS)
    check(found.rejection_rate, 1.1, 3.4, 22.5, 10)
    check(found.rejection_rate_equal, 5.2, 5.4, 5.0, 54)
    floor = Trial(arms=ARMS, policy=todays_rule(100), allocation=ds.Allocation(floor=0.1), horizon=100)
    found = floor.exact(NULLS, equal=False)
    check(found.rejection_rate, 4.8, 6.2, 9.2, 34)
    assert "rejection_rate_equal" not in found


@pytest.mark.parametrize("realizations", [4000, pytest.param(20_000, marks=pytest.mark.slow)])
def test_simulated_trials_agree(realizations):
    """The same names, within the Monte Carlo error of every number."""
    trial = Trial(
        arms=ARMS,
        policy=ds.ThompsonSampling(),
        allocation=ds.Allocation(minimum=0.2, cap=0.7, burn_in=5),
        stopping=Stopping(looks=[20, 41], superiority=0.97, inferiority=0.02),
        horizon=61,
    )
    thetas = [(0.4, 0.4), (0.3, 0.6)]
    exact, played = trial.exact(thetas), trial.simulate(thetas, realizations=realizations, seed=3)
    limit = stats.norm.isf(FALSE_ALARM / 2)
    names = [name for name in exact.data_vars if f"{name}_error" in played]
    assert len(names) >= 30
    for name in names:
        off = np.abs(exact[name] - played[name])
        assert bool(((off <= limit * played[f"{name}_error"] + 1e-9) | exact[name].isnull()).all()), name


@pytest.mark.parametrize("seen", [((12, 5), (8, 15)), ((3, 9), (17, 11)), ((0, 1), (20, 19)), ((20, 20), (0, 0))])
def test_with_equal_groups_the_test_is_fishers(seen):
    trial = Trial(arms=ARMS, policy=ds.ThompsonSampling(), allocation=ds.Allocation(burn_in=20), horizon=40)
    (s1, s2), (f1, f2) = seen
    for alternative in ("two-sided", "greater", "less"):
        found = trial.exact_test(*seen, alternative=alternative)
        expected = stats.fisher_exact([[s2, f2], [s1, f1]], alternative=alternative).pvalue
        assert found.p_value == pytest.approx(expected, rel=1e-9)
    two_sided = stats.fisher_exact([[s2, f2], [s1, f1]]).pvalue
    assert trial.exact_test(*seen, statistic="probability").p_value == pytest.approx(two_sided, rel=1e-9)


@pytest.mark.parametrize("looks", [None, Stopping(looks=[4, 6], superiority=0.9)], ids=["no looks", "looks"])
def test_p_values_are_shares_of_the_ends_with_as_many_successes(looks):
    """At any common probability of success, from all ends of a small trial."""
    trial = Trial(
        arms=ARMS, policy=ds.ThompsonSampling(), allocation=ds.Allocation(floor=0.1), stopping=looks, horizon=8
    )
    ends = enumerate_ends(trial, (0.37, 0.37))
    states = {end[2:]: p for end, p in ends.items()}
    for seen in [state for state in states if sum(state) in (4, 8)][::25]:
        alike = {s: p for s, p in states.items() if sum(s) == sum(seen) and s[0] + s[2] == seen[0] + seen[2]}

        def difference(s1: Any, f1: Any, s2: Any, f2: Any) -> Any:
            return (s2 + 0.5) / (s2 + f2 + 1) - (s1 + 0.5) / (s1 + f1 + 1)

        as_extreme = [p for s, p in alike.items() if difference(*s) >= difference(*seen) - 1e-12]
        found = trial.exact_test(seen[::2], seen[1::2], statistic=difference, alternative="greater")
        assert found.p_value == pytest.approx(sum(as_extreme) / sum(alike.values()), rel=1e-9)
        assert found.statistic == pytest.approx(difference(*seen))


def test_exact_tests_keep_their_level():
    """Over all ends, the p-value is at most 5 % in at most 5 % of the trials."""
    trial = Trial(arms=ARMS, policy=todays_rule(12), allocation=ds.Allocation(floor=0.1), horizon=10)
    ends = enumerate_ends(trial, (0.5, 0.5))
    p_values = {end[2:]: trial.exact_test(end[2::2], end[3::2]).p_value for end in list(ends)[::3]}
    some = {state: p for state, p in p_values.items() if p <= 0.05}
    assert some, "some ends are extreme"
    assert sum(p for end, p in ends.items() if end[2:] in some) <= 0.05


def test_what_has_no_exact_computation_is_refused():
    thompson = ds.ThompsonSampling()

    def trial(**changes: Any) -> Trial:
        given: dict[str, Any] = {"arms": ARMS, "policy": thompson, "horizon": 10}
        return Trial(**(given | changes))

    three = trial(arms=["a", "b", "c"])
    refused = [
        (lambda: three.exact([(0.1, 0.2)]), "two arms with rewards of 0 and 1"),
        (lambda: trial(belief=ds.Gaussian(arms=2)).exact([(0.1, 0.2)]), "two arms with rewards of 0 and 1"),
        (lambda: trial(policy=ds.DoubleSampling()).exact([(0.1, 0.2)]), "samples=None"),
        (lambda: trial(allocation=ds.Allocation(block=4)).exact([(0.1, 0.2)]), "permuted blocks"),
        (lambda: trial(delay=3).exact([(0.1, 0.2)]), "delay"),
        (lambda: trial().exact([(0.1, 1.2)]), "between 0 and 1, got 1.2"),
        (lambda: trial().exact([(0.1, 0.2, 0.3)]), "pair of probabilities"),
        (lambda: trial().exact("half"), "list of pairs"),
        (lambda: trial(horizon=6000).exact([(0.1, 0.2)]), "horizon must be"),
        (lambda: trial().exact([(0.1, 0.2)], alpha=2), "alpha must be"),
        (lambda: trial().exact_test((1, 2), (3, -1)), "failures must be two whole numbers"),
        (lambda: trial().exact_test((1, 2), (3, 8)), "from 1 to 10 participants, got 14"),
        (lambda: trial().exact_test((1, 2), (3, 4), statistic="t"), "statistic must be"),
        (lambda: trial().exact_test((1, 2), (3, 4), alternative="more"), "alternative must be"),
        (lambda: trial().exact_test((1, 2), (3, 4), statistic="probability", alternative="less"), "no direction"),
        (lambda: trial().exact_test((1, 2), (3, 4), statistic=lambda *_: 1.0), "one finite number per state"),
        (lambda: trial(allocation=ds.Allocation(burn_in=5)).exact_test((1, 2), (3, 4)), "cannot be reached"),
        (
            lambda: trial(stopping=Stopping(looks=[4, 8], superiority=0.9)).exact_test((1, 1), (1, 2)),
            "after 4, 8, 10 outcomes, got 5",
        ),
    ]
    for call, words in refused:
        with pytest.raises(SettingError, match=words):
            call()
