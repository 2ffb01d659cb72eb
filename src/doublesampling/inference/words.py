"""Words that say when an analysis may be trusted, and what it leaves out."""

from typing import TYPE_CHECKING

from doublesampling.inference.decision_log import DecisionLog
from doublesampling.inference.trust import enough_floor

if TYPE_CHECKING:
    from doublesampling.inference.analysis import Analysis

FEW = 30.0
"""Effective sample size below which a normal interval is an approximation only."""


def trust(log: DecisionLog, arms: tuple[int, ...], found: "Analysis", limits: tuple[float, float] | None) -> str:
    """Return in words what the result rests on and when it may be trusted."""
    said = [_validity(log, found)]
    if found.effective_sample_size < FEW:
        said.append(
            f"The interval rests on {found.effective_sample_size:.0f} outcomes' worth of one arm: an "
            "interval from so few may cover a few points less than its level."
        )
    if found.unavailable:
        said.append(
            f"{found.unavailable} decisions are left out because an arm of the contrast had been dropped or was not "
            "yet added; where the decision to drop it came from these data, the interval is approximate."
        )
    if found.used_up and found.method != "naive":
        said.append(
            f"In {found.used_up} decisions the slots of an arm in its permuted block were used up (propensity 0): they "
            "count for the other arm only."
        )
    said += _incomplete(found, limits)
    return " ".join(said)


def _validity(log: DecisionLog, found: "Analysis") -> str:
    least = f"the least propensity is {found.least_propensity:.3g}"
    if found.method == "naive":
        if log.adaptive:
            return (
                "Not valid: the propensities change with the data, so plain means are biased and their intervals cover "
                "less than they say. Shown for comparison; use method='aw-aipw'."
            )
        return "Valid: the propensities were the same at every decision."
    if not log.adaptive:
        return f"Valid in large samples: the propensities were the same at every decision ({least})."
    floor = enough_floor(log.arms.size, len(log.names))
    if found.method == "aw-aipw" and found.least_propensity < 0.9 * floor:
        return (
            f"Approximate: {least}, below {floor:g}, the floor that would have given each arm ten decisions. Where the "
            "design has no floor, that this log is analysed at all is a result of its own outcomes: do not rely on it."
        )
    if found.method == "aw-aipw":
        return f"Valid in large samples for adaptive data: {least}, over {found.rows} decisions."
    skewed = "inverse-propensity means" if found.method == "ips" else "equally weighted scores"
    return (
        f"Unbiased, but {skewed} are skewed where propensities become small ({least}), and the normal interval then "
        "covers less than it says. Prefer method='aw-aipw'."
    )


def _incomplete(found: "Analysis", limits: tuple[float, float] | None) -> list[str]:
    said = []
    if found.imputed:
        said.append(f"{found.imputed} outcomes are imputed, and used as if they had been observed.")
    unknown = found.pending + found.missing
    if unknown:
        counts = f"{found.pending} outcomes are pending and {found.missing} missing"
        said.append(f"{counts}: left out, which is right where it does not depend on arm or outcome.")
        if found.worst_case is None:
            said.append("A worst case needs bounds of the reward: give bounds=(least, largest).")
        else:
            low, high = found.worst_case
            said.append(f"Whatever they are, the interval stays within {low:.4g} to {high:.4g}.")
    return said
