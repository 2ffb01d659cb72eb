"""What a policy may look at before it chooses: a belief's state, or anybody's posterior draws, and what was played."""

from functools import cached_property
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from doublesampling.beliefs import AnyBelief, BetaBernoulli, DrawnLaws, Marginals
from doublesampling.beliefs.marginals import precisions_of_draws, share_of_bests
from doublesampling.errors import SettingError
from doublesampling.quick_records import quick_record
from doublesampling.rules import tallies
from doublesampling.rules.choose import baselines
from doublesampling.rules.compiled import plain

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
WordArray = NDArray[np.uint64]

_MANY = 10_000  # draws where a policy asks for no number


class Played(NamedTuple):
    """What was played and paid so far."""

    counts: IntArray
    """Observed rewards per arm, int array (arm)."""
    sums: FloatArray
    """Their sum per arm, float array (arm)."""
    last: tuple[int, float] | None = None
    """The last arm and its reward; None before the first."""


class Evidence(Protocol):
    """What a policy may look at before it chooses."""

    @property
    def arms(self) -> int:
        """The number of arms."""

    @property
    def time(self) -> int:
        """The number of the decision, counted from 1; an error where it is not known."""

    @property
    def words(self) -> WordArray:
        """The random address of the decision: seed, bandit, realization, time; uint64 array (4)."""

    @property
    def rng(self) -> np.random.Generator:
        """A random generator of this decision's own: the same address gives the same numbers."""

    @property
    def context(self) -> Any:
        """What is shown before the decision; None where there is nothing."""

    @property
    def counts(self) -> IntArray:
        """Observed rewards per arm, int array (arm); an error where they are not known."""

    @property
    def sums(self) -> FloatArray:
        """Their sum per arm, float array (arm); an error where they are not known."""

    @property
    def last(self) -> tuple[int, float] | None:
        """The arm played last and its reward, or None; an error where they are not known."""

    @property
    def samples_itself(self) -> bool:
        """Whether probabilities come from posterior samples, so that nothing more is sampled from them."""

    @property
    def given_draws(self) -> bool:
        """Whether posterior draws were handed in."""

    def probability_optimal(self, samples: int | None = None) -> FloatArray:
        """The probability of each arm being the best: exact, or as so many samples estimate it."""

    def expected_rewards(self) -> FloatArray:
        """The posterior mean of each arm's expected reward."""

    def precisions(self) -> FloatArray:
        """How well each arm is known: observations that its law is worth, or one over its variance; (arm)."""

    def upper_quantiles(self, log_tail: float, samples: int | None = None) -> FloatArray:
        """A number per arm in the order of its quantile: exact, or of so many samples."""

    def regret_and_information(self, samples: int | None = None) -> FloatArray:
        """What information-directed sampling knows of every two arms: exact, or of so many samples."""

    def wins_and_losses(self) -> FloatArray:
        """Ones and zeros that each arm paid, float array (arm, 2); an error where rewards are not 0 or 1."""

    def beta_counts(self) -> FloatArray:
        """Alpha and beta of each arm's Beta law, float array (arm, 2); an error where rewards are not 0 or 1."""

    def location_and_scale(self) -> FloatArray:
        """Of each arm's expected reward, float array (arm, 2); an error where it is not Student or normal."""


class _Common:
    """What both kinds of evidence share."""

    words: WordArray
    played: Played | None

    @cached_property
    def rng(self) -> np.random.Generator:
        """Return a random generator of this decision's own."""
        return np.random.default_rng([int(word) for word in self.words])

    def _known(self) -> Played:
        if self.played is None:
            raise SettingError(
                "This policy looks at what was played. simulate, compare and Experiment know it; to decide pass "
                "played=Played(counts, sums, last)."
            )
        return self.played

    @property
    def counts(self) -> IntArray:
        """Observed rewards per arm."""
        return self._known().counts

    @property
    def sums(self) -> FloatArray:
        """Sums of rewards per arm."""
        return self._known().sums

    @property
    def last(self) -> tuple[int, float] | None:
        """The last arm and its reward."""
        return self._known().last


