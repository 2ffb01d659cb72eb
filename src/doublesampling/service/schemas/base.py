"""Types that several schemas share, and the error response."""

from typing import Annotated

from fastapi import Header
from pydantic import BaseModel, ConfigDict, Field, FiniteFloat

Text = Annotated[str, Field(min_length=1, max_length=500)]
FieldValue = bool | int | FiniteFloat | Annotated[str, Field(max_length=500)]
Numbers = Annotated[list[FiniteFloat], Field(min_length=1, max_length=10_000)]
Record = Annotated[
    dict[str, FieldValue | None], Field(min_length=1, max_length=1000, examples=[{"age": 61, "site": "a"}])
]
Context = Numbers | Record
"""Numbers; or a record with the fields that the experiment lists under ``features``."""
ShownContext = list[float] | dict[str, FieldValue]
Share = Annotated[float, Field(ge=0.0, le=1.0)]
IdempotencyKey = Annotated[
    str | None,
    Header(min_length=1, max_length=500, description="a text of your choice; the same key changes nothing twice"),
]


class Request(BaseModel):
    """The body of a request. Unknown fields are refused, so that a misspelled one is noticed."""

    model_config = ConfigDict(extra="forbid")


class Problem(BaseModel):
    """An error in the format of RFC 9457. The value of ``code`` for an error is the same in every version."""

    type: str
    title: str
    status: int
    detail: str
    code: str


class OptionalReason(Request):
    """A reason that may be left out."""

    reason: Text | None = None


class RequiredReason(Request):
    """A reason that must be given."""

    reason: Text
