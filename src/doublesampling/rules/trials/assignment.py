"""Which arm the next participant gets: by the policy, or from its shares within the limits of an allocation."""

from doublesampling.rules import laws, two_parameter_laws
from doublesampling.rules.allocate import allocate
from doublesampling.rules.bundles import Policy, Scratch
from doublesampling.rules.choose import kinds
from doublesampling.rules.choose.choose import choose
from doublesampling.rules.choose.shares import fill_policy_shares
from doublesampling.rules.compiled import rule, spliced
from doublesampling.rules.draws import Address
from doublesampling.rules.looks import from_draws
from doublesampling.rules.looks.look import gather
from doublesampling.rules.permuted_blocks import compose_block, draw_arm, fill_block, fill_burn_in
from doublesampling.rules.specialise import Constant, specialised
from doublesampling.rules.steps import student_optimality
from doublesampling.rules.trials.bundles import DIRECT, EQUAL, TrialDesign, TrialSpace, TrialState


@specialised(spliced)
def fill_shares_or_choose(
    sharing: Constant, kind: Constant, form: Constant, law: Constant, address: Address, policy: Policy,
    design: TrialDesign, state: TrialState, scratch: Scratch, space: TrialSpace,
) -> int:  # fmt: skip
    """Fill the shares of all arms; where the policy decides directly, return its arm instead (else -1).

    Dropped arms have no share: the policy sees those that remain.
    """
    known, look = state.known, space.look
    count = gather(known, look)
    chosen = -1
    if sharing == EQUAL:
        for a in range(state.shares.size):
            state.shares[a] = 1.0 / count if known.active[a] else 0.0
    elif count == 1:
        for a in range(state.shares.size):
            state.shares[a] = 1.0 if known.active[a] else 0.0
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
            for a in range(state.wanted.size):
                state.wanted[a] = 0.0
            found = state.shares[:count]
            fill_policy_shares(kind, form, law, policy, address, part, space.modes, found)
            for i in range(count):
                state.wanted[look.which[i]] = found[i]
            allocate(state.wanted, known.active, design.limits, state.shares, state.held)
    return chosen


@rule
def draw_from_shares(address: Address, design: TrialDesign, state: TrialState) -> int:
    """Draw an arm from the current shares, in permuted blocks where the design has some."""
    if design.block <= 0:
        return draw_arm(address, state.shares)
    total = 0
    for a in range(state.left.size):
        total += state.left[a]
    if total == 0:
        compose_block(address, state.shares, design.block, state.left)
    fill_block(state.left, state.wanted)
    arm = draw_arm(address, state.wanted)
    state.left[arm] -= 1
    return arm


@rule
def draw_in_burn_in(address: Address, design: TrialDesign, state: TrialState) -> int:
    """Draw an arm of the burn-in; -1 where it is over."""
    if design.burn_in > 0 and fill_burn_in(state.assigned, state.known.active, design.burn_in, state.wanted):
        return draw_arm(address, state.wanted)
    return -1
