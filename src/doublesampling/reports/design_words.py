"""The design of an experiment or trial in words, and how it can be run again."""

import hashlib
import json
import platform
from typing import Any

from doublesampling import __version__
from doublesampling.paper.document import Block, Heading, Paragraph, Table
from doublesampling.policies import DoubleSampling, EpsilonGreedy, ThompsonSampling

_OUTCOMES = {
    "BetaBernoulli": "success or failure, 1 or 0; a Beta law describes each success probability",
    "Gaussian": "a number; a normal law with a Normal-Inverse-Gamma prior describes each arm",
    "LinearGaussian": "a number that depends linearly on a context; a Normal-Inverse-Gamma law describes each arm",
    "Logistic": "success or failure that depends on a context by a logistic regression",
    "GammaPoisson": "a count; a Gamma law describes each rate",
    "GammaExponential": "a waiting time; a Gamma law describes each rate",
    "DirichletCategorical": "one of several values; a Dirichlet law describes their probabilities",
}


_ITEMS = {
    "trial design": "3a, 3b",
    "changes to the trial": "3c",
    "sample size and operating characteristics": "7a",
    "interim decision-making criteria": "7b",
    "randomisation": "8a, 8b",
    "blinding": "11a, 11c",
    "statistical methods": "12a, 12b",
    "participant flow": "13a",
    "recruitment": "14a",
    "adaptation decisions": "14c",
    "similarity of stages": "15b",
    "numbers analysed": "16",
    "outcomes and estimation": "17a",
    "interim results": "17c",
    "statistical analysis plan and other trial documents": "24a, 24b",
}
"""Items of the CONSORT-ACE statement of 2020 (Dimairo et al.) by their subject."""


def items(*names: str) -> Paragraph:
    """Return to which items of CONSORT-ACE a section can contribute, by their subject and number."""
    return Paragraph(f"CONSORT-ACE: {', '.join(f'{name} ({_ITEMS[name]})' for name in names)}.")


def outcome_words(belief: Any) -> str:
    """Return what an outcome is, from the belief."""
    return _OUTCOMES.get(type(belief).__name__, f"as {type(belief).__name__} defines it")


def policy_words(policy: Any) -> str:
    """Return in words how the next arm is chosen."""
    if isinstance(policy, DoubleSampling):
        until = f", more of them as the planned {policy.horizon} decisions run out" if policy.horizon else ""
        return (
            "Double sampling: the probability that each arm is the best is found from the posterior; candidates are "
            f"drawn from these probabilities, more the surer the posterior is{until}; the most frequent candidate is "
            "assigned."
        )
    if isinstance(policy, ThompsonSampling):
        return "Thompson sampling: an arm is assigned with the posterior probability that it is the best."
    if isinstance(policy, EpsilonGreedy):
        return (
            f"Any arm with probability {policy.epsilon:g}, otherwise the one with the highest posterior mean "
            "(epsilon-greedy)."
        )
    return f"As the policy {type(policy).__name__} decides."


def design_blocks(design: Any, name: str) -> list[Block]:
    """Return the section on the design: arms, outcome, allocation rule, blinding."""
    codes, units = getattr(design, "codes", None), getattr(design, "units", None)
    allocation = getattr(design, "allocation", None)
    rows = [
        ("arms", ", ".join(design.arms)),
        ("outcome", outcome_words(design.belief)),
        ("prior", f"`{design.belief!r}`"),
        ("allocation rule", policy_words(design.policy)),
        ("policy", f"`{design.policy!r}`"),
        ("limits of the propensities", "none" if allocation is None else f"`{allocation!r}`"),
    ]
    if units is not None:
        rows.append(("units", "one decision for each unit" if units == "once" else "a unit may get several decisions"))
        blind = "codes instead of arm names" if codes is not None else "arm names, and never an outcome"
        rows.append(("blinding", f"keys of the service without the scope `read` see {blind}"))
    return [
        Heading("Design"),
        items("trial design", "randomisation", "blinding"),
        Paragraph(
            f"{name[0].upper()}{name[1:]} is response-adaptive: the probabilities of assignment change with the "
            "outcomes, by a rule that was fixed before the first decision. Every decision is stored with the "
            "probability of each arm, so that it can be recomputed and the data analysed with these probabilities."
        ),
        Table(("part", "setting"), tuple(rows), wordy=True),
    ]


def rule_blocks(design: Any) -> list[Block]:
    """Return the section on looks and stopping."""
    stopping = getattr(design, "stopping", None)
    said: list[Block] = [Heading("Looks and stopping rules"), items("interim decision-making criteria")]
    if stopping is None:
        said.append(
            Paragraph(
                "No stopping rule is stored with the design: looks may be taken at any time, nothing ends the "
                "experiment by itself, and only the confidence sequences hold however often anyone looks."
            )
        )
        return said
    names = [n for n in getattr(stopping, "__dataclass_fields__", {}) if getattr(stopping, n) is not None]
    said.append(Paragraph("At each look: drop inferior arms, then superiority, equivalence, futility, in this order."))
    said.append(Table(("rule", "value"), tuple((n.replace("_", " "), str(getattr(stopping, n))) for n in names)))
    return said


def analysis_blocks(design: Any) -> list[Block]:
    """Return the section on the planned analysis."""
    allocation = getattr(design, "allocation", None)
    floor = getattr(allocation, "floor", 0.0) or getattr(allocation, "minimum", None) or 0.0
    words = (
        f"Propensities have a floor of {floor:g}, so the estimates apply to every arm."
        if floor
        else "Propensities have no floor. Where they vanish, the analysis is refused and says which floor would have "
        "been enough; set one with `ds.Allocation(floor=0.05)` before the first decision."
    )
    return [
        Heading("Analysis"),
        items("statistical methods"),
        Paragraph(
            "Means and differences are estimated by adaptively weighted inverse-propensity scores (aw-aipw, Hadad and "
            "others 2021, constant-allocation weights) with 95 % intervals. Plain means are shown for comparison only: "
            "in data that chose themselves they are biased. Confidence sequences hold at all looks together. Pending "
            "and missing outcomes are left out and bounded by the worst case where rewards are bounded."
        ),
        Paragraph(words),
    ]


def machine_rows() -> list[tuple[str, str]]:
    """Return the versions of this package, of what computes, and of the machine."""
    import numba
    import numpy as np

    return [
        ("doublesampling", __version__),
        ("Python", f"{platform.python_version()}, {platform.system()} {platform.machine()}"),
        ("NumPy, Numba", f"{np.__version__}, {numba.__version__}"),
    ]


def versions_blocks(design: Any, commands: tuple[str, ...]) -> list[Block]:
    """Return the section on versions, seed and commands."""
    stored = design.to_json() if hasattr(design, "to_json") else json.dumps(repr(design))
    rows = [*machine_rows(), ("digest of the design (SHA-256)", hashlib.sha256(stored.encode()).hexdigest())]
    if hasattr(design, "seed"):
        rows.insert(0, ("seed of the random numbers", str(design.seed)))
    return [
        Heading("Run it again"),
        items("statistical analysis plan and other trial documents"),
        *(Paragraph(f"`{command}`") for command in commands),
        Table(("part", "value"), tuple(rows)),
    ]
