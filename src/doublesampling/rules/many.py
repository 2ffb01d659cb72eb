"""Many decisions in one call: double sampling and Thompson sampling over rows of marginals, compiled for one law."""

import functools
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from doublesampling.rules import laws, posterior
from doublesampling.rules.bundles import Policy
from doublesampling.rules.cached import kept, kept_for
from doublesampling.rules.choose.choose import count_candidates
from doublesampling.rules.choose.mode import draw_candidates, mode
from doublesampling.rules.choose.propensities import fill_propensities_of_two
from doublesampling.rules.optimal_arm import compare_whole_beta, quadrature
from doublesampling.rules.optimal_arm.regions import EXACT

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
        samples, first_of_ties = int(settings[0]), settings[2] > 0.0
        policy = Policy(
            samples, int(settings[1]), first_of_ties, int(settings[3]), settings[4], settings[5], 0.0, propensities
        )  # in the order of sample_twice.settings_array
        for i in range(parameters.shape[0]):
            address = (words[i, 0], words[i, 1], words[i, 2], words[i, 3])
            row, known = p[i], False
            if law == laws.BETA and row.size == 2:
                known = compare_whole_beta.fill_optimality(parameters[i], row)
            if not known:
                quadrature.probability_optimal(law, parameters[i], EXACT, row, survey, panel)
            if samples > 0:
                quadrature.sampled_optimality(address, samples, row, votes[i])
            number = count_candidates(form, policy, float(address[3]), row, votes[i])
            draw_candidates(address, number, row, votes[i])
            chosen[i, 0], chosen[i, 1] = mode(votes[i], first_of_ties, address), number
            if row.size == 2:
                fill_propensities_of_two(number, row, first_of_ties, propensities[i])

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
