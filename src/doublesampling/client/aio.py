"""A live experiment on a service with asyncio: the methods of ``RemoteExperiment`` as coroutines."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from numpy.typing import ArrayLike

from doublesampling.client import analysing, calls, downloads, parsing
from doublesampling.client.paging import AuditPages, DecisionPages
from doublesampling.client.transport import AsyncSender
from doublesampling.features import ContextLike, ContextsLike
from doublesampling.live.analysing import Contrast
from doublesampling.live.explain import Explanation
from doublesampling.live.queries.looks import LookRecord
from doublesampling.live.records import Outcome, Receipt
from doublesampling.live.replay import Replay

if TYPE_CHECKING:
    import pandas as pd

    from doublesampling import inference
    from doublesampling.exact.significance import ExactTest
    from doublesampling.inference import Analysis


class AsyncRemoteExperiment:
    """A live experiment on a service, for asyncio. ``AsyncConnection.create`` and ``AsyncConnection.load`` return it.

    Every method of ``RemoteExperiment`` is a coroutine here, with the same arguments, results and exceptions. Several
    tasks may share one object.
    """

    def __init__(self, sender: AsyncSender, name: str) -> None:
        self._sender = sender
        self._name = name

    @property
    def name(self) -> str:
        """The name of the experiment."""
        return self._name

    def __repr__(self) -> str:
        return f"AsyncRemoteExperiment({self._name!r}, url={self._sender.settings.url!r})"

    async def ask(
        self, unit: str | None = None, context: ContextLike | None = None, request_key: str | None = None
    ) -> Receipt:
        """Return the decision for a unit: which arm to use.

        A request is idempotent: the same request_key, or a unit that is decided once, gets the same decision again.
        Without a request_key the client makes one for this call.
        """
        return await self._sender.send(calls.ask(self._name, unit, context, request_key))

    async def ask_many(
        self,
        n: int | None = None,
        *,
        units: Sequence[str] | None = None,
        contexts: Sequence[ContextLike] | None = None,
        request_key: str | None = None,
    ) -> Sequence[Receipt]:
        """Return several decisions, all made from the same state; all are stored, or none."""
        return await self._sender.send(calls.ask_many(self._name, n, units, contexts, request_key))

    async def tell(self, decision: str, reward: float, *, imputed: bool = False, reason: str | None = None) -> Outcome:
        """Store the outcome of a decision. Telling the same value again is a no-op, another value a ConflictError.

        An ``imputed`` outcome counts until the real one is told, which supersedes it.
        """
        return await self._sender.send(calls.tell(self._name, decision, reward, imputed, reason))

    async def tell_many(
        self, told: Sequence[tuple[str, float]] | Mapping[str, float], *, imputed: bool = False
    ) -> Sequence[Outcome]:
        """Store several outcomes, given as (id, reward) pairs or a mapping; all are stored, or none."""
        call = calls.tell_many(self._name, told, imputed)
        return await self._sender.send(call) if call.body["outcomes"] else []

    async def amend(self, decision: str, reward: float, *, reason: str) -> Outcome:
        """Correct an outcome: the old one stays in the log, the new one supersedes it."""
        return await self._sender.send(calls.revise(self._name, decision, "amendments", reason, reward))

    async def withdraw(self, decision: str, *, reason: str) -> Outcome:
        """Withdraw an outcome that was told by mistake: the decision waits for an outcome again."""
        return await self._sender.send(calls.revise(self._name, decision, "withdrawals", reason))

    async def void(self, decision: str, *, reason: str) -> Outcome:
        """Mark a decision as not carried out: it stays in the log, and neither it nor its outcome counts."""
        return await self._sender.send(calls.revise(self._name, decision, "void", reason))

    async def add_history(
        self,
        arms: Sequence[str | int],
        rewards: ArrayLike,
        contexts: ContextsLike | None = None,
        *,
        request_key: str | None = None,
    ) -> int:
        """Import outcomes from before the experiment; return how many. The same request_key imports them only once."""
        call = calls.add_history(self._name, arms, rewards, contexts, request_key)
        return await self._sender.send(call) if call.body["arms"] else 0

    async def pause(self, reason: str | None = None) -> bool:
        """Pause the experiment: no new decisions until ``resume``. Return False where it was paused already."""
        return await self._sender.send(calls.change_status(self._name, "pause", reason))

    async def resume(self, reason: str | None = None) -> bool:
        """Resume a paused experiment. Return False where it was not paused."""
        return await self._sender.send(calls.change_status(self._name, "resume", reason))

    async def drop_arm(self, arm: str | int, reason: str | None = None) -> bool:
        """Stop decisions for an arm; its earlier decisions still count. Return False where it was dropped already."""
        names = [] if isinstance(arm, str) else [each["name"] for each in (await self.status())["arms"]]
        return await self._sender.send(calls.drop_arm(self._name, arm, names, reason))

    async def add_arm(self, name: str, reason: str | None = None) -> bool:
        """Add an arm, which starts at the prior. Return True."""
        return await self._sender.send(calls.add_arm(self._name, name, reason))

    async def decision(self, decision: str) -> Receipt:
        """Return a stored decision by its id."""
        return (await self.explain(decision)).decision

    async def decisions(self, *, after: int = 0, limit: int | None = None) -> "pd.DataFrame":
        """Return every decision with its latest outcome, one row each.

        For a page, give the decision number ``after`` which it starts, and a ``limit``.
        """
        return await self._table(after, limit, waiting=False)

    async def pending(self, *, after: int = 0, limit: int | None = None) -> "pd.DataFrame":
        """Return the decisions that wait for an outcome, those with an imputed one included."""
        return await self._table(after, limit, waiting=True)

    async def _table(self, after: int, limit: int | None, waiting: bool) -> "pd.DataFrame":
        pages = DecisionPages(self._name, after, limit, waiting)
        while (call := pages.following()) is not None:
            pages.add(await self._sender.send(call))
        return parsing.decision_table(pages.rows)

    async def posterior(self, context: ContextLike | None = None) -> "pd.DataFrame":
        """Return the posterior of each arm: mean, sd, 95 % interval, probability of being the best, observations."""
        return await self._sender.send(calls.posterior(self._name, context))

    async def looks(self) -> Sequence[LookRecord]:
        """Return the looks of the stopping rule that were made, each with its probabilities, thresholds and verdict."""
        return await self._sender.send(calls.looks(self._name))

    async def analyse(
        self, contrast: Contrast = (1, 0), method: str = "aw-aipw", level: float = 0.95, **settings: Any
    ) -> "Analysis":
        """Estimate the mean reward of an arm, or the difference of two, with a confidence interval.

        ``contrast`` names two arms, such as ("20 mg", "placebo"), or one. See ``ds.analyse`` for the methods and the
        other settings, of which ``context`` cannot be given. The service computes it; numbers are those of
        ``ds.Experiment.analyse``.
        """
        wanted = analysing.check_settings(method, level, **settings)
        return await self._sender.send(analysing.analysis(self._name, await self._arms(contrast), wanted))

    async def exact_test(
        self, *, statistic: Any = "z", alternative: str = "two-sided", late: str = "refuse"
    ) -> "ExactTest":
        """Return the exact test that two binary arms are equal, given how this experiment's own design allocates.

        See ``ds.Experiment.exact_test``. ``statistic`` is "z", "difference" or "probability"; functions cannot be sent.
        """
        return await self._sender.send(analysing.exact_test(self._name, statistic, alternative, late))

    async def sequence(
        self, contrast: Contrast = (1, 0), level: float = 0.95, *, method: str = "asymptotic"
    ) -> "inference.Sequence":
        """Return a confidence sequence: intervals that hold together, however often anyone looks.

        See ``ds.Experiment.sequence``. Its ``optimal_at`` and ``bounds`` cannot be given here: "asymptotic" intervals
        are meant to be narrow at the policy's horizon, and "empirical-bernstein" is for rewards from 0 to 1.
        """
        chosen = analysing.check_sequence(level, method)
        return await self._sender.send(analysing.sequence(self._name, await self._arms(contrast), *chosen))

    async def _arms(self, contrast: Contrast) -> tuple[int, ...]:
        by_name = analysing.needs_names(contrast)
        names = await self._sender.send(analysing.arm_names(self._name)) if by_name else []
        return analysing.check_contrast(contrast, names)

    async def status(self) -> dict[str, Any]:
        """Return the status of the experiment as every key may see it; ``results`` is None for blind keys."""
        return await self._sender.send(calls.status(self._name))

    async def summary(self) -> dict[str, Any]:
        """Return the status and counts of the experiment in plain values."""
        return await self._sender.send(calls.summary(self._name))

    async def audit(self, *, after: str | None = None, limit: int | None = None) -> "pd.DataFrame":
        """Return the audit trail: every stored row in order, with actor, time and reason.

        For the next page, give the cursor of the last row as ``after``.
        """
        pages = AuditPages(self._name, after, limit)
        while (call := pages.following()) is not None:
            pages.add(*(await self._sender.send(call)))
        return parsing.audit_table(pages.rows)

    async def export(
        self, form: str, path: str | Path | IO[bytes] | None = None, *, force: bool = False, audit: bool = False
    ) -> Path | IO[bytes]:
        """Write the decisions as "parquet", "csv" or "jsonl" to a file, by default named after the experiment.

        With ``audit=True`` the audit trail goes to a second file beside it: trial.csv and trial-audit.csv.
        """
        where, wanted = downloads.export(self._name, form, path, force=force, with_audit=audit)
        for each in wanted:
            with each.file() as file:
                await self._sender.download(each.call, file)
        return where

    async def explain(self, decision: str) -> Explanation:
        """Explain a decision: what it knew, the probabilities, the candidates and the votes. ``print`` the result."""
        return await self._sender.send(calls.explain(self._name, decision))

    async def replay(self) -> Replay:
        """Recompute every decision from the log, each from the outcomes it knew. ``.agrees`` says whether all match."""
        while (found := await self._sender.send(calls.replay(self._name))) is None:
            pass  # the service answers after some seconds while it is running
        return found
