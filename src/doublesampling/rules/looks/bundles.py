"""The named tuples of looks: the rule, what is known, and where the numbers go."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from doublesampling.rules.looks.equal_steps import MOST_POINTS
from doublesampling.rules.looks.panels import EDGES_PER_ARM
from doublesampling.rules.optimal_arm.panels import PANEL_NODES, PANEL_ROWS
from doublesampling.rules.optimal_arm.regions import SURVEY_COLUMNS

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]

# what a look, or the end of a trial, says
CONTINUE, SUPERIORITY, EQUIVALENCE, FUTILITY, MAXIMUM = range(5)


class LookRule(NamedTuple):
    """A stopping rule as numbers: thresholds per look; nan where a rule is not used."""

    superiority: FloatArray
    """(look)"""
    inferiority: FloatArray
    equivalence: FloatArray
    futility: FloatArray
    equivalence_margin: float
    futility_margin: float
    promote: bool
    """Whether a superior arm becomes the new control instead of ending the trial."""
    minimum: int
    """Known outcomes that every remaining arm must have before a look acts."""


class Known(NamedTuple):
    """What is known at a look; active and place change."""

    parameters: FloatArray
    """(arm, 3): the marginals."""
    draws: FloatArray
    """(draw, arm): posterior draws, where there is no law."""
    counts: IntArray
    """(arm): known outcomes."""
    active: BoolArray
    """(arm): whether an arm is in; False once it is dropped."""
    place: IntArray
    """(3): the control, -1 for none; the arm that a look selected, -1 for none; 1 where the control was promoted."""


# where a trial is: between looks, at one, at its end, or ended
RUNNING, DUE, FINAL, ENDED = range(4)

# columns of a trial's progress: where it is, what ended it, looks so far; the next tick and outcome; participants,
# outcomes on their way, known outcomes; whether shares are to be renewed
STATUS, OUTCOME, LOOKS, TICK, POINTER, SIZE, WAITING, KNOWN_SO_FAR, RENEW = range(9)
PROGRESS_COLUMNS = 9


class Batch(NamedTuple):
    """What is known in several trials, the first dimension of every array; see Known and Report."""

    parameters: FloatArray
    draws: FloatArray
    counts: IntArray
    active: BoolArray
    place: IntArray
    best: FloatArray
    remaining: FloatArray
    better: FloatArray
    margins: FloatArray
    progress: IntArray
    """(trial, PROGRESS_COLUMNS)"""


class Report(NamedTuple):
    """The probabilities of a look; nan where they were not needed."""

    best: FloatArray
    """(arm): P(best) among the arms that were in when the look began."""
    remaining: FloatArray
    """(arm): the same among those that remain."""
    better: FloatArray
    """(arm): P(better than the control)."""
    margins: FloatArray
    """(2): P(all remaining within the margin), P(none beats the control by the margin)."""


class Space(NamedTuple):
    """Work space of a look."""

    which: IntArray
    parameters: FloatArray
    pair: FloatArray
    p: FloatArray
    survey: FloatArray
    panel: FloatArray
    edges: FloatArray
    density: FloatArray
    lower: FloatArray
    work: FloatArray


def look_space(arms: int, quick: bool) -> Space:
    """Return the work space for so many arms; where it is quick, with room for equal steps."""
    points = MOST_POINTS if quick else 0
    return Space(
        which=np.zeros(arms, dtype=np.int64),
        parameters=np.empty((arms, 3)),
        pair=np.empty((2, 3)),
        p=np.empty(max(arms, 2)),
        survey=np.empty((max(arms, 2), SURVEY_COLUMNS)),
        panel=np.empty((max(arms, 2) + 1, PANEL_ROWS, PANEL_NODES)),
        edges=np.empty(arms * EDGES_PER_ARM + 4),
        density=np.empty((arms, points)),
        lower=np.empty((arms, points)),
        work=np.empty((2, arms)),
    )


def new_batch(trials: int, arms: int, draws: int) -> Batch:
    """Return room for so many trials; where arms have laws, no draws are needed."""
    return Batch(
        parameters=np.zeros((trials, arms, 3)),
        draws=np.empty((trials, draws, arms)),
        counts=np.zeros((trials, arms), dtype=np.int64),
        active=np.ones((trials, arms), dtype=np.bool_),
        place=np.tile(np.array([-1, -1, 0]), (trials, 1)),
        best=np.full((trials, arms), np.nan),
        remaining=np.full((trials, arms), np.nan),
        better=np.full((trials, arms), np.nan),
        margins=np.full((trials, 2), np.nan),
        progress=np.zeros((trials, PROGRESS_COLUMNS), dtype=np.int64),
    )
