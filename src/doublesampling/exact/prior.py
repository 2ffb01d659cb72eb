"""Priors of two Bernoulli arms, and how probable states are under them."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

from doublesampling import checks
from doublesampling.beliefs import BetaBernoulli
from doublesampling.engine.families.beta import start_track
from doublesampling.errors import SettingError

FloatArray = NDArray[np.float64]

_NOTHING = 1e-40  # what is multiplied by a smaller number adds nothing


def check_prior(prior: Any) -> FloatArray:
    """Return alpha and beta of both arms, float array (arm, 2), from a belief, a pair, or a pair per arm."""
    if prior is None:
        return np.ones((2, 2))
    if isinstance(prior, BetaBernoulli):
        if prior.arms != 2 or prior.discount < 1.0:
            raise SettingError(f"Exact computations are for two arms and beliefs that do not forget, got {prior!r}.")
        state = prior.prior()
        return np.column_stack([state.alpha, state.beta])
    given = checks.array("prior", prior, error=SettingError)
    if given.shape not in ((2,), (2, 2)):
        raise SettingError(
            "prior must be a BetaBernoulli belief of two arms, a pair (alpha, beta), or one pair per arm, got "
            f"{checks.shown(prior)}."
        )
    pairs = np.array(np.broadcast_to(given, (2, 2)))
    for value in pairs.ravel():
        checks.within("alpha and beta of the prior", float(value), 1e-6, 1e6)
    return pairs


def exchangeable(prior: FloatArray) -> bool:
    """Tell whether both arms have the same prior."""
    return bool((prior[0] == prior[1]).all())


def track_of(prior: FloatArray) -> FloatArray:
    """Return p of the first arm and the overlap H of two priors, or refuse priors whose states cannot be followed."""
    track = start_track(prior[:, 0].copy(), prior[:, 1].copy())
    if track.size == 0:
        raise SettingError(f"These priors are too far apart for an exact computation: {checks.shown(prior.tolist())}.")
    return track[:2]


def best_mean(prior: FloatArray) -> float:
    """Return E[max(theta_1, theta_2)].

    A Beta density times its mean is the mean times the density after one more success, which raises p by H / alpha.
    """
    p, overlap = track_of(prior)
    means = prior[:, 0] / prior.sum(axis=1)
    return float(means[0] * (p + overlap / prior[0, 0]) + means[1] * (1.0 - p + overlap / prior[1, 0]))


def ratio_of_prior(pair: FloatArray, count: int) -> FloatArray:
    """Return how much more probable 0, 1, ..., ``count`` successes are under a Beta prior than under a uniform one."""
    s = np.arange(count + 1.0)
    log_ratio = special.betaln(pair[0] + s, pair[1] + count - s) - special.betaln(1.0 + s, 1.0 + count - s)
    return np.asarray(np.exp(log_ratio - special.betaln(pair[0], pair[1])))


def ratio_of_theta(theta: FloatArray, count: int) -> FloatArray:
    """Return the same for known probabilities of success instead of a prior, float array (theta, successes)."""
    s = np.arange(count + 1.0)
    known = special.xlogy(s, theta[:, None]) + special.xlog1py(count - s, -theta[:, None])
    ratio = np.exp(known - special.betaln(1.0 + s, 1.0 + count - s))
    return np.asarray(np.where(ratio < _NOTHING, 0.0, ratio))


def name_scenarios(thetas: Any) -> dict[Any, Any]:
    """Return pairs of success probabilities by their name, or by their number."""
    if isinstance(thetas, Mapping):
        return {str(name): pair for name, pair in thetas.items()}
    if isinstance(thetas, str) or not isinstance(thetas, Sequence | np.ndarray) or len(thetas) == 0:
        raise SettingError(
            f"thetas must be a list of pairs such as [(0.3, 0.3), (0.3, 0.5)], got {checks.shown(thetas)}."
        )
    return dict(enumerate([thetas] if np.ndim(thetas[0]) == 0 and not hasattr(thetas[0], "probabilities") else thetas))


def check_thetas(theta: Any) -> FloatArray:
    """Return pairs of probabilities of success, float array (pair, 2)."""
    given = checks.array("theta", theta, error=SettingError)
    if given.shape[-1:] != (2,) or given.ndim > 2 or given.size == 0:
        raise SettingError(f"theta must be a pair of probabilities, or a list of pairs, got {checks.shown(theta)}.")
    if given.min() < 0.0 or given.max() > 1.0:
        worst = given.min() if given.min() < 0.0 else given.max()
        raise SettingError(f"theta must lie between 0 and 1, got {worst:g}.")
    return np.atleast_2d(given)


def log_paths(count: int, successes: NDArray[np.int64]) -> FloatArray:
    """Return the logarithm of what one arm's part of a probability under a uniform prior is multiplied by to give g.

    g is the sum over all paths to a state of the product of the propensities.
    """
    return np.asarray(-special.betaln(1.0 + successes, 1.0 + count - successes))
