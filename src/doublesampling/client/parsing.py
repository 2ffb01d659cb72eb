"""From JSON responses to what ``ds.Experiment`` returns: receipts, outcomes, explanations and tables."""

import json
import math
from dataclasses import fields
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np

from doublesampling.client.errors import ForbiddenError, ServiceError
from doublesampling.client.records import BlindOutcome, BlindReceipt, parse_time
from doublesampling.decision import Address
from doublesampling.errors import ContextError
from doublesampling.live.explain import Explanation
from doublesampling.live.queries.audit import AuditEntry, entries_to_frame
from doublesampling.live.queries.looks import LookRecord
from doublesampling.live.records import Outcome, Receipt
from doublesampling.live.replay import Replay

if TYPE_CHECKING:
    import pandas as pd


def receipt(found: dict[str, Any], experiment: str) -> Receipt:
    """Return a decision; a key without the scope ``read`` gets the part that it may see."""
    asked_at = parse_time(found["asked_at"])
    if "number" not in found:
        shown = {name: found[name] for name in ("id", "unit", "arm", "arm_name", "repeated")}
        return BlindReceipt({**shown, "experiment": experiment, "asked_at": asked_at})
    plain = ("id", "number", "unit", "request_key", "context", "arm", "arm_name", "candidates", "time", "position",
             "observations", "digest", "snapshot", "actor", "version", "repeated", "voided")  # fmt: skip
    return Receipt(
        experiment=experiment,
        propensities=_numbers(found["propensities"]),
        probability_optimal=_numbers(found["probability_optimal"]),
        votes=np.array(found["votes"], dtype=np.int64),
        address=Address(found["seed"], 0, found["number"], found["time"]),
        asked_at=asked_at,
        **{name: found[name] for name in plain},
    )


def _numbers(values: list[Any]) -> Any:
    return np.array([_number(v) for v in values], dtype=np.float64)


def _number(value: Any) -> float:
    return math.nan if value is None else float(value)


def outcome(found: dict[str, Any]) -> Outcome:
    """Return an outcome; a key without the scope ``read`` gets a confirmation."""
    if "revision" not in found:
        return BlindOutcome({name: found[name] for name in ("decision", "repeated", "detail")})
    plain = ("decision", "reward", "kind", "imputed", "revision", "reason", "actor", "repeated")
    return Outcome(told_at=parse_time(found["told_at"]), **{name: found[name] for name in plain})


def explanation(found: dict[str, Any], experiment: str) -> Explanation:
    """Return the explanation of a decision; numbers that JSON does not have are nan."""
    made = receipt({**found["decision"], "repeated": True}, experiment)
    arms = ({**arm, "mean": _number(arm["mean"]), "sd": _number(arm["sd"])} for arm in found["arms"])
    plain = {name: found[name] for name in ("why", "policy", "allocation", "belief", "verified", "unknown_then")}
    return Explanation(decision=made, arms=tuple(arms), asked_at=made.asked_at, **plain)


def summary(found: dict[str, Any]) -> dict[str, Any]:
    """Return the summary of an experiment, with times as Python writes them."""
    return {**found, "created_at": parse_time(found["created_at"]).isoformat()}


def looks(found: dict[str, Any]) -> list[LookRecord]:
    """Return the looks of an experiment from its status."""
    if found["looks"] is None and found["results"] is None:
        raise ForbiddenError("This key may not see results, and looks are results. Use a key with the scope read.")
    made = []
    for each in found["looks"] or []:
        lists = {name: tuple(each[name]) for name in ("dropped", "remaining")}
        plain = {part.name: each[part.name] for part in fields(LookRecord) if part.name in each}
        made.append(LookRecord(**{**plain, **lists, "at": parse_time(each["at"])}))
    return made


def posterior(found: dict[str, Any], asked: bool) -> "pd.DataFrame":
    """Return the posterior of each arm as a table; numbers that JSON does not have, such as infinity, are nan."""
    import pandas as pd

    if found["context"] is not None and not asked:
        size = len(found["context"])
        raise ContextError(f"This experiment has a context: pass context= with {size} numbers.")
    arms = found["arms"]
    numbers = {name: [_number(arm[source]) for arm in arms] for name, source in (
        ("mean", "posterior_mean"), ("sd", "sd"), ("low", "low"), ("high", "high"),
        ("probability_optimal", "probability_optimal"))}  # fmt: skip
    counts = {"observations": np.array([arm["observations"] for arm in arms], dtype=np.int64)}
    index = pd.Index([arm["name"] for arm in arms], name="arm")
    return pd.DataFrame({**numbers, **counts, "active": [arm["active"] for arm in arms]}, index=index)


def decision_rows(text: str) -> list[dict[str, Any]]:
    """Return the rows of an export as JSON lines."""
    return [json.loads(line) for line in text.splitlines()]


def decision_table(rows: list[dict[str, Any]]) -> "pd.DataFrame":
    """Return exported rows as the table that ``Experiment.decisions`` returns."""
    from doublesampling.live.queries.tables import to_frame

    return to_frame([_row(row) for row in rows], {row["arm"]: row["arm_name"] for row in rows})


def _row(row: dict[str, Any]) -> SimpleNamespace:
    packed = {name: None if row[name] is None else json.dumps(row[name])
              for name in ("context", "propensities", "probability_optimal")}  # fmt: skip
    told_at = None if row["told_at"] is None else parse_time(row["told_at"])
    kind = None if row["status"] == "waiting" else row["status"]
    times = {"at": parse_time(row["asked_at"]), "told_at": told_at}
    return SimpleNamespace(**{**row, **packed, **times, "kind": kind, "revision": row["revisions"]})


def audit_table(entries: list[dict[str, Any]]) -> "pd.DataFrame":
    """Return entries as the table that ``Experiment.audit`` returns."""
    known = AuditEntry.__dataclass_fields__
    plain = ({name: value for name, value in entry.items() if name in known} for entry in entries)
    return entries_to_frame([AuditEntry(**{**entry, "at": parse_time(entry["at"])}) for entry in plain])


def replay(found: dict[str, Any]) -> Replay | None:
    """Return the result of a replay, or None while it is running."""
    if found["status"] == "running":
        return None
    if found["status"] == "failed":
        raise ServiceError("The replay failed on the server; see its log.", code="internal")
    return Replay(
        int(found["decisions"]), int(found["different"]), tuple(found["differences"]), int(found.get("looks") or 0)
    )


def experiment_names(found: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the listed experiments: name, arms, created_at, created_by, and the status."""
    return [
        {
            "name": each["name"],
            "arms": each["arms"],
            "created_at": parse_time(each["created_at"]).isoformat(),
            "created_by": each["created_by"],
            "status": each["status"],
        }
        for each in found["experiments"]
    ]
