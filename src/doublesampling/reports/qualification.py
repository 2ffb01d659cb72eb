"""``doublesampling qualify``: recompute published and stored numbers on this machine, one line each."""

import datetime
import hashlib
import math
import tempfile
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

import doublesampling as ds
from doublesampling.paper.document import Heading, Paragraph, Table
from doublesampling.reports.design_words import machine_rows
from doublesampling.reports.page import NO_CLAIM, Report
from doublesampling.rules import entry_points


class Check(NamedTuple):
    """One line of a qualification: what was computed, what was expected and found, and whether they agree."""

    what: str
    source: str
    expected: str
    found: str
    passed: bool


# Random123's known answers for philox4x64-10: counter, key, first word
_PHILOX = (
    ((0, 0, 0, 0), (0, 0), 0x16554D9ECA36314C),
    ((2**64 - 1,) * 4, (2**64 - 1,) * 2, 0x87B092C3013FE90B),
    (
        (0x243F6A8885A308D3, 0x13198A2E03707344, 0xA4093822299F31D0, 0x082EFA98EC4E6C89),
        (0x452821E638D01377, 0xBE5466CF34E90C6C),
        0xA528F45403E61D95,
    ),
)
# estimate and standard error of arm 2 - arm 0 on the log of ``_small_log``, by the code of Hadad et al. (2021)
_HADAD = {
    ("aw-aipw", "constant"): (-0.0757883765672, 0.102913086405),
    ("aw-aipw", "stick-breaking"): (-0.0445167925699, 0.105277577336),
    ("aipw", "constant"): (-0.0917310563705, 0.114344466542),
}
_ARMS = "220221202222211122221111111222111122211112122222212222222222"
_REGRET = 2.336
# of ``small_trial`` at success probabilities 0.3 and 0.6, and of an end of it: by enumerating all its ends
_SUPERIORITY, _SIZE, _P_VALUE = 0.338776640142, 7.21774506058, 0.00718064155162


def checks() -> Iterator[Check]:
    """Yield the checks one by one; an error is a failed check."""
    for make in (_generator, _probabilities, _estimates, _experiment, _simulation, _trial):
        yield from _guarded(make)


def _guarded(make: Callable[[], Iterator[Check]]) -> Iterator[Check]:
    try:
        yield from make()
    except Exception as problem:  # a broken installation may fail in any way, and the report must say so
        yield Check(make.__name__.strip("_"), "this package", "no error", f"{type(problem).__name__}: {problem}", False)


def _near(what: str, source: str, expected: float, found: float, tolerance: float) -> Check:
    passed = math.isclose(expected, found, rel_tol=tolerance, abs_tol=tolerance * 1e-3)
    return Check(what, source, f"{expected:.12g}", f"{found:.12g}", passed)


def _generator() -> Iterator[Check]:
    for counter, key, word in _PHILOX:
        index, purpose, time, realization = (np.uint64(part) for part in counter)
        words = np.array([key[0], key[1], realization, time], dtype=np.uint64)
        found = entry_points.uniform_at(words, purpose, index)
        expected = ((word >> 12) + 0.5) / 2.0**52
        name = f"random number at key {key[0]:#x}"
        yield Check(name, "Random123, philox4x64-10", f"{expected!r}", f"{found!r}", expected == found)


def _beta_above(a: int, b: int, c: int, d: int) -> Fraction:
    """P(Beta(a, b) > Beta(c, d)) for whole numbers, as a fraction: a sum over the values of a hypergeometric law."""
    total = a + b + c + d - 2
    ways = sum(math.comb(a + b - 1, k) * math.comb(c + d - 1, a + c - 1 - k) for k in range(a))
    return Fraction(ways, math.comb(total, a + c - 1))


def _probabilities() -> Iterator[Check]:
    for (a, b), (c, d) in (((1, 1), (2, 1)), ((3, 4), (5, 2)), ((40, 60), (55, 45))):
        belief = ds.BetaBernoulli(arms=2, alpha=[a, c], beta=[b, d])
        found = ds.probability_optimal(belief, belief.prior())
        exact = float(_beta_above(a, b, c, d))
        name = f"P(Beta({a}, {b}) is above Beta({c}, {d}))"
        yield _near(name, "exact fraction", exact, float(found[0]), 1e-10)
    belief = ds.BetaBernoulli(arms=3)
    yield _near(
        "P(best) of three equal arms",
        "symmetry",
        1 / 3,
        float(belief.marginals(belief.prior()).probability_optimal[0]),
        1e-10,
    )


