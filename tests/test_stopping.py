"""Stopping rules: posterior probabilities with a margin against SciPy, and what a look makes of them."""

import itertools

import numpy as np
import pytest
from scipy import stats

import doublesampling as ds
from doublesampling.beliefs import Marginals
from doublesampling.errors import SettingError
from doublesampling.looks import evaluate_look
from doublesampling.rules import laws
from doublesampling.rules.looks.entry_points import probability_with_margin
from doublesampling.rules.optimal_arm.regions import QUICK_BETA
from tests import oracle_trials
from tests.chance import assert_mean

SCIPY = {
    laws.BETA: lambda row: stats.beta(row[0], row[1]),
    laws.GAMMA: lambda row: stats.gamma(row[0], scale=1.0 / row[1]),
    laws.INVERSE_GAMMA: lambda row: stats.invgamma(row[0], scale=row[1]),
    laws.STUDENT: lambda row: stats.t(row[2], row[0], row[1]) if np.isfinite(row[2]) else stats.norm(row[0], row[1]),
}


def betas(*rows):
    return np.array([[a, b, 0.0] for a, b in rows], dtype=float)


def check(law, parameters, margin):
    """Panels agree with SciPy to 1e-9, equal steps to 1e-6, with and without a control."""
    oracle = [SCIPY[law](row) for row in parameters]
    within, none = oracle_trials.all_within(oracle, margin), oracle_trials.none_above(oracle, 1, margin)
    for control, right in ((-1, within), (1, none)):
        assert probability_with_margin(law, parameters, control, margin) == pytest.approx(right, abs=1e-9)
        quick = probability_with_margin(law, parameters, control, margin, QUICK_BETA)
        assert quick == pytest.approx(right, abs=1e-6)


@pytest.mark.parametrize("margin", [0.02, 0.2])
@pytest.mark.parametrize(
    "rows",
    [
        [(1, 1), (1, 1)],
        [(3, 2), (1, 4), (2, 2)],
        [(13, 20), (15, 18), (30, 12)],
        [(220, 82), (231, 70), (226, 80), (200, 90)],
        [(5000, 2000), (30, 12), (10, 9)],
    ],
    ids=["prior", "few", "more", "many", "unequal"],
)
def test_beta_arms_within_a_margin(rows, margin):
    check(laws.BETA, betas(*rows), margin)


@pytest.mark.slow
@pytest.mark.parametrize("law", [laws.GAMMA, laws.INVERSE_GAMMA, laws.STUDENT])
def test_other_laws_within_a_margin(law):
    rng = np.random.default_rng(law)
    for seen, margin in itertools.product((5, 60, 500), (0.05, 0.3)):
        rows = np.column_stack([seen + rng.normal(0, seen**0.5, 3), np.full(3, float(seen)), np.zeros(3)])
        if law == laws.STUDENT:
            rows = np.column_stack([rng.normal(0, seen**-0.5, 3), np.full(3, seen**-0.5), [seen, 3.0, np.inf]])
        check(law, rows, margin)


def test_arms_that_cannot_lie_within_the_margin():
    far = betas((900, 100), (100, 900))
    assert probability_with_margin(laws.BETA, far, -1, 0.05) == 0.0
    assert probability_with_margin(laws.BETA, far, 0, 0.05) == pytest.approx(1.0, abs=1e-12)


def look(rule, rows, **given):
    parameters = betas(*rows)
    counts = (parameters[:, :2].sum(axis=1) - 2).astype(int)
    return evaluate_look(rule, Marginals(laws.BETA, parameters), counts, **given)


