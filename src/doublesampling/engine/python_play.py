"""Realizations in plain Python, for policies, beliefs and worlds of your own, on the random numbers of the kernels."""

import copy
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from doublesampling.beliefs import OwnBelief
from doublesampling.engine.packed import PackedProblem
from doublesampling.engine.worlds import CompiledStage, OwnStage, Stage
from doublesampling.errors import DoubleSamplingError
from doublesampling.evidence import BeliefEvidence, Played
from doublesampling.given import check_choice
from doublesampling.policies import Choice, Oracle, is_ours
from doublesampling.rules.bundles import ARM, CANDIDATES, CORRECT, NUMBER, OBSERVED, P_COLUMN, P_ROW, PAID, REGRET

FloatArray = NDArray[np.float64]


class Pair(NamedTuple):
    """A problem and a policy that are played in Python."""

    world: Any
    """A bandit of ours as it is packed, or a world of somebody's own."""
    belief: Any
    policy: Any

    @property
    def arms(self) -> int:
        """The number of arms."""
        return int(self.belief.arms)


def _stage(pair: Pair) -> Stage:
    if isinstance(pair.world, PackedProblem):
        return CompiledStage(pair.world)
    return OwnStage(pair.world)


def play_realization(pair: Pair, words: NDArray[np.uint64], horizon: int) -> FloatArray:
    """Return one realization, float array (4 + 2 + arm, time): regret, observed, correct, N, p; then arm and reward."""
    arms, policy, belief = pair.arms, copy.deepcopy(pair.policy), pair.belief
    found = np.empty((P_ROW + arms + 2, horizon))
    stage, state = _stage(pair), belief.prior()
    takes_context = belief.dimension is not None or isinstance(belief, OwnBelief)
    counts, sums, last = np.zeros(arms, dtype=np.int64), np.zeros(arms), None
    regret = observed = 0.0
    for t in range(horizon):
        words[3] = t + 1
        context, means = stage.show(words)
        taken = context if takes_context else None
        laws = belief.marginals(state, taken)
        played = Played(_frozen(counts), _frozen(sums), last)
        evidence = BeliefEvidence(laws, _frozen(words), t + 1, belief, state, context, played)
        choice = _choice(policy, evidence, words, means)
        arm = choice.arm
        paid = stage.pay(arm, words)
        best = float(np.max(means))
        regret += best - means[arm]
        observed += best - paid
        found[REGRET, t], found[OBSERVED, t] = regret, observed
        found[CORRECT, t], found[NUMBER, t] = means[arm] == best, choice.candidates
        found[P_ROW : P_ROW + arms, t] = choice.probability_optimal
        found[-2:, t] = arm, paid
        state = belief.update(state, arm, paid, taken)
        counts[arm] += 1
        sums[arm] += paid
        last = (arm, paid)
    return found


def _frozen(array: NDArray[Any]) -> NDArray[Any]:
    """Return a copy that a policy may keep and cannot change."""
    copied = array.copy()
    copied.setflags(write=False)
    return copied


def _choice(policy: Any, evidence: BeliefEvidence, words: NDArray[np.uint64], means: FloatArray) -> Choice:
    """Return a checked choice; a mistake in it is told with its realization and step."""
    try:
        answer = int(np.argmax(means)) if isinstance(policy, Oracle) else policy.choose(evidence)
        return (
            answer
            if isinstance(answer, Choice) and is_ours(policy)
            else check_choice(policy, answer, evidence, with_optimality=False)
        )
    except DoubleSamplingError as problem:
        raise type(problem)(f"Realization {words[2]}, step {words[3]}: {problem}") from None


def play_realizations(pair: Pair, address: tuple[int, int, int], count: int, horizon: int) -> list[FloatArray]:
    """Return so many realizations from a first one on; address : seed, number of the bandit, first realization."""
    seed, bandit, first = address
    return [
        play_realization(pair, np.array([seed, bandit, first + r, 1], dtype=np.uint64), horizon) for r in range(count)
    ]


def kept_steps(realization: FloatArray, arms: int) -> FloatArray:
    """Return the trajectory of a realization as kernels keep it, float array (time, 3 + arm)."""
    kept = np.empty((realization.shape[1], P_COLUMN + arms))
    kept[:, ARM], kept[:, PAID] = realization[-2], realization[-1]
    kept[:, CANDIDATES] = realization[NUMBER]
    kept[:, P_COLUMN:] = realization[P_ROW : P_ROW + arms].T
    return kept
