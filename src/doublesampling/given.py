"""Checks of what comes from outside into a decision: posterior draws in any layout, and the answers of own policies."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from doublesampling import checks
from doublesampling.beliefs import AnyBelief
from doublesampling.errors import DrawsError, SettingError
from doublesampling.evidence import Evidence
from doublesampling.policies import Choice, Policy
from doublesampling.rules import entry_points

FloatArray = NDArray[np.float64]

FEWEST_DRAWS = 20
"""Posterior draws below which the probability of being optimal would be anybody's guess."""
_SAMPLE_DIMS = ("sample", "samples", "chain", "chains", "draw", "draws")


def check_policy(policy: object) -> Policy:
    """Return a policy, or say what was wanted."""
    if isinstance(policy, type) or not callable(getattr(policy, "choose", None)):
        hint = f" Write {policy.__name__}()." if isinstance(policy, type) else ""
        raise SettingError(f"policy must be one such as DoubleSampling(), got {checks.shown(policy)}.{hint}")
    return policy  # type: ignore[return-value]


def name_policies(policies: object) -> dict[str, Any]:
    """Return policies by the name that results carry: given in a dictionary, or as they would be typed.

    Two that print alike but are not equal, as own policies may be, are told apart by a number.
    """
    if isinstance(policies, Mapping):
        named = {str(name): policy for name, policy in policies.items()}
    else:
        several = isinstance(policies, Sequence) and not isinstance(policies, str)
        named = _by_repr(list(policies) if several else [policies])  # type: ignore[call-overload]
    if not named:
        raise SettingError("simulate needs a policy, such as DoubleSampling(), got none.")
    return named


def _by_repr(policies: list[Any]) -> dict[str, Any]:
    named: dict[str, Any] = {}
    for policy in policies:
        if any(policy is other or policy == other for other in named.values()):
            raise SettingError("The same policy is listed twice. Leave one out, or pass a dictionary of names.")
        name, number = repr(policy), 1
        while name in named:
            number += 1
            name = f"{policy!r} ({number})"
        named[name] = policy
    return named


def check_belief(belief: object) -> AnyBelief:
    """Return a belief whose marginals are known, or say what was wanted."""
    if isinstance(belief, type) or not callable(getattr(belief, "marginals", None)):
        hint = f" Write {belief.__name__}(...)." if isinstance(belief, type) else ""
        raise SettingError(f"belief must be one such as BetaBernoulli(arms=2), got {checks.shown(belief)}.{hint}")
    return belief  # type: ignore[return-value]


def check_draws(draws: Any) -> FloatArray:
    """Return posterior draws as a float array (sample, arm), from any layout that can be told from another."""
    values = _from_named(draws)
    given = checks.array("draws", values, error=DrawsError, hint="Draw again, or drop what did not converge.")
    if given.ndim == 3:  # (chain, draw, arm)
        given = given.reshape(-1, given.shape[2])
    if given.ndim != 2 or given.shape[1] < 2:
        raise DrawsError(
            f"draws must be an array (sample, arm) or (chain, draw, arm) of at least two arms, got shape {given.shape}."
        )
    samples, arms = given.shape
    if arms > samples:
        raise DrawsError(
            f"draws have {samples} samples of {arms} arms: more arms than samples. If they stand the other way round, "
            "pass draws.T; else draw more."
        )
    if samples < FEWEST_DRAWS:
        raise DrawsError(f"draws must hold at least {FEWEST_DRAWS} samples, got {samples}. The paper uses 1000.")
    if np.abs(given).max() > 1e100:
        raise DrawsError("draws must lie within 1e100 of 0. Choose a larger unit.")
    return given


