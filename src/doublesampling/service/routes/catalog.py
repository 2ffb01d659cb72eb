"""Route of the catalog: every belief and policy that an experiment may use, with its settings."""

import inspect
import re
import types
import typing
from collections.abc import Sequence
from dataclasses import MISSING, Field, fields
from typing import Any, Literal

from fastapi import APIRouter
from pydantic import BaseModel
from pydantic import Field as Described

from doublesampling import beliefs, policies
from doublesampling.features import Features
from doublesampling.live.design import kinds
from doublesampling.service.access import Anyone

router = APIRouter(prefix="/v1", tags=["experiments"])
CHOICES = {
    "ties": ("random", "first"),
    "false_alarm": ("truncated-gaussian", "markov", "chebyshev"),
    "arithmetic": ("log", "double"),
    "count": ("false-alarm", "challenger", "doubt", "anytime"),
}
_TYPES: dict[type, str] = {Features: "features", bool: "boolean", int: "integer", float: "number"}
_NOT_LIVE = ("Oracle",)  # it needs the true rewards


class Setting(BaseModel):
    """A setting of a belief or policy."""

    name: str
    type: Literal["integer", "number", "boolean", "choice", "features"]
    list: bool = Described(description="whether a list is accepted too, such as one number per arm")
    optional: bool = Described(description="whether null is accepted")
    required: bool
    default: Any
    choices: Sequence[str] | None
    about: str = Described(description="the sentences of the documentation that name it")


class Component(BaseModel):
    """A belief or policy."""

    kind: str
    title: str
    about: str
    settings: Sequence[Setting]


class Catalog(BaseModel):
    """Every belief and policy that an experiment may use."""

    beliefs: Sequence[Component]
    policies: Sequence[Component]


@router.get("/catalog")
async def catalog(caller: Anyone) -> Catalog:
    """List every belief and policy with their settings, types and defaults."""
    return Catalog(beliefs=_components(beliefs), policies=_components(policies))


def _components(module: Any) -> list[Component]:
    return [describe(getattr(module, kind)) for kind in kinds(module) if kind not in _NOT_LIVE]


def describe(component: type) -> Component:
    """Return a belief or policy with its settings, for a form."""
    paragraphs = inspect.cleandoc(component.__doc__ or "").split("\n\n")
    prose = " ".join(part for part in paragraphs if not part.startswith(">>>"))
    known = typing.get_type_hints(component)
    return Component(
        kind=component.__name__,
        title=re.sub(r"(?<=[a-z])(?=[A-Z])", " ", component.__name__),
        about=_plain(paragraphs[0]),
        settings=[
            _setting(part, known[part.name], prose) for part in fields(component) if part.init and part.name != "arms"
        ],
    )


def _setting(part: "Field[Any]", hint: Any, prose: str) -> Setting:
    options = (
        typing.get_args(hint)
        if isinstance(hint, types.UnionType) or typing.get_origin(hint) is typing.Union
        else (hint,)
    )
    base = next((each for each in (Features, bool, int, float) if each in options), float)
    return Setting(
        name=part.name,
        type="choice" if part.name in CHOICES else _TYPES[base],  # type: ignore[arg-type]
        list=hint is Any or any(typing.get_origin(each) is not None for each in options),
        optional=type(None) in options,
        required=part.default is MISSING,
        default=None if part.default is MISSING else part.default,
        choices=CHOICES.get(part.name),
        about=_about(part.name, prose),
    )


def _about(name: str, prose: str) -> str:
    """Return the sentences of a docstring that name a setting."""
    sentences = re.split(r"(?<=[.]) (?=[A-Z`a-z])", prose.replace("\n", " "))
    return _plain(" ".join(each for each in sentences if re.search(rf"\b{name}\b", each)))[:300]


def _plain(text: str) -> str:
    return re.sub(r"\s+", " ", text.replace("``", "")).strip()
