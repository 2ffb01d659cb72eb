"""Slow twins of trials: probabilities of a look by SciPy, and a whole trial in plain Python on the same luck."""

import itertools
from typing import Any

import numpy as np
from numpy.typing import NDArray

import doublesampling as ds
from doublesampling.beliefs.marginals import address_words
from doublesampling.looks import evaluate_look
from doublesampling.rules import assign

FloatArray = NDArray[np.float64]


def _nodes(laws: list[Any], margin: float) -> tuple[FloatArray, FloatArray]:
    """Gauss-Legendre panels between quantiles of every law, and those less the margin."""
    levels = np.concatenate([10.0 ** np.arange(-14, -1), np.linspace(0.02, 0.5, 9)])
    found = [np.concatenate([law.ppf(levels), law.isf(levels)]) for law in laws]
    edges = np.unique(np.concatenate([*found, *(one - margin for one in found)]))
    node, weight = np.polynomial.legendre.leggauss(40)
    x = (0.5 * (edges[1:] + edges[:-1])[:, None] + 0.5 * np.diff(edges)[:, None] * node).ravel()
    return x, (0.5 * np.diff(edges)[:, None] * weight).ravel()


def all_within(laws: list[Any], margin: float) -> float:
    """P(all lie within the margin) = integral of sum_k f_k(x) prod_{j != k} [F_j(x + d) - F_j(x)] dx."""
    x, weight = _nodes(laws, margin)
    inside = [law.cdf(x + margin) - law.cdf(x) for law in laws]
    total = sum(
        law.pdf(x) * np.prod([inside[j] for j in range(len(laws)) if j != k], axis=0) for k, law in enumerate(laws)
    )
    return float(np.sum(weight * total))


def none_above(laws: list[Any], control: int, margin: float) -> float:
    """P(none is above the control by the margin) = integral of f_c(x) prod_{j != c} F_j(x + d) dx."""
    x, weight = _nodes(laws, margin)
    others = [law.cdf(x + margin) for j, law in enumerate(laws) if j != control]
    return float(np.sum(weight * laws[control].pdf(x) * np.prod(others, axis=0)))


def play_slowly(trial: Any, truth: list[float], seed: int, realization: int) -> tuple[Any, ...]:
    """One trial with rewards of 0 and 1, by the public parts: outcome, size, selected arm, participants per arm.

    The delay is a number; shares come from the policy's propensities, within the limits, at every look.
    """
    belief, bandit, arms = trial.belief, ds.BernoulliBandit(truth), len(trial.arms)
    state, active, control, promoted = belief.prior(), list(range(arms)), trial.control, False
    played: list[int] = []
    known, looks, schedule = 0, 0, trial.stopping.schedule(trial.horizon)
    limits, shares = trial.allocation.limits(trial.arms), np.zeros(arms)
    renew, found = True, None
    for t in itertools.count():
        words = address_words(seed, t + 1, realization=realization)
        if t < trial.horizon:
            if renew:
                wanted, which = np.zeros(arms), np.zeros(arms, dtype=bool)
                wanted[active] = belief.marginals(state).only(active).probability_optimal if len(active) > 1 else 1.0
                which[active] = True
                shares, renew = assign.shares_within(wanted, limits, which), not trial.allocation.at_looks
            which = np.isin(np.arange(arms), active)
            counts = np.bincount(played, minlength=arms)
            first = assign.burn_in_propensities(counts, which, trial.allocation.burn_in)
            played.append(assign.draw_arm(shares if first is None else first, words))
        if t >= trial.delay:
            arm = played[t - trial.delay]
            reward = bandit.reward(arm, seed=seed, time=t - trial.delay + 1, realization=realization)
            state = belief.update(state, arm, reward)
            known += 1
            if looks < len(schedule) and known == schedule[looks]:
                found = evaluate_look(
                    trial.stopping, belief.marginals(state), state.counts, look=looks, active=active, control=control,
                    promoted=promoted,
                )  # fmt: skip
                active, control, promoted = list(found.active), found.control, found.promoted
                looks, renew = looks + 1, True
                if found.stops:
                    return found.outcome, len(played), found.selected, np.bincount(played, minlength=arms).tolist()
        if known == trial.horizon:
            p = belief.marginals(state).only(active).probability_optimal if len(active) > 1 else np.ones(1)
            return "maximum", len(played), active[int(np.argmax(p))], np.bincount(played, minlength=arms).tolist()
    raise AssertionError
