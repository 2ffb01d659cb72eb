"""Requests about the service as a whole: what the key may do, the list of experiments, and a new experiment."""

import json
import secrets
from collections.abc import Sequence
from typing import Any

from doublesampling.client import parsing
from doublesampling.client.calls import FRESH, Call, check_name, experiment_path
from doublesampling.errors import SettingError
from doublesampling.live.create_options import CreateOptions, collect_design
from doublesampling.live.design import Design
from doublesampling.live.own_classes import show


def me() -> Call[dict[str, Any]]:
    """Return the request for what the key may do."""
    return Call(method="GET", path="/v1/me", parse=lambda found, _: _checked(found))


def _checked(found: dict[str, Any]) -> dict[str, Any]:
    return {name: found[name] for name in ("role", "scopes", "experiment", "keyless", "version")}


def list_experiments() -> Call[Sequence[dict[str, Any]]]:
    """Return the request for the experiments that the key may use."""
    return Call(method="GET", path="/v1/experiments", parse=lambda found, _: parsing.experiment_names(found))


def create(name: object, parts: dict[str, Any], seed: int | None, options: CreateOptions) -> Call[dict[str, Any]]:
    """Return the request for a new experiment. Its design is checked here, as ``Experiment.create`` does.

    A seed is drawn here where none is given. An experiment of this name with this seed and design is the one that an
    earlier attempt of this call has created.
    """
    called = check_name(name)
    drawn = secrets.randbits(63) if seed is None else seed
    if options.get("actor") is not None:
        raise SettingError("actor follows from the key of the connection. Leave it out.")
    design = collect_design(parts, drawn, options)
    if design.has_own_classes:
        raise SettingError(
            "A belief or policy of your own cannot be sent to a service, which has no code for it. Create the "
            "experiment with ds.Experiment.create(..., storage=) on a machine that reaches the store."
        )
    stored = json.loads(design.to_json())
    stored["belief"]["settings"].pop("arms")
    components = {what: {"kind": stored[what]["class"], "settings": stored[what]["settings"]}
                  for what in ("belief", "policy")}  # fmt: skip
    codes = options.get("codes", False)
    body = {"name": called, "arms": stored["arms"], **components, "seed": stored["seed"], "units": stored["units"],
            "codes": codes if isinstance(codes, bool) else stored.get("codes", False),
            **{part: stored.get(part) for part in ("allocation", "stopping", "participants")}}  # fmt: skip
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
    limits, rule = (None if part is None else repr(part) for part in (design.allocation, design.stopping))
    same = (list(design.arms), design.seed, design.units, show(design.belief), show(design.policy), limits, rule)
    settings = (found[name] for name in ("seed", "units", "belief", "policy", "allocation", "stopping", "participants"))
    return (arms, *settings) == (*same, design.participants)
