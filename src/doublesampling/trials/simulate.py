"""``trial.simulate``: check what is assumed, play the realizations, describe how they ended."""

from typing import Any

import numpy as np
import xarray as xr

from doublesampling import checks
from doublesampling.delays import check_delay
from doublesampling.engine.simulate import check_threads
from doublesampling.trials.characteristics import to_dataset
from doublesampling.trials.play import Ends, pack, play
from doublesampling.trials.scenarios import Circumstances, make_world, name_scenarios


def simulate(
    trial: Any, truths: Any, realizations: int, *, delay: Any, dropout: float, trend: Any, seed: int,
    threads: int | None, equal: bool,
) -> xr.Dataset:  # fmt: skip
    """Return the operating characteristics of a trial; see Trial.simulate."""
    count = checks.integer("realizations", realizations, least=1, most=10**8)
    named = name_scenarios(truths)
    given = Circumstances(
        check_delay(trial.delay if delay is None else delay), checks.within("dropout", dropout, 0.0, 1.0), trend
    )
    worlds = [make_world(trial.belief, truth, given) for truth in named.values()]
    workers, number = check_threads(threads), checks.seed(seed)
    played: dict[str, Ends] = {"": play(pack(trial, False), worlds, count, number, workers)}
    if checks.flag("equal", equal):
        played["_equal"] = play(pack(trial, True), worlds, count, number, workers)
    means = np.array([world.means for world in worlds])
    assumed = {
        "delay": repr(trial.delay if delay is None else delay),
        "dropout": repr(dropout),
        "trend": repr(trend),
        "seed": str(number),
        "realizations": str(count),
    }
    return to_dataset(trial, list(named), means, played, assumed)
