"""Routes of the audit trail of an experiment, and of the access log."""

from typing import Annotated

from fastapi import APIRouter, Query

from doublesampling.live.queries import audit
from doublesampling.service import access_log
from doublesampling.service.access import Admin, Reader, State
from doublesampling.service.schemas.audit import AccessEntry, AccessPage, AuditEntry, AuditPage

router = APIRouter(prefix="/v1", tags=["audit"])


@router.get("/experiments/{name}/audit")
async def audit_trail(
    state: State,
    caller: Reader,
    name: str,
    after: Annotated[str | None, Query(max_length=100, description="the cursor of the page before")] = None,
    limit: Annotated[int, Query(ge=1, le=1000)] = 200,
) -> AuditPage:
    """Read the audit trail: every decision, outcome, correction and event, with actor, time and reason."""
    experiment = await state.experiment(name)
    entries, following = await state.long(caller.shown, audit.read, experiment.session, after, limit)
    return AuditPage(entries=[AuditEntry(**entry.to_dict()) for entry in entries], following=following)


@router.get("/access")
async def read_access_log(
    state: State,
    caller: Admin,
    experiment: Annotated[str | None, Query(max_length=500)] = None,
    before: Annotated[int | None, Query(ge=1, lt=2**62)] = None,
    limit: Annotated[int, Query(ge=1, le=500)] = 100,
) -> AccessPage:
    """Read the access log: who read or exported results, newest first."""
    wanted = caller.experiment or experiment
    if experiment is not None and wanted != experiment:
        raise caller.wrong_experiment_error
    rows, following = await state.read(
        lambda: access_log.read(state.store, experiment=wanted, before=before, limit=limit)
    )
    return AccessPage(entries=[AccessEntry(**row) for row in rows], following=following)
