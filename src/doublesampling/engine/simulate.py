"""``ds.simulate``: policies against bandits, many realizations at once."""

import difflib
import multiprocessing
import os
import pickle
import warnings
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor, wait
from typing import Any, TypedDict, Unpack

import numpy as np
import xarray as xr

from doublesampling import checks
from doublesampling.engine.blocks import Block, Moments, Unit, play_units
from doublesampling.engine.lateness import make_lateness
from doublesampling.engine.plan import BLOCK, Plan, make_plan
from doublesampling.engine.store import Store
from doublesampling.errors import Interrupted, LongRunWarning, SettingError
from doublesampling.progress import Progress, Wish
from doublesampling.results import to_dataset
from doublesampling.rules.cached import compilations
from doublesampling.rules.choose import kinds

_LOCAL_SECONDS, _REMOTE_SECONDS = 0.2, 3.0
_PYTHON_STEP = 1e-4  # seconds, about, of a step that is played in Python
_WORTH_PROCESSES = 5.0  # seconds of such steps, from which on starting processes pays
_MOST_KEPT = 2 * 2**30
_LONG = 10_000  # decisions, from which on the paper's rule is warned of


class Options(TypedDict, total=False):
    """How a simulation is run and what is recorded; a device may change results only where rounding decides."""

    device: str
    """"auto", "cpu" or "cuda"."""
    executor: Any
    """Anything like concurrent.futures.Executor, or a Dask client."""
    progress: Wish
    """True, False, or a function of (done, total)."""
    times: Any
    """"all", "log" or a list of steps to record."""
    keep: Sequence[str]
    """("trajectories",) keeps every step of every realization."""
    store: Any
    """A folder where finished pieces are kept, so that a killed run goes on where it stopped."""
    threads: int | None
    allocation: Any
    """An Allocation: limits on the probability with which each arm is played."""
    delay: Any
    """Further decisions after which an outcome is known: a number, a law, or a list of probabilities."""
    dropout: float
    """The share of outcomes that are never known."""


def _checked(options: Options) -> Options:
    names = list(Options.__annotations__)
    for name in options:
        if name not in names:
            near = difflib.get_close_matches(name, [*names, "horizon", "realizations", "seed", "belief"], n=1)
            hint = f"Did you mean {near[0]!r}?" if near else f"There are {', '.join(names)}."
            raise SettingError(f"simulate has no option {name!r}. {hint}")
    return options


def simulate(
    bandits: Any,
    policies: Any,
    *,
    horizon: int,
    realizations: int,
    seed: int = 0,
    belief: Any = None,
    **options: Unpack[Options],
) -> xr.Dataset:
    """Play policies against one bandit or several, and average over many realizations.

    ``bandits`` and ``policies`` are one each, a list, or a dictionary whose keys name them in the result.
    The same seed gives the same numbers on any number of threads and workers, in any chunks. Policies meet the same
    luck: contexts and rewards do not depend on who plays. ``times`` is "all", "log" or a list of steps to record;
    ``keep=("trajectories",)`` keeps every step of every realization. ``device`` is "auto", "cpu" or "cuda", ``threads``
    how many of them to use. ``executor`` is anything like concurrent.futures.Executor, or a Dask client; ``store`` a
    folder where finished pieces are kept, so that a killed run goes on where it stopped. ``progress`` is True, False,
    or a function of (done, total). Policies, beliefs and worlds of your own are played in plain Python, on the same
    luck. ``allocation`` limits the shares of the arms (ds.Allocation). With ``delay``, an outcome is known after so
    many further decisions: a number, a law such as {"law": "poisson", "mean": 20}, or a list of probabilities. A share
    ``dropout`` of the outcomes is never known. Regret counts every decision, whether its outcome is known or not.

    >>> import doublesampling as ds
    >>> result = ds.simulate(
    ...     ds.BernoulliBandit([0.4, 0.8]), [ds.Oracle()], horizon=10, realizations=4, seed=1, device="cpu"
    ... )
    >>> result.cumulative_regret.values.max()
    np.float64(0.0)
    """
    given = _checked(options)
    plan = make_plan(
        bandits, policies, horizon=horizon, realizations=realizations, seed=seed, belief=belief,
        times=given.get("times", "all"), keep=given.get("keep", ()),
        late=make_lateness(given.get("allocation"), given.get("delay", 0), given.get("dropout", 0.0)),
    )  # fmt: skip
    _check_memory(plan)
    _warn_of_long_runs(plan)
    used = _check_device(given.get("device", "auto"), plan)
    if used == "cuda":
        from doublesampling.engine import cuda

        return to_dataset(plan, cuda.play_all(plan), cuda.name())
    moments = [[Moments() for _ in plan.policies] for _ in plan.problems]
    store = given.get("store")
    run = _Run(plan, moments, None if store is None else Store(store, plan), _watch(given.get("progress")))
    try:
        run.play(given.get("executor"), given.get("threads"))
    except KeyboardInterrupt:
        partial = to_dataset(plan, moments, "cpu")
        raise Interrupted("stopped", partial) from None
    return to_dataset(plan, moments, "cpu")


