"""Many decisions at once: one compiled loop for double sampling and Thompson sampling, on all cores."""

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from doublesampling import checks, html
from doublesampling.allocation import Allocation, check_allocation
from doublesampling.assignment import check_known
from doublesampling.beliefs import AnyBelief, LinearGaussian
from doublesampling.beliefs.contexts import TakesContext
from doublesampling.beliefs.pairs import Pairs
from doublesampling.decision import Address, Decision, check_seed, make_decision
from doublesampling.errors import SettingError, StateError
from doublesampling.evidence import BeliefEvidence
from doublesampling.features import ContextsLike
from doublesampling.given import check_belief, check_policy
from doublesampling.policies import DoubleSampling, Policy, ThompsonSampling
from doublesampling.rules import assign, entry_points, many

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

_ROWS = 4096  # decisions that a thread takes at a time


@dataclass(frozen=True, eq=False)
class Decisions:
    """Several decisions; arrays are (decision) or (decision, arm). ``decisions[i]`` is a Decision.

    >>> import doublesampling as ds
    >>> belief = ds.BetaBernoulli(arms=2)
    >>> found = ds.decide_many(ds.DoubleSampling(), belief, [belief.prior()] * 3, seed=1)
    >>> len(found), found.arm.shape, found.propensities.shape
    (3, (3,), (3, 2))
    >>> bool(found[0].arm == found.arm[0])
    True
    """

    arm: IntArray
    probability_optimal: FloatArray
    candidates: IntArray
    votes: IntArray
    propensities: FloatArray
    words: NDArray[np.uint64]
    """The random address of each decision, (decision, 4)."""
    policy: Policy
    allocation: Allocation | None = None

    def __len__(self) -> int:
        return int(self.arm.size)

    def _repr_html_(self) -> str:
        """A table for a notebook."""
        rows = zip(
            range(len(self)), self.arm, self.candidates, self.probability_optimal, self.propensities, strict=True
        )
        headings = ["decision", "arm", "N", "P(best)", "propensities"]
        return html.block(html.table(rows, headings, caption=f"{len(self):,} decisions"), html.line(repr(self.policy)))

    def __getitem__(self, i: int) -> Decision:
        address = Address(*(int(word) for word in self.words[i]))
        return Decision(
            int(self.arm[i]), self.probability_optimal[i].copy(), int(self.candidates[i]), self.votes[i].copy(),
            self.propensities[i].copy(), address, self.policy, self.allocation,
        )  # fmt: skip


def decide_many(
    policy: Policy,
    belief: AnyBelief,
    states: Any,
    contexts: ContextsLike | None = None,
    *,
    seed: int | None = None,
    times: ArrayLike | None = None,
    allocation: Allocation | None = None,
) -> Decisions:
    """Decide many times at once, from several states, or from one state at several contexts.

    ``states`` is a list of states, one state, or one whose arrays have a first dimension (decision). ``contexts`` is an
    array (decision, entry), or records or a DataFrame where the belief has features. ``times`` are the numbers of the
    decisions, counted from 1; by default one more than the observations of each state. Decision i draws its luck at the
    address (seed, 0, i, time): each has its own. ``allocation`` limits the propensities, without a burn-in and without
    blocks, which depend on earlier decisions.

    >>> import numpy as np
    >>> import doublesampling as ds
    >>> belief = ds.BetaBernoulli(arms=2)
    >>> state = belief.update_batch(belief.prior(), arms=[0, 0, 1, 1], rewards=[0, 0, 1, 1])
    >>> found = ds.decide_many(ds.ThompsonSampling(), belief, [state] * 1000, seed=1)
    >>> bool(found.arm.mean() > 0.9), found.propensities.shape
    (True, (1000, 2))
    """
    policy, belief = check_policy(policy), check_belief(belief)
    contexts = belief.as_numbers(contexts) if isinstance(belief, TakesContext) and contexts is not None else contexts
    listed = list(states) if isinstance(states, Sequence) else None
    if listed is not None and not listed:
        raise StateError("decide_many needs a state, got an empty list.")
    parameters, observations = _parameters(belief, states if listed is None else listed, contexts)
    count = len(observations) if parameters is None else len(parameters)
    when = observations + 1 if times is None else _check_times(times, count)
    words = np.zeros((count, 4), dtype=np.uint64)
    words[:, 0], words[:, 2], words[:, 3] = check_seed(seed), np.arange(count), when
    if parameters is None or not isinstance(policy, DoubleSampling | ThompsonSampling):
        made = _one_by_one(policy, belief, states if listed is None else listed, contexts, words)
    else:
        made = _at_once(policy, int(belief.law), parameters, words)  # type: ignore[attr-defined]
    return made if allocation is None else _within_allocation(made, allocation)


