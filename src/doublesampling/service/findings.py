"""What goes over the wire of results: posterior, series, health, replay, what-if."""

import datetime
from typing import Annotated, Literal

from pydantic import BaseModel, Field, FiniteFloat

from doublesampling.service.messages import ExperimentView, Request

Share = Annotated[float, Field(ge=0.0, le=1.0)]


class Density(BaseModel):
    """A posterior density as a line."""

    x: list[float]
    y: list[float]


class Believed(BaseModel):
    """What is believed of an arm's expected reward."""

    arm: int
    name: str
    active: bool
    observations: int
    posterior_mean: float | None
    sd: float | None
    low: float | None = Field(description="lower end of the central 95 % credible interval")
    high: float | None
    probability_optimal: float
    next_allocation: float | None = Field(description="with which probability it would come next; null: not known")
    density: Density | None


class Posterior(BaseModel):
    """What is believed now, at the context that was asked for."""

    version: str
    context: list[float] | None
    candidates: int = Field(description="N, how many candidates the next decision would draw")
    arms: list[Believed]


class Difference(BaseModel):
    """The posterior of the difference between two arms' expected rewards."""

    reference: int = Field(description="the arm that is subtracted")
    mean: float | None
    low: float = Field(description="lower end of the central 95 % credible interval of the difference")
    high: float
    probability_better: Share


class ArmResult(BaseModel):
    """An arm's counts and posterior. Counts are null while a long log is still being counted."""

    arm: int
    name: str
    code: str | None
    active: bool
    assigned: int | None = Field(description="decisions for this arm, voided ones not counted")
    outcomes: int | None = Field(description="how many of them have an outcome")
    total: float | None = Field(description="the sum of these outcomes: the successes where rewards are 0 or 1")
    waiting: int | None
    share: float | None = Field(description="of all decisions")
    history: int | None = Field(description="outcomes from before the experiment")
    voided: int | None
    observations: int = Field(description="outcomes that the posterior knows, history included")
    posterior_mean: float | None
    sd: float | None
    low: float | None = Field(description="lower end of the central 95 % credible interval")
    high: float | None
    probability_optimal: float
    next_allocation: float | None = Field(description="with which probability it would come next; null: not known")
    difference: Difference | None


class Mood(BaseModel):
    """How the next decision chooses, from the probability of each arm to come next."""

    word: Literal["exploring", "leaning", "exploiting", "unknown"]
    arm: int | None = Field(description="the arm that is favoured")
    probability: Share | None


class Overview(BaseModel):
    """How an experiment stands."""

    experiment: ExperimentView
    context: list[float] | None
    context_source: Literal["asked", "recent", "ones"] | None = Field(
        description="recent: the mean of the latest contexts, ones: there are none yet"
    )
    reference: str | None = Field(description="the arm that others are compared with; `best`: the best of the others")
    horizon: int | None = Field(description="how many decisions the policy plans for")
    candidates: int = Field(description="N, how many candidates the next decision would draw")
    mood: Mood
    arms: list[ArmResult]


class Point(BaseModel):
    """A decision of a series."""

    number: int
    asked_at: datetime.datetime
    arm: int
    probability_optimal: list[float]
    candidates: int


class Mark(BaseModel):
    """Decisions per arm up to a number."""

    number: int
    counts: list[int]


class Happening(BaseModel):
    """Something that a chart marks: a pause, a change of arms, history, or corrections of outcomes."""

    kind: Literal["pause", "resume", "add_arm", "drop_arm", "history", "amended", "withdrawn", "voided"]
    number: int = Field(description="the latest decision before it; 0 where there was none")
    at: datetime.datetime
    text: str


class Series(BaseModel):
    """The past, reduced. ``complete`` is false while a long log is still being counted: ask again."""

    arms: list[str]
    points: list[Point]
    allocation: list[Mark]
    happenings: list[Happening]
    complete: bool


class Delays(BaseModel):
    """How long outcomes take, in seconds, over the latest decisions."""

    looked_at: int
    waiting: int
    delay_median: float | None
    delay_p90: float | None
    age_median: float | None
    age_most: float | None


class Played(BaseModel):
    """How often an arm was played, and how often its logged propensities foretold."""

    name: str
    observed: int
    expected: float
    deviations: float | None


class Health(BaseModel):
    """Whether the log looks as it should; propensities are compared over ``judged`` decisions."""

    delays: Delays
    propensities: list[Played]
    judged: int
    complete: bool
    replay: "ReplayView | None"


class ReplayView(BaseModel):
    """Whether every decision follows from the log."""

    status: Literal["running", "done", "failed"]
    agrees: bool | None
    decisions: int | None
    different: int | None
    differences: list[str]
    replayed_at: datetime.datetime | None
    current: bool = Field(description="whether nothing was written since")


class Suppose(Request):
    """Truths to suppose: the expected reward of each arm."""

    truth: Annotated[list[FiniteFloat], Field(min_length=2, max_length=200)]
    horizon: Annotated[int, Field(ge=1, le=100_000)] | None = None
    realizations: Annotated[int, Field(ge=20, le=20_000)] = 1000
    seed: Annotated[int, Field(ge=0, lt=2**32)] = 1
    noise: Annotated[float, Field(gt=0.0, le=1e6)] = 1.0


class WithError(BaseModel):
    """A number and its Monte Carlo standard error."""

    value: float
    error: float


class Characteristics(BaseModel):
    """How the design does where the truth is as supposed."""

    best_arm_wins: WithError | None = Field(description="none where all arms are equally good")
    failures: WithError | None
    failures_of_equal_allocation: float | None
    regret: WithError
    shares: list[WithError]
    horizon: int
    realizations: int


class WhatIf(BaseModel):
    """A simulation under way, or done."""

    id: str
    status: Literal["waiting", "running", "done", "failed", "stopped"]
    progress: Share
    truth: list[float]
    detail: str | None
    result: Characteristics | None = Field(description="of what has been played so far")
