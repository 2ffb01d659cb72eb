"""What ``Experiment.create`` takes beside the arms, belief and policy, and the design that it makes of all."""

import difflib
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, TypedDict

from doublesampling import checks
from doublesampling.checks import shown
from doublesampling.errors import SettingError
from doublesampling.live.deciding import check_decidable
from doublesampling.live.design import Design, make_design
from doublesampling.live.looking import check_looks
from doublesampling.stopping import Stopping

_FROM_TRIAL = ("arms", "belief", "policy", "allocation", "stopping")


class CreateOptions(TypedDict, total=False):
    """What ``Experiment.create`` takes beside the design."""

    units: str
    actor: str | None
    codes: bool | Sequence[str]
    stopping: Stopping | None
    participants: int | None
    """The largest number of decisions."""
    design: Any
    """A ``ds.Trial``."""


def check_options(given: CreateOptions) -> None:
    """Raise SettingError for a name that ``Experiment.create`` does not have."""
    known = CreateOptions.__annotations__
    for name in given:
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            hint = f"Did you mean {near[0]!r}?" if near else f"Its options are {', '.join(known)}."
            raise SettingError(f"Experiment.create has no option {name!r}. {hint}")


def design_from_options(parts: dict[str, Any], seed: int | None, options: CreateOptions) -> Design:
    """Return the design of a new experiment, after one decision and one look from the prior."""
    design = collect_design(parts, seed, options)
    check_decidable(design)
    check_looks(design)
    return design


def collect_design(parts: dict[str, Any], seed: int | None, options: CreateOptions) -> Design:
    """Return the design of a new experiment, from its parts or from a trial."""
    check_options(options)
    parts = {**parts, "stopping": options.get("stopping"), "participants": options.get("participants")}
    trial = options.get("design")
    if trial is not None:
        parts = _parts_of(trial, parts)
    elif parts["arms"] is None:
        raise SettingError('arms must be a list of names. Write arms=["control", "new"], or design=, a ds.Trial.')
    if parts["participants"] is not None:
        parts["participants"] = checks.integer("participants", parts["participants"], least=1, most=10**9)
        if isinstance(parts["stopping"], Stopping):  # the last look is after the last participant, and none comes later
            looks = parts["stopping"].schedule(parts["participants"])
            parts["stopping"] = replace(parts["stopping"], looks=looks)
    return make_design(seed=seed, units=options.get("units", "once"), codes=options.get("codes", False), **parts)


def _parts_of(trial: Any, given: dict[str, Any]) -> dict[str, Any]:
    """Return the parts of a trial, which also says how many participants there are at most."""
    if isinstance(trial, type) or not all(hasattr(trial, name) for name in (*_FROM_TRIAL, "horizon")):
        raise SettingError(f"design must be a ds.Trial, got {shown(trial)}.")
    twice = [name for name in (*_FROM_TRIAL, "participants") if given[name] is not None]
    if twice:
        raise SettingError(f"{twice[0]} is part of the design already. Pass design= alone, or leave it out.")
    return {name: getattr(trial, name) for name in _FROM_TRIAL} | {"participants": trial.horizon}
