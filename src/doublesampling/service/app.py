"""The app: routes, door and errors put together. ``create_app(storage)`` is all that a server needs."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from fastapi import FastAPI
from fastapi.responses import FileResponse, PlainTextResponse
from fastapi.staticfiles import StaticFiles

from doublesampling import __version__
from doublesampling.service import (
    arms,
    audit,
    catalog,
    decisions,
    experiments,
    export,
    outcomes,
    overview,
    problems,
    results,
    units,
    whatif,
)
from doublesampling.service import messages as m
from doublesampling.service.access import Anyone, Reader, TheDesk
from doublesampling.service.desk import Desk
from doublesampling.service.guard import BODY, SECONDS, Guard
from doublesampling.service.scopes import shown

STATIC = Path(__file__).parent / "static"
_ABOUT = "Live experiments that decide by sampling twice: ask which arm, tell what came of it."
_PROBLEMS: dict[int | str, dict[str, Any]] = {
    "4XX": {
        "description": "refused; `code` says why and stays the same",
        "content": {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}},
    },
    "5XX": {
        "description": "the server or its store cannot",
        "content": {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}},
    },
}


def create_app(
    storage: str | None = None, *, seconds: float = SECONDS, body: int = BODY, require_keys: bool = False
) -> FastAPI:
    """Make the service over a store, which is made where there is none. See ``KeyCache`` for ``require_keys``."""
    desk = Desk(storage, require_keys)

    @asynccontextmanager
    async def life(_: FastAPI) -> AsyncIterator[None]:
        yield
        desk.close()

    app = FastAPI(
        title="doublesampling",
        version=__version__,
        description=_ABOUT,
        docs_url=None,  # these pages load scripts from elsewhere
        redoc_url=None,
        lifespan=life,
        responses=_PROBLEMS,
        generate_unique_id_function=lambda route: route.name,
        redirect_slashes=False,
    )
    app.state.desk = desk
    problems.install(app)
    for part in (experiments, catalog, arms, decisions, outcomes, units, overview, results, audit, export, whatif):
        app.include_router(part.router)
    _add_own_routes(app)
    _describe_problems(app)
    app.add_middleware(Guard, desk=lambda: desk, seconds=seconds, body=body)
    return app


def _add_own_routes(app: FastAPI) -> None:
    @app.get("/healthz", tags=["operation"])
    async def healthz(desk: TheDesk) -> m.Healthy:
        """Check that the service and its store work. Needs no key and tells nothing else."""
        await desk.check_health()
        return m.Healthy(status="ok")

    @app.get("/metrics", tags=["operation"], response_class=PlainTextResponse)
    async def metrics(desk: TheDesk, caller: Reader) -> PlainTextResponse:
        """Counters of this process for Prometheus."""
        if caller.experiment is not None:
            raise caller.stays_at_home
        return PlainTextResponse(desk.metrics.text(desk.writer), media_type="text/plain; version=0.0.4")

    @app.get("/v1/me", tags=["operation"])
    async def me(caller: Anyone) -> m.Me:
        """What the key of this request may do."""
        return m.Me(
            role=caller.role,
            scopes=shown(caller.scopes).split(","),
            experiment=caller.experiment,
            keyless=caller.keyless,
            version=__version__,
        )

    @app.get("/", include_in_schema=False)
    async def dashboard() -> FileResponse:
        return FileResponse(STATIC / "index.html")

    app.mount("/static", StaticFiles(directory=STATIC), name="static")


def _describe_problems(app: FastAPI) -> None:
    """Put the schema of problems into the OpenAPI document, instead of FastAPI's own validation errors."""
    plain = app.openapi

    def openapi() -> dict[str, Any]:
        if app.openapi_schema is None:
            document = plain()
            schemas = document["components"]["schemas"]
            schemas["Problem"] = m.Problem.model_json_schema()
            for name in ("HTTPValidationError", "ValidationError"):
                schemas.pop(name, None)
            for path in document["paths"].values():
                for operation in path.values():
                    operation["responses"].pop("422", None)
            app.openapi_schema = document
        return app.openapi_schema

    app.openapi = openapi  # type: ignore[method-assign]
