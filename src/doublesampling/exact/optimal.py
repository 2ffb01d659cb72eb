"""The Bayes-optimal policy of two Bernoulli arms, by backward induction over all posterior states."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from doublesampling import checks
from doublesampling.errors import SettingError
from doublesampling.exact.kernels import Layer, improve
from doublesampling.exact.layers import (
    Threads,
    all_layers_size,
    check_horizon,
    check_room,
    free_memory,
    layer_size,
)
from doublesampling.exact.prior import best_mean, check_prior, exchangeable
from doublesampling.rules.compiled import plain
from doublesampling.rules.two_arm_states import offset

FloatArray = NDArray[np.float64]
ByteArray = NDArray[np.int8]

_NO_BYTES: ByteArray = np.empty(0, dtype=np.int8)


@dataclass(frozen=True, eq=False)
class BayesOptimal:
    """What the best policy earns on two Bernoulli arms, and its decisions.

    ``successes`` is the largest expected number of successes in ``horizon`` decisions, averaged over the prior;
    ``regret`` what it lacks to always playing the better arm. ``decisions`` are those kept, layer by layer.

    >>> import doublesampling as ds
    >>> best = ds.bayes_optimal(20)
    >>> round(best.regret, 4), best.arms(successes=(1, 0))
    (0.9021, (0,))
    """

    horizon: int
    prior: tuple[tuple[float, float], tuple[float, float]]
    successes: float
    regret: float
    decisions: list[ByteArray] = field(repr=False)
    mirrored: bool = field(repr=False)

    @property
    def kept(self) -> int:
        """How many first decisions are kept."""
        return len(self.decisions)

    def arms(self, successes: tuple[int, int] = (0, 0), failures: tuple[int, int] = (0, 0)) -> tuple[int, ...]:
        """Return the arms that are best to play after what was observed: (0,), (1,), or both.

        >>> bayes_optimal(50, keep=3).arms(successes=(0, 0), failures=(1, 0))
        (1,)
        """
        counts = [checks.integer("observations", n, least=0) for n in (*successes, *failures)]
        s1, s2, f1, f2 = counts
        n1, n2 = s1 + f1, s2 + f2
        time = n1 + n2
        if time >= self.kept:
            raise SettingError(
                f"The first {self.kept} decisions are kept, and this is number {time + 1}. "
                f"Write bayes_optimal({self.horizon}, keep={min(time + 1, self.horizon)})."
            )
        exchanged = self.mirrored and n1 > n2
        if exchanged:
            s1, s2, n1, n2 = s2, s1, n2, n1
        found = int(self.decisions[time][plain(offset)(time, n1) + s1 * (n2 + 1) + s2])
        if found == 2:
            return (0, 1)
        return (1 - found,) if exchanged else (found,)


def bayes_optimal(
    horizon: int, *, prior: Any = None, keep: int | None = None, threads: int | None = None, device: str = "cpu"
) -> BayesOptimal:
    """Return the value, the regret and the first decisions of the Bayes-optimal policy of two Bernoulli arms.

    ``prior`` is a BetaBernoulli belief, (alpha, beta) of both arms, or one such pair per arm; uniform by default.
    ``keep`` is how many first decisions are kept, 10 unless said; all of them where it is the horizon. All C(T + 3, 4)
    posterior states are visited: T = 200 takes about a second, T = 1500 a GPU (``device="cuda"``) and some seconds.

    >>> best = bayes_optimal(60)
    >>> round(best.successes, 6), round(best.regret, 5)
    (38.562343, 1.43766)
    """
    horizon, pairs = check_horizon(horizon), check_prior(prior)
    keep = min(10, horizon) if keep is None else checks.integer("keep", keep, least=1, most=horizon)
    mirrored = exchangeable(pairs)
    if checks.one_of("device", device, ("cpu", "cuda")) == "cuda":
        from doublesampling.exact import cuda

        successes, decisions = cuda.optimal(horizon, pairs, keep)
    else:

        def room(t: int) -> float:
            return 8.0 * (layer_size(t, mirrored) + layer_size(t - 1, mirrored)) + all_layers_size(
                min(keep, t), mirrored
            )

        check_room(horizon, room, free_memory(), "The Bayes-optimal policy")
        successes, decisions = _induct(horizon, pairs, keep, threads)
    regret = horizon * best_mean(pairs) - successes
    named = tuple((float(a), float(b)) for a, b in pairs)
    return BayesOptimal(horizon, named, successes, regret, decisions, mirrored)  # type: ignore[arg-type]


def _induct(horizon: int, prior: FloatArray, keep: int, threads: int | None) -> tuple[float, list[ByteArray]]:
    """Return the value at the start and the best arms of the first layers, from the last layer back to the first."""
    mirrored = exchangeable(prior)
    after, value = np.zeros(layer_size(horizon, mirrored)), np.empty(layer_size(horizon - 1, mirrored))
    decisions: list[ByteArray] = []
    with Threads(threads) as team:
        for time in range(horizon - 1, -1, -1):
            best = np.empty(layer_size(time, mirrored), dtype=np.int8) if time < keep else _NO_BYTES

            arrays = (after, value, best)

            def work(layer: Layer, _: Any, arrays: Any = arrays) -> None:
                improve(layer, prior, *arrays)

            team.over(time, mirrored, work)
            if time < keep:
                decisions.append(best)
            after, value = value, after
    return float(after[0]), decisions[::-1]
