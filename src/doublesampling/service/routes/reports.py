"""Routes of documents: the protocol and the report of an experiment as one HTML page. They need the scope ``read``."""

from collections.abc import Callable
from typing import Any

from fastapi import APIRouter
from fastapi.responses import HTMLResponse

from doublesampling.reports import protocol, report
from doublesampling.service.access import Caller, Reader, State
from doublesampling.service.responses import long_content
from doublesampling.service.state import ServiceState

router = APIRouter(prefix="/v1/experiments/{name}", tags=["results"])


async def _page(state: ServiceState, caller: Caller, name: str, make: Callable[[Any], Any]) -> HTMLResponse:
    experiment = await state.experiment(name)
    made = await long_content(state, caller, experiment, make.__name__, lambda: make(experiment).html)
    return HTMLResponse(made.body, headers={"Content-Disposition": "attachment", "Content-Security-Policy": "sandbox"})


@router.get("/protocol.html", response_class=HTMLResponse, name="protocol_page")
async def protocol_page(state: State, caller: Reader, name: str) -> HTMLResponse:
    """Read the design of an experiment as a document."""
    return await _page(state, caller, name, protocol)


@router.get("/report.html", response_class=HTMLResponse, name="report_page")
async def report_page(state: State, caller: Reader, name: str) -> HTMLResponse:
    """Read what happened in an experiment, and what it says, as a document."""
    return await _page(state, caller, name, report)
