"""Ridge regression updated one outcome at a time, so that a prediction uses only what was known before it."""

import numpy as np
from numpy.typing import NDArray

from doublesampling.rules.cached import kept

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


@kept
def predict_from_past(
    features: FloatArray, rewards: FloatArray, known: IntArray, order: IntArray, centre: float,
    inverse: FloatArray, moments: FloatArray, gain: FloatArray, out: FloatArray,
) -> None:  # fmt: skip
    """Fill out (row) with what a regression of one arm expects at each row.

    ``order`` lists the arm's rows with an outcome by when it was known. The regression is on rewards minus ``centre``,
    which is put back. ``inverse`` starts as the inverse of the penalty matrix, ``moments`` and ``gain`` as zeros.
    """
    width, following = moments.size, 0
    for t in range(features.shape[0]):
        while following < order.size and known[order[following]] <= t:
            row = order[following]
            following += 1
            scale = 1.0
            for i in range(width):
                gain[i] = 0.0
                for j in range(width):
                    gain[i] += inverse[i, j] * features[row, j]
                scale += gain[i] * features[row, i]
            for i in range(width):
                moments[i] += features[row, i] * (rewards[row] - centre)
                for j in range(width):
                    inverse[i, j] -= gain[i] * gain[j] / scale
        out[t] = centre
        for i in range(width):
            for j in range(width):
                out[t] += features[t, i] * inverse[i, j] * moments[j]