class TestLook:
    def test_inferior_arms_are_dropped_and_the_others_judged_among_themselves(self):
        rule = ds.Stopping(looks=10, superiority=0.9, inferiority=0.05)
        found = look(rule, [(10, 90), (60, 40), (55, 45)])
        assert (found.outcome, found.dropped, found.active) == ("continue", (0,), (1, 2))
        p = ds.probability_optimal(ds.BetaBernoulli(arms=2, alpha=[60, 55], beta=[40, 45]), _prior([60, 55], [40, 45]))
        np.testing.assert_allclose(found.probability_best_remaining[1:], p, atol=1e-9)
        assert np.isnan(found.probability_best_remaining[0])

    def test_the_last_arm_is_superior(self):
        found = look(ds.Stopping(looks=10, inferiority=0.2), [(10, 90), (60, 40), (30, 70)])
        assert (found.outcome, found.selected, found.dropped) == ("superiority", 1, (0, 2))

    def test_the_best_arm_is_never_dropped(self):
        found = look(ds.Stopping(looks=10, inferiority=0.3), [(50, 50), (50, 50), (50, 50)])
        assert found.active == (0, 1, 2)
        found = look(ds.Stopping(looks=10, inferiority=0.4), [(50, 50), (50, 50), (50, 50)])
        assert found.outcome == "superiority"

    def test_thresholds_are_strict_and_differ_by_look(self):
        rule = ds.Stopping(looks=[10, 20], superiority=[0.99, 0.6])
        rows = [(30, 30), (35, 25)]
        assert look(rule, rows, look=0).outcome == "continue"
        assert look(rule, rows, look=1).outcome == "superiority"
        assert look(ds.Stopping(looks=10, superiority=0.5), [(9, 9), (9, 9)]).outcome == "continue"

    def test_equivalence_follows_superiority(self):
        rows = [(500, 500), (520, 480)]
        both = ds.Stopping(looks=10, superiority=0.7, equivalence=0.7, equivalence_margin=0.05)
        assert look(both, rows).outcome == "superiority"
        found = look(ds.Stopping(looks=10, superiority=0.95, equivalence=0.7, equivalence_margin=0.05), rows)
        assert (found.outcome, found.selected) == ("equivalence", 1)
        assert found.probability_equivalence == pytest.approx(
            oracle_trials.all_within([stats.beta(*row) for row in rows], 0.05), abs=1e-9
        )

    def test_arms_are_compared_with_a_control(self):
        rule = ds.Stopping(looks=10, superiority=0.95, inferiority=0.1, control=0)
        found = look(rule, [(50, 50), (30, 70), (55, 45), (70, 30)], control=0)
        assert (found.outcome, found.selected, found.dropped) == ("superiority", 3, (1,))
        two = stats.beta(55, 45), stats.beta(50, 50)
        assert found.probability_better[2] == pytest.approx(1 - oracle_trials.none_above(list(two), 1, 0.0), abs=1e-9)

    def test_a_superior_arm_may_take_the_place_of_the_control(self):
        rule = ds.Stopping(looks=10, superiority=0.95, inferiority=0.05, control=0, promote=True)
        found = look(rule, [(30, 70), (50, 50), (52, 48)], control=0)
        assert (found.outcome, found.control, found.dropped) == ("continue", 2, (0,))
        found = look(rule, [(30, 70), (50, 50), (80, 20)], control=0)
        assert (found.outcome, found.selected, found.dropped) == ("superiority", 2, (0, 1))

    def test_no_arm_left_against_the_control_is_futility(self):
        rule = ds.Stopping(looks=10, inferiority=0.1, superiority=0.95, control=1)
        found = look(rule, [(30, 70), (60, 40)], control=1)
        assert (found.outcome, found.selected) == ("futility", 1)

    def test_futility_by_a_margin(self):
        rule = ds.Stopping(looks=10, futility=0.8, futility_margin=0.1, control=0)
        rows = [(50, 50), (51, 49)]
        found = look(rule, rows, control=0)
        right = oracle_trials.none_above([stats.beta(*row) for row in rows], 0, 0.1)
        assert found.probability_futility == pytest.approx(right, abs=1e-9)
        assert found.outcome == ("futility" if right > 0.8 else "continue")

    def test_nothing_happens_before_every_arm_has_its_minimum(self):
        rows = [(90, 10), (2, 3)]
        assert look(ds.Stopping(looks=10, superiority=0.9), rows).outcome == "superiority"
        assert look(ds.Stopping(looks=10, superiority=0.9, minimum=4), rows).outcome == "continue"

    @pytest.mark.slow
    def test_beliefs_without_densities_are_judged_by_draws(self):
        belief = ds.DirichletCategorical(arms=2, values=[0, 1])
        state = belief.update_batch(belief.prior(), [0] * 40 + [1] * 40, [0] * 20 + [1] * 20 + [0] * 12 + [1] * 28)
        rule = ds.Stopping(looks=80, superiority=0.999, equivalence=0.99, equivalence_margin=0.15)
        found = evaluate_look(rule, belief.marginals(state), state.counts)
        exact = look(rule, [(21, 21), (29, 13)])
        draws = belief.marginals(state).many
        for ours, right in (
            (found.probability_best[1], exact.probability_best[1]),
            (found.probability_equivalence, exact.probability_equivalence),
        ):
            hits = np.zeros(draws)
            hits[: round(ours * draws)] = 1.0
            assert_mean(hits, right)


