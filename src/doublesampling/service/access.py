"""Authorization: every route names the scope that it needs, which also appears in the OpenAPI document."""

from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import Depends, Request
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer

from doublesampling.live.changes import ChangeRequest
from doublesampling.live.design import check_text
from doublesampling.service.problems import RefusedError
from doublesampling.service.scopes import SCOPES, format_scopes
from doublesampling.service.state import ServiceState

_bearer = HTTPBearer(
    auto_error=False,
    description="An API key from `doublesampling key create`. A store without keys needs none on this machine.",
)
_LOCAL = "this machine, no key"


@dataclass(frozen=True)
class Caller:
    """The sender of a request. ``actor`` is stored with rows; None stands for the server's own user."""

    role: str
    scopes: frozenset[str]
    experiment: str | None = None
    actor: str | None = None
    owner: str | None = None
    """The owner of its idempotency keys; None where the store has no API keys."""
    actors: tuple[str, ...] = ()
    """Every actor name that this key has had, rotations included."""
    keyless: bool = False

    @property
    def blind(self) -> bool:
        """Whether results must not be shown."""
        return "read" not in self.scopes

    @property
    def shown(self) -> str:
        """The name of the caller in the access log."""
        return self.actor or _LOCAL

    @property
    def wrong_experiment_error(self) -> RefusedError:
        """The error for a key of one experiment that is used for another."""
        remedy = "Use a key for all experiments, or a key for the other one."
        return RefusedError("forbidden", f"Your key is valid for the experiment {self.experiment!r} only. {remedy}")


async def identify(state: ServiceState, token: str | None) -> Caller:
    """Return the caller with this token. A store that never had a key serves this machine with all scopes."""
    if state.key_cache.stale():
        await state.control(state.key_cache.refresh)
    state.key_cache.check()
    if state.key_cache.keyless:
        return Caller("admin", frozenset(SCOPES), keyless=True)
    if token is None:
        raise RefusedError(
            "unauthorized",
            "A key is needed: send the header Authorization: Bearer KEY (in Python: ds.connect(url, key=KEY)).",
        )
    key = state.key_cache.find(token)
    if key is None:
        raise RefusedError("unauthorized", "This key is unknown, has expired, or was revoked. Ask for a new one.")
    return Caller(key.role, key.scopes, key.experiment, key.actor, key.owner, key.actors)


def change_request(caller: Caller, idempotency_key: str | None) -> ChangeRequest:
    """Return the actor and the checked idempotency key with which a change of an experiment is stored."""
    key = None if idempotency_key is None else check_text("Idempotency-Key", idempotency_key)
    return ChangeRequest(caller.actor, key, caller.owner or "")


def bearer_token(headers: dict[bytes, bytes]) -> str | None:
    """Return the bearer token of a request, or None."""
    scheme, _, token = headers.get(b"authorization", b"").decode("latin-1").partition(" ")
    return token.strip() or None if scheme.lower() == "bearer" else None


async def service_state(request: Request) -> ServiceState:
    """Return the state of the app. Async, because FastAPI would run a plain function in a thread."""
    state: ServiceState = request.app.state.service
    return state


def allow(scope: str | None = None) -> Any:
    """Return a dependency that admits keys with this scope (None: every key) to the experiments they are valid for."""

    async def check(_: Annotated[HTTPAuthorizationCredentials | None, Depends(_bearer)], request: Request) -> Caller:
        caller: Caller = request.scope["doublesampling.caller"]  # the middleware has identified it before the body
        if scope is not None and scope not in caller.scopes:
            has = format_scopes(caller.scopes).replace(",", ", ")
            raise RefusedError("forbidden", f"This needs a key with the scope {scope!r}; yours has: {has}.")
        name = request.path_params.get("name")
        _log_read(request, caller, scope, name)
        if caller.experiment is not None and name is not None and name != caller.experiment:
            raise caller.wrong_experiment_error
        return caller

    return Depends(check)


def _log_read(request: Request, caller: Caller, scope: str | None, name: str | None) -> None:
    """Add reads of results to the access log."""
    if scope == "read" and request.method == "GET":
        action = getattr(request.scope.get("route"), "name", request.url.path)
        request.app.state.service.access_log.note(caller.shown, action, name, request.path_params.get("id"))


State = Annotated[ServiceState, Depends(service_state)]
Anyone = Annotated[Caller, allow()]
Asker = Annotated[Caller, allow("ask")]
Teller = Annotated[Caller, allow("tell")]
Amender = Annotated[Caller, allow("amend")]
Reader = Annotated[Caller, allow("read")]
Admin = Annotated[Caller, allow("admin")]
