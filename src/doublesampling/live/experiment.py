"""``ds.Experiment``: ask which arm, tell what came of it, and nothing is lost."""

import secrets
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Self

import sqlalchemy as sa
from numpy.typing import ArrayLike

from doublesampling import checks
from doublesampling.errors import SettingError
from doublesampling.live import asking, audit, changes, telling, upgrade
from doublesampling.live.book import Book, open_book
from doublesampling.live.deciding import rehearse
from doublesampling.live.design import Design, check_text, grown, make_design
from doublesampling.live.explain import Explanation, explain
from doublesampling.live.memory import Known
from doublesampling.live.opening import open_store
from doublesampling.live.records import Outcome, Receipt, receipt_from_row
from doublesampling.live.registry import create_experiment, list_experiments
from doublesampling.live.replay import Replay, replay
from doublesampling.live.schema import decisions
from doublesampling.live.store import Store

if TYPE_CHECKING:
    import pandas as pd


class Experiment:
    """A live experiment in a store that several processes, or machines, can share.

    ``create`` makes one, ``load`` finds it again. ``storage`` is ``sqlite:///file`` or ``postgresql://...``; without
    it, the environment variable DOUBLESAMPLING_STORAGE, or a file in the current folder. ``actor`` is who is written
    beside every row: user@host where nobody says. An object may be used by several threads.
    """

    def __init__(self, book: Book) -> None:
        if not isinstance(book, Book):
            raise SettingError(
                f"Experiment({checks.shown(book)}) does not open an experiment. Use Experiment.load(name, storage=...) "
                "for one that exists, Experiment.create(name, arms=[...], storage=...) for a new one."
            )
        self._book = book

    @classmethod
    def create(
        cls,
        name: str,
        *,
        arms: Sequence[str],
        belief: Any = None,
        policy: Any = None,
        seed: int | None = None,
        storage: str | Store | None = None,
        units: str = "once",
        actor: str | None = None,
        codes: bool | Sequence[str] = False,
    ) -> Self:
        """Make an experiment. With ``units="once"`` a unit that is asked again gets the decision it has.

        With ``codes`` the service shows keys that may not see results a code instead of an arm's name: True for random
        codes, or a list with one per arm.
        """
        design = make_design(arms, belief, policy, secrets.randbits(63) if seed is None else seed, units, codes)
        rehearse(design)
        store = open_store(storage)
        return cls(open_book(store, create_experiment(store, name, design, actor), actor))

    @classmethod
    def load(cls, name: str, *, storage: str | Store | None = None, actor: str | None = None) -> Self:
        """Find an experiment that was created before, here or on another machine."""
        store = open_store(storage)
        upgrade.check(store)
        book = open_book(store, name, actor)
        book.look()
        book.memory.keep()
        return cls(book)

    @property
    def name(self) -> str:
        """What it is called."""
        return self._book.name

    @property
    def design(self) -> Design:
        """Arms, belief, policy, seed and units, as they were created."""
        return self._book.design

    @property
    def known(self) -> Known:
        """What is known now: arms, active arms, belief, state, how many decisions, whether it is paused."""
        return self._book.look()

    @property
    def design_now(self) -> Design:
        """The design over the arms that are in now: what would be asked from here on, were nothing known."""
        known = self.known
        names = tuple(known.arms[i] for i in known.active)
        if names == self.design.arms:
            return self.design
        return replace(self.design, arms=names, belief=grown(self.design.belief, len(names)))

    def __repr__(self) -> str:
        return f"Experiment({self.name!r}, storage={self._book.store.where!r})"

    def ask(
        self,
        unit: str | None = None,
        context: ArrayLike | None = None,
        request_key: str | None = None,
        *,
        actor: str | None = None,
        scope: str | None = None,
    ) -> Receipt:
        """Return a decision: which arm for this unit.

        The same request_key, or a unit that is asked once, gets the same decision again. A key counts within its
        ``scope``, which names its owner; plain Python has one scope in common, so that a retry from another machine
        finds its decision.
        """
        request = asking.make_request(unit, context, request_key, scope=scope, actor=actor)
        return asking.ask(self._book, [request])[0]

    def ask_many(
        self,
        n: int | None = None,
        *,
        units: Sequence[str] | None = None,
        contexts: Sequence[ArrayLike] | None = None,
        request_key: str | None = None,
        actor: str | None = None,
        scope: str | None = None,
    ) -> Sequence[Receipt]:
        """Return several decisions, all from the same knowledge; all are written, or none."""
        requests = asking.make_requests(n, units, contexts, request_key, scope=scope, actor=actor)
        return asking.ask(self._book, requests)

    def tell(
        self,
        decision: str,
        reward: float,
        *,
        imputed: bool = False,
        reason: str | None = None,
        actor: str | None = None,
    ) -> Outcome:
        """What came of a decision. The same again is a no-op, another value a ConflictError.

        An ``imputed`` outcome counts until the real one is told, which supersedes it.
        """
        guess = checks.flag("imputed", imputed)
        told = telling.make_told(self._book, decision, reward, imputed=guess, reason=reason, actor=actor)
        return telling.tell(self._book, [told])[0]

    def tell_many(
        self,
        told: Sequence[tuple[str, float]] | Mapping[str, float],
        *,
        imputed: bool = False,
        actor: str | None = None,
    ) -> Sequence[Outcome]:
        """Several outcomes, as (id, reward) pairs or a mapping; all are written, or none."""
        if not isinstance(told, Iterable) or isinstance(told, str):
            raise SettingError(f"tell_many takes (id, reward) pairs or a mapping, got {checks.shown(told)}.")
        pairs = [_pair(item) for item in (told.items() if isinstance(told, Mapping) else told)]
        guess = checks.flag("imputed", imputed)
        return telling.tell(
            self._book,
            [telling.make_told(self._book, *pair, imputed=guess, reason=None, actor=actor) for pair in pairs],
        )

    def amend(self, decision: str, reward: float, *, reason: str, actor: str | None = None) -> Outcome:
        """Correct an outcome: the old one stays in the log, the new one supersedes it."""
        return telling.amend(self._book, decision, reward, reason, actor)

    def withdraw(self, decision: str, *, reason: str, actor: str | None = None) -> Outcome:
        """Take back an outcome that was told by mistake: the decision waits for its outcome again."""
        return telling.withdraw(self._book, decision, reason, actor)

    def void(self, decision: str, *, reason: str, actor: str | None = None) -> Outcome:
        """Mark a decision as not carried out: it stays in the log and counts for nothing, nor does its outcome.

        It can never be told of again. A unit that is asked once gets a new decision when it is asked again.
        """
        return telling.void(self._book, decision, reason, actor)

    def add_history(
        self,
        arms: Sequence[str | int],
        rewards: ArrayLike,
        contexts: ArrayLike | None = None,
        *,
        request_key: str | None = None,
        actor: str | None = None,
        scope: str | None = None,
    ) -> int:
        """Add outcomes from before the experiment; return how many. A request_key adds them only once."""
        key = None if request_key is None else check_text("request_key", request_key)
        owner = asking.check_scope(scope)
        return changes.add_history(self._book, arms, rewards, contexts, key, owner, actor)

    def pause(self, reason: str | None = None, *, actor: str | None = None) -> bool:
        """No new decisions until ``resume``; outcomes may still be told. False where it was paused already."""
        return changes.pause(self._book, reason, actor)

    def resume(self, reason: str | None = None, *, actor: str | None = None) -> bool:
        """Decisions again. False where it was not paused."""
        return changes.resume(self._book, reason, actor)

    def drop_arm(self, arm: str | int, reason: str | None = None, *, actor: str | None = None) -> bool:
        """No more decisions for this arm; outcomes of earlier ones still count. False where it was dropped already."""
        return changes.drop_arm(self._book, arm, reason, actor)

    def add_arm(self, name: str, reason: str | None = None, *, actor: str | None = None) -> bool:
        """A new arm, which starts at the prior."""
        return changes.add_arm(self._book, name, reason, actor)

    def decision(self, decision: str) -> Receipt:
        """A stored decision by its id."""
        which = telling.check_id(decision)
        with self._book.memory.lock, self._book.store.reading() as connection:
            _, revisions = telling.DecisionLog(self._book, connection, [which]).find(which)
            row = connection.execute(sa.select(decisions).where(decisions.c.id == which)).one()
            arms = self._book.memory.look(connection).arms
        voided = bool(revisions) and revisions[-1]["kind"] == "voided"
        return receipt_from_row(row, self.name, arms, self.design.seed, repeated=True, voided=voided)

    def decisions(self, *, after: int = 0, limit: int | None = None) -> "pd.DataFrame":
        """Every decision with its latest outcome, one row each; ``after`` a number and with a ``limit``, a page."""
        from doublesampling.live.reading import table

        return table(self._book, after=after, limit=limit)

    def pending(self, *, after: int = 0, limit: int | None = None) -> "pd.DataFrame":
        """Decisions that wait for their outcome, those with an imputed one included."""
        from doublesampling.live.reading import table

        return table(self._book, after=after, limit=limit, waiting=True)

    def posterior(self, context: ArrayLike | None = None) -> "pd.DataFrame":
        """What is believed of each arm: mean, sd, 95 % interval, probability of being the best, observations."""
        from doublesampling.live.reading import posterior

        return posterior(self._book.look(), context)

    def summary(self) -> dict[str, Any]:
        """How the experiment stands, in plain values."""
        from doublesampling.live.reading import summary

        return summary(self._book)

    def audit(self, *, after: str | None = None, limit: int | None = None) -> "pd.DataFrame":
        """Return everything that was stored, in order: who, when, what, why. Pages go on ``after`` a row's cursor."""
        return audit.frame(self._book, after, limit)

    def export(
        self, form: str, path: str | Path | IO[bytes] | None = None, *, force: bool = False, audit: bool = False
    ) -> Path | IO[bytes]:
        """Write the decisions as "parquet", "csv" or "jsonl" to a file, by default named after the experiment.

        With ``audit=True`` the audit trail goes to a second file beside it: trial.csv and trial-audit.csv.
        """
        from doublesampling.live.exporting import export

        return export(self._book, form, path, force=force, with_audit=audit)

    def explain(self, decision: str) -> Explanation:
        """Why a decision fell as it did: what was known, p, N, the votes. ``print`` it."""
        receipt = self.decision(decision)
        with self._book.store.reading() as connection:
            return explain(self._book, connection, receipt)

    def replay(self) -> Replay:
        """Recompute every decision from the log, each from what was known then. ``.agrees`` says whether all match."""
        return replay(self._book)

    @classmethod
    def list(cls, storage: str | Store | None = None) -> Sequence[dict[str, Any]]:
        """Return the experiments of a store: name, arms, created_at, created_by."""
        return list_experiments(open_store(storage))


def _pair(item: object) -> tuple[object, object]:
    try:
        pair: tuple[Any, ...] = tuple(item)  # type: ignore[arg-type]
        decision, reward = pair
    except (TypeError, ValueError):
        raise SettingError(f"tell_many takes (id, reward) pairs, got {checks.shown(item)}.") from None
    return decision, reward
