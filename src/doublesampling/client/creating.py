"""Requests about the service as a whole: what the key may do, the list of experiments, and a new experiment."""

import json
import secrets
from collections.abc import Sequence
from typing import Any

from doublesampling.client import parsing
from doublesampling.client.calls import FRESH, Call, check_name, experiment_path
from doublesampling.errors import SettingError
from doublesampling.live.design import Design, make_design
from doublesampling.live.own_classes import show


def me() -> Call[dict[str, Any]]:
    """Return the request for what the key may do."""
    return Call(method="GET", path="/v1/me", parse=lambda found, _: _checked(found))


def _checked(found: dict[str, Any]) -> dict[str, Any]:
    return {name: found[name] for name in ("role", "scopes", "experiment", "keyless", "version")}


def list_experiments() -> Call[Sequence[dict[str, Any]]]:
    """Return the request for the experiments that the key may use."""
    return Call(method="GET", path="/v1/experiments", parse=lambda found, _: parsing.experiment_names(found))


def create(
    name: object, arms: Any, belief: Any, policy: Any, allocation: object, *, seed: object, units: object, codes: Any
) -> Call[dict[str, Any]]:
    """Return the request for a new experiment. Its design is checked here, as ``Experiment.create`` does.

    A seed is drawn here where none is given. An experiment of this name with this seed and design is the one that an
    earlier attempt of this call has created.
    """
    called = check_name(name)
    drawn = secrets.randbits(63) if seed is None else seed
    design = make_design(arms, belief, policy, drawn, units, codes, allocation)
    if design.has_own_classes:
        raise SettingError(
            "A belief or policy of your own cannot be sent to a service, which has no code for it. Create the "
            "experiment with ds.Experiment.create(..., storage=) on a machine that reaches the store."
        )
    stored = json.loads(design.to_json())
    stored["belief"]["settings"].pop("arms")
    parts = {what: {"kind": stored[what]["class"], "settings": stored[what]["settings"]}
             for what in ("belief", "policy")}  # fmt: skip
    body = {"name": called, "arms": stored["arms"], **parts, "seed": stored["seed"], "units": stored["units"],
            "codes": codes if isinstance(codes, bool) else stored.get("codes", False),
            "allocation": stored.get("allocation")}  # fmt: skip
    recover: Call[dict[str, Any] | None] = Call(
        method="GET",
        path=experiment_path(called, "summary"),
        headers=FRESH,
        parse=lambda found, _: found if _is_same(found, design) else None,
    )
    return Call(method="POST", path="/v1/experiments", body=body, parse=lambda found, _: found, recover=recover)


def _is_same(found: dict[str, Any], design: Design) -> bool:
    """Return whether the summary of an experiment is that of this design, to which arms may have been added."""
    arms = [arm["name"] for arm in found["arms"][: len(design.arms)]]
    limits = None if design.allocation is None else repr(design.allocation)
    same = (list(design.arms), design.seed, design.units, show(design.belief), show(design.policy), limits)
    settings = (found["seed"], found["units"], found["belief"], found["policy"], found["allocation"])
    return (arms, *settings) == same
