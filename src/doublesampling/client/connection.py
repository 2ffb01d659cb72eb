"""``ds.connect`` and ``ds.connect_async``: a connection to a service, with its experiments."""

import ssl
from collections.abc import Generator, Sequence
from typing import Any, Self, Unpack

from doublesampling.allocation import Allocation
from doublesampling.client import calls, creating
from doublesampling.client.aio import AsyncRemoteExperiment
from doublesampling.client.experiment import RemoteExperiment
from doublesampling.client.transport import AsyncSender, ConnectionSettings, Sender
from doublesampling.live.create_options import CreateOptions


class Connection:
    """A connection to a service. ``create``, ``load`` and ``list`` work as those of ``ds.Experiment``.

    Use it in a ``with`` block, or ``close`` it at the end. Several threads may share it.
    """

    def __init__(self, settings: ConnectionSettings) -> None:
        self._sender = Sender(settings)

    def __repr__(self) -> str:
        return f"Connection({self._sender.settings.url!r})"

    def create(
        self,
        name: str,
        *,
        arms: Sequence[str] | None = None,
        belief: Any = None,
        policy: Any = None,
        seed: int | None = None,
        allocation: Allocation | None = None,
        **options: Unpack[CreateOptions],
    ) -> RemoteExperiment:
        """Create an experiment, with a belief and a policy of this package. It needs a key with the scope admin.

        Options are those of ``ds.Experiment.create``, ``design=`` a ``ds.Trial`` among them.
        """
        parts = {"arms": arms, "belief": belief, "policy": policy, "allocation": allocation}
        call = creating.create(name, parts, seed, options)
        return RemoteExperiment(self._sender, self._sender.send(call)["name"])

    def load(self, name: str) -> RemoteExperiment:
        """Return an experiment of the service; raise NotFoundError where there is none of this name."""
        return RemoteExperiment(self._sender, self._sender.send(calls.status(calls.check_name(name)))["name"])

    def list(self) -> Sequence[dict[str, Any]]:
        """Return the experiments that the key may use: name, arms, created_at, created_by, status."""
        return self._sender.send(creating.list_experiments())

    def me(self) -> dict[str, Any]:
        """Return what the key may do: role, scopes, experiment, keyless; and the version of the service."""
        return self._sender.send(creating.me())

    def close(self) -> None:
        """Close the connection."""
        self._sender.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class AsyncConnection:
    """A connection to a service for asyncio: ``await`` it, or use it in an ``async with`` block."""

    def __init__(self, settings: ConnectionSettings) -> None:
        self._sender = AsyncSender(settings)

    def __repr__(self) -> str:
        return f"AsyncConnection({self._sender.settings.url!r})"

    async def create(
        self,
        name: str,
        *,
        arms: Sequence[str] | None = None,
        belief: Any = None,
        policy: Any = None,
        seed: int | None = None,
        allocation: Allocation | None = None,
        **options: Unpack[CreateOptions],
    ) -> AsyncRemoteExperiment:
        """Create an experiment, with a belief and a policy of this package. It needs a key with the scope admin.

        Options are those of ``ds.Experiment.create``, ``design=`` a ``ds.Trial`` among them.
        """
        parts = {"arms": arms, "belief": belief, "policy": policy, "allocation": allocation}
        call = creating.create(name, parts, seed, options)
        return AsyncRemoteExperiment(self._sender, (await self._sender.send(call))["name"])

    async def load(self, name: str) -> AsyncRemoteExperiment:
        """Return an experiment of the service; raise NotFoundError where there is none of this name."""
        found = await self._sender.send(calls.status(calls.check_name(name)))
        return AsyncRemoteExperiment(self._sender, found["name"])

    async def list(self) -> Sequence[dict[str, Any]]:
        """Return the experiments that the key may use: name, arms, created_at, created_by, status."""
        return await self._sender.send(creating.list_experiments())

    async def me(self) -> dict[str, Any]:
        """Return what the key may do: role, scopes, experiment, keyless; and the version of the service."""
        return await self._sender.send(creating.me())

    async def close(self) -> None:
        """Close the connection."""
        await self._sender.close()

    async def _checked(self) -> Self:
        try:
            await self.me()
        except BaseException:
            await self.close()
            raise
        return self

    def __await__(self) -> Generator[Any, None, Self]:
        return self._checked().__await__()

    async def __aenter__(self) -> Self:
        return await self._checked()

    async def __aexit__(self, *_: object) -> None:
        await self.close()


def connect(
    url: str,
    key: str | None = None,
    *,
    timeout: float = 40.0,
    retry_for: float = 60.0,
    verify: bool | str | ssl.SSLContext = True,
    transport: Any = None,
) -> Connection:
    """Return a connection to a service, after a check of the address and the key.

    ``key`` is an API key of the service. ``timeout`` is the time for one attempt, in seconds; a request that fails is
    tried again for ``retry_for`` seconds. ``verify`` may name a file with certificates to trust. ``transport`` is a
    transport of httpx2, for tests. Needs the extra ``client``.

    docs/how-to/client.md shows a session. An address that is none is refused before anything is sent:

    >>> import doublesampling as ds
    >>> try:
    ...     ds.connect("trials.example", key="ds_...")
    ... except ds.DoubleSamplingError as error:
    ...     print(error)
    url must be the address of a service such as https://trials.example, got 'trials.example'.
    """
    made = Connection(
        ConnectionSettings(url=url, key=key, timeout=timeout, retry_for=retry_for, verify=verify, transport=transport)
    )
    try:
        made.me()
    except BaseException:
        made.close()
        raise
    return made


def connect_async(
    url: str,
    key: str | None = None,
    *,
    timeout: float = 40.0,
    retry_for: float = 60.0,
    verify: bool | str | ssl.SSLContext = True,
    transport: Any = None,
) -> AsyncConnection:
    """Return a connection for asyncio: ``await ds.connect_async(...)``, or ``async with ds.connect_async(...)``.

    Arguments are those of ``connect``; the address and the key are checked when it is awaited or entered.

    >>> import doublesampling as ds
    >>> ds.connect_async("https://trials.example", key="ds_...")
    AsyncConnection('https://trials.example')
    """
    return AsyncConnection(
        ConnectionSettings(url=url, key=key, timeout=timeout, retry_for=retry_for, verify=verify, transport=transport)
    )