def _within_allocation(made: Decisions, allocation: object) -> Decisions:
    """Return decisions whose arms are drawn within an allocation."""
    given = check_allocation(allocation)
    if given.needs_past:
        raise SettingError(
            f"{given!r} depends on earlier decisions, and decide_many makes each on its own. Use decide with "
            "assigned=, or Experiment."
        )
    check_known(made.propensities, made.policy)
    shares = assign.shares_of_many(made.propensities, given.limits(made.propensities.shape[1]))
    return replace(made, arm=assign.draw_arms(shares, made.words), propensities=shares, allocation=given)


def _check_times(times: ArrayLike, count: int) -> IntArray:
    given = checks.array("times", times, error=SettingError)
    if given.shape != (count,) or (given < 1).any() or (given != np.floor(given)).any():
        raise SettingError(f"times must be {count} whole numbers of at least 1, got {checks.shown(times)}.")
    return given.astype(np.int64)


def _parameters(belief: Any, states: Any, contexts: Any) -> tuple[FloatArray | None, IntArray]:
    """Return marginals, float array (decision, arm, 3), where they can be had at once, and observations (decision)."""
    if isinstance(belief, Pairs):
        checks.no_context(contexts)
        if isinstance(states, list):
            for state in states:
                belief.check_state(state)
            pairs = [np.stack([state.pair[k] for state in states]) for k in (0, 1)]
            counts = np.stack([state.counts for state in states])
        else:
            pairs, counts = [np.atleast_2d(part) for part in states.pair], np.atleast_2d(states.counts)
        if pairs[0].shape[1] != belief.arms:
            raise StateError(f"The states must have {belief.arms} arms, got arrays of shape {pairs[0].shape}.")
        return np.stack([*pairs, np.zeros_like(pairs[0])], axis=-1), counts.sum(axis=1)
    if isinstance(belief, LinearGaussian) and not isinstance(states, list):
        rows = np.atleast_2d(np.asarray(contexts)) if contexts is not None else contexts
        shown = belief.check_contexts(rows, 1 if rows is None else len(rows))
        out = np.empty((len(shown), belief.arms, 3))
        many.fill_marginals_at(states.mean, states.root, states.alpha, states.beta, belief.known_noise, shown, out)
        return out, np.full(len(shown), states.observations)
    shown_count = 1 if contexts is None else len(np.atleast_2d(np.asarray(contexts)))
    count = len(states) if isinstance(states, list) else shown_count
    each = states if isinstance(states, list) else [states] * count
    return None, np.array([state.observations for state in each], dtype=np.int64)


def _at_once(policy: Any, law: int, parameters: FloatArray, words: NDArray[np.uint64]) -> Decisions:
    thompson = isinstance(policy, ThompsonSampling)
    form, settings = (DoubleSampling(samples=None, max_candidates=1) if thompson else policy).compiled_settings
    count, arms = parameters.shape[:2]
    p, propensities = np.empty((2, count, arms))
    votes, chosen = np.empty((count, arms), dtype=np.int64), np.empty((count, 2), dtype=np.int64)
    play = many.decide_rows(law, form)

    def rows(first: int) -> None:
        part = slice(first, first + _ROWS)
        space = entry_points.quadrature_space(arms)
        play(parameters[part], settings, words[part], p[part], votes[part], propensities[part], chosen[part], *space)

    starts = range(0, count, _ROWS)
    if len(starts) == 1:
        rows(0)
    else:
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            list(pool.map(rows, starts))
    if arms > 2:
        propensities = _mode_propensities(chosen[:, 1], p, settings[2] > 0.0)
    return Decisions(chosen[:, 0], p, chosen[:, 1], votes, propensities, words, policy)


def _mode_propensities(numbers: IntArray, p: FloatArray, first_of_ties: bool) -> FloatArray:
    """Return the propensities of modes, float array (decision, arm), once for each pair of N and p that occurs."""
    rows, which = np.unique(np.column_stack([numbers, p]), axis=0, return_inverse=True)
    found = [entry_points.mode_propensities(int(row[0]), row[1:], first_of_ties) for row in rows]
    return np.stack(found)[which.ravel()]


def _one_by_one(policy: Any, belief: Any, states: Any, contexts: Any, words: NDArray[np.uint64]) -> Decisions:
    """Decide in a loop: for policies and beliefs that have no compiled loop."""
    shown = [None] * len(words) if contexts is None else list(np.atleast_2d(np.asarray(contexts)))
    each = states if isinstance(states, list) else [states] * len(words)
    if not len(each) == len(shown) == len(words):
        raise SettingError(
            f"There are {len(each)} states and {len(shown)} contexts. They must be as many, or one state."
        )
    found = []
    for state, context, word in zip(each, shown, words, strict=True):
        evidence = BeliefEvidence(belief.marginals(state, context), word.copy(), int(word[3]), belief, state, context)
        found.append(make_decision(policy, evidence, Address(*(int(part) for part in word))))
    return Decisions(
        np.array([one.arm for one in found]),
        np.stack([one.probability_optimal for one in found]),
        np.array([one.candidates for one in found]),
        np.stack([one.votes for one in found]),
        np.stack([one.propensities for one in found]),
        words,
        policy,
    )
