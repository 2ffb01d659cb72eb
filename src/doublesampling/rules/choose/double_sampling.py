"""Double sampling: estimate p, count the candidates N, draw them, play their mode. One rule for every caller.

Simulations call ``double_sampling`` (choose.py); ``ds.decide`` and ``ds.decide_many`` call ``double_sampling_recorded``
(../sample_twice.py, ../many.py). ``form`` (kinds.py) is a constant of the compiled code: how N is counted.
"""

import numpy as np
from numpy.typing import NDArray

from doublesampling.rules.bundles import PolicySettings
from doublesampling.rules.choose import kinds
from doublesampling.rules.choose.candidates import (
    AT_ANY_TIME,
    UNTIL_HORIZON,
    log_false_alarm,
    log_false_alarm_of_counts,
    number_by_challenger,
    number_by_doubt,
    number_of_candidates,
)
from doublesampling.rules.choose.mode import mode_of_candidates, sure_mode
from doublesampling.rules.choose.propensities import fill_propensities_of_two
from doublesampling.rules.compiled import inlined, spliced
from doublesampling.rules.draws import CANDIDATES, OPTIMALITY, TIES, Address, binomial_from_uniform, uniform
from doublesampling.rules.optimal_arm.quadrature import sampled_optimality
from doublesampling.rules.specialise import Constant, specialised

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


@specialised(spliced)
def double_sampling(
    form: Constant, policy: PolicySettings, address: Address, p: FloatArray, precisions: FloatArray, votes: IntArray
) -> tuple[int, int]:
    """Return the arm and N. p holds the exact probabilities of being the best, and is left holding the estimate.

    precisions : float array (arm), see laws.precision; only the forms that weigh challengers read it.
    """
    if form == kinds.TWO_ARM_TABLE:
        arm, number = _double_sampling_of_two(policy, address, p)
    else:
        number = estimate_and_count(form, policy, address, p, precisions, votes)
        arm = choose_candidate(form, number, policy, address, p, votes)
    return arm, number


@specialised(spliced)
def estimate_and_count(
    form: Constant, policy: PolicySettings, address: Address, p: FloatArray, precisions: FloatArray, votes: IntArray
) -> int:
    """Return N, and turn the exact p into the estimate of M samples (none where M is 0).

    The paper's count looks at the estimate. The counts that weigh challengers look at the exact p where it is known:
    an estimate would only add noise to them.
    """
    if form == kinds.CHALLENGER or form == kinds.ANYTIME:
        number = count_candidates(form, policy, float(address[3]), p, precisions, votes)
        if policy.samples > 0:  # how many of M posterior samples favour each arm, drawn at once
            sampled_optimality(address, policy.samples, p, votes)
    else:
        if policy.samples > 0:
            sampled_optimality(address, policy.samples, p, votes)
        number = count_candidates(form, policy, float(address[3]), p, precisions, votes)
    return number


@specialised(spliced)
def choose_candidate(
    form: Constant, number: int, policy: PolicySettings, address: Address, p: FloatArray, votes: IntArray
) -> int:
    """Return the mode of N candidates drawn from the estimate p."""
    if form == kinds.CHALLENGER or form == kinds.ANYTIME:
        # these counts reach hundreds: where no other arm can win, who gets how many votes is not worth the draw
        arm = sure_mode(number, p)
        if arm < 0:
            arm = mode_of_candidates(address, number, p, policy.first_of_ties, votes)
    else:
        arm = mode_of_candidates(address, number, p, policy.first_of_ties, votes)
    return arm


@specialised(spliced)
def count_candidates(
    form: Constant, policy: PolicySettings, time: float, p: FloatArray, precisions: FloatArray, votes: IntArray
) -> int:
    """Return N from an estimate p; where p came from M samples, votes holds their counts."""
    if form == kinds.TABLE:
        number = number_of_candidates(log_false_alarm_of_counts(policy.table, votes), policy.rate, policy.cap)
    elif form == kinds.CHALLENGER:
        number = number_by_challenger(policy.horizon - time, p, precisions, UNTIL_HORIZON, policy.cap)
    elif form == kinds.ANYTIME:
        number = number_by_challenger(time, p, precisions, AT_ANY_TIME, policy.cap)
    elif form == kinds.DOUBT:
        number = number_by_doubt(policy.horizon - time, p, policy.cap)
    else:
        number = number_of_candidates(log_false_alarm(policy.false_alarm_rule, p), policy.rate, policy.cap)
    return number


@inlined
def _double_sampling_of_two(policy: PolicySettings, address: Address, p: FloatArray) -> tuple[int, int]:
    """Return the same for two arms, where the table holds N by how many of the M samples favour the first arm.

    Written out, because it is the inner loop of the most common simulation.
    """
    # both at once: neither waits for the other
    first, second = uniform(address, OPTIMALITY, np.uint64(0)), uniform(address, CANDIDATES, np.uint64(0))
    samples = policy.samples
    count = binomial_from_uniform(first, samples, p[0])
    p[0] = count / samples
    p[1] = (samples - count) / samples
    number = int(policy.table[count, 0])
    twice = 2 * binomial_from_uniform(second, number, p[0])
    if twice == number and not policy.first_of_ties:
        return int(uniform(address, TIES, np.uint64(0)) * 2.0), number
    return 0 if twice >= number else 1, number


@specialised(spliced)
def double_sampling_recorded(
    form: Constant, policy: PolicySettings, address: Address, p: FloatArray, precisions: FloatArray, votes: IntArray,
    propensities: FloatArray,
) -> tuple[int, int]:  # fmt: skip
    """Return the arm and N, and fill the propensities where there are two arms.

    The propensities of more arms need work space of a size that depends on N: entry_points.mode_propensities.
    """
    number = estimate_and_count(form, policy, address, p, precisions, votes)
    arm = mode_of_candidates(address, number, p, policy.first_of_ties, votes)
    if p.size == 2:
        fill_propensities_of_two(number, p, policy.first_of_ties, propensities)
    return arm, number
