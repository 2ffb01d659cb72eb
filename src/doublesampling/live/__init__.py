"""Live experiments: decisions that are asked for, outcomes that are told, and a store that loses neither."""

from doublesampling.live import upgrade
from doublesampling.live.audit import AuditEntry
from doublesampling.live.experiment import Experiment
from doublesampling.live.explain import Explanation
from doublesampling.live.records import Outcome, Receipt
from doublesampling.live.replay import Replay

__all__ = ["AuditEntry", "Experiment", "Explanation", "Outcome", "Receipt", "Replay", "upgrade"]
