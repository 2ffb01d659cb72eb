"""Contexts and rewards one step at a time, for realizations in plain Python, with the random numbers of the kernels."""

import functools
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from doublesampling.custom import World, check_step
from doublesampling.engine.packed import PackedProblem
from doublesampling.rules import dirichlet, laws, special, steps, two_parameter_laws, worlds
from doublesampling.rules.cached import kept_for
from doublesampling.rules.entry_points import address_of

FloatArray = NDArray[np.float64]
WordArray = NDArray[np.uint64]

_OWN_WORLD = 77  # sets the luck of a world of one's own apart from that of decisions


class Stage(Protocol):
    """A world at one step: its context and means, and what an arm pays."""

    def show(self, words: WordArray) -> tuple[Any, FloatArray]:
        """Return the context (None where there is none) and the expected reward of every arm."""

    def pay(self, arm: int, words: WordArray) -> float:
        """Return what an arm pays at the step that was shown last."""


@functools.cache
def _show(step_code: int) -> Callable[..., None]:
    @kept_for(step_code)
    def show(world: Any, words: WordArray, shown: FloatArray, truth: FloatArray) -> None:
        address = address_of(words)
        if step_code == steps.PAIRS:
            row = ((int(address[3]) - 1) // world.every) % world.means.shape[0]
            for a in range(truth.size):
                truth[a] = world.means[row, a]
        elif step_code == steps.WEIGHTS:
            where = (address[0], address[1], np.uint64(0) if world.shared else address[2], address[3])
            worlds.fill_context(world.context, world.path, where, shown)
            for a in range(truth.size):
                worth = worlds.linear_mean(world.weights[a], shown)
                truth[a] = special.logistic(worth) if world.pays == worlds.LOGIT else worth
        elif step_code == steps.CATEGORIES:
            for a in range(truth.size):
                truth[a] = dirichlet.mean_value(world.chances[a], world.values)
        else:
            for a in range(truth.size):
                truth[a] = world.means[a]

    return show


@functools.cache
def _pay(step_code: int, law: int) -> Callable[..., float]:
    @kept_for(step_code, law)
    def pay(world: Any, words: WordArray, truth: FloatArray, arm: int) -> float:
        address = address_of(words)
        paid = 0.0
        if step_code == steps.PAIRS:
            paid = two_parameter_laws.pay(law, truth[arm], arm, address)
        elif step_code == steps.WEIGHTS:
            if world.pays == worlds.GAUSSIAN:
                paid = worlds.gaussian_reward(truth[arm], world.noise[arm], arm, address)
            else:
                paid = worlds.bernoulli_reward(truth[arm], arm, address)
        elif step_code == steps.CATEGORIES:
            paid = world.values[worlds.category_of_reward(world.chances[arm], arm, address)]
        else:
            paid = worlds.bernoulli_reward(truth[arm], arm, address)
        return paid

    return pay


_STEP_CODES = {"beta": steps.FRESH, "pairs": steps.PAIRS, "linear": steps.WEIGHTS, "logistic": steps.WEIGHTS,
          "categorical": steps.CATEGORIES}  # fmt: skip


class CompiledStage:
    """A bandit of ours, stepped from Python."""

    def __init__(self, problem: PackedProblem) -> None:
        self._world, step_code = problem.world, _STEP_CODES[problem.family]
        self._shows = step_code == steps.WEIGHTS and problem.prior.sees_context
        self._show, self._pay = (
            _show(step_code),
            _pay(step_code, laws.BETA if problem.family == "beta" else problem.law),
        )
        self._shown = np.empty(problem.world.weights.shape[1] if step_code == steps.WEIGHTS else 0)
        self._truth = np.empty(problem.arms)

    def show(self, words: WordArray) -> tuple[Any, FloatArray]:
        """Return the context and the expected rewards."""
        self._show(self._world, words, self._shown, self._truth)
        return (self._shown.copy() if self._shows else None), self._truth

    def pay(self, arm: int, words: WordArray) -> float:
        """Return what an arm pays."""
        return self._pay(self._world, words, self._truth, arm)


class OwnStage:
    """A world of somebody's own."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._rewards = np.empty(0)

    def show(self, words: WordArray) -> tuple[Any, FloatArray]:
        """Return the context and the expected rewards; rewards are drawn with them."""
        rng = np.random.default_rng([*(int(word) for word in words), _OWN_WORLD])
        step = self._world.step(int(words[3]), rng)
        context, means, self._rewards = check_step(self._world, step)
        return context, means

    def pay(self, arm: int, words: WordArray) -> float:
        """Return what an arm pays."""
        return float(self._rewards[arm])