def _watch(wish: Wish) -> Progress:
    """Return the progress of a run; it knows whether a kernel is being compiled."""
    before = compilations()
    return Progress(wish, "simulating", lambda: compilations() > before)


def _warn_of_long_runs(plan: Plan) -> None:
    """Warn of the paper's N, which does not depend on the horizon, before a long run of it."""
    timeless = any(
        p.kind == kinds.DOUBLE_SAMPLING and p.settings.cap > 1 and np.isnan(p.settings.horizon) for p in plan.policies
    )
    if plan.horizon > _LONG and timeless:
        warnings.warn(
            "With the paper's rule a wrong leader is never questioned again, which costs linear regret in long runs "
            f"(T = {plan.horizon:,}). DoubleSampling(horizon={plan.horizon}) weighs the doubt against the decisions "
            "that are left; see docs/explanation/horizon.md.",
            LongRunWarning,
            stacklevel=3,
        )


def _check_memory(plan: Plan) -> None:
    if not plan.trajectories:
        return
    cells = len(plan.problems) * len(plan.policies) * plan.realizations * plan.horizon
    size = cells * (3 + plan.arms) * 8
    if size > _MOST_KEPT:
        wanted, allowed = size / 2**30, _MOST_KEPT / 2**30
        raise SettingError(
            f"Keeping every trajectory would take {wanted:.1f} GiB; at most {allowed:.0f} are allowed. "
            "Lower realizations or horizon, or leave keep out: moments are always kept."
        )


def _check_device(device: str, plan: Plan) -> str:
    checks.one_of("device", device, ("auto", "cpu", "cuda"))
    if device == "cpu" or (device == "auto" and (plan.trajectories or not plan.on_device)):
        return "cpu"
    from doublesampling.engine.devices import cuda_problem

    problem = cuda_problem()
    if device == "cuda":
        if problem:
            raise SettingError(problem)
        if plan.trajectories:
            raise SettingError("Trajectories are kept on the CPU only. Pass device='cpu'.")
        if plan.late is not None:
            raise SettingError("allocation, delay and dropout are simulated on the CPU. Pass device='cpu'.")
        if not plan.on_device:
            raise SettingError(
                "A GPU plays policies, beliefs and bandits of this package, whose posterior samples fit into the "
                "memory of a thread. Pass device='cpu'."
            )
        return "cuda"
    return "cpu" if problem else "cuda"


