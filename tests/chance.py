"""Chance in tests: one false-alarm rate for all of them, and the checks that use it.

Every statistical test is seeded and rejects at FALSE_ALARM. tests/test_power.py shows each check failing on a law
that is off by little.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

FALSE_ALARM = 1e-6


def assert_law(draws: ArrayLike, cdf: Callable[..., object]) -> None:
    """Continuous draws follow a law (Kolmogorov-Smirnov)."""
    p = stats.kstest(np.asarray(draws), cdf).pvalue
    assert p > FALSE_ALARM, f"draws do not follow the law (p = {p:.2g})"


def assert_counts(counts: ArrayLike, probabilities: ArrayLike) -> None:
    """Counts of categories follow their probabilities (chi-square; rare categories are pooled)."""
    seen = np.asarray(counts, dtype=float)
    expected = np.asarray(probabilities, dtype=float) * seen.sum()
    assert not seen[expected == 0].any(), "something happened that cannot"
    order = np.argsort(expected)
    seen, expected = seen[order], expected[order]
    pooled = np.searchsorted(np.cumsum(expected), 10.0, side="left") + 1
    seen = np.concatenate([[seen[:pooled].sum()], seen[pooled:]])
    expected = np.concatenate([[expected[:pooled].sum()], expected[pooled:]])
    if seen.size > 1:
        p = stats.chisquare(seen, expected * (seen.sum() / expected.sum())).pvalue
        assert p > FALSE_ALARM, f"counts do not follow the probabilities (p = {p:.2g})"


def assert_mean(values: ArrayLike, mean: float) -> None:
    """The average of independent values is compatible with a mean (normal test)."""
    sample = np.asarray(values, dtype=float)
    error = sample.std(ddof=1) / np.sqrt(sample.size)
    limit = stats.norm.isf(FALSE_ALARM / 2)
    assert abs(sample.mean() - mean) <= limit * error + 1e-15, f"mean {sample.mean()} +- {error}, expected {mean}"
