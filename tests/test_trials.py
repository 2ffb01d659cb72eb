"""Simulated trials: against a slow twin, published numbers, and what must hold whatever the design."""

from typing import Any

import numpy as np
import pytest
from scipy import stats

import doublesampling as ds
from doublesampling.delays import check_delay
from doublesampling.errors import ArmError, DoubleSamplingError, NameTakenError, SettingError
from doublesampling.looks import OUTCOMES
from doublesampling.trials.play import pack, play
from doublesampling.trials.scenarios import Circumstances, make_world
from tests import oracle_trials
from tests.chance import FALSE_ALARM

LIMIT = stats.norm.isf(FALSE_ALARM / 2)


def three_arms(**changes):
    """The example of adaptr's README, shorter."""
    stopping: dict[str, Any] = {
        "looks": 60,
        "superiority": 0.97,
        "inferiority": 0.03,
        "equivalence": 0.8,
        "equivalence_margin": 0.12,
    }
    stopping |= {name: changes.pop(name) for name in list(changes) if name in (*stopping, "control", "promote")}
    settings: dict[str, Any] = {
        "arms": ["A", "B", "C"],
        "policy": ds.ThompsonSampling(),
        "allocation": ds.Allocation(minimum=0.2, update="look"),
        "stopping": ds.Stopping(**stopping),
        "horizon": 300,
        "delay": 25,
    }
    return ds.Trial(**(settings | changes))


def ends_of(trial, truth, realizations, seed=1, threads=1, equal=False, **given):
    delay = check_delay(given.pop("delay", trial.delay))
    world = make_world(trial.belief, truth, Circumstances(delay, given.pop("dropout", 0.0), given.pop("trend", None)))
    return play(pack(trial, equal), [world], realizations, seed, threads)


def close(value, error, other, other_error=0.0):
    """Two estimates agree within the shared false-alarm rate."""
    assert abs(value - other) <= LIMIT * np.hypot(error, other_error) + 1e-12, (value, other)


@pytest.mark.parametrize(
    "trial",
    [
        three_arms(),
        three_arms(control="A", promote=True, delay=0),
        three_arms(horizon=200, inferiority=0.1, delay=70),
        three_arms(allocation=ds.Allocation(floor=0.1, burn_in=30, update="look"), delay=0),
    ],
    ids=["no control", "promoted", "long delay", "a look in the burn-in"],
)
def test_a_trial_is_what_its_slow_twin_plays(trial):
    truth, many = [0.3, 0.45, 0.5], 12
    found = ends_of(trial, truth, many)
    for r in range(many):
        outcome, size, selected, counts = oracle_trials.play_slowly(trial, truth, 1, r)
        ours = OUTCOMES[found.outcome[0, r]], found.size[0, r], found.selected[0, r], found.arms[0, r, :, 0].tolist()
        assert ours == (outcome, size, selected, counts)


def test_threads_and_blocks_do_not_change_the_numbers():
    one, many = (ends_of(three_arms(), [0.4, 0.4, 0.5], 65, threads=threads) for threads in (1, 3))
    for first, second in zip(one, many, strict=True):
        np.testing.assert_array_equal(first, second)
    fewer = ends_of(three_arms(), [0.4, 0.4, 0.5], 33)
    np.testing.assert_array_equal(fewer.size[0], one.size[0, :33])


def adaptr():
    """Three arms with an undesirable outcome of probability 0.25, looks with a lag of 100 participants."""
    return ds.Trial(
        arms=["A", "B", "C"],
        policy=ds.ThompsonSampling(),
        allocation=ds.Allocation(minimum=0.2, update="look"),
        stopping=ds.Stopping(
            looks=range(300, 2001, 100), superiority=0.9814318, inferiority=0.0185682, equivalence=0.9,
            equivalence_margin=0.05,
        ),
        horizon=2000,
        delay=100,
    )  # fmt: skip


def test_the_published_trial_of_adaptr():
    """1000 trials there: 4.8 % superiority, 38.1 % equivalence, 57.1 % at the largest size, 1749.6 participants."""
    found = adaptr().simulate([[0.75] * 3], realizations=1000, seed=1, equal=False)
    for name, published in (("superiority", 0.048), ("equivalence", 0.381), ("maximum", 0.571)):
        error = float(found[f"probability_{name}_error"][0])
        close(float(found[f"probability_{name}"][0]), error, published, np.sqrt(published * (1 - published) / 1000))
    close(float(found.expected_size[0]), float(found.expected_size_error[0]), 1749.6, 373.7 / np.sqrt(1000))
    close(float(found.size_std[0]), float(found.size_std_error[0]), 373.7, 373.7 / np.sqrt(2000))
    assert float(found.probability_futility[0]) == 0.0