def _prior(alpha, beta):
    return ds.BetaBernoulli(arms=len(alpha), alpha=alpha, beta=beta).prior()


def test_looks_at_an_interval_end_at_the_horizon():
    assert ds.Stopping(looks=100, superiority=0.9).schedule(300) == (100, 200, 300)
    assert ds.Stopping(looks=100, superiority=0.9).schedule(250) == (100, 200, 250)
    assert ds.Stopping(looks=[7, 9], superiority=0.9).schedule(250) == (7, 9)
    assert ds.Stopping(looks=[7, 9], superiority=0.9).next_look(2) is None
    assert ds.Stopping(looks=50, superiority=0.9).next_look(2) == 150


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"looks": 10}, "needs a threshold"),
        ({"looks": 0, "superiority": 0.9}, "looks must be a whole number of at least 1"),
        ({"looks": [20, 10], "superiority": 0.9}, "rising order"),
        ({"looks": 10, "superiority": 1.0}, "strictly between 0 and 1"),
        ({"looks": 10, "superiority": 0.0}, "strictly between 0 and 1"),
        ({"looks": 10, "superiority": "high"}, "a probability between 0 and 1"),
        ({"looks": [10, 20], "superiority": [0.9]}, "one per look"),
        ({"looks": 10, "superiority": 0.1, "inferiority": 0.2}, "inferiority must be below superiority"),
        ({"looks": 10, "equivalence": 0.9}, "equivalence needs equivalence_margin"),
        ({"looks": 10, "superiority": 0.9, "futility_margin": 0.1}, "futility_margin needs futility"),
        ({"looks": 10, "equivalence": 0.9, "equivalence_margin": -0.1}, "equivalence_margin must be"),
        ({"looks": 10, "futility": 0.9, "futility_margin": 0.1}, "Pass control="),
        ({"looks": 10, "superiority": 0.9, "promote": True}, "Pass control="),
        ({"looks": 10, "superiority": 0.9, "minimum": -1}, "minimum must be"),
        ({"looks": 10, "superority": 0.9}, "Did you mean 'superiority'"),
    ],
)
def test_wrong_settings_are_refused(settings, said):
    with pytest.raises(SettingError, match=said):
        ds.Stopping(**settings)


def test_a_stopping_rule_must_fit_its_arms_and_horizon():
    with pytest.raises(SettingError, match="control must be one of the arms"):
        ds.Stopping(looks=10, superiority=0.9, control="placebo").check_for(["a", "b"])
    with pytest.raises(SettingError, match="within the horizon"):
        ds.Stopping(looks=[10, 200], superiority=0.9).check_for(["a", "b"], 100)
    with pytest.raises(SettingError, match="there are 10 looks, got 2"):
        ds.Stopping(looks=10, superiority=[0.9, 0.8]).check_for(["a", "b"], 100)
    with pytest.raises(SettingError, match="below 1/2"):
        ds.Stopping(looks=10, inferiority=0.5).check_for(["a", "b"])
