"""The section of a report on what happened beside decisions and outcomes: looks, events, corrections."""

from collections.abc import Mapping

from doublesampling.live.experiment import Experiment
from doublesampling.paper.document import Block, Heading, Paragraph, Table
from doublesampling.reports.design_words import items

_EVENTS = ("pause", "resume", "drop_arm", "add_arm", "history", "stop")
_CORRECTIONS = ("amended", "withdrawn", "voided", "imputed")


def event_blocks(exp: Experiment) -> list[Block]:
    """Return the section on looks, events and corrections."""
    trail = exp.audit()
    rows = []
    for row in trail[trail["kind"].isin(_EVENTS)].itertuples():
        detail = next((text for text in (row.arm_name, row.detail) if isinstance(text, str)), "")
        reason = row.reason if isinstance(row.reason, str) else ""
        rows.append((str(row.at)[:19], row.kind.replace("_", " "), detail, reason, row.actor))
    corrections = trail[trail["kind"].isin(_CORRECTIONS)]
    said: list[Block] = [Heading("Looks, events and deviations"), items("changes to the trial", "adaptation decisions")]
    said += _looks(exp)
    if rows:
        said.append(Table(("time (UTC)", "event", "content", "reason", "by"), tuple(rows), wordy=True))
    else:
        said.append(Paragraph("No arm was dropped or added by hand, and the experiment was never paused."))
    counted = ", ".join(f"{int((corrections['kind'] == kind).sum())} {kind}" for kind in _CORRECTIONS)
    said.append(Paragraph(f"Outcomes or decisions that were corrected or imputed: {counted}."))
    listed = [
        (str(row.at)[:19], row.kind, str(row.decision), row.reason if isinstance(row.reason, str) else "", row.actor)
        for row in corrections.head(50).itertuples()
    ]
    if listed:
        said.append(Table(("time (UTC)", "kind", "decision", "reason", "by"), tuple(listed), wordy=True))
    return said


def _looks(exp: Experiment) -> list[Block]:
    """Every look with its probabilities and its verdict."""
    looks = exp.looks
    if not looks:
        return [] if exp.design.stopping is None else [Paragraph("No look was made.")]
    control = any(look.probability_better for look in looks)
    rows = tuple(
        (str(look.look), str(look.at)[:19], str(look.outcomes), _each(look.probability_best),
         *((_each(look.probability_better),) if control else ()),
         look.outcome if look.enforced else f"{look.outcome} (advice)", look.reason)
        for look in looks
    )  # fmt: skip
    better = ("P(better than the control)",) if control else ()
    columns = ("look", "time (UTC)", "outcomes", "P(best)", *better, "verdict", "in words")
    return [Table(columns, rows, wordy=True)]


def _each(values: Mapping[str, float]) -> str:
    return ", ".join(f"{name} {value:.4f}" for name, value in values.items()) or "–"
