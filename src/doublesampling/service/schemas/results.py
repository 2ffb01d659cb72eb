"""Schemas of results: posterior, overview, series, health and replay."""

import datetime
from typing import Literal

from pydantic import BaseModel, Field

from doublesampling.service.schemas.base import Share, ShownContext
from doublesampling.service.schemas.experiments import ExperimentView


class Density(BaseModel):
    """A posterior density as points of a line."""

    x: list[float]
    y: list[float]


class ArmPosterior(BaseModel):
    """The posterior of an arm's expected reward."""

    arm: int
    name: str
    active: bool
    observations: int = Field(description="outcomes that the posterior knows, history included")
    posterior_mean: float | None
    sd: float | None
    low: float | None = Field(description="lower end of the central 95 % credible interval")
    high: float | None = Field(description="upper end of the central 95 % credible interval")
    probability_optimal: float
    next_allocation: float | None = Field(description="probability that the next decision chooses it; null: unknown")


class ArmDensity(ArmPosterior):
    """The posterior of an arm's expected reward, with its density."""

    density: Density | None


class Posterior(BaseModel):
    """The posterior of every arm, at the requested context."""

    version: str
    context: ShownContext | None
    candidates: int = Field(description="N, the number of candidates that the next decision would draw")
    arms: list[ArmDensity]


class Difference(BaseModel):
    """The posterior of the difference between two arms' expected rewards."""

    reference: int = Field(description="the arm that is subtracted")
    mean: float | None
    low: float = Field(description="lower end of the central 95 % credible interval of the difference")
    high: float = Field(description="upper end of the central 95 % credible interval of the difference")
    probability_better: Share


class ArmResult(ArmPosterior):
    """An arm's counts and posterior. Counts are null while a long log is still being counted."""

    code: str | None
    assigned: int | None = Field(description="decisions for this arm, without voided ones")
    outcomes: int | None = Field(description="how many of them have an outcome")
    total: float | None = Field(description="the sum of these outcomes: the successes where rewards are 0 or 1")
    waiting: int | None = Field(description="how many of them wait for an outcome")
    share: float | None = Field(description="share of all decisions")
    history: int | None = Field(description="outcomes from before the experiment")
    voided: int | None
    difference: Difference | None


class AllocationMood(BaseModel):
    """Whether the next decision explores or exploits, from each arm's probability of being chosen."""

    word: Literal["exploring", "leaning", "exploiting", "unknown"]
    arm: int | None = Field(description="the arm that is favoured")
    probability: Share | None


class Overview(BaseModel):
    """The status of an experiment: counts and posterior of every arm, and the next decision."""

    experiment: ExperimentView
    context: ShownContext | None
    context_source: Literal["asked", "recent", "ones", "default"] | None = Field(
        description="asked: from the request; recent: the mean of the latest contexts (of records, means and the most "
        "frequent categories); ones, or for records default: there are none yet"
    )
    reference: str | None = Field(description="the arm that others are compared with; `best`: the best of the others")
    horizon: int | None = Field(description="the number of decisions that the policy plans for")
    candidates: int = Field(description="N, the number of candidates that the next decision would draw")
    mood: AllocationMood
    arms: list[ArmResult]


class SeriesPoint(BaseModel):
    """A decision of a series."""

    number: int
    asked_at: datetime.datetime
    arm: int
    probability_optimal: list[float]
    candidates: int


class AllocationPoint(BaseModel):
    """Decisions per arm up to a decision number."""

    number: int
    counts: list[int]


class TimelineEvent(BaseModel):
    """An event to mark in a chart: a pause, a change of arms, imported history, or a correction of an outcome."""

    kind: Literal["pause", "resume", "add_arm", "drop_arm", "history", "look", "amended", "withdrawn", "voided"]
    number: int = Field(description="the latest decision before it; 0 where there was none")
    at: datetime.datetime
    text: str


class Series(BaseModel):
    """The history of an experiment, downsampled.

    ``complete`` is false while a long log is still being counted; request it again later.
    """

    arms: list[str]
    points: list[SeriesPoint]
    allocation: list[AllocationPoint]
    happenings: list[TimelineEvent]
    complete: bool


class SequencePoint(BaseModel):
    """A confidence sequence after some outcomes; ends are null where nothing can be said yet."""

    outcomes: int
    estimate: float | None
    low: float | None
    high: float | None


class SequenceView(BaseModel):
    """A confidence sequence of an arm's mean or of a difference: all intervals hold together with this confidence."""

    version: str
    contrast: list[int] = Field(description="the arm, and the arm that is subtracted")
    title: str | None = Field(description="the contrast in words, such as `20 mg - placebo`; null where it is refused")
    level: float
    method: Literal["asymptotic", "empirical-bernstein"]
    pending: int = Field(description="decisions whose outcome is awaited")
    reason: str | None = Field(description="why there is no interval now; null where there is one")
    refused: str | None = Field(description="the code of the error, such as `log`, where the log allows no sequence")
    points: list[SequencePoint]


class Delays(BaseModel):
    """Delays between decisions and outcomes, in seconds, over the latest decisions."""

    looked_at: int = Field(description="how many decisions were included")
    waiting: int = Field(description="how many of them wait for an outcome")
    delay_median: float | None
    delay_p90: float | None
    age_median: float | None = Field(description="median age of the decisions that wait")
    age_most: float | None = Field(description="age of the oldest decision that waits")


class PropensityCheck(BaseModel):
    """How often an arm was chosen, compared with the sum of its logged propensities."""

    name: str
    observed: int
    expected: float
    deviations: float | None = Field(description="the difference in standard deviations")


class ReplayView(BaseModel):
    """Whether every decision follows from the log."""

    status: Literal["running", "done", "failed"]
    agrees: bool | None
    decisions: int | None
    different: int | None
    differences: list[str]
    looks: int | None = Field(default=None, description="how many looks were recomputed")
    replayed_at: datetime.datetime | None
    current: bool = Field(description="whether nothing was written since")


class Health(BaseModel):
    """Consistency checks of the log; propensities are compared over ``judged`` decisions."""

    delays: Delays
    propensities: list[PropensityCheck]
    judged: int = Field(description="decisions with known propensities")
    complete: bool
    replay: ReplayView | None