def test_a_dataset_adds_up():
    trial = three_arms(control="A")
    found = trial.simulate({"null": [0.3, 0.3, 0.3], "better": [0.3, 0.3, 0.6]}, realizations=200, seed=3)
    for suffix in ("", "_equal"):
        ends = [found[f"probability_{name}{suffix}"] for name in ("superiority", "equivalence", "futility", "maximum")]
        np.testing.assert_allclose(sum(ends), 1.0)
        np.testing.assert_allclose(found[f"probability_selected{suffix}"].sum("arm"), 1.0)
        np.testing.assert_allclose(found[f"expected_share{suffix}"].sum("arm"), 1.0)
        total = found[f"expected_successes{suffix}"] + found[f"expected_failures{suffix}"]
        np.testing.assert_allclose(total, found[f"expected_size{suffix}"])
        superior = found[f"probability_superior{suffix}"]
        np.testing.assert_allclose(superior.sum("arm"), found[f"probability_superiority{suffix}"])
        assert (superior.sel(arm="A") == 0.0).all()  # a control is not superior to itself
    assert found.scenario.values.tolist() == ["null", "better"]
    assert float(found.expected_inferior[0]) == 0.0
    assert found.attrs["reference"] == "A"
    assert np.isnan(found.effect_bias.sel(arm="A")).all()
    errors = [name for name in found if name.endswith("_error")]
    assert all(name.removesuffix("_error") in found for name in errors)
    assert len(errors) >= 36
    assert {"scenario", "allocation", "P(superiority)", "± P(superiority)"} <= set(found.ds.characteristics())
    assert len(found.ds.plot_characteristics().axes) == 2


def test_without_looks_a_fixed_design_is_the_textbook():
    """Equal allocation, no looks: unbiased means, and an interval that covers as it says."""
    trial = three_arms(stopping=None, allocation=ds.Allocation(), delay=0)
    found = trial.simulate([[0.5, 0.5, 0.5]], realizations=400, seed=2)
    assert float(found.probability_maximum[0]) == 1.0
    assert float(found.expected_size[0]) == 300.0
    for arm in range(3):
        close(float(found.bias_equal[0, arm]), float(found.bias_equal_error[0, arm]), 0.0)
    close(float(found.naive_coverage_equal[0, 1]), float(found.naive_coverage_equal_error[0, 1]), 0.95)
    close(float(found.rmse_equal[0, 1]), float(found.rmse_equal_error[0, 1]), 0.5 / 10.0)  # about 100 of each arm


def test_outcomes_are_delayed_and_lost():
    trial = three_arms()
    with_all = ends_of(trial, [0.4] * 3, 40)
    assigned, known = with_all.arms[0, :, :, 0].sum(axis=1), with_all.arms[0, :, :, 2].sum(axis=1)
    ended_early = with_all.outcome[0] != 4
    assert ended_early.any()
    np.testing.assert_array_equal((assigned - known)[ended_early & (assigned < 300)], 25)
    np.testing.assert_array_equal(known[~ended_early], 300)
    lost = ends_of(trial, [0.4] * 3, 200, dropout=0.3)
    missing = 300 - lost.arms[0, :, :, 2].sum(axis=1)[lost.outcome[0] == 4]
    close(missing.mean(), missing.std(ddof=1) / np.sqrt(missing.size), 90.0)


def test_a_delay_may_have_a_law():
    for law, mean in (({"law": "poisson", "mean": 7}, 7), ({"law": "geometric", "mean": 7}, 7),
                      ({"law": "uniform", "low": 2, "high": 12}, 7), ([0.0, 0.5, 0.5], 1.5)):  # fmt: skip
        cumulative = check_delay(law).cumulative
        assert (1.0 - cumulative).sum() == pytest.approx(mean, abs=1e-6)
    fixed = ends_of(three_arms(), [0.4] * 3, 30, delay=2)
    drawn = ends_of(three_arms(), [0.4] * 3, 30, delay=[0.0, 0.0, 1.0])
    np.testing.assert_array_equal(fixed.arms, drawn.arms)
    late = ends_of(three_arms(), [0.4] * 3, 30, delay={"law": "poisson", "mean": 20})
    assert (late.arms[0, :, :, 2].sum(axis=1) % 60 == 0).all()  # looks and the end count known outcomes


