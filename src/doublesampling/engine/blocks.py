"""Blocks of realizations: how one is played, and how their moments are merged, always in the same order."""

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from doublesampling.engine.families import FAMILIES
from doublesampling.engine.plan import BLOCK, Plan
from doublesampling.engine.python_play import Pair, kept_steps, play_realizations
from doublesampling.rules import bundles
from doublesampling.rules.bundles import P_COLUMN, P_ROW, REGRET, SQUARED_ROWS, Record

FloatArray = NDArray[np.float64]


class Unit(NamedTuple):
    """A block's place in a simulation."""

    problem: int
    policy: int
    block: int


class Block(NamedTuple):
    """What a block of realizations left behind.

    means : float array (4 + arm, column), of regret, observed regret, whether the best arm was played, N, and p.
    squares : float array (2, column), squared deviations of the first two. final : float array (realization).
    kept : float array (realization, time, 3 + arm) of arm, reward, N and p; or empty.
    """

    means: FloatArray
    squares: FloatArray
    final: FloatArray
    kept: FloatArray


def block_size(plan: Plan, block: int) -> int:
    """Return how many realizations a block holds: all the same, but for the last."""
    return min(BLOCK, plan.realizations - block * BLOCK)


def play_block(plan: Plan, unit: Unit) -> Block:
    """Play one block on this thread."""
    problem, policy = plan.problems[unit.problem], plan.policies[unit.policy]
    count = block_size(plan, unit.block)
    if not (problem.compiled and policy.compiled):
        return _play_in_python(plan, unit, count)
    arms, times = problem.arms, plan.times.size
    family = FAMILIES[problem.family]
    record = Record(
        means=np.zeros((P_ROW + arms, times)),
        squares=np.zeros((SQUARED_ROWS, times)),
        final=np.empty(count),
        kept=np.empty((count, plan.horizon, P_COLUMN + arms) if plan.trajectories else (0, 0, P_COLUMN + arms)),
    )
    place = bundles.Block(np.uint64(plan.seed), np.uint64(unit.problem), unit.block * BLOCK, plan.horizon, plan.columns)
    scratch = family.scratch(problem, policy)
    if plan.late is None:
        settings = policy.settings_for(problem)
        family.kernel(problem, policy)(place, problem.world, problem.prior, settings, record, scratch)
    else:
        settings = policy.settings if plan.late.allocation is not None else policy.settings_for(problem)
        space = plan.late.space(problem, policy, plan.horizon)
        plan.late.kernel(problem, policy)(place, problem.world, problem.prior, settings, record, scratch, space)
    return Block(*record)


def _play_in_python(plan: Plan, unit: Unit, count: int) -> Block:
    """Play one block whose policy, belief or world is somebody's own."""
    problem, arms = plan.problems[unit.problem], plan.problems[unit.problem].arms
    world = problem.world if problem.family == "own" else problem
    pair = Pair(world, problem.belief, plan.policies[unit.policy].policy)
    played = play_realizations(pair, (plan.seed, unit.problem, unit.block * BLOCK), count, plan.horizon)
    rows = np.stack(played)[:, : P_ROW + arms, plan.times - 1]
    means = rows.mean(axis=0)
    squares = ((rows[:, :SQUARED_ROWS] - means[:SQUARED_ROWS]) ** 2).sum(axis=0)
    final = np.array([one[REGRET, -1] for one in played])
    kept = (
        np.stack([kept_steps(one, arms) for one in played]) if plan.trajectories else np.empty((0, 0, P_COLUMN + arms))
    )
    return Block(means, squares, final, kept)


def play_units(plan: Plan, units: list[Unit]) -> list[Block]:
    """Play several blocks, one after another: what a worker of a cluster is given."""
    return [play_block(plan, unit) for unit in units]


@dataclass
class Moments:
    """The moments of a problem and policy, merged block by block in the order of the blocks (Chan's formula)."""

    count: int = 0
    means: FloatArray = field(default_factory=lambda: np.empty(0))
    squares: FloatArray = field(default_factory=lambda: np.empty(0))
    final: list[FloatArray] = field(default_factory=list)
    kept: list[FloatArray] = field(default_factory=list)
    _early: dict[int, Block] = field(default_factory=dict)
    _next: int = 0

    def add(self, index: int, block: Block) -> None:
        """Merge a block, or keep it until those before it have come: the order of arrival never matters."""
        self._early[index] = block
        while self._next in self._early:
            self._merge(self._early.pop(self._next))
            self._next += 1

    def _merge(self, block: Block) -> None:
        size = block.final.size
        total = self.count + size
        if self.count == 0:
            self.means, self.squares = block.means.copy(), block.squares.copy()
        else:
            change = block.means - self.means
            self.means += change * (size / total)
            self.squares += block.squares + change[:SQUARED_ROWS] ** 2 * (self.count * size / total)
        self.count = total
        self.final.append(block.final)
        if block.kept.size:
            self.kept.append(block.kept)