class _Run:
    """One simulation on the way: what is left to play, and where finished blocks go."""

    def __init__(self, plan: Plan, moments: list[list[Moments]], store: Store | None, progress: Progress) -> None:
        self.plan, self.moments, self.store, self.progress = plan, moments, store, progress
        self.total = len(plan.problems) * len(plan.policies) * plan.blocks

    def play(self, executor: Any, threads: int | None) -> None:
        """Play every unit, here or wherever the executor likes."""
        left = list(self._units_left())
        with self.progress.over(self.total, self.total - len(left), "blocks"):
            if executor is not None:
                self._spread(as_executor(executor), left, _REMOTE_SECONDS, ahead=64)
                return
            threads = check_threads(threads)
            compiled = [unit for unit in left if self._compiled(unit)]
            own = [unit for unit in left if not self._compiled(unit)]
            self._play_on(ThreadPoolExecutor(max_workers=threads), compiled, threads)
            if own:
                self._play_on(self._workers(own, threads), own, threads)

    def _compiled(self, unit: Unit) -> bool:
        return self.plan.problems[unit.problem].compiled and self.plan.policies[unit.policy].compiled

    def _play_on(self, pool: Executor, units: list[Unit], threads: int) -> None:
        try:
            self._spread(pool, units, _LOCAL_SECONDS, ahead=2 * threads)
        finally:
            pool.shutdown(wait=True, cancel_futures=True)

    def _workers(self, units: list[Unit], threads: int) -> Executor:
        """Return processes for what is played in Python, where they are worth their start and can import it."""
        if threads == 1 or sum(guess_seconds(self.plan, unit) for unit in units) < _WORTH_PROCESSES:
            return ThreadPoolExecutor(max_workers=1)
        try:
            pickle.dumps(self.plan)
        except (pickle.PicklingError, AttributeError, TypeError):
            return ThreadPoolExecutor(max_workers=1)
        if any("__main__" in type(part).__module__ for part in self._own_parts()):
            return ThreadPoolExecutor(max_workers=1)  # a new process could not import it
        return ProcessPoolExecutor(max_workers=threads, mp_context=multiprocessing.get_context("spawn"))

    def _own_parts(self) -> Iterator[object]:
        yield from (policy.policy for policy in self.plan.policies)
        for problem in self.plan.problems:
            yield from (problem.belief, problem.world)

    def _units_left(self) -> Iterator[Unit]:
        """Return every unit in order, without those that the store already holds."""
        for i in range(len(self.plan.problems)):
            for j in range(len(self.plan.policies)):
                for k in range(self.plan.blocks):
                    unit = Unit(i, j, k)
                    found = self.store.find(unit) if self.store else None
                    if found is None:
                        yield unit
                    else:
                        self.moments[i][j].add(k, found)

    def _spread(self, pool: Executor, left: list[Unit], seconds: float, ahead: int) -> None:
        """Submit chunks of about so many seconds, never more than a few ahead of what is merged."""
        chunks = deque(cut(self.plan, left, seconds))
        flying: dict[Future[list[Block]], list[Unit]] = {}
        while chunks or flying:
            while chunks and len(flying) < ahead:
                units = chunks.popleft()
                flying[pool.submit(play_units, self.plan, units)] = units
            for future in wait(flying, return_when=FIRST_COMPLETED).done:
                self._absorb(flying.pop(future), future.result())

    def _absorb(self, units: list[Unit], blocks: list[Block]) -> None:
        if self.store:
            self.store.write(units, blocks)
        for unit, block in zip(units, blocks, strict=True):
            self.moments[unit.problem][unit.policy].add(unit.block, block)
        self.progress.advance(len(units))


def cut(plan: Plan, units: list[Unit], seconds: float) -> Iterator[list[Unit]]:
    """Yield consecutive units in chunks of about so many seconds each, by a rough guess of their cost."""
    chunk: list[Unit] = []
    cost = 0.0
    for unit in units:
        chunk.append(unit)
        cost += guess_seconds(plan, unit)
        if cost >= seconds:
            yield chunk
            chunk, cost = [], 0.0
    if chunk:
        yield chunk


def guess_seconds(plan: Plan, unit: Unit) -> float:
    """Return about how many seconds a block takes on one core."""
    problem, policy = plan.problems[unit.problem], plan.policies[unit.policy]
    kind, samples = policy.kind, policy.settings.samples
    if not (problem.compiled and policy.compiled):
        return BLOCK * plan.horizon * _PYTHON_STEP
    integrates = kinds.needs_optimality(kind) and (problem.family != "beta" or problem.arms > 3)
    per_step = 0.3e-6 * problem.arms + (1e-6 * problem.arms if integrates else 0.0)
    if (kind == kinds.INFORMATION_DIRECTED and samples > 0) or (integrates and problem.samples_itself):
        per_step += 1e-4 * problem.arms  # a thousand samples
    return BLOCK * plan.horizon * (per_step + 2e-9 * problem.arms * problem.dimension**2)


def check_threads(threads: int | None) -> int:
    """Return how many threads to use: those given, or one per core of this process."""
    if threads is None:
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return checks.integer("threads", threads, least=1, most=4096)


def as_executor(executor: Any) -> Executor:
    """Return a concurrent.futures executor as it is, or a Dask client as one."""
    if hasattr(executor, "get_executor"):  # a Dask client; a worker that dies is replaced, so pieces may be tried again
        found: Executor = executor.get_executor(pure=False, retries=10)
        return found
    if callable(getattr(executor, "submit", None)):
        return executor  # type: ignore[no-any-return]
    raise SettingError(
        f"executor must be a concurrent.futures executor or a Dask client, got {checks.shown(executor)}."
    )
