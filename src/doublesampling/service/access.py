"""Who may do what: every route names the scope that it needs, and says so in the OpenAPI document."""

from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import Depends, Request
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer

from doublesampling.service.desk import Desk
from doublesampling.service.problems import RefusedError
from doublesampling.service.scopes import SCOPES, shown

_bearer = HTTPBearer(auto_error=False, description="A key of `doublesampling key create`. Without keys: not needed.")
_HERE = "this machine, no key"


@dataclass(frozen=True)
class Caller:
    """Who is asking. ``actor`` is written beside rows; None leaves the server's own user."""

    role: str
    scopes: frozenset[str]
    experiment: str | None = None
    actor: str | None = None
    owner: str | None = None
    """To whom idempotency keys belong; None where there are no keys."""
    actors: tuple[str, ...] = ()
    """Every name under which this key has asked, rotations included."""
    keyless: bool = False

    @property
    def blind(self) -> bool:
        """Whether results must not be shown."""
        return "read" not in self.scopes

    @property
    def shown(self) -> str:
        """Who it is, for the access log."""
        return self.actor or _HERE

    @property
    def stays_at_home(self) -> RefusedError:
        """The error for a key of one experiment that is used elsewhere."""
        remedy = "Ask for one that opens all of them, or this one."
        return RefusedError("forbidden", f"Your key opens only the experiment {self.experiment!r}. {remedy}")


async def identify(desk: Desk, token: str | None) -> Caller:
    """Find the caller behind a token. A store that never had a key serves this machine, and all of it."""
    if desk.ring.stale():
        await desk.control(desk.ring.refresh)
    desk.ring.check()
    if desk.ring.keyless:
        return Caller("admin", frozenset(SCOPES), keyless=True)
    if token is None:
        raise RefusedError("unauthorized", "A key is needed: send Authorization: Bearer KEY.")
    key = desk.ring.find(token)
    if key is None:
        raise RefusedError("unauthorized", "This key is not known, has expired, or was revoked. Ask for a new one.")
    return Caller(key.role, key.scopes, key.experiment, key.actor, key.owner, key.actors)


def token_of(headers: dict[bytes, bytes]) -> str | None:
    """The bearer token of a request, or None."""
    scheme, _, token = headers.get(b"authorization", b"").decode("latin-1").partition(" ")
    return token.strip() or None if scheme.lower() == "bearer" else None


async def desk_of(request: Request) -> Desk:
    """The desk of the app that answers this request. Async: FastAPI would send a plain function to a thread."""
    desk: Desk = request.app.state.desk
    return desk


def allow(scope: str | None = None) -> Any:
    """A dependency that lets keys of this scope in (None: every key); a key of one experiment only to that one."""

    async def check(_: Annotated[HTTPAuthorizationCredentials | None, Depends(_bearer)], request: Request) -> Caller:
        caller: Caller = request.scope["doublesampling.caller"]  # the middleware has identified it before the body
        if scope is not None and scope not in caller.scopes:
            has = shown(caller.scopes).replace(",", ", ")
            raise RefusedError("forbidden", f"This needs a key with the scope {scope!r}; yours has: {has}.")
        name = request.path_params.get("name")
        _note(request, caller, scope, name)
        if caller.experiment is not None and name is not None and name != caller.experiment:
            raise caller.stays_at_home
        return caller

    return Depends(check)


def _note(request: Request, caller: Caller, scope: str | None, name: str | None) -> None:
    """Leave a trace of who reads results."""
    if scope == "read" and request.method == "GET":
        action = getattr(request.scope.get("route"), "name", request.url.path)
        request.app.state.desk.reads.note(caller.shown, action, name, request.path_params.get("id"))


TheDesk = Annotated[Desk, Depends(desk_of)]
Anyone = Annotated[Caller, allow()]
Asker = Annotated[Caller, allow("ask")]
Teller = Annotated[Caller, allow("tell")]
Amender = Annotated[Caller, allow("amend")]
Reader = Annotated[Caller, allow("read")]
Admin = Annotated[Caller, allow("admin")]
