"""Who may do what: every route names the roles that it is for, and says so in the OpenAPI document."""

from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import Depends, Request
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer

from doublesampling.service.desk import Desk
from doublesampling.service.problems import RefusedError

_bearer = HTTPBearer(auto_error=False, description="A key of `doublesampling key create`. Without keys: not needed.")


@dataclass(frozen=True)
class Caller:
    """Who is asking. ``actor`` is written beside rows; None leaves the server's own user."""

    role: str
    experiment: str | None = None
    actor: str | None = None
    keyless: bool = False

    @property
    def blind(self) -> bool:
        """Whether results must not be shown."""
        return self.role == "writer"

    @property
    def stays_at_home(self) -> RefusedError:
        """What a key of one experiment is told elsewhere."""
        remedy = "Ask for one that opens all of them, or this one."
        return RefusedError("forbidden", f"Your key opens only the experiment {self.experiment!r}. {remedy}")


async def identify(desk: Desk, token: str | None) -> Caller:
    """The caller behind a token. A store that never had a key serves this machine, and all of it."""
    if desk.ring.stale():
        await desk.run(desk.ring.refresh)
    if desk.ring.empty:
        return Caller("admin", keyless=True)
    if token is None:
        raise RefusedError("unauthorized", "A key is needed: send Authorization: Bearer KEY.")
    key = desk.ring.find(token)
    if key is None:
        raise RefusedError("unauthorized", "This key is not known, or was revoked. Ask for a new one.")
    return Caller(key.role, key.experiment, key.actor)


async def desk_of(request: Request) -> Desk:
    """The desk of the app that answers this request. Async: FastAPI would send a plain function to a thread."""
    desk: Desk = request.app.state.desk
    return desk


def allow(*roles: str) -> Any:
    """A dependency that lets these roles in; a key of one experiment only to that one."""

    async def check(
        request: Request, given: Annotated[HTTPAuthorizationCredentials | None, Depends(_bearer)]
    ) -> Caller:
        caller = await identify(request.app.state.desk, None if given is None else given.credentials)
        if caller.role not in roles:
            others = " and ".join(roles)
            raise RefusedError(
                "forbidden", f"This is for {others} keys; yours is a {caller.role}'s. Ask for a key of that role."
            )
        name = request.path_params.get("name")
        if caller.experiment is not None and name is not None and name != caller.experiment:
            raise caller.stays_at_home
        return caller

    return Depends(check)


TheDesk = Annotated[Desk, Depends(desk_of)]
Reader = Annotated[Caller, allow("reader", "admin")]
Writer = Annotated[Caller, allow("writer", "admin")]
Admin = Annotated[Caller, allow("admin")]
Anyone = Annotated[Caller, allow("reader", "writer", "admin")]
