"""Live experiments: ask for decisions, tell outcomes, and keep both in a store that several processes share."""

from doublesampling.live.experiment import Experiment
from doublesampling.live.explain import Explanation
from doublesampling.live.queries.audit import AuditEntry
from doublesampling.live.records import Outcome, Receipt
from doublesampling.live.replay import Replay
from doublesampling.live.stores import upgrade

__all__ = ["AuditEntry", "Experiment", "Explanation", "Outcome", "Receipt", "Replay", "upgrade"]