def test_a_trend_moves_the_success_rates():
    trial = three_arms(stopping=None, allocation=ds.Allocation(floor=1 / 3), delay=0)
    found = trial.simulate([[0.2, 0.3, 0.4]], realizations=300, seed=1, trend=0.4, equal=False)
    close(float(found.expected_successes[0]), float(found.expected_successes_error[0]), 300 * (0.3 + 0.2))
    with pytest.raises(SettingError, match="Choose a smaller trend"):
        trial.simulate([[0.2, 0.3, 0.8]], realizations=3, trend=0.4)


def test_a_design_can_be_written_and_read(tmp_path):
    trial = three_arms(control="A", promote=True, delay={"law": "poisson", "mean": 3.5},
                       allocation=ds.Allocation(fixed={"A": 0.3}, burn_in=5))  # fmt: skip
    for name in ("design.toml", "design.json"):
        trial.write(tmp_path / name)
        assert ds.Trial.read(tmp_path / name) == trial
    assert ds.Trial.from_dict(trial.to_dict()) == trial
    with pytest.raises(DoubleSamplingError, match="cannot be read"):
        ds.Trial.read(tmp_path / "missing.toml")
    (tmp_path / "bad.toml").write_text("arms = [")
    with pytest.raises(SettingError, match="cannot be read"):
        ds.Trial.read(tmp_path / "bad.toml")
    exact = ds.Trial(arms=["none", "b"], policy=ds.DoubleSampling(samples=None), horizon=9)
    for name in ("exact.toml", "exact.json"):  # TOML has no null
        exact.write(tmp_path / name)
        assert ds.Trial.read(tmp_path / name) == exact
    with pytest.raises(SettingError, match="arms must be a list of names, got 2"):
        ds.Trial.from_dict({"arms": 2, "horizon": 3, "belief": "BetaBernoulli"})
    with pytest.raises(SettingError, match="has no part 'arm'"):
        ds.Trial.from_dict({"arm": ["a", "b"], "horizon": 3})


def test_calibration_finds_a_threshold_of_that_error():
    trial = three_arms()
    found = ds.calibrate(
        trial, [[0.4] * 3, [0.6] * 3], alpha=0.1, mirror=True, realizations=300, seed=2, tolerance=0.002
    )
    assert found.type_1_error <= 0.1
    assert found.trial.stopping is not None
    assert found.trial.stopping.superiority == found.threshold
    assert found.trial.stopping.inferiority == pytest.approx(1.0 - found.threshold)
    errors = [error for _, error in found.steps]
    below = [error for threshold, error in found.steps if threshold < found.threshold - 0.002]
    assert min(below) > 0.1 >= errors[-1]
    again = found.trial.simulate([[0.4] * 3, [0.6] * 3], realizations=1000, seed=77, equal=False)
    worst = int(np.argmax(again.probability_superiority.values))
    close(float(again.probability_superiority[worst]), float(again.probability_superiority_error[worst]), 0.1,
          found.type_1_error_error)  # fmt: skip
    assert "type I error" in str(found)


@pytest.mark.slow
def test_the_calibrated_threshold_of_adaptr():
    found = ds.calibrate(adaptr(), [[0.75] * 3], mirror=True, realizations=10_000, seed=3, tolerance=5e-4)
    assert abs(found.threshold - 0.981) < 0.005
    assert found.threshold_error < 0.002


def test_designs_are_compared_on_the_same_luck():
    pair = {"long": three_arms(), "short": three_arms(horizon=120)}
    found = ds.compare_designs(pair, [[0.3, 0.3, 0.5]], realizations=50, seed=1)
    alone = pair["short"].simulate([[0.3, 0.3, 0.5]], realizations=50, seed=1, equal=False)
    assert float(found.data.expected_size.sel(design="short")[0]) == float(alone.expected_size[0])
    assert len(found.table()) == 2
    assert "short" in str(found)
    assert len(found.plot().axes) == 4


@pytest.mark.parametrize(
    ("changes", "error", "said"),
    [
        ({"arms": ["A", "A", "B"]}, NameTakenError, "Two arms are called 'A'"),
        ({"arms": ["A"]}, ArmError, "needs two arms"),
        ({"arms": "AB"}, ArmError, "a list of names"),
        ({"arms": ["A", "B"], "belief": ds.BetaBernoulli(arms=3)}, ArmError, "Make them agree"),
        ({"horizon": 0}, SettingError, "horizon must be"),
        ({"delay": -1}, SettingError, "delay must be"),
        ({"delay": {"law": "normal"}}, SettingError, "delay's law must be one of"),
        ({"delay": [0.5, 0.6]}, SettingError, "add up to 1"),
        ({"allocation": 0.2}, SettingError, "allocation must be one such as"),
        ({"allocation": ds.Allocation(floor=0.4)}, SettingError, "floor can be at most"),
        ({"stopping": 0.9}, SettingError, "stopping must be one such as"),
        ({"stopping": None}, SettingError, "Pass stopping="),
        ({"looks": [10, 500]}, SettingError, "within the horizon"),
        ({"control": "placebo"}, SettingError, "control must be one of the arms"),
        ({"belief": ds.LinearGaussian(arms=3, dimension=2)}, SettingError, "depends on the context"),
    ],
)
def test_a_wrong_design_is_refused(changes, error, said):
    with pytest.raises(error, match=said):
        three_arms(**changes)


