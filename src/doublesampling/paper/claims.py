"""Every claim of the paper: what it says, where, which datasets bear on it, and how it is judged.

No number is typed in: each comes from a dataset or, where it is the paper's, from published.py.
"""

from collections.abc import Callable
from dataclasses import dataclass

from doublesampling.paper import bernoulli_claims as bernoulli
from doublesampling.paper import linear_claims as linear
from doublesampling.paper.published import BAYES_UCB, DISTINGUISHABLE, EXPLORES_UNTIL, THOMPSON
from doublesampling.paper.verdicts import Datasets, Finding


@dataclass(frozen=True)
class Claim:
    """What the paper says, where, which dataset bears on it, and how it is judged."""

    says: str
    where: str
    needs: str
    judge: Callable[[Datasets], Finding]


CLAIMS = (
    Claim(f"N ≈ 1 while t < {EXPLORES_UNTIL} in the illustration, and grows after", "4.1, figure 1", "illustration",
          bernoulli.explores_first),
    Claim("in expectation all algorithms take the same actions", "4.1, figure 2", "bernoulli", bernoulli.best_arm),
    Claim("the action variability of double sampling is considerably smaller", "4.1, figure 2", "bernoulli",
          bernoulli.variability),
    Claim("the regrets of figure 3", "4.1, figure 3", "bernoulli", bernoulli.figure_3),
    Claim("the cumulative regret is lower than Thompson sampling's and Bayes-UCB's", "4.1, figure 3", "bernoulli",
          bernoulli.lower_regret),
    Claim("regret reductions around 40 % against Thompson sampling", "4.1, figure 4", "bernoulli-sweep",
          bernoulli.reduction(THOMPSON)),
    Claim("regret reductions around 25 % against Bayes-UCB", "4.1, figure 4", "bernoulli-sweep",
          bernoulli.reduction(BAYES_UCB)),
    Claim(f"performance worsens when KL < {DISTINGUISHABLE:g}", "4.1, figure 4", "bernoulli-sweep", bernoulli.worsens),
    Claim("near-equivalent to Thompson sampling where the arms are very similar", "4.1, figure 4", "bernoulli-sweep",
          bernoulli.like_thompson),
    Claim(f"points are scattered where KL < {DISTINGUISHABLE:g}", "4.1, figure 4", "bernoulli-sweep",
          bernoulli.scatter),
    Claim("larger M do not significantly improve the regret", "4.1", "settings", bernoulli.more_samples),
    Claim("Thompson sampling is the special case of one candidate", "3", "settings", bernoulli.special_case),
    Claim("the regrets of figure 5, at the noise of its caption", "4.2, figure 5", "linear", linear.figure_5),
    Claim("double sampling has the lowest regret on a linear Gaussian bandit", "4.2, figure 5", "linear",
          linear.linear_order),
    Claim("the points of figure 6, by divergence", "4.2, figure 6", "linear-sweep", linear.figure_6),
    Claim("up to 40 % less regret than Thompson sampling, linear Gaussian", "4.2, figure 6", "linear-sweep",
          linear.linear_reduction(THOMPSON)),
    Claim("up to 50 % less regret than Bayes-UCB, linear Gaussian", "4.2, figure 6", "linear-sweep",
          linear.linear_reduction(BAYES_UCB)),
)  # fmt: skip
