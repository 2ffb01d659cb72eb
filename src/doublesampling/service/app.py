"""The ASGI application: routes, middleware and error handlers. ``create_app(storage)`` returns it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from fastapi import FastAPI
from fastapi.responses import FileResponse, PlainTextResponse
from fastapi.staticfiles import StaticFiles

from doublesampling import __version__
from doublesampling.service import problems
from doublesampling.service.access import Anyone, Reader, State
from doublesampling.service.middleware import BODY, SECONDS, ServiceMiddleware
from doublesampling.service.routes import (
    analysis,
    arms,
    audit,
    catalog,
    decisions,
    experiments,
    export,
    outcomes,
    overview,
    replay,
    reports,
    results,
    sequence,
    simulations,
    units,
)
from doublesampling.service.schemas.base import Problem
from doublesampling.service.schemas.experiments import HealthStatus, KeyInfo
from doublesampling.service.scopes import format_scopes
from doublesampling.service.state import ServiceState

STATIC = Path(__file__).parent / "static"
_ABOUT = "Live experiments that choose arms by double sampling: ask for a decision, then tell its outcome."
_ROUTES = (
    experiments, catalog, arms, decisions, outcomes, units, overview, results, sequence, analysis, replay,
    audit, export, reports, simulations,
)  # fmt: skip
_PROBLEMS: dict[int | str, dict[str, Any]] = {
    "4XX": {
        "description": "the request was refused; `code` gives the reason and is the same in every version",
        "content": {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}},
    },
    "5XX": {
        "description": "the server or its store failed",
        "content": {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}},
    },
}


def create_app(
    storage: str | None = None, *, seconds: float = SECONDS, body: int = BODY, require_keys: bool = False
) -> FastAPI:
    """Return the service for a store, which is created where there is none. See ``KeyCache`` for ``require_keys``."""
    state = ServiceState(storage, require_keys)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        yield
        state.close()

    app = FastAPI(
        title="doublesampling",
        version=__version__,
        description=_ABOUT,
        docs_url=None,  # these pages load scripts from other servers
        redoc_url=None,
        lifespan=lifespan,
        responses=_PROBLEMS,
        generate_unique_id_function=lambda route: route.name,
        redirect_slashes=False,
    )
    app.state.service = state
    problems.install(app)
    for part in _ROUTES:
        app.include_router(part.router)
    _add_service_routes(app)
    _describe_problems(app)
    app.add_middleware(ServiceMiddleware, state=lambda: state, seconds=seconds, body=body)
    return app


def _add_service_routes(app: FastAPI) -> None:
    @app.get("/healthz", tags=["operation"])
    async def healthz(state: State) -> HealthStatus:
        """Check that the service and its store work. Needs no key."""
        await state.check_health()
        return HealthStatus(status="ok")

    @app.get("/metrics", tags=["operation"], response_class=PlainTextResponse)
    async def metrics(state: State, caller: Reader) -> PlainTextResponse:
        """Read the counters of this process in Prometheus format."""
        if caller.experiment is not None:
            raise caller.wrong_experiment_error
        return PlainTextResponse(state.metrics.text(state.writer), media_type="text/plain; version=0.0.4")

    @app.get("/v1/me", tags=["operation"])
    async def me(caller: Anyone) -> KeyInfo:
        """Read what the key of this request may do."""
        return KeyInfo(
            role=caller.role,
            scopes=format_scopes(caller.scopes).split(","),
            experiment=caller.experiment,
            keyless=caller.keyless,
            version=__version__,
        )

    @app.get("/", include_in_schema=False)
    async def dashboard() -> FileResponse:
        return FileResponse(STATIC / "index.html")

    app.mount("/static", StaticFiles(directory=STATIC), name="static")


def _describe_problems(app: FastAPI) -> None:
    """Replace FastAPI's validation errors in the OpenAPI document by the schema of problems."""
    plain = app.openapi

    def openapi() -> dict[str, Any]:
        if app.openapi_schema is None:
            document = plain()
            schemas = document["components"]["schemas"]
            schemas["Problem"] = Problem.model_json_schema()
            for name in ("HTTPValidationError", "ValidationError"):
                schemas.pop(name, None)
            for path in document["paths"].values():
                for operation in path.values():
                    operation["responses"].pop("422", None)
            app.openapi_schema = document
        return app.openapi_schema

    app.openapi = openapi  # type: ignore[method-assign]
