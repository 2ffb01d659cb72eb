"""The exact probability with which a policy would play each arm, before an allocation changes it."""

import numpy as np
from numpy.typing import NDArray

from doublesampling.rules import laws
from doublesampling.rules.bundles import PolicySettings, Scratch
from doublesampling.rules.choose import kinds
from doublesampling.rules.choose.baselines import SURE
from doublesampling.rules.choose.candidates import leader
from doublesampling.rules.choose.choose import fill_precisions, fill_tally, fill_values
from doublesampling.rules.choose.double_sampling import count_candidates, estimate_and_count
from doublesampling.rules.choose.information_directed import directed_choice
from doublesampling.rules.choose.mode import can_win
from doublesampling.rules.choose.propensities import (
    ModeScratch,
    fill_propensities_of_many,
    fill_propensities_of_two,
    transform_size,
)
from doublesampling.rules.compiled import rule, spliced
from doublesampling.rules.draws import Address
from doublesampling.rules.specialise import Constant, specialised

FloatArray = NDArray[np.float64]


@rule
def share_largest(values: FloatArray, first_of_ties: bool, out: FloatArray) -> None:
    """All to the largest value; equal ones share it, or the first takes it."""
    highest, ties = values[0], 0
    for a in range(values.size):
        highest = max(highest, values[a])
    for a in range(values.size):
        ties += values[a] == highest
    found = False
    for a in range(values.size):
        out[a] = 0.0
        if values[a] == highest:
            out[a] = 1.0 / ties
            if first_of_ties:
                out[a] = 0.0 if found else 1.0
            found = True


@rule
def share_top_two(p: FloatArray, share: float, out: FloatArray) -> None:
    """Top-two sampling: each arm first, and each other one after it, but where nobody challenges."""
    for a in range(p.size):
        out[a] = 0.0
    for first in range(p.size):
        rest = 0.0
        for a in range(p.size):
            if a != first:
                rest += p[a]
        kept = share if rest >= SURE else 1.0
        out[first] += p[first] * kept
        if kept < 1.0:
            for a in range(p.size):
                if a != first:
                    out[a] += p[first] * (1.0 - kept) * p[a] / rest


@rule
def share_modes(number: int, p: FloatArray, first_of_ties: bool, space: ModeScratch, out: FloatArray) -> None:
    """P(arm is the mode of N draws from Cat(p)); 0 for arms that cannot be. out has room for all arms."""
    if number == 1:
        for a in range(p.size):
            out[a] = min(p[a], 1.0)
        return
    count, largest, rest = 0, p[leader(p)], 0.0
    for a in range(p.size):
        out[a] = 0.0
        if p[a] > 0.0 and can_win(number, p[a], largest, p.size):
            space.share[count] = p[a]
            out[a] = 1.0  # until its propensity is known
            count += 1
        else:
            rest += p[a]
    share, found = space.share[:count], space.found[:count]
    if count == 1:
        found[0] = 1.0
    elif count == 2 and rest == 0.0:
        fill_propensities_of_two(number, share, first_of_ties, found)
    else:
        size = transform_size(number)
        points = size // 2 + 1
        for i in range(count):
            found[i] = 0.0
            space.below[i] = 0.0
            for m in range(points):
                space.lower[i, m] = 0.0
        part = ModeScratch(
            space.root[:size], space.turn[:points], space.phase[:points], space.running[:points],
            space.lower[:count, :points], space.before[:count, :points], space.term[:count], space.below[:count],
            space.share, space.found,
        )  # fmt: skip
        fill_propensities_of_many(number, share, first_of_ties, part, found)
    i = 0
    for a in range(p.size):
        if out[a] > 0.0:
            out[a] = min(max(found[i], 0.0), 1.0)  # a difference of nearly equal numbers may end just outside
            i += 1


@specialised(spliced)
def fill_policy_shares(
    kind: Constant, form: Constant, law: Constant, policy: PolicySettings, address: Address, scratch: Scratch,
    space: ModeScratch, out: FloatArray,
) -> None:  # fmt: skip
    """The probability with which a policy would play each arm, given its samples; scratch as in choose.

    p is filled where the policy looks at it, and for Thompson sampling.
    """
    if kind == kinds.DOUBLE_SAMPLING:
        fill_precisions(form, law, scratch.parameters, scratch.values)
        if law == laws.SAMPLED:  # p is the estimate already
            number = count_candidates(form, policy, float(address[3]), scratch.p, scratch.values, scratch.votes)
        else:
            number = estimate_and_count(form, policy, address, scratch.p, scratch.values, scratch.votes)
        share_modes(number, scratch.p, policy.first_of_ties, space, out)
    elif kind == kinds.THOMPSON:
        for a in range(out.size):
            out[a] = scratch.p[a]
    elif kind == kinds.TOP_TWO:
        share_top_two(scratch.p, policy.setting, out)
    elif kind == kinds.INFORMATION_DIRECTED:
        fill_tally(form, law, address, scratch)
        directed_choice(address, scratch.tally)
        for a in range(out.size):
            out[a] = scratch.tally[scratch.tally.shape[0] - 1, a]
    else:
        fill_values(kind, form, law, policy, address, scratch)
        share_largest(scratch.values, policy.first_of_ties, out)
        if kind in (kinds.EPSILON_GREEDY, kinds.GITTINS):
            for a in range(out.size):
                out[a] = policy.setting / out.size + (1.0 - policy.setting) * out[a]
        elif kind == kinds.EPSILON_THOMPSON:
            for a in range(out.size):
                out[a] = policy.setting * scratch.p[a] + (1.0 - policy.setting) * out[a]
