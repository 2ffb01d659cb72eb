"""What keys without the scope ``read`` may see: whom a decision is for and which arm, and nothing of any outcome.

An answer to such a key may depend on which decisions were asked and which of them have an outcome, never on the value
of an outcome. ``tests/test_service_blinding.py`` compares every answer over two stores that differ in outcomes only.
"""

import hmac
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from doublesampling.errors import NotFoundError, SettingError, VoidedError
from doublesampling.live import records
from doublesampling.live.design import Design
from doublesampling.live.experiment import Experiment
from doublesampling.live.memory import Known
from doublesampling.service import messages as m
from doublesampling.service.access import Caller

KEPT = (
    "This decision already has an outcome. What was sent was neither compared with it nor stored. "
    "If the stored one may be wrong, tell somebody whose key has the scope amend."
)


@contextmanager
def within(experiment: Experiment, caller: Caller) -> Iterator[None]:
    """Let no error name another experiment to a key that may not see it."""
    try:
        yield
    except VoidedError:
        if not caller.blind:
            raise
        raise VoidedError("This decision was voided: it is not to be carried out, and takes no outcome.") from None
    except NotFoundError:
        if not caller.blind and caller.experiment is None:
            raise
        message = f"Experiment {experiment.name!r} has no such decision. Use an id that an ask returned."
        raise NotFoundError(message) from None


def receipt(made: records.Receipt, caller: Caller, design: Design) -> m.Receipt:
    """A decision with as much as the caller may see."""
    if not caller.blind:
        return decision_view(made, design)
    code = design.code(made.arm)
    return m.Receipt.model_construct(
        id=made.id,
        unit=made.unit,
        arm=made.arm if code is None else None,
        arm_name=made.arm_name if code is None else code,
        asked_at=made.asked_at,
        repeated=made.repeated,
    )


def decision_view(made: records.Receipt, design: Design) -> m.Decision:
    """A decision with everything."""
    plain = made.to_dict() | {"arm_code": design.code(made.arm)}
    return m.Decision(**{name: plain[name] for name in m.Decision.model_fields})


def own_unit(row: dict[str, Any], caller: Caller, design: Design) -> m.OwnUnit:
    """A unit that waits for its outcome, for the key that asked for it."""
    code = design.code(row["arm"]) if caller.blind else None
    return m.OwnUnit(
        decision=row["id"],
        unit=row["unit"],
        arm=row["arm"] if code is None else None,
        arm_name=row["arm_name"] if code is None else code,
        asked_at=row["asked_at"],
    )


def outcome(told: records.Outcome, caller: Caller) -> m.OutcomeView | m.Acknowledged:
    """A stored outcome; a blind caller hears only that there is one."""
    if not caller.blind:
        return m.OutcomeView.model_construct(**told.__dict__)
    return m.Acknowledged(decision=told.decision, repeated=told.repeated, detail=KEPT if told.repeated else None)


def amended(told: records.Outcome, caller: Caller) -> m.OutcomeView | m.Acknowledged:
    """An amended outcome. Whether it was the same amendment as before would tell a blind caller the stored value."""
    if not caller.blind:
        return m.OutcomeView.model_construct(**told.__dict__)
    return m.Acknowledged(decision=told.decision, repeated=False, detail=None)


def retracted(told: records.Outcome, caller: Caller) -> m.OutcomeView | m.Acknowledged:
    """A withdrawn outcome, or a voided decision."""
    if not caller.blind:
        return m.OutcomeView.model_construct(**told.__dict__)
    return m.Acknowledged(decision=told.decision, repeated=told.repeated, detail=None)


def arms(known: Known, design: Design, caller: Caller) -> list[m.Arm]:
    """The arms by name; for blind callers of a coded experiment by code, in the order of the codes."""
    if caller.blind and design.codes is not None:
        coded = [(str(design.code(i)), i in known.active) for i in range(len(known.arms))]
        return [m.Arm(arm=None, name=code, active=active, code=code) for code, active in sorted(coded)]
    return [m.Arm(arm=i, name=name, active=i in known.active, code=design.code(i)) for i, name in enumerate(known.arms)]


def seal(number: int, seed: int) -> str:
    """A cursor that does not tell the number of the decision at which a list goes on."""
    nonce = _keyed(seed, number.to_bytes(8, "big"))
    return (nonce + bytes(a ^ b for a, b in zip(number.to_bytes(8, "big"), _keyed(seed, nonce), strict=True))).hex()


def unseal(cursor: str, seed: int) -> int:
    """The number that ``seal`` has hidden.

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
        raise SettingError("after must be a cursor that this list returned as following.")
    return int.from_bytes(plain, "big")


def _keyed(seed: int, content: bytes) -> bytes:
    return hmac.digest(seed.to_bytes(32, "big"), b"cursor" + content, "sha256")[:8]