@quick_record
class BeliefEvidence(_Common):
    """Evidence of a belief's state: exact where the policy asks for it and the belief's law is known."""

    laws: Marginals | DrawnLaws
    words: WordArray
    time: int
    belief: AnyBelief
    state: Any
    context: Any = None
    played: Played | None = None
    active: tuple[int, ...] | None = None
    """The arms that are still in, of an experiment that dropped some."""
    given_draws: bool = False

    @property
    def arms(self) -> int:
        """The number of arms."""
        return self.laws.arms

    @property
    def samples_itself(self) -> bool:
        """Whether probabilities come from samples."""
        return not isinstance(self.laws, Marginals)

    def probability_optimal(self, samples: int | None = None) -> FloatArray:
        """Return the probability of each arm being the best."""
        laws = self.laws
        return laws.probability_optimal if samples is None else laws.estimated_optimality(samples, self.words)

    def expected_rewards(self) -> FloatArray:
        """Return the posterior means."""
        return self.laws.mean

    def precisions(self) -> FloatArray:
        """Return how well each arm is known."""
        return self.laws.precisions

    def upper_quantiles(self, log_tail: float, samples: int | None = None) -> FloatArray:
        """Return a number per arm in the order of its quantile."""
        exact = self.laws.upper_quantiles(log_tail) if samples is None else None
        return _sample_quantiles(self._draws(samples), log_tail) if exact is None else exact

    def regret_and_information(self, samples: int | None = None) -> FloatArray:
        """Return what information-directed sampling knows."""
        if samples is None and isinstance(self.laws, Marginals):
            return tallies.tally_exactly(self.laws.law, self.laws.parameters)
        return tallies.tally_draws(self._draws(samples))

    def _draws(self, samples: int | None) -> FloatArray:
        many = self.laws.many if isinstance(self.laws, DrawnLaws) else _MANY
        return self.laws.draws_at(samples or many, self.words)

    def wins_and_losses(self) -> FloatArray:
        """Return ones and zeros per arm."""
        if not isinstance(self.belief, BetaBernoulli) or self.belief.discount < 1.0:
            raise SettingError(
                "This policy counts wins and losses, which BetaBernoulli without a discount knows. "
                "Use it, or another policy."
            )
        prior = self.belief.prior()
        seen = np.column_stack([self.state.alpha - prior.alpha, self.state.beta - prior.beta])
        return seen if self.active is None else seen[list(self.active)]

    def beta_counts(self) -> FloatArray:
        """Return alpha and beta of each arm."""
        self.wins_and_losses()  # refuses other beliefs
        assert isinstance(self.laws, Marginals)
        return self.laws.parameters[:, :2]

    def location_and_scale(self) -> FloatArray:
        """Return location and scale per arm."""
        found = self.laws.location_and_scale
        if found is None:
            raise SettingError("LinUCB needs a Gaussian or linear belief. Use KLUCB for rewards of 0 and 1.")
        return found


@quick_record
class DrawsEvidence(_Common):
    """Evidence of posterior draws (sample, arm): their number is M, whatever the policy would have drawn."""

    given: FloatArray
    words: WordArray
    known_time: int | None
    context: Any = None
    played: Played | None = None
    given_draws: bool = True
    samples_itself: bool = True

    @property
    def arms(self) -> int:
        """The number of arms."""
        return int(self.given.shape[1])

    @property
    def time(self) -> int:
        """The number of the decision."""
        if self.known_time is None:
            raise SettingError("This policy looks at the time. Pass time=, the number of this decision counted from 1.")
        return self.known_time

    def probability_optimal(self, samples: int | None = None) -> FloatArray:
        """Return the probability of each arm being the best."""
        return share_of_bests(self.given)

    def expected_rewards(self) -> FloatArray:
        """Return the posterior means."""
        return np.asarray(self.given.mean(axis=0))

    def precisions(self) -> FloatArray:
        """Return how well each arm is known: one over the variance of its draws."""
        return precisions_of_draws(self.given)

    def upper_quantiles(self, log_tail: float, samples: int | None = None) -> FloatArray:
        """Return a number per arm in the order of its quantile."""
        return _sample_quantiles(self.given, log_tail)

    def regret_and_information(self, samples: int | None = None) -> FloatArray:
        """Return what information-directed sampling knows."""
        return tallies.tally_draws(self.given)

    def wins_and_losses(self) -> FloatArray:
        """Return ones and zeros per arm."""
        raise SettingError("This policy counts wins and losses, which posterior draws do not show. Use another.")

    def beta_counts(self) -> FloatArray:
        """Return alpha and beta of each arm."""
        return self.wins_and_losses()

    def location_and_scale(self) -> FloatArray:
        """Return location and scale per arm."""
        return np.column_stack([self.given.mean(axis=0), self.given.std(axis=0)])


def _sample_quantiles(draws: FloatArray, log_tail: float) -> FloatArray:
    rank = plain(baselines.sample_rank)(draws.shape[0], log_tail)
    return np.asarray(np.partition(draws, rank, axis=0)[rank])
