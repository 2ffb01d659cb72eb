"""``ds.Experiment``: a live experiment that returns decisions and stores their outcomes."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Self, Unpack

from numpy.typing import ArrayLike

from doublesampling import checks
from doublesampling.allocation import Allocation
from doublesampling.errors import SettingError
from doublesampling.features import ContextLike, ContextsLike
from doublesampling.live import analysing, asking, changes, telling
from doublesampling.live.contexts import each_context
from doublesampling.live.create_options import CreateOptions, design_from_options
from doublesampling.live.design import Design, check_text
from doublesampling.live.explain import Explanation, explain
from doublesampling.live.looking import design_now
from doublesampling.live.notebook import NotebookView
from doublesampling.live.own_classes import trust
from doublesampling.live.queries import audit
from doublesampling.live.queries.experiments import list_experiments
from doublesampling.live.queries.log import decision_by_id
from doublesampling.live.queries.revisions import DecisionRevisions, check_id
from doublesampling.live.records import Outcome, Receipt, receipt_from_row
from doublesampling.live.replay import Replay, replay
from doublesampling.live.requests import check_scope, make_request, make_requests
from doublesampling.live.session import Session, create_experiment, open_session
from doublesampling.live.state import ExperimentState
from doublesampling.live.stores import Store, open_store, upgrade

if TYPE_CHECKING:
    import pandas as pd


class Experiment(NotebookView, analysing.Analysed):
    """A live experiment in a store that several processes or machines can share.

    ``create`` makes a new experiment, ``load`` opens a stored one. ``storage`` is ``sqlite:///file`` or
    ``postgresql://...``; the default is the environment variable DOUBLESAMPLING_STORAGE, or a file in the current
    folder. ``actor`` is stored with every row; the default is ``user@host``. Several threads may share one object.

    >>> import doublesampling as ds
    >>> exp = ds.Experiment.create("trial", arms=["placebo", "10 mg"], seed=7, storage="sqlite:///trial.db")
    >>> decision = exp.ask(unit="patient-1")
    >>> outcome = exp.tell(decision.id, 1.0)
    >>> exp.state.decisions
    1
    """

    def __init__(self, session: Session) -> None:
        if not isinstance(session, Session):
            raise SettingError(
                f"Experiment({checks.shown(session)}) opens nothing. Use Experiment.load(name) or .create(name)."
            )
        self.session, self._followed = session, {}

    @classmethod
    def create(
        cls,
        name: str,
        *,
        arms: Sequence[str] | None = None,
        belief: Any = None,
        policy: Any = None,
        seed: int | None = None,
        allocation: Allocation | None = None,
        storage: str | Store | None = None,
        **options: Unpack[CreateOptions],
    ) -> Self:
        """Create an experiment. ``allocation`` limits the probability with which each arm is chosen.

        Options: ``stopping``, a ``ds.Stopping``; ``participants``, the largest number of decisions; ``design``, a
        ``ds.Trial`` in place of arms and all that follows; ``units="once"`` (default; a unit that is asked for again
        gets its stored decision) or "many"; ``actor``, stored with every row; ``codes`` (True, or one per arm), which
        the service shows instead of an arm's name to API keys that may not see results. For your own classes see
        ``load``.
        """
        parts = {"arms": arms, "belief": belief, "policy": policy, "allocation": allocation}
        design, actor = design_from_options(parts, seed, options), options.get("actor")
        trust(design.belief, design.policy)
        store = open_store(storage)
        return cls(open_session(store, create_experiment(store, name, design, actor), actor))

    @classmethod
    def load(
        cls,
        name: str,
        *,
        storage: str | Store | None = None,
        actor: str | None = None,
        allow_import: Sequence[str] | None = None,
    ) -> Self:
        """Open an experiment that is stored already, from this or another machine.

        ``allow_import`` lists modules from which beliefs and policies of your own may be imported; the environment
        variable DOUBLESAMPLING_ALLOW_IMPORT adds to it. Without them, calls that need the class raise NotImportedError.
        """
        store = open_store(storage)
        upgrade.check(store)
        session = open_session(store, name, actor, allow_import)
        session.read_state()
        session.cache.save_checkpoint()
        return cls(session)

    @property
    def name(self) -> str:
        """The name of the experiment."""
        return self.session.name

    @property
    def design(self) -> Design:
        """Arms, belief, policy, seed and units as they were created."""
        return self.session.design

    @property
    def state(self) -> ExperimentState:
        """The current state: arms, active arms, pause, belief, posterior statistics and number of decisions."""
        return self.session.read_state()

    @property
    def known(self) -> ExperimentState:
        """The former name of ``state``."""
        return self.state

    @property
    def current_design(self) -> Design:
        """The design over the arms that are active now, without any outcomes."""
        return design_now(self.design, self.state)

    def __repr__(self) -> str:
        return f"Experiment({self.name!r}, storage={self.session.store.where!r})"

    def ask(
        self,
        unit: str | None = None,
        context: ContextLike | None = None,
        request_key: str | None = None,
        *,
        actor: str | None = None,
        scope: str | None = None,
    ) -> Receipt:
        """Return the decision for a unit: which arm to use. ``context`` is a record where the belief has features.

        A request is idempotent: the same request_key, or a unit that is decided once, gets the same decision again. A
        key is valid within its ``scope``, which names its owner; all plain Python callers share one.
        """
        request = make_request(unit, context, request_key, scope=scope, actor=actor)
        return asking.ask(self.session, [request])[0]

    def ask_many(
        self,
        n: int | None = None,
        *,
        units: Sequence[str] | None = None,
        contexts: Sequence[ContextLike] | None = None,
        request_key: str | None = None,
        actor: str | None = None,
        scope: str | None = None,
    ) -> Sequence[Receipt]:
        """Return several decisions, all made from the same state; all are stored, or none."""
        contexts = each_context(self.design.belief, contexts)
        return asking.ask(self.session, make_requests(n, units, contexts, request_key, scope=scope, actor=actor))

    def tell(
        self,
        decision: str,
        reward: float,
        *,
        imputed: bool = False,
        reason: str | None = None,
        actor: str | None = None,
    ) -> Outcome:
        """Store the outcome of a decision. Telling the same value again is a no-op, another value a ConflictError.

        An ``imputed`` outcome counts until the real one is told, which supersedes it.
        """
        flag = checks.flag("imputed", imputed)
        told = telling.make_outcome(self.session, decision, reward, imputed=flag, reason=reason, actor=actor)
        return telling.tell(self.session, [told])[0]

    def tell_many(
        self,
        told: Sequence[tuple[str, float]] | Mapping[str, float],
        *,
        imputed: bool = False,
        actor: str | None = None,
    ) -> Sequence[Outcome]:
        """Store several outcomes, given as (id, reward) pairs or a mapping; all are stored, or none."""
        flag = checks.flag("imputed", imputed)
        return telling.tell(self.session, telling.make_outcomes(self.session, told, imputed=flag, actor=actor))

    def amend(self, decision: str, reward: float, *, reason: str, actor: str | None = None) -> Outcome:
        """Correct an outcome: the old one stays in the log, the new one supersedes it."""
        return telling.amend(self.session, decision, reward, reason, actor)

    def withdraw(self, decision: str, *, reason: str, actor: str | None = None) -> Outcome:
        """Withdraw an outcome that was told by mistake: the decision waits for an outcome again."""
        return telling.withdraw(self.session, decision, reason, actor)

    def void(self, decision: str, *, reason: str, actor: str | None = None) -> Outcome:
        """Mark a decision as not carried out: it stays in the log, and neither it nor its outcome counts.

        It accepts no outcome afterwards. With ``units="once"``, the unit gets a new decision when it is asked again.
        """
        return telling.void(self.session, decision, reason, actor)

    def add_history(
        self,
        arms: Sequence[str | int],
        rewards: ArrayLike,
        contexts: ContextsLike | None = None,
        *,
        request_key: str | None = None,
        actor: str | None = None,
        scope: str | None = None,
    ) -> int:
        """Import outcomes from before the experiment; return how many. The same request_key imports them only once."""
        key = None if request_key is None else check_text("request_key", request_key)
        request = changes.ChangeRequest(actor, key, check_scope(scope))
        return changes.add_history(self.session, arms, rewards, contexts, request)

    def pause(self, reason: str | None = None, *, actor: str | None = None) -> bool:
        """Pause the experiment: no new decisions until ``resume``. Return False where it was paused already."""
        return changes.pause(self.session, reason, changes.ChangeRequest(actor))

    def resume(self, reason: str | None = None, *, actor: str | None = None) -> bool:
        """Resume a paused experiment. Return False where it was not paused."""
        return changes.resume(self.session, reason, changes.ChangeRequest(actor))

    def drop_arm(self, arm: str | int, reason: str | None = None, *, actor: str | None = None) -> bool:
        """Stop decisions for an arm; its earlier decisions still count. Return False where it was dropped already."""
        return changes.drop_arm(self.session, arm, reason, changes.ChangeRequest(actor))

    def add_arm(self, name: str, reason: str | None = None, *, actor: str | None = None) -> bool:
        """Add an arm, which starts at the prior. Return True."""
        return changes.add_arm(self.session, name, reason, changes.ChangeRequest(actor))

    def decision(self, decision: str) -> Receipt:
        """Return a stored decision by its id."""
        which = check_id(decision)
        with self.session.cache.lock, self.session.store.reading() as connection:
            _, revisions = DecisionRevisions(self.session, connection, [which]).find(which)
            row, arms = decision_by_id(connection, which), self.session.cache.read(connection).arms
        voided = bool(revisions) and revisions[-1]["kind"] == "voided"
        return receipt_from_row(row, self.name, arms, self.design.seed, repeated=True, voided=voided)

    def decisions(self, *, after: int = 0, limit: int | None = None) -> "pd.DataFrame":
        """Return decisions with their latest outcome, one row each: all, or a page of ``limit`` after a number."""
        from doublesampling.live.queries.tables import decision_table

        return decision_table(self.session, after=after, limit=limit)

    def pending(self, *, after: int = 0, limit: int | None = None) -> "pd.DataFrame":
        """Return the decisions that wait for an outcome, those with an imputed one included."""
        from doublesampling.live.queries.tables import decision_table

        return decision_table(self.session, after=after, limit=limit, waiting=True)

    def posterior(self, context: ContextLike | None = None) -> "pd.DataFrame":
        """Return the posterior of each arm: mean, sd, 95 % interval, probability of being the best, observations."""
        from doublesampling.live.summary import posterior

        return posterior(self.design, self.state, context)

    def summary(self) -> dict[str, Any]:
        """Return the status and counts of the experiment in plain values."""
        from doublesampling.live.summary import summary

        return summary(self.session)

    def audit(self, *, after: str | None = None, limit: int | None = None) -> "pd.DataFrame":
        """Return the audit trail, every row with actor, time and reason; a page starts ``after`` a row's cursor."""
        return audit.to_frame(self.session, after, limit)

    def export(
        self, form: str, path: str | Path | IO[bytes] | None = None, *, force: bool = False, audit: bool = False
    ) -> Path | IO[bytes]:
        """Write the decisions as "parquet", "csv" or "jsonl" to a file, by default named after the experiment.

        With ``audit=True`` the audit trail goes to a second file beside it: trial.csv and trial-audit.csv.
        """
        from doublesampling.live.exporting import export

        return export(self.session, form, path, force=force, with_audit=audit)

    def explain(self, decision: str) -> Explanation:
        """Explain a decision: what it knew, the probabilities, the candidates and the votes. ``print`` the result."""
        receipt = self.decision(decision)
        with self.session.store.reading() as connection:
            return explain(self.session, connection, receipt)

    def replay(self) -> Replay:
        """Recompute every decision from the log, each from the outcomes it knew. ``.agrees`` says whether all match."""
        return replay(self.session)

    @classmethod
    def list(cls, storage: str | Store | None = None) -> Sequence[dict[str, Any]]:
        """Return the experiments of a store: name, arms, created_at, created_by."""
        return list_experiments(open_store(storage))
