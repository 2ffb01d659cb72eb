"""The leaderboard: its measure, its order, and the command."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr
from scipy import stats

import doublesampling as ds
from doublesampling.cli.main import main
from doublesampling.comparison import SUITES, Row, Suite, draw_leaderboard, leaderboard, play, stuck
from doublesampling.lai_robbins import lai_robbins


def test_the_bound_of_lai_and_robbins() -> None:
    """By SciPy's entropy."""
    theta = (0.2, 0.5, 0.7)
    bandit = ds.BernoulliBandit(theta)
    expected = sum((0.7 - p) / stats.entropy([p, 1 - p], [0.7, 0.3]) for p in theta[:2]) * np.log(1000)
    assert lai_robbins(bandit, 1000) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(
    ("bandit", "first", "second"),
    [
        (ds.PoissonBandit([1.5, 4.0]), stats.poisson(1.5).logpmf, stats.poisson(4.0).logpmf),
        (ds.ExponentialBandit([1.5, 4.0]), stats.expon(scale=1.5).logpdf, stats.expon(scale=4.0).logpdf),
    ],
    ids=["poisson", "exponential"],
)
def test_divergences_of_other_rewards(bandit: Any, first: Any, second: Any) -> None:
    """By sums over the law itself."""
    if isinstance(bandit, ds.PoissonBandit):
        x, step = np.arange(60.0), 1.0
    else:
        x = np.linspace(5e-5, 100.0, 1_000_001)
        step = x[1] - x[0]
    divergence = (np.exp(first(x)) * (first(x) - second(x))).sum() * step
    assert lai_robbins(bandit, 1000) == pytest.approx(2.5 / divergence * np.log(1000), rel=1e-3)


def test_the_divergence_of_gaussian_arms_is_the_least_over_the_noise() -> None:
    """KL(N(0, 1) || N(1, s^2)) over s."""
    s = np.linspace(0.5, 5.0, 100_001)
    least = (np.log(s) + (1.0 + 1.0) / (2 * s**2) - 0.5).min()
    assert lai_robbins(ds.GaussianBandit([0.0, 1.0]), 1000) == pytest.approx(np.log(1000) / least, rel=1e-8)


def check_suite(suite: Suite) -> None:
    """Two realizations; regrets are measured and times are taken."""
    data = play(suite, horizon=12, realizations=2, seed=1, device="cpu")
    rows = leaderboard(suite, data)
    assert {row.policy for row in rows} == set(suite.policies(12))
    assert all(np.isfinite(row.regret) and row.microseconds > 0 for row in rows)
    assert (data.late_regret >= 0.0).all()


def shortened(suite: Suite) -> Suite:
    """A suite with two of its policies: each takes seconds to compile for each kind of bandit."""

    def some(horizon: int) -> dict[str, Any]:
        return {name: suite.policies(horizon)[name] for name in ("double sampling", "Thompson sampling")}

    return replace(suite, policies=some)


@pytest.mark.parametrize("name", ["bernoulli", "poisson"])
def test_suites_play(name: str) -> None:
    check_suite(shortened(SUITES[name]))


@pytest.mark.slow
@pytest.mark.parametrize("name", SUITES)
def test_every_policy_of_every_suite_plays(name: str) -> None:
    check_suite(SUITES[name])


def test_who_is_stuck() -> None:
    """Half of the last tenth on the wrong arm, of two problems and three realizations."""
    suite = Suite((ds.BernoulliBandit([0.4, 0.8]), ds.PoissonBandit([1.0, 2.0, 3.0])), lambda _: {})
    late = [[[0.0, 0.4 * 5, 0.4 * 10], [4.9, 5.1, 0.0]]]
    data = xr.Dataset({"late_regret": (("policy", "bandit", "realization"), late)}, coords={"time": [100]})
    assert stuck(suite, data).tolist() == [3 / 6]
    assert np.isnan(
        stuck(Suite((ds.LogisticBandit(weights=[[1.0], [2.0]]),), lambda _: {}), data.isel(bandit=[0]))
    ).all()


def test_rows_are_ranked_by_their_mean_relative_regret() -> None:
    """Known regrets give known rows."""
    suite = Suite(SUITES["bernoulli"].bandits[:2], lambda _: {})
    units = np.array([lai_robbins(bandit, 100) for bandit in suite.bandits])
    final = np.stack([2 * units[:, None] * [1.0, 1.0], units[:, None] * [0.5, 1.5]])
    data = xr.Dataset(
        {
            "final_regret": (("policy", "bandit", "realization"), final),
            "late_regret": (("policy", "bandit", "realization"), 0.0 * final),
            "optimal_arm_rate": (("policy", "bandit", "time"), np.array([[[0.5], [1.0]], [[0.9], [0.7]]])),
            "seconds_per_decision": ("policy", [1e-6, 2e-6]),
        },
        coords={"policy": ["a", "b"], "time": [100]},
    )
    first, second = leaderboard(suite, data)
    assert (first.policy, second.policy) == ("b", "a")
    assert (first.regret, first.spread, first.wrong, first.microseconds) == pytest.approx((1.0, np.sqrt(0.5), 0.2, 2.0))
    assert first.error == pytest.approx(np.sqrt(0.5) / np.sqrt(2) / np.sqrt(2))
    assert (second.regret, second.error) == pytest.approx((2.0, 0.0))


