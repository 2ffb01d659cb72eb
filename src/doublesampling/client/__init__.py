"""The client of a service: ``ds.connect(url, key=...)`` has the interface of ``ds.Experiment`` over HTTP."""

from doublesampling.client.aio import AsyncRemoteExperiment
from doublesampling.client.connection import AsyncConnection, Connection, connect, connect_async
from doublesampling.client.errors import (
    ForbiddenError,
    ServiceError,
    TooManyRequestsError,
    UnauthorizedError,
    UnavailableError,
    UnexpectedResponseError,
)
from doublesampling.client.experiment import RemoteExperiment
from doublesampling.client.records import BlindOutcome, BlindReceipt

__all__ = [
    "AsyncConnection",
    "AsyncRemoteExperiment",
    "BlindOutcome",
    "BlindReceipt",
    "Connection",
    "ForbiddenError",
    "RemoteExperiment",
    "ServiceError",
    "TooManyRequestsError",
    "UnauthorizedError",
    "UnavailableError",
    "UnexpectedResponseError",
    "connect",
    "connect_async",
]
