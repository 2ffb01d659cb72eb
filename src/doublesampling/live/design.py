"""The design of an experiment, stored as JSON: class names and settings, never code.

A class that is not one of this package is stored as ``module:qualname``; see own_classes.py.
"""

import hashlib
import json
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from itertools import count
from typing import Any, Protocol, runtime_checkable

import numpy as np

from doublesampling import beliefs, checks, policies
from doublesampling.allocation import Allocation, check_allocation
from doublesampling.errors import ArmError, DoubleSamplingError, RewardError, SettingError
from doublesampling.live import own_classes
from doublesampling.live.contexts import check_context, features_of
from doublesampling.live.names import check_arms, make_code, make_codes
from doublesampling.live.names import check_reason as check_reason
from doublesampling.live.names import check_text as check_text
from doublesampling.live.names import normalized as normalized
from doublesampling.live.unavailable import Unavailable
from doublesampling.stopping import Stopping

UNITS = ("once", "many")


@dataclass(frozen=True)
class Design:
    """The settings of an experiment: arms, belief, policy, seed, and whether a unit gets one decision or many.

    ``codes`` holds one code per arm, which the service shows to blind keys instead of the arm's name; None where they
    may see the name.
    """

    arms: tuple[str, ...]
    belief: Any
    policy: Any
    seed: int
    units: str
    codes: tuple[str, ...] | None = None
    allocation: Allocation | None = None
    stopping: Stopping | None = None
    participants: int | None = None
    """The largest number of decisions; None where there is no limit."""

    def code(self, arm: int) -> str | None:
        """Return the code of an arm; the code of an arm that was added later is derived from the seed."""
        if self.codes is None or arm < len(self.codes):
            return None if self.codes is None else self.codes[arm]
        taken = set(self.codes) | {str(self.code(earlier)) for earlier in range(len(self.codes), arm)}
        tries = (hashlib.sha256(f"{self.seed}/{arm}/{i}".encode()).digest() for i in count())
        return next(code for code in (make_code(made[0], made[1]) for made in tries) if code not in taken)

    def check_truth(self, truth: Sequence[Any]) -> None:
        """Raise SettingError unless an assumed truth has one number per arm; with contexts, the weights of each arm."""
        size = getattr(self.belief, "dimension", None)
        what = "one number" if size is None else f"a list of {size} weights"
        if len(truth) != len(self.arms):
            raise SettingError(f"A truth needs {what} per arm ({len(self.arms)}), got {len(truth)}.")
        if any(np.shape(each) != (() if size is None else (size,)) for each in truth):
            raise SettingError(f"A truth needs {what} per arm, got {checks.shown(truth)}.")

    @property
    def usual_horizon(self) -> int:
        """The default number of decisions to simulate: the policy's horizon, or 500."""
        return self.horizon or 500

    @property
    def horizon(self) -> int | None:
        """The largest number of decisions, or the number that the policy plans for; None where there is neither."""
        if self.participants is not None:
            return self.participants
        found = getattr(self.policy, "horizon", None)
        return found if isinstance(found, int) and found > 0 else None

    @property
    def has_own_classes(self) -> bool:
        """Whether the belief or the policy is not one of this package."""
        return own_classes.is_own(self.belief) or own_classes.is_own(self.policy)

    def with_arms(self, arms: tuple[str, ...]) -> "Design":
        """Return the design over other arms."""
        if arms == self.arms:
            return self
        limits = None if self.allocation is None else self.allocation.among(arms)
        rule = None if self.stopping is None or self.stopping.control not in (None, *arms) else self.stopping
        if rule is None and limits is not None and limits.at_looks:
            limits = replace(limits, update=None)
        belief = resize_belief(self.belief, len(arms))
        return replace(self, arms=arms, belief=belief, allocation=limits, stopping=rule)

    @property
    def in_order(self) -> bool:
        """Whether a decision depends on the arms of all earlier ones, so that they are made one after another."""
        return self.allocation is not None and self.allocation.needs_past

    def check_available(self) -> None:
        """Raise NotImportedError where the class of the belief or the policy is not imported in this process."""
        for part in (self.belief, self.policy):
            if isinstance(part, Unavailable):
                part.refuse()

    def check_reward(self, reward: object) -> float:
        """Return a reward that the belief accepts; raise RewardError for any other."""
        if not own_classes.is_own(self.belief):
            return float(self.belief.check_reward(reward))
        try:
            accepted = self.belief.check_reward(reward)
        except (TypeError, ValueError) as problem:
            if isinstance(problem, DoubleSamplingError):
                raise
            raise RewardError(f"{type(self.belief).__name__} refuses the reward: {problem}") from None
        return checks.real("reward", accepted, error=RewardError)

    def check_context(self, context: Any) -> Any:
        """Return a context as beliefs and policies get it: what a replay reads from the store."""
        return check_context(self.belief, context, own=self.has_own_classes)

    def to_json(self) -> str:
        """Return the design as JSON text."""
        content = {
            "arms": list(self.arms),
            "belief": _describe(self.belief),
            "policy": _describe(self.policy),
            "seed": self.seed,
            "units": self.units,
        }
        if self.codes is not None:
            content["codes"] = list(self.codes)
        if self.allocation is not None:
            content["allocation"] = self.allocation.to_dict()
        if self.stopping is not None:
            content["stopping"] = self.stopping.to_dict()
        if self.participants is not None:
            content["participants"] = self.participants
        return json.dumps(content, allow_nan=False, ensure_ascii=False)


