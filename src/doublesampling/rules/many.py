"""Many decisions in one call: double sampling and Thompson sampling over rows of marginals, compiled for one law."""

import functools
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from doublesampling.rules import laws, posterior
from doublesampling.rules.cached import kept, kept_for
from doublesampling.rules.choose.choose import fill_precisions
from doublesampling.rules.choose.double_sampling import double_sampling_recorded
from doublesampling.rules.optimal_arm import compare_whole_beta, quadrature
from doublesampling.rules.optimal_arm.regions import EXACT
from doublesampling.rules.sample_twice import settings_of

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
WordArray = NDArray[np.uint64]


@functools.cache
def decide_rows(law: int, form: int) -> Callable[..., None]:
    """Return the loop over rows: it fills p, votes, propensities (of two arms), and chosen: the arm and N."""

    @kept_for(law, form)
    def play(
        parameters: FloatArray, settings: FloatArray, words: WordArray, p: FloatArray, votes: IntArray,
        propensities: FloatArray, chosen: IntArray, survey: FloatArray, panel: FloatArray,
    ) -> None:  # fmt: skip
        policy = settings_of(settings, propensities)
        for i in range(parameters.shape[0]):
            address = (words[i, 0], words[i, 1], words[i, 2], words[i, 3])
            row, known = p[i], False
            if law == laws.BETA and row.size == 2:
                known = compare_whole_beta.fill_optimality(parameters[i], row)
            if not known:
                quadrature.probability_optimal(law, parameters[i], EXACT, row, survey, panel)
            # the propensities of this row are not known yet: their place holds the precisions until they are
            fill_precisions(form, law, parameters[i], propensities[i])
            arm, number = double_sampling_recorded(
                form, policy, address, row, propensities[i], votes[i], propensities[i]
            )
            chosen[i, 0], chosen[i, 1] = arm, number

    return play


@kept
def fill_marginals_at(
    mean: FloatArray, root: FloatArray, alpha: FloatArray, beta: FloatArray, noise: FloatArray, contexts: FloatArray,
    out: FloatArray,
) -> None:  # fmt: skip
    """Fill the marginals of every arm at every context, out (context, arm, 3)."""
    for i in range(contexts.shape[0]):
        for a in range(mean.shape[0]):
            location, scale, freedom = posterior.nig_marginal(
                mean[a], root[a], alpha[a], beta[a], noise[a], contexts[i]
            )
            out[i, a, 0], out[i, a, 1], out[i, a, 2] = location, scale, freedom
