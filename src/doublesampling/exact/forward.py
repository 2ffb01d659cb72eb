"""The law of the posterior state under a policy: one forward pass over all states, which serves every theta.

With g the sum over all paths to a state of the product of the propensities,

    P_theta(state) = g theta1^s1 (1 - theta1)^f1 theta2^s2 (1 - theta2)^f2.

g grows beyond all numbers, so the pass carries the probability under uniform priors instead: g B(1 + s1, 1 + f1)
B(1 + s2, 1 + f2). It is never much smaller than that under any theta.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from doublesampling.allocation import Allocation
from doublesampling.arm_shares import Arms
from doublesampling.checks import shown
from doublesampling.engine.families.beta import FAMILY
from doublesampling.engine.families.common import PackedPolicy, PackedProblem
from doublesampling.errors import SettingError
from doublesampling.exact.kernels import Layer, advance, fill_corner, share_kernel, split
from doublesampling.exact.layers import Threads, check_room, free_memory, layer_size
from doublesampling.exact.prior import exchangeable, track_of
from doublesampling.exact.trial_kernels import limit_shares, share_space
from doublesampling.policies import CompiledPolicy, ThompsonSampling
from doublesampling.rules import laws
from doublesampling.rules.allocate import FREE, Limits
from doublesampling.rules.bundles import BernoulliWorld, BetaPrior, Scratch
from doublesampling.rules.choose import kinds
from doublesampling.rules.compiled import plain
from doublesampling.rules.two_arm_states import offset

FloatArray = NDArray[np.float64]

_WITHOUT_LAW = {
    kinds.ORACLE: "plays the truly best arm, which no posterior knows",
    kinds.LIN_UCB: "is for linear beliefs",
}


@dataclass(frozen=True, eq=False)
class StateLaw:
    """How probable each posterior state after ``time`` observations is, under uniform priors."""

    time: int
    mirrored: bool
    weight: FloatArray

    @property
    def size(self) -> int:
        """How many states are stored."""
        return layer_size(self.time, self.mirrored)

    def exchanged(self, first: int) -> bool:
        """Whether a block is stored with its arms exchanged."""
        return self.mirrored and first > self.time - first

    def blocks(self) -> Iterator[tuple[int, FloatArray]]:
        """Yield n1 and the probabilities of its states, float array (s1, s2), for every n1 from 0 to ``time``."""
        for n1 in range(self.time + 1):
            stored = self.time - n1 if self.exchanged(n1) else n1
            start = plain(offset)(self.time, stored)
            shape = (stored + 1, self.time - stored + 1)
            found = self.weight[start : start + shape[0] * shape[1]].reshape(shape)
            yield n1, (found if stored == n1 else found.T)


def check_exact(policy: object) -> CompiledPolicy:
    """Return a policy whose propensities are known in every state, or say why there are none."""
    if not isinstance(policy, CompiledPolicy):
        raise SettingError(
            f"Exact computations know the policies of this package, got {shown(policy)}. Use simulate for others."
        )
    if policy.kind in _WITHOUT_LAW:
        raise SettingError(f"{policy!r} {_WITHOUT_LAW[policy.kind]}. Choose another policy.")
    if policy.rule().settings.samples > 0:
        name = type(policy).__name__
        raise SettingError(
            f"{policy!r} draws posterior samples, and its propensities depend on them. Write {name}(samples=None)."
        )
    return policy


def check_allocation(allocation: Allocation | None, arms: Arms) -> tuple[Limits | None, int]:
    """Return limits on the shares of two arms and the burn-in, or refuse rules that look at more than the state."""
    if allocation is None:
        return None, 0
    if allocation.block is not None or allocation.at_looks:
        name = "permuted blocks (block)" if allocation.block is not None else "shares renewed at looks (update)"
        raise SettingError(
            f"With {name} a share depends on an earlier state, not only on the present one: there is no exact "
            "computation. Leave it out, or simulate the trial."
        )
    return allocation.limits(arms), allocation.burn_in


def _stored(layer: Layer) -> slice:
    """Return where the states of some blocks are stored."""
    return slice(plain(offset)(layer.time, layer.low), plain(offset)(layer.time, layer.high))


def _treats_alike(limits: Limits) -> bool:
    """Tell whether both arms have the same limits."""
    same = all(bool(part[0] == part[1]) for part in (limits.minimum, limits.cap))
    return same and bool(np.isnan(limits.fixed).all()) and limits.control_rule == FREE


class Forward:
    """The forward pass of one policy with one belief: ``run`` goes from layer to layer.

    Without a policy both arms are played alike. ``mirrored=False`` stores all states where half of them would do.
    """

    def __init__(
        self,
        policy: object | None,
        prior: FloatArray,
        horizon: int,
        threads: int | None = None,
        allocation: Allocation | None = None,
        *,
        mirrored: bool = True,
        arms: Arms = 2,
    ) -> None:
        self.equal = policy is None
        self.policy = check_exact(ThompsonSampling() if policy is None else policy)
        self.prior, self.horizon, self.threads = prior, horizon, threads
        self.form, self.settings = self.policy.rule()
        table = self.policy.table(prior)
        if table is not None:
            self.settings = self.settings._replace(table=table)
        self.limits, self.burn_in = check_allocation(allocation, arms)
        self.mirrored = mirrored and exchangeable(prior) and not self.settings.first_of_ties
        if self.limits is not None:
            self.mirrored = self.mirrored and _treats_alike(self.limits)
        self.corner = np.zeros((horizon + 1, horizon + 1, 2))
        self.corner[0, 0] = track_of(prior)
        fill_corner(prior, self.corner)

    def check_room(self) -> None:
        """Refuse horizons whose layers do not fit into memory."""

        def room(t: int) -> float:
            return 8.0 * (layer_size(t, self.mirrored) + 2 * layer_size(t - 1, self.mirrored) + 2 * (t + 1) ** 2)

        check_room(self.horizon, room, free_memory(), "The law of all posterior states")

    def scratch(self) -> Scratch:
        """Return work space for one thread."""
        prior = BetaPrior(self.prior[:, 0].copy(), self.prior[:, 1].copy(), self.corner[0, 0])
        problem = PackedProblem("beta", laws.BETA, 2, 1, BernoulliWorld(np.zeros(2)), prior, counts_wins=True)
        packed = PackedPolicy(self.policy.kind, self.form, self.settings, np.empty((0, 1)), self.policy)
        found = FAMILY.scratch(problem, packed)
        found.priors[:] = self.prior
        return found

    def run(self, look: Callable[[StateLaw], None] | None = None) -> StateLaw:
        """Return the law of the state at the horizon; ``look`` sees, and may change, that of every layer before."""
        self.check_room()
        largest = layer_size(self.horizon, self.mirrored)
        weight, after = np.zeros(largest), np.empty(largest)
        share = np.empty(layer_size(self.horizon - 1, self.mirrored))
        weight[0] = 1.0
        fill = share_kernel(self.policy.kind, self.form)
        with Threads(self.threads, lambda: (self.scratch(), share_space())) as team:
            for time in range(self.horizon):
                if look is not None:
                    look(StateLaw(time, self.mirrored, weight))

                def decide(layer: Layer, space: Any, weight: FloatArray = weight) -> None:
                    if self.equal:
                        share[_stored(layer)] = 0.5
                    else:
                        fill(layer, self.prior, self.corner, self.settings, weight, share, space[0])
                    if self.limits is not None:
                        limit_shares(layer, self.limits, self.burn_in, weight, share, space[1])
                    here = _stored(layer)
                    split(here.start, here.stop, weight, share)

                def pay(layer: Layer, _: Any, weight: FloatArray = weight, after: FloatArray = after) -> None:
                    advance(layer, share, weight, after)

                team.over(time, self.mirrored, decide)
                team.over(time + 1, self.mirrored, pay)
                weight, after = after, weight
        return StateLaw(self.horizon, self.mirrored, weight)
