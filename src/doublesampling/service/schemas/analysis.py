"""Schemas of analyses: estimates from adaptive data, and the exact test of two arms."""

from typing import Annotated, Literal

from pydantic import BaseModel, Field, FiniteFloat

from doublesampling.service.schemas.base import Request

ArmIndex = Annotated[int, Field(ge=0, le=10_000)]


class AnalysisQuery(Request):
    """The contrast and the settings of an analysis."""

    arm: ArmIndex = Field(default=1, description="index of the arm")
    reference: ArmIndex = Field(default=0, description="the arm that is subtracted; the same as `arm`: none")
    method: Literal["aw-aipw", "aipw", "ips", "naive"] = "aw-aipw"
    level: float = Field(default=0.95, ge=0.5, le=0.9999, description="confidence of the interval")
    weights: Literal["constant", "stick-breaking"] = Field(default="constant", description="of the method aw-aipw")
    null: FiniteFloat = Field(default=0.0, description="the value that the p-value tests")
    decay: float = Field(default=0.7, ge=0.0, le=0.99, description="of the floor that stick-breaking weights assume")
    initial: FiniteFloat | None = Field(default=None, description="what is expected of an arm before its first outcome")
    least: FiniteFloat | None = Field(default=None, description="the least possible reward, together with `largest`")
    largest: FiniteFloat | None = Field(default=None, description="the largest possible reward")


class AnalysisView(BaseModel):
    """An estimate with its confidence interval, what it rests on, and in words when it may be trusted.

    Numbers that are not finite are null.
    """

    estimate: float | None
    low: float | None
    high: float | None
    p_value: float | None = Field(description="two-sided, of the hypothesis that the true value is `null`")
    standard_error: float | None
    effective_sample_size: float | None = Field(description="outcomes of equal weight that would be as informative")
    degrees_of_freedom: float | None = Field(description="of the Student law of the interval; null: infinite")
    method: str
    level: float
    contrast: str = Field(description="such as `20 mg - placebo`")
    null: float
    rows: int = Field(description="decisions that were used")
    outcomes: list[int] = Field(description="of these, decisions for each arm of the contrast")
    pending: int = Field(description="decisions whose outcome is awaited; left out")
    missing: int = Field(description="decisions whose outcome is missing; left out")
    imputed: int
    voided: int
    unavailable: int = Field(description="decisions left out because an arm of the contrast was not available")
    used_up: int = Field(description="decisions in which the slots of an arm in a permuted block were used")
    least_propensity: float | None
    worst_case: list[float | None] | None = Field(
        description="the interval that holds whatever the pending and missing outcomes are, where rewards are bounded"
    )
    trust: str = Field(description="when the result may be trusted")


class ExactTestQuery(Request):
    """The settings of an exact test."""

    statistic: Literal["z", "difference", "probability"] = "z"
    alternative: Literal["two-sided", "greater", "less"] = Field(
        default="two-sided", description="`greater`: the second arm is the better one"
    )
    late: Literal["refuse", "ignore"] = Field(
        default="refuse", description="what to do where a decision did not know all outcomes before it"
    )


class ExactTestView(BaseModel):
    """The result of an exact test that two binary arms are equal."""

    p_value: float
    statistic: float | None
    states: int = Field(description="how many states were compared")
    alternative: str
    assumes: str = Field(description="what the test assumes beside the design")
