"""The records that ask and tell return: decisions and outcomes as they were stored."""

import datetime
import json
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from doublesampling import html
from doublesampling.decision import Address

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


def pack(values: Any) -> str:
    """Return numbers as JSON without loss; nan, which JSON does not have, becomes null."""
    plain = np.asarray(values).tolist()
    return json.dumps([None if isinstance(v, float) and math.isnan(v) else v for v in plain], allow_nan=False)


def unpack(text: str) -> FloatArray:
    """Return the numbers that ``pack`` wrote."""
    return np.array([math.nan if v is None else v for v in json.loads(text)], dtype=np.float64)


@dataclass(frozen=True, eq=False)
class Receipt:
    """A stored decision. Arrays are (arm) and hold 0 for arms that had been dropped."""

    id: str
    """The id to pass to tell; random and unique over all experiments."""
    experiment: str
    number: int
    """The number of the decision in its experiment, from 1; on PostgreSQL there may be gaps."""
    unit: str | None
    request_key: str | None
    context: Any
    arm: int
    arm_name: str
    propensities: FloatArray
    probability_optimal: FloatArray
    candidates: int
    votes: IntArray
    time: int
    """One more than the number of decisions that this one could see."""
    position: int
    """Its position among decisions that were made together, from 0."""
    observations: int
    """How many outcomes the decision knew."""
    digest: str
    """SHA-256 digest of the posterior statistics it used."""
    snapshot: str
    """Which transactions it could see, as xmin:xmax:running."""
    address: Address
    """The address of its random numbers."""
    asked_at: datetime.datetime
    actor: str
    version: str
    repeated: bool = False
    """Whether an earlier request got this decision, so that no new one was made."""
    voided: bool = False
    """Whether it was marked as not carried out, so that it does not count."""

    @property
    def propensity(self) -> float:
        """The probability with which this arm was chosen; nan where it is unknown."""
        return float(self.propensities[self.arm])

    def _repr_html_(self) -> str:
        """A table for a notebook."""
        columns = (self.probability_optimal, self.votes, self.propensities)
        rows = [(arm, html.bar(p), votes, share) for arm, (p, votes, share) in enumerate(zip(*columns, strict=True))]
        caption = f"{self.arm_name}{f' for {self.unit}' if self.unit else ''}{' (voided)' if self.voided else ''}"
        shown = html.table(rows, ["arm", "P(best)", "votes", "propensity"], caption=caption, marked=self.arm)
        told = f"decision {self.number} of {self.experiment}, id {self.id}, N = {self.candidates}"
        return html.block(shown, html.line(told + (", stored before" if self.repeated else "")))

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, for JSON."""
        return {
            "id": self.id,
            "experiment": self.experiment,
            "number": self.number,
            "unit": self.unit,
            "request_key": self.request_key,
            "context": self.context,
            "arm": self.arm,
            "arm_name": self.arm_name,
            "propensity": None if math.isnan(self.propensity) else self.propensity,
            "propensities": json.loads(pack(self.propensities)),
            "probability_optimal": json.loads(pack(self.probability_optimal)),
            "candidates": self.candidates,
            "votes": self.votes.tolist(),
            "time": self.time,
            "observations": self.observations,
            "digest": self.digest,
            "asked_at": self.asked_at.isoformat(),
            "actor": self.actor,
            "version": self.version,
            "repeated": self.repeated,
            "voided": self.voided,
        }


@dataclass(frozen=True)
class Outcome:
    """A stored outcome."""

    decision: str
    reward: float | None
    """None where the outcome was withdrawn or the decision voided."""
    kind: str
    """told, imputed, amended, withdrawn or voided."""
    imputed: bool
    revision: int
    """1 for the first outcome of a decision, one more for each that supersedes it."""
    reason: str | None
    told_at: datetime.datetime
    actor: str
    repeated: bool = False
    """Whether it was stored already, so that nothing was written."""

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, for JSON."""
        return {**self.__dict__, "told_at": self.told_at.isoformat()}


def receipt_from_row(
    row: Any, experiment: str, arms: tuple[str, ...], seed: int, *, repeated: bool = False, voided: bool = False
) -> Receipt:
    """Return a row of the decisions table as a receipt."""
    return Receipt(
        id=row.id,
        experiment=experiment,
        number=row.number,
        unit=row.unit,
        request_key=row.request_key,
        context=None if row.context is None else json.loads(row.context),
        arm=row.arm,
        arm_name=arms[row.arm],
        propensities=unpack(row.propensities),
        probability_optimal=unpack(row.probability_optimal),
        candidates=row.candidates,
        votes=np.array(json.loads(row.votes), dtype=np.int64),
        time=row.time,
        position=row.position,
        observations=row.observations,
        digest=row.digest,
        snapshot=row.snapshot,
        address=Address(seed, 0, row.number, row.time),
        asked_at=row.at,
        actor=row.actor,
        version=row.version,
        repeated=repeated,
        voided=voided,
    )