def test_policies_of_a_suite_meet_the_same_luck_and_are_timed() -> None:
    """Two realizations of the linear suite."""
    suite = shortened(SUITES["linear"])
    data = play(suite, horizon=30, realizations=2, seed=1, device="cpu")
    rows = leaderboard(suite, data)
    assert {row.policy for row in rows} == set(suite.policies(30))
    assert all(row.microseconds > 0 for row in rows)
    assert next(row for row in rows if row.policy == "Thompson sampling").regret == pytest.approx(1.0)
    drawn = draw_leaderboard(rows, "x")
    assert [label.get_text() for label in drawn.axes[0].get_yticklabels()] == [row.policy for row in rows]


def test_what_runs_off_the_scale_is_cut() -> None:
    """A bar ten times the others ends at the edge, its number is still there."""
    rows = [Row(name, value, 0.1, 0.1, 0.0, 0.0, 1.0) for name, value in (("a", 1.0), ("b", 1.1), ("c", 90.0))]
    axes: Any = draw_leaderboard(rows, "x").axes[0]
    assert max(bar.get_width() for bar in axes.patches) < 10
    assert any("90.00" in text.get_text() for text in axes.texts)


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """It prints the leaderboard, draws it, and refuses what it does not know."""
    suite, names = SUITES["bernoulli"], ("double sampling, horizon known", "Thompson sampling", "KL-UCB")
    some = replace(
        suite, bandits=suite.bandits[:2], policies=lambda horizon: {n: suite.policies(horizon)[n] for n in names}
    )
    monkeypatch.setitem(SUITES, "bernoulli", some)
    picture = str(tmp_path / "board.png")
    assert main(["compare", "--horizon", "40", "--realizations", "2", "--plot", picture, "--device", "cpu"]) == 0
    shown = capsys.readouterr().out
    assert "double sampling, horizon known" in shown
    assert "KL-UCB" in shown
    assert main(["compare", "--plot", picture]) == 1
    assert main(["compare", "--suite", "cauchy"]) == 1
    assert main(["compare", "--realizations", "1"]) == 1
    error = capsys.readouterr().err
    assert "--force" in error
    assert "bernoulli" in error


def test_bars_that_are_cut_are_marked_and_numbers_stand_clear() -> None:
    """Different regrets have different bars, a cut bar says so, and no error bar runs through a number."""

    def row(name: str, regret: float, error: float) -> Row:
        return Row(name, regret, error, 0.1, 0.1, 0.1, 1.0)

    rows = [row("a", 0.3, 0.01), row("b", 0.4, 0.01), row("c", 0.5, 0.2), row("d", 1.2, 0.05), row("e", 9.0, 0.1)]
    axes = draw_leaderboard(rows, "x").axes[0]
    lengths = [bar.get_width() for bar in axes.patches]  # type: ignore[attr-defined]
    assert lengths[:4] == [0.3, 0.4, 0.5, 1.2], "what is not cut is drawn to its length"
    labels = {text.get_text(): text for text in axes.texts}
    assert set(labels) == {"0.30", "0.40", "0.50", "1.20", "9.00, cut"}
    assert lengths[4] > 1.2
    for each, text in zip(rows[:4], axes.texts[:4], strict=True):
        assert text.xy[0] == pytest.approx(each.regret + 2 * each.error)  # type: ignore[attr-defined]
        assert text.get_position()[0] > 0, "some points to the right of the error bar"
    marks = [line for line in axes.lines if line.get_color() == "white"]
    assert len(marks) == 1
    assert lengths[0] < np.asarray(marks[0].get_xdata()).min() < lengths[4]


def test_problems_of_the_uniform_suite_stand_for_the_prior() -> None:
    """Their mean of exact regrets is that over uniform priors."""
    suite = SUITES["uniform"]
    thetas = [bandit.probabilities for bandit in suite.bandits]
    for policy in (ds.ThompsonSampling(), ds.Greedy()):
        over_problems = np.mean(ds.exact_regret(policy, 40, theta=thetas))
        assert over_problems == pytest.approx(ds.exact_regret(policy, 40), rel=0.003)


def test_the_uniform_suite_is_measured_by_the_bayes_optimum(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows agree with exact regrets, and the command shows how far above the optimum each is."""
    assert {"finite-horizon Gittins", "IRS.FH"} <= set(SUITES["uniform"].policies(200))
    assert "finite-horizon Gittins" not in SUITES["uniform"].policies(1500), "no table is that long"
    suite = replace(SUITES["uniform"], policies=lambda _: {"Thompson sampling": ds.ThompsonSampling()})
    monkeypatch.setitem(SUITES, "uniform", suite)
    data = play(suite, horizon=30, realizations=20, seed=1, device="cpu")
    (row,) = leaderboard(suite, data)
    exact = ds.exact_regret(ds.ThompsonSampling(), 30) / ds.bayes_optimal(30).regret
    assert row.regret == pytest.approx(exact, abs=5 * row.error + 0.01)
    assert suite.measure == "the Bayes optimum"
    assert main(["compare", "--suite", "uniform", "--horizon", "6", "--realizations", "2", "--device", "cpu"]) == 0
    shown = capsys.readouterr().out
    assert "above the Bayes optimum" in shown
    assert "no policy earns more on their average" in " ".join(shown.split())
    assert main(["compare", "--suite", "uniform", "--horizon", "9999"]) == 1
