"""Blinding: what keys without the scope ``read`` may see, which is the unit and arm of a decision and no outcome.

A response to such a key may depend on which decisions exist and which of them have an outcome, never on the value of
an outcome. ``tests/test_service_blinding.py`` compares every response over two stores that differ in outcomes only.
"""

import hmac
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from doublesampling.errors import NotFoundError, SettingError, StoppedError, VoidedError
from doublesampling.live import records
from doublesampling.live.design import Design
from doublesampling.live.experiment import Experiment
from doublesampling.live.state import ExperimentState
from doublesampling.service.access import Caller
from doublesampling.service.schemas.decisions import Decision, PendingUnit, Receipt
from doublesampling.service.schemas.experiments import Arm
from doublesampling.service.schemas.outcomes import Acknowledgement, OutcomeView

KEPT = (
    "This decision already has an outcome. The value you sent was neither compared with it nor stored. "
    "If the stored one may be wrong, ask somebody whose key has the scope amend to correct it."
)


@contextmanager
def redact_errors(experiment: Experiment, caller: Caller) -> Iterator[None]:
    """Replace errors that would show results, or name another experiment, to a key that may not see them."""
    try:
        yield
    except VoidedError:
        if not caller.blind:
            raise
        raise VoidedError("This decision was voided: do not carry it out. It accepts no outcome.") from None
    except StoppedError:
        if not caller.blind:
            raise
        raise StoppedError("This experiment has ended: no new decisions. Outcomes can still be told.") from None
    except NotFoundError:
        if not caller.blind and caller.experiment is None:
            raise
        message = f"Experiment {experiment.name!r} has no such decision. Use an id that an ask returned."
        raise NotFoundError(message) from None


def receipt(made: records.Receipt, caller: Caller, design: Design) -> Receipt:
    """Return the part of a decision that the caller may see."""
    if not caller.blind:
        return decision_view(made, design)
    code = design.code(made.arm)
    return Receipt.model_construct(
        id=made.id,
        unit=made.unit,
        arm=made.arm if code is None else None,
        arm_name=made.arm_name if code is None else code,
        asked_at=made.asked_at,
        repeated=made.repeated,
    )


def decision_view(made: records.Receipt, design: Design) -> Decision:
    """Return a decision with all fields."""
    stored = {"position": made.position, "seed": made.address.seed, "snapshot": made.snapshot}
    plain = made.to_dict() | stored | {"arm_code": design.code(made.arm)}
    return Decision(**{name: plain[name] for name in Decision.model_fields})


def pending_unit(row: dict[str, Any], caller: Caller, design: Design) -> PendingUnit:
    """Return a unit that waits for an outcome, for the key that asked for it."""
    code = design.code(row["arm"]) if caller.blind else None
    return PendingUnit(
        decision=row["id"],
        unit=row["unit"],
        arm=row["arm"] if code is None else None,
        arm_name=row["arm_name"] if code is None else code,
        asked_at=row["asked_at"],
    )


def outcome(told: records.Outcome, caller: Caller) -> OutcomeView | Acknowledgement:
    """Return a stored outcome; a blind caller learns only that there is one."""
    if not caller.blind:
        return OutcomeView.model_construct(**told.__dict__)
    return Acknowledgement(decision=told.decision, repeated=told.repeated, detail=KEPT if told.repeated else None)


def amended(told: records.Outcome, caller: Caller) -> OutcomeView | Acknowledgement:
    """Return an amended outcome; ``repeated`` would reveal the stored value to a blind caller."""
    if not caller.blind:
        return OutcomeView.model_construct(**told.__dict__)
    return Acknowledgement(decision=told.decision, repeated=False, detail=None)


def retracted(told: records.Outcome, caller: Caller) -> OutcomeView | Acknowledgement:
    """Return a withdrawn outcome, or the outcome of a voided decision."""
    if not caller.blind:
        return OutcomeView.model_construct(**told.__dict__)
    return Acknowledgement(decision=told.decision, repeated=told.repeated, detail=None)


def arms(current: ExperimentState, design: Design, caller: Caller) -> list[Arm]:
    """Return the arms by name; for blind callers of an experiment with codes by code, in the order of the codes."""
    if caller.blind and design.codes is not None:
        coded = [(str(design.code(i)), i in current.active) for i in range(len(current.arms))]
        return [Arm(arm=None, name=code, active=active, code=code) for code, active in sorted(coded)]
    return [
        Arm(arm=i, name=name, active=i in current.active, code=design.code(i)) for i, name in enumerate(current.arms)
    ]


def seal(number: int, seed: int) -> str:
    """Return a cursor that hides the decision number at which the next page starts."""
    nonce = _keyed(seed, number.to_bytes(8, "big"))
    return (nonce + bytes(a ^ b for a, b in zip(number.to_bytes(8, "big"), _keyed(seed, nonce), strict=True))).hex()


def unseal(cursor: str, seed: int) -> int:
    """Return the number that ``seal`` has hidden.

    >>> unseal(seal(12, seed=7), seed=7)
    12
    """
    try:
        content = bytes.fromhex(cursor)
    except ValueError:
        content = b""
    nonce, hidden = content[:8], content[8:]
    plain = bytes(a ^ b for a, b in zip(hidden, _keyed(seed, nonce), strict=False))
    if len(content) != 16 or _keyed(seed, plain) != nonce:
        raise SettingError("after must be a cursor that this list returned as `following`.")
    return int.from_bytes(plain, "big")


def _keyed(seed: int, content: bytes) -> bytes:
    return hmac.digest(seed.to_bytes(32, "big"), b"cursor" + content, "sha256")[:8]