@pytest.mark.parametrize(
    ("truths", "given", "said"),
    [
        ([], {}, "at least one scenario"),
        ([0.3, 0.4, 0.5], {}, "a list of scenarios"),
        (0.3, {}, "truths must list scenarios"),
        ([[0.3, 0.4]], {}, "one number per arm"),
        ([[0.3, 0.4, 1.5]], {}, "must be a number from 0 to 1"),
        ([[0.3, 0.4, 0.5]], {"dropout": 1.5}, "dropout must be"),
        ([[0.3, 0.4, 0.5]], {"realizations": 0}, "realizations must be"),
        ([[0.3, 0.4, 0.5]], {"seed": -1}, "seed must be"),
        ([[0.3, 0.4, 0.5]], {"trend": [0.1, 0.2]}, "trend must be"),
    ],
)
def test_wrong_assumptions_are_refused(truths, given, said):
    with pytest.raises(SettingError, match=said):
        three_arms().simulate(truths, **given)


def test_two_binary_arms_are_calibrated_exactly():
    trial = ds.Trial(
        arms=["old", "new"], policy=ds.ThompsonSampling(), allocation=ds.Allocation(floor=0.2),
        stopping=ds.Stopping(looks=15, superiority=0.95), horizon=45,
    )  # fmt: skip
    nulls = [[0.2, 0.2], [0.5, 0.5], [0.8, 0.8]]
    found = ds.calibrate(trial, nulls, tolerance=1e-3)
    assert found.realizations == 0
    assert found.type_1_error_error == 0.0
    assert "exact type I error" in str(found)
    assert found.type_1_error == float(found.trial.exact(nulls, equal=False).probability_superiority.max()) <= 0.05
    above = [error for threshold, error in found.steps if threshold < found.threshold - found.threshold_error]
    assert min(above) > 0.05
    simulated = found.trial.simulate(nulls, realizations=4000, seed=4, equal=False)
    close(simulated.probability_superiority[1], simulated.probability_superiority_error[1],
          found.characteristics.probability_superiority[1])  # fmt: skip


def test_calibration_refuses_what_it_cannot_do():
    with pytest.raises(SettingError, match="two arms"):
        ds.calibrate(three_arms(), [[0.3] * 3], method="exact")
    binary = ds.Trial(arms=["a", "b"], stopping=ds.Stopping(looks=9, superiority=0.9), horizon=18)
    with pytest.raises(SettingError, match="know no dropout"):
        ds.calibrate(binary, [[0.3] * 2], method="exact", dropout=0.1)
    with pytest.raises(SettingError, match="a Trial with a stopping rule"):
        ds.calibrate(three_arms(stopping=None, allocation=None), [[0.3] * 3])
    with pytest.raises(SettingError, match=r"the best arm must have an equal, got \[0\.3, 0\.4\]"):
        ds.calibrate(binary, [[0.3, 0.3], [0.3, 0.4]])
    with pytest.raises(SettingError, match="no arm may be better than the control 'A'"):
        ds.calibrate(three_arms(control="A"), {"one": [0.3, 0.4, 0.4]})
    with pytest.raises(SettingError, match="no futility to calibrate"):
        ds.calibrate(three_arms(), [[0.3] * 3], parameter="futility")
    with pytest.raises(SettingError, match="mirror ties inferiority"):
        ds.calibrate(three_arms(), [[0.3] * 3], parameter="equivalence", mirror=True)


class _Own:
    def choose(self, evidence):
        return 0


def test_what_cannot_be_simulated_is_refused():
    with pytest.raises(SettingError, match="policies of this package"):
        three_arms(policy=_Own()).simulate([[0.3] * 3])
    with pytest.raises(SettingError, match="samples=None"):
        three_arms(policy=ds.BayesUCB(samples=100)).simulate([[0.3] * 3])
    with pytest.raises(SettingError, match="does not work with"):
        three_arms(policy=ds.UCB1(), belief=ds.GammaPoisson(arms=3)).simulate([[0.3] * 3])
