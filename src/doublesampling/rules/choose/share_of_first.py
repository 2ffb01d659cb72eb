"""The probability with which a policy plays the first of two Beta arms in a posterior state, exactly."""

import math

import numpy as np

from doublesampling.rules import laws
from doublesampling.rules.bundles import PolicySettings, Scratch
from doublesampling.rules.choose import kinds
from doublesampling.rules.choose.choose import fill_precisions, fill_values
from doublesampling.rules.choose.double_sampling import count_candidates
from doublesampling.rules.choose.information_directed import fill_chances, fill_regret_and_information
from doublesampling.rules.choose.propensities import fill_propensities_of_two
from doublesampling.rules.choose.relaxation import decisions_after, relaxed_share
from doublesampling.rules.choose.shares import share_largest, share_top_two
from doublesampling.rules.compiled import rule
from doublesampling.rules.optimal_arm import recurrence
from doublesampling.rules.specialise import Constant, specialised

_LEAST_LOG = -45.0  # the logarithm of a probability that no sum of others notices


@specialised(rule)
def share_of_first(kind: Constant, form: Constant, policy: PolicySettings, time: int, scratch: Scratch) -> float:
    """P(the first arm is played at decision ``time``); scratch holds parameters, priors and the track of two arms."""
    p, values = scratch.p, scratch.values
    if kind == kinds.DOUBLE_SAMPLING:
        recurrence.tracked_optimality(scratch.state.track, p)
        fill_precisions(form, laws.BETA, scratch.parameters, values)
        number = count_candidates(form, policy, float(time), p, values, scratch.votes)
        # P(the lesser arm is the mode) is at most (4 p (1 - p))^(N / 2)
        if p[0] * p[1] <= 0.0 or 0.5 * number * math.log(4.0 * p[0] * p[1]) < _LEAST_LOG:
            return 1.0 if p[0] > p[1] else 0.0
        fill_propensities_of_two(number, p, policy.first_of_ties, values)
        return values[0]
    elif kind == kinds.THOMPSON:
        recurrence.tracked_optimality(scratch.state.track, p)
        return p[0]
    elif kind == kinds.TOP_TWO:
        recurrence.tracked_optimality(scratch.state.track, p)
        share_top_two(p, policy.setting, values)
        return values[0]
    elif kind == kinds.RELAXATION:
        alpha, beta = scratch.state.alpha, scratch.state.beta
        return relaxed_share(alpha[0], beta[0], alpha[1], beta[1], decisions_after(policy.horizon, float(time)))
    elif kind == kinds.INFORMATION_DIRECTED:
        recurrence.tally(scratch.state.alpha, scratch.state.beta, scratch.state.track, scratch.tally)
        fill_regret_and_information(scratch.tally)
        fill_chances(scratch.tally[3], scratch.tally[4], scratch.tally[5])
        return scratch.tally[5, 0]
    else:
        address = (np.uint64(0), np.uint64(0), np.uint64(0), np.uint64(time))
        scratch.starts[0] = scratch.starts[1] = math.nan
        fill_values(kind, form, laws.BETA, policy, address, scratch)
        share_largest(values, policy.first_of_ties, p)
        if kind == kinds.EPSILON_THOMPSON:
            greedy = p[0]
            recurrence.tracked_optimality(scratch.state.track, p)
            return policy.setting * p[0] + (1.0 - policy.setting) * greedy
        if kind in (kinds.EPSILON_GREEDY, kinds.GITTINS):
            return 0.5 * policy.setting + (1.0 - policy.setting) * p[0]
        return p[0]
