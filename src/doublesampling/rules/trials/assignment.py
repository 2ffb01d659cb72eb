"""Which arm the next participant gets: by the policy, or from its shares within the limits of an allocation."""

import numpy as np
from numpy.typing import NDArray

from doublesampling.rules import laws, two_parameter_laws
from doublesampling.rules.allocate import Limits, allocate
from doublesampling.rules.bundles import Policy, Scratch
from doublesampling.rules.choose import kinds
from doublesampling.rules.choose.choose import choose
from doublesampling.rules.choose.shares import fill_policy_shares
from doublesampling.rules.compiled import rule, spliced
from doublesampling.rules.draws import Address
from doublesampling.rules.looks import from_draws
from doublesampling.rules.looks.bundles import Known
from doublesampling.rules.looks.look import gather
from doublesampling.rules.permuted_blocks import compose_block, draw_arm, fill_block, fill_burn_in
from doublesampling.rules.specialise import Constant, specialised
from doublesampling.rules.steps import student_optimality
from doublesampling.rules.trials.bundles import DIRECT, TrialSpace

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]


@specialised(spliced)
def fill_shares_or_choose(
    sharing: Constant, kind: Constant, form: Constant, law: Constant, address: Address, policy: Policy,
    known: Known, limits: Limits, scratch: Scratch, space: TrialSpace,
) -> int:  # fmt: skip
    """Fill the shares of all arms; where the policy decides directly, return its arm instead (else -1).

    Dropped arms have no share: the policy sees those that remain.
    """
    look, shares = space.look, space.shares
    count = gather(known, look)
    chosen = -1
    if count == 1:
        for a in range(shares.size):
            shares[a] = 1.0 if known.active[a] else 0.0
        chosen = look.which[0]
    else:
        for i in range(count):
            scratch.values[i] = scratch.truth[look.which[i]]
            scratch.parameters[i, 0] = scratch.priors[look.which[i], 0]
            scratch.parameters[i, 1] = scratch.priors[look.which[i], 1]
        part = Scratch(  # only an oracle reads the truth, which is where its values go
            look.parameters[:count], scratch.parameters[:count], scratch.values[:count], scratch.p[:count],
            scratch.votes[:count], scratch.values[:count], scratch.starts[:count], look.survey, look.panel,
            scratch.samples[:, :count], scratch.tally[: scratch.tally.shape[0] - known.active.size + count, :count],
            scratch.partial, scratch.state,
        )  # fmt: skip
        if law == laws.SAMPLED:
            for m in range(known.draws.shape[0]):
                for i in range(count):
                    scratch.samples[m, i] = known.draws[m, look.which[i]]
        if kind in (kinds.DOUBLE_SAMPLING, kinds.TOP_TWO, kinds.EPSILON_THOMPSON) or (
            kind == kinds.THOMPSON and sharing != DIRECT
        ):
            if law == laws.SAMPLED:
                from_draws.fill_best(known.draws, look.which, part.p)
            elif law == laws.STUDENT:
                student_optimality(part.parameters, part.p, look.survey, look.panel)
            else:
                two_parameter_laws.fill_optimality(law, part.parameters, part.p, look.survey, look.panel)
        if sharing == DIRECT:
            place, _ = choose(kind, form, law, policy, address, part)
            chosen = look.which[place]
        else:
            for a in range(shares.size):
                space.wanted[a] = 0.0
            found = shares[:count]
            fill_policy_shares(kind, form, law, policy, address, part, space.modes, found)
            for i in range(count):
                space.wanted[look.which[i]] = found[i]
            allocate(space.wanted, known.active, limits, shares, space.held)
    return chosen


@rule
def share_equally(active: BoolArray, shares: FloatArray) -> None:
    """The same share for all remaining arms."""
    count = 0
    for a in range(active.size):
        count += active[a]
    for a in range(active.size):
        shares[a] = 1.0 / count if active[a] else 0.0


@rule
def draw_from_shares(address: Address, block: int, shares: FloatArray, left: IntArray, wanted: FloatArray) -> int:
    """Draw an arm from its share, in permuted blocks where they have a length; left : slots of the current one."""
    if block <= 0:
        return draw_arm(address, shares)
    total = 0
    for a in range(left.size):
        total += left[a]
    if total == 0:
        compose_block(address, shares, block, left)
    fill_block(left, wanted)
    arm = draw_arm(address, wanted)
    left[arm] -= 1
    return arm


@rule
def draw_in_burn_in(address: Address, per_arm: int, assigned: IntArray, active: BoolArray, wanted: FloatArray) -> int:
    """Draw an arm of the burn-in; -1 where it is over."""
    if per_arm > 0 and fill_burn_in(assigned, active, per_arm, wanted):
        return draw_arm(address, wanted)
    return -1


@rule
def end_block_of_dropped(active: BoolArray, left: IntArray) -> None:
    """End a block that has slots of a dropped arm."""
    for a in range(active.size):
        if not active[a] and left[a] > 0:
            for b in range(active.size):
                left[b] = 0
