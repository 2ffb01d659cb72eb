"""The exact regret of a policy on two Bernoulli arms, averaged over a prior or at given probabilities of success."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from doublesampling import checks
from doublesampling.exact.characteristics import product
from doublesampling.exact.forward import Forward, StateLaw
from doublesampling.exact.layers import check_horizon
from doublesampling.exact.prior import best_mean, check_prior, check_thetas, ratio_of_prior, ratio_of_theta

FloatArray = NDArray[np.float64]


def exact_regret(
    policy: Any, horizon: int, *, prior: Any = None, theta: Any = None, threads: int | None = None, device: str = "cpu"
) -> Any:
    """Return the expected regret of a policy after ``horizon`` decisions between two Bernoulli arms, without chance.

    ``prior`` is what the policy believes, and where the arms come from: a BetaBernoulli belief, (alpha, beta) of both
    arms, or one such pair per arm; uniform by default. With ``theta``, a pair of probabilities of success or a list of
    pairs, the arms are these: the regret of each pair, all from one pass. The policy must have exact propensities
    (``samples=None``).

    >>> import doublesampling as ds
    >>> round(exact_regret(ds.ThompsonSampling(), 60), 4)
    2.2899
    >>> round(exact_regret(ds.ThompsonSampling(), 60, theta=(0.4, 0.8)), 4)
    2.7312
    """
    horizon, pairs = check_horizon(horizon), check_prior(prior)
    thetas = None if theta is None else check_thetas(theta)
    forward = Forward(policy, pairs, horizon, threads)
    if checks.one_of("device", device, ("cpu", "cuda")) == "cuda":
        from doublesampling.exact import cuda

        law = cuda.run(forward)
    else:
        law = forward.run()
    if thetas is None:
        return horizon * best_mean(pairs) - expected_successes(law, pairs)
    found = regret_at(law, thetas)
    return float(found[0]) if np.ndim(theta) == 1 else found


def expected_successes(law: StateLaw, prior: FloatArray) -> float:
    """Return the expected number of successes of both arms together, averaged over a prior."""
    total = 0.0
    for n1, weight in law.blocks():
        n2 = law.time - n1
        first, second = ratio_of_prior(prior[0], n1), ratio_of_prior(prior[1], n2)
        total += float((first * np.arange(n1 + 1)) @ weight @ second)
        total += float(first @ weight @ (second * np.arange(n2 + 1)))
    return total


def regret_at(law: StateLaw, thetas: FloatArray) -> FloatArray:
    """Return the expected regret at pairs of probabilities of success, float array (pair)."""
    gaps = thetas.max(axis=1, keepdims=True) - thetas
    total = np.zeros(len(thetas))
    for n1, weight in law.blocks():
        n2 = law.time - n1
        first, second = ratio_of_theta(thetas[:, 0], n1), ratio_of_theta(thetas[:, 1], n2)
        total += (product(first, weight) * second).sum(axis=1) * (n1 * gaps[:, 0] + n2 * gaps[:, 1])
    return total