def _from_named(draws: Any) -> Any:
    """Take an xarray or ArviZ object apart by the names of its dimensions; leave anything else as it is."""
    posterior = _posterior_of(draws)
    variables = getattr(posterior, "data_vars", None)
    if variables is not None:
        if len(variables) != 1:
            some = ", ".join(map(repr, list(variables)[:5]))
            raise DrawsError(
                f"draws hold {len(variables)} variables: {some}. Pass one of them, such as posterior['mean']."
            )
        posterior = posterior[next(iter(variables))]
    dims = getattr(posterior, "dims", None)
    if not isinstance(dims, tuple) or not hasattr(posterior, "transpose"):
        return draws
    samples = [name for name in dims if name in _SAMPLE_DIMS]
    arms = [name for name in dims if name not in samples]
    if not samples or len(arms) != 1:
        raise DrawsError(
            "draws need the dimensions sample (or chain and draw) and one for the arms, "
            f"got {', '.join(map(str, dims))}."
        )
    return np.asarray(posterior.transpose(*samples, *arms)).reshape(-1, posterior.sizes[arms[0]])


def _posterior_of(draws: Any) -> Any:
    """The posterior group of ArviZ's inference data, or what was given."""
    if isinstance(draws, (np.ndarray, list, tuple)) or (hasattr(draws, "data_vars") and len(draws.data_vars)):
        return draws
    return getattr(draws, "posterior", draws)


def check_choice(policy: Policy, answer: Any, evidence: Evidence, *, with_optimality: bool = True) -> Choice:
    """Return the answer of somebody's own policy as a choice: from an arm, from the probability of every arm, one of
    which is then drawn, or from a Choice whose parts fit together.

    Where only an arm is answered, the propensities are not known. ``with_optimality=False`` leaves the probability of
    each arm being the best out (nan), which an own policy may never have needed.
    """
    name, arms = f"{type(policy).__name__}.choose", evidence.arms
    if not isinstance(answer, tuple):
        p = evidence.probability_optimal(None) if with_optimality else np.full(arms, np.nan)
        if isinstance(answer, (list, np.ndarray)) and np.ndim(answer) == 1:
            propensities = _probabilities(name, answer, arms)
            arm, votes, _ = entry_points.choose_candidate(propensities, 1, False, evidence.words)
            return Choice(arm, p, 1, votes, propensities)
        arm = _arm(name, answer, arms)
        return Choice(arm, p, 1, _one_vote(arm, arms), np.full(arms, np.nan))
    if len(answer) != len(Choice._fields):
        raise SettingError(
            f"{name} must return an arm, a probability per arm, or a Choice of {', '.join(Choice._fields)}; "
            f"got {checks.shown(answer)}."
        )
    given = Choice(*answer)
    p = _per_arm(name, "probability_optimal", given.probability_optimal, arms)
    votes = _per_arm(name, "votes", given.votes, arms).astype(np.int64)
    propensities = _per_arm(name, "propensities", given.propensities, arms, may_be_nan=True)
    total = propensities.sum()
    if (propensities < 0.0).any() or not (np.isnan(total) or abs(total - 1.0) < 1e-6):
        raise SettingError(f"{name} must return propensities that are 0 or more and add up to 1, got sum {total:g}.")
    number = checks.integer(f"candidates of {name}", given.candidates, least=1)
    return Choice(_arm(name, given.arm, arms), p, number, votes, propensities)


def _probabilities(name: str, answer: object, arms: int) -> FloatArray:
    given = _per_arm(name, "probabilities", answer, arms)
    if (given < 0.0).any() or not abs(given.sum() - 1.0) < 1e-6:
        raise SettingError(f"{name} must return probabilities that add up to 1, got {checks.shown(answer)}.")
    return np.asarray(given / given.sum())


def _arm(name: str, arm: object, arms: int) -> int:
    hint = "Return the arm to play, counted from 0, or a Choice."
    return checks.integer(f"The arm that {name} returns", arm, least=0, most=arms - 1, hint=hint)


def _one_vote(arm: int, arms: int) -> NDArray[np.int64]:
    votes = np.zeros(arms, dtype=np.int64)
    votes[arm] = 1
    return votes


def _per_arm(name: str, part: str, values: object, arms: int, *, may_be_nan: bool = False) -> FloatArray:
    try:
        given = np.array(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise SettingError(f"{name} must return {part} as {arms} numbers, got {checks.shown(values)}.") from None
    if given.shape != (arms,):
        raise SettingError(f"{name} must return {part} as {arms} numbers, got shape {given.shape}.")
    if not may_be_nan and not np.isfinite(given).all():
        raise SettingError(f"{name} must return {part} as finite numbers, got {checks.shown(values)}.")
    return given