def _small_log() -> dict[str, Any]:
    t = np.arange(60)
    raw = np.column_stack([t % 5 + 1, t % 3 + 1, np.full(60, 2)]).astype(float)
    shares = raw / raw.sum(axis=1, keepdims=True)
    return {"arm": (t * t + t // 7) % 3, "reward": (t * 37 % 100) / 100, "propensities": shares}


def _estimates() -> Iterator[Check]:
    for (method, weights), (estimate, error) in _HADAD.items():
        found = ds.analyse(_small_log(), (2, 0), method, weights=weights, initial=0.0)
        name = f"{method}, {weights} weights"
        yield _near(f"estimate by {name}", "code of Hadad et al. (2021)", estimate, found.estimate, 1e-9)
        yield _near(f"standard error by {name}", "code of Hadad et al. (2021)", error, found.standard_error, 1e-9)


def _experiment() -> Iterator[Check]:
    """Run an experiment of 60 decisions in a new store, and replay it."""
    from doublesampling.live.stores import close_stores

    with tempfile.TemporaryDirectory() as folder:
        try:
            exp = ds.Experiment.create(
                "qualification", arms=["a", "b", "c"], policy=ds.DoubleSampling(horizon=60, count="doubt"), seed=7,
                storage=f"sqlite:///{folder}/q.db", units="many",
            )  # fmt: skip
            arms = ""
            for i in range(60):
                made = exp.ask()
                arms += str(made.arm)
                exp.tell(made.id, float((i * 7 + 3 * made.arm) % 10 < 4 + made.arm))
            yield Check("arms of 60 decisions of an experiment", "stored with the package", _ARMS, arms, arms == _ARMS)
            replayed = exp.replay()
            yield Check(
                "replay of the experiment", "the log itself", "60 decisions agree",
                f"{replayed.decisions - replayed.different} of {replayed.decisions} agree",
                replayed.agrees and replayed.decisions == 60,
            )  # fmt: skip
        finally:
            close_stores()


def _simulation() -> Iterator[Check]:
    data = ds.simulate(
        ds.BernoulliBandit([0.4, 0.8]), [ds.DoubleSampling()], horizon=100, realizations=200, seed=1, device="cpu",
        progress=False,
    )  # fmt: skip
    found = float(data["cumulative_regret"].values.ravel()[-1])
    yield _near("regret of double sampling after 100 decisions", "stored with the package", _REGRET, found, 1e-9)


def small_trial() -> Any:
    """Return a trial of eight participants, all of whose ends can be enumerated."""
    return ds.Trial(
        arms=["old", "new"], policy=ds.ThompsonSampling(), allocation=ds.Allocation(floor=0.1), horizon=8,
        stopping=ds.Stopping(looks=[4, 6, 8], superiority=0.9, inferiority=0.05),
    )  # fmt: skip


def _trial() -> Iterator[Check]:
    trial, source = small_trial(), "enumeration of all ends"
    exact = trial.exact([(0.3, 0.6)], equal=False)
    chance, size = float(exact.probability_superiority[0]), float(exact.expected_size[0])
    yield _near("P(superiority) of a trial", source, _SUPERIORITY, chance, 1e-9)
    yield _near("expected size of the trial", source, _SIZE, size, 1e-9)
    test = trial.exact_test((0, 5), (2, 1), statistic="difference", alternative="greater")
    yield _near("exact test of the trial", source, _P_VALUE, test.p_value, 1e-9)
    count = 2000
    played = trial.simulate([(0.3, 0.6)], realizations=count, seed=1, equal=False)
    found, error = float(played.probability_superiority[0]), math.sqrt(chance * (1.0 - chance) / count)
    passed = abs(found - _SUPERIORITY) <= 5.0 * error
    yield Check(
        "P(superiority) of the trial, simulated",
        source,
        f"{_SUPERIORITY:.3f} ± {5 * error:.3f}",
        f"{found:.3f}",
        passed,
    )


def qualify(done: list[Check] | None = None) -> Report:
    """Return the qualification of this installation as a report; ``done`` are checks that were made already."""
    made = list(checks()) if done is None else done
    rows = tuple((c.what, c.source, c.expected, c.found, "pass" if c.passed else "FAIL") for c in made)
    failed = sum(not check.passed for check in made)
    verdict = "All checks passed." if failed == 0 else f"{failed} of {len(made)} checks FAILED."
    digest = hashlib.sha256(repr(rows).encode()).hexdigest()
    now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    title = "Qualification of this installation"
    return Report(
        title,
        (
            Heading(title, 1),
            Paragraph(NO_CLAIM),
            Paragraph(f"{verdict} {len(made)} checks, {now}. Digest of the results (SHA-256): `{digest}`."),
            Table(
                ("what", "compared with", "expected", "found", "result"),
                rows,
                marks=(("pass", "good"), ("FAIL", "bad")),
            ),
            Heading("Machine"),
            Table(("part", "value"), tuple(machine_rows())),
            Heading("Signed off"),
            Paragraph("Name: ______________________  Date: ______________  Signature: ______________________"),
        ),
    )