def design_from_json(text: str, allowed: Sequence[str] = ()) -> Design:
    """Return the design that ``to_json`` wrote. Classes of other packages are imported from ``allowed`` modules only.

    Where one is not imported, the design holds a placeholder that raises NotImportedError when it is used.
    """
    content = json.loads(text)
    belief, policy = (
        own_classes.load(what, content[what]["class"], content[what]["settings"], len(content["arms"]), allowed)
        if ":" in content[what]["class"]
        else build(_in_words_of_today(content[what]), module)
        for what, module in (("belief", beliefs), ("policy", policies))
    )
    codes = None if content.get("codes") is None else tuple(content["codes"])
    limits = None if content.get("allocation") is None else Allocation(**content["allocation"])
    rule = None if content.get("stopping") is None else Stopping(**content["stopping"])
    names, seed, most = tuple(content["arms"]), int(content["seed"]), content.get("participants")
    return Design(names, belief, policy, seed, content["units"], codes, limits, rule, most)


def _in_words_of_today(content: dict[str, Any]) -> dict[str, Any]:
    """Return a stored class name and settings as this version says them.

    Releases before 1.0 had one count for a horizon and did not name it: such an experiment keeps that count.
    """
    settings = content["settings"]
    if content["class"] == "DoubleSampling" and settings.get("horizon") is not None and "count" not in settings:
        return {**content, "settings": {**settings, "count": "doubt"}}
    return content


def kinds(module: Any) -> list[str]:
    """Return the names of the beliefs, or of the policies, that a stored design may use."""
    member = "prior" if module is beliefs else "choose"
    public = {name: found for name, found in vars(module).items() if not name.startswith("_")}
    return sorted(name for name, found in public.items() if is_dataclass(found) and hasattr(found, member))


def _describe(component: Any) -> dict[str, Any]:
    """Return the class name and settings of a belief or policy."""
    if own_classes.is_own(component):
        return {"class": own_classes.reference_of(component), "settings": own_classes.settings_of(component)}
    settings = {f.name: getattr(component, f.name) for f in fields(component) if f.init}
    features = features_of(component)
    if features is not None:
        settings["features"] = features.to_dict()
    elif "features" in settings:  # earlier versions, which do not know the setting, can read the design
        del settings["features"]
    return {"class": type(component).__name__, "settings": settings}


def build(content: dict[str, Any], module: Any) -> Any:
    """Return a belief or policy from its class name and settings."""
    if content["class"] not in kinds(module):
        raise SettingError(
            f"The stored design uses {content['class']!r}, which this version does not have. Update the package."
        )
    return getattr(module, content["class"])(**content["settings"])


