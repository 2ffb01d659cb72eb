"""Routes of the audit trail of an experiment, and of the log of who read what."""

from typing import Annotated

from fastapi import APIRouter, Query

from doublesampling.live import audit
from doublesampling.service import access_log
from doublesampling.service import trail as m
from doublesampling.service.access import Admin, Reader, TheDesk

router = APIRouter(prefix="/v1", tags=["audit"])


@router.get("/experiments/{name}/audit")
async def audit_trail(
    desk: TheDesk,
    caller: Reader,
    name: str,
    after: Annotated[str | None, Query(max_length=100, description="the cursor to go on from")] = None,
    limit: Annotated[int, Query(ge=1, le=1000)] = 200,
) -> m.AuditPage:
    """Read the audit trail: every decision, outcome, correction and event, with who, when and why."""
    experiment = await desk.experiment(name)
    entries, following = await desk.long(caller.shown, audit.read, experiment._book, after, limit)
    return m.AuditPage(entries=[m.AuditEntry(**entry.to_dict()) for entry in entries], following=following)


@router.get("/access")
async def who_read_what(
    desk: TheDesk,
    caller: Admin,
    experiment: Annotated[str | None, Query(max_length=500)] = None,
    before: Annotated[int | None, Query(ge=1, lt=2**62)] = None,
    limit: Annotated[int, Query(ge=1, le=500)] = 100,
) -> m.AccessPage:
    """Read the log of who looked at results or exported them, the newest first."""
    wanted = caller.experiment or experiment
    if experiment is not None and wanted != experiment:
        raise caller.stays_at_home
    rows, following = await desk.read(
        lambda: access_log.read(desk.store, experiment=wanted, before=before, limit=limit)
    )
    return m.AccessPage(entries=[m.Access(**row) for row in rows], following=following)