def make_design(
    arms: object,
    belief: Any,
    policy: Any,
    seed: object,
    units: object,
    codes: object = None,
    allocation: object = None,
    stopping: object = None,
    participants: int | None = None,
) -> Design:
    """Return a checked design that can be stored and read back. Where the seed is None, one is drawn."""
    names = check_arms(arms)
    belief = beliefs.BetaBernoulli(arms=len(names)) if belief is None else belief
    policy = policies.DoubleSampling.anytime() if policy is None else policy
    for what, given, module in (("belief", belief, beliefs), ("policy", policy, policies)):
        _check_component(what, given, module)
    if belief.arms != len(names):
        raise ArmError(f"The belief has {belief.arms} arms, but {len(names)} names were given. Make them agree.")
    known = checks.one_of("units", units, UNITS)
    limits = None if allocation is None else _check_limits(allocation, names, stopping)
    rule = None if stopping is None else _check_stopping(stopping, names, belief)
    fixed_seed = secrets.randbits(63) if seed is None else checks.seed(seed)
    return Design(names, belief, policy, fixed_seed, known, make_codes(codes, names), limits, rule, participants)


def _check_stopping(stopping: object, names: tuple[str, ...], belief: Any) -> Stopping:
    """Return a stopping rule for these arms, with its control by name."""
    if not isinstance(stopping, Stopping):
        raise SettingError(f"stopping must be one such as Stopping(looks=100), got {checks.shown(stopping)}.")
    if getattr(belief, "dimension", None) is not None:
        raise SettingError(
            "A stopping rule asks which arm is the best, and under a belief with contexts that depends on the context, "
            f"got {checks.shown(belief)}. Use a belief without contexts, or leave stopping out."
        )
    stopping.check_for(names)
    return stopping.named(names)


def _check_limits(allocation: object, names: tuple[str, ...], stopping: object) -> Allocation:
    """Return an allocation that these arms can keep, with every arm by its name."""
    found = check_allocation(allocation).named(names)
    found.limits(names)
    if found.at_looks and stopping is None:
        raise SettingError('update="look" renews shares at looks, and this experiment has none. Pass stopping=.')
    return found


def _check_component(what: str, given: Any, module: Any) -> None:
    """Raise SettingError unless a belief or policy can be stored and read back."""
    if own_classes.is_own(given):
        own_classes.check_storable(what, given)
    elif type(given).__name__ not in kinds(module) or getattr(module, type(given).__name__) is not type(given):
        usual = "BetaBernoulli(arms=2)" if what == "belief" else "DoubleSampling()"
        raise SettingError(f"{what} must be one such as {usual}, got {checks.shown(given)}.")
    elif build(json.loads(json.dumps(_describe(given), allow_nan=False)), module) != given:
        raise SettingError(f"{given!r} cannot be read back once it is stored. Use plain numbers as settings.")


@runtime_checkable
class Resizable(Protocol):
    """A belief that says itself what it is with another number of arms."""

    def resized(self, arms: int) -> Any:
        """Return the belief with this number of arms."""


def resize_belief(belief: Any, arms: int) -> Any:
    """Return the belief with this number of arms; added arms start at the prior that all arms share."""
    if belief.arms == arms:
        return belief
    if isinstance(belief, Resizable):
        with own_classes.own_code(belief):
            made = belief.resized(arms)
        if getattr(made, "arms", None) != arms or type(made) is not type(belief):
            raise SettingError(
                f"{type(belief).__name__}.resized({arms}) must return a {type(belief).__name__} with {arms} arms, got "
                f"{checks.shown(made)}."
            )
        return made
    if own_classes.is_own(belief):
        raise SettingError(
            f"{type(belief).__name__} has no method resized(arms), so its number of arms cannot change. Add one that "
            "returns the belief with that many arms."
        )
    try:
        return replace(belief, arms=arms)
    except DoubleSamplingError:
        raise SettingError(
            f"{belief!r} has settings per arm, so the prior of a new arm is not defined. "
            "Use settings that all arms share in an experiment to which arms may be added."
        ) from None
