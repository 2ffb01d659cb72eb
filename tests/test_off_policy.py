"""Logged decisions: each estimate against the truth of a known world, and logs that are refused."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import doublesampling as ds
from doublesampling import logs
from doublesampling.cli.main import main
from doublesampling.errors import DoubleSamplingError, LogError, SettingError
from doublesampling.logs import Log, classification_log, make_log, read_log
from doublesampling.off_policy import evaluate
from doublesampling.policies import Choice
from tests.chance import FALSE_ALARM, assert_mean
from tests.own_policies import Commit, Counting, Softmax

TRUTH = np.array([0.2, 0.5, 0.7])
LOGGED = np.array([0.5, 0.3, 0.2])


class Always:
    """Plays one arm, whatever happens."""

    def __init__(self, arm: int) -> None:
        self.arm = arm

    def choose(self, evidence: Any) -> Choice:
        """The arm, for sure."""
        p = evidence.probability_optimal(None)
        votes = np.zeros(p.size, dtype=np.int64)
        votes[self.arm] = 1
        return Choice(self.arm, p, 1, votes, votes.astype(float))


def world(rows: int, seed: int) -> Log:
    """A log of a three-armed Bernoulli bandit that was not played uniformly."""
    rng = np.random.default_rng(seed)
    arms = rng.choice(3, rows, p=LOGGED)
    return make_log([f"arm {a}" for a in arms], rng.random(rows) < TRUTH[arms], LOGGED[arms])


@pytest.mark.parametrize("arm", [0, *(pytest.param(arm, marks=pytest.mark.slow) for arm in (1, 2))])
def test_a_policy_that_never_changes_earns_its_arm(arm: int) -> None:
    """All three estimates are unbiased: over many logs their mean is the arm's."""
    found = [evaluate(Always(arm), world(60, seed), seed=seed) for seed in range(150)]
    for name in ("ips", "dr"):
        assert_mean([getattr(one, name).mean for one in found], TRUTH[arm])
    rewards = [one.replay.mean for one in found if one.replay.rows > 1]
    assert_mean(rewards, TRUTH[arm])


def test_replay_keeps_the_rows_that_a_uniform_log_would_have() -> None:
    """The share of rows that count is the least propensity, whichever arm is played."""
    rows = sum(evaluate(Always(arm), world(3000, 7)).replay.rows for arm in range(3))
    share = 3 * LOGGED.min() * 3000
    assert abs(rows - share) < 6 * np.sqrt(share)


def test_a_learning_policy_earns_as_much_as_when_it_plays_alone() -> None:
    """Replay of the first ten decisions has the mean reward of a simulation of ten."""
    uniform = [np.random.default_rng(seed) for seed in range(200)]
    earned = []
    for seed, rng in enumerate(uniform):
        arms = rng.integers(0, 3, 90)
        log = make_log(list(map(str, arms)), rng.random(90) < TRUTH[arms])
        state, belief = ds.BetaBernoulli(arms=3).prior(), ds.BetaBernoulli(arms=3)
        paid: list[float] = []
        for arm, reward in zip(log.arms.tolist(), log.rewards.tolist(), strict=True):
            if (
                len(paid) < 10
                and ds.decide(ds.ThompsonSampling(), belief, state, seed=seed, time=len(paid) + 1).arm == arm
            ):
                state = belief.update(state, arm, reward)
                paid.append(reward)
        whole = evaluate(ds.ThompsonSampling(), log, seed=seed).replay
        assert whole.rows >= len(paid) == 10
        earned.append(np.mean(paid))
    played = ds.simulate(
        ds.BernoulliBandit(TRUTH.tolist()), [ds.ThompsonSampling()], horizon=10, realizations=20_000, device="cpu"
    )
    assert_mean(earned, 0.7 - float(played.cumulative_regret[0, 0, -1]) / 10)


def test_doubly_robust_is_less_noisy_and_intervals_cover() -> None:
    """On one log the interval of dr is narrower than that of ips, and both hold the truth at a sharp level."""
    log = world(4000, 3)
    found = evaluate(Always(2), log, level=1 - max(FALSE_ALARM, 1e-4))
    assert found.dr.high - found.dr.low < found.ips.high - found.ips.low
    for worth in (found.replay, found.ips, found.dr):
        assert worth.low < TRUTH[2] < worth.high


def test_contexts_are_learned_from(tmp_path: Path) -> None:
    """Where the best arm depends on the context, a policy that sees it earns more than any arm."""
    rng = np.random.default_rng(2)
    x = rng.normal(size=1500)
    arms = rng.integers(0, 2, 1500)
    rewards = np.where(arms == (x > 0), 1.0, 0.0) + 0.1 * rng.normal(size=1500)
    path = tmp_path / "log.csv"
    np.savetxt(path, np.column_stack([arms, rewards, x]), delimiter=",", header="arm,reward,x", comments="", fmt="%.9g")
    seen = evaluate(ds.DoubleSampling(), read_log(path, context=["x"]))
    blind = evaluate(ds.DoubleSampling(), read_log(path))
    assert seen.dr.low > blind.dr.high
    assert seen.replay.mean > 0.8 > blind.replay.mean


@pytest.mark.parametrize(
    ("text", "options", "words"),
    [
        ("arm,reward\na,1\nb,0\n", {"reward": "paid"}, "no column 'paid'. It has 'arm', 'reward'"),
        ("arm,reward\na,1\nb,many\n", {}, "Row 2, column 'reward'"),
        ("arm,paid\na,1\nb,many\n", {"reward": "paid"}, "Row 2, column 'paid'"),
        ("arm,reward\na,1\nb,\n", {}, "Row 2, column 'reward': missing"),
        ("arm,reward\na,1\n,0\n", {}, "Row 2, column 'arm': missing"),
        ("arm,reward\na,1\na,0\n", {}, "at least two arms"),
        ("arm,reward,p\na,1,0.5\nb,0,0\n", {"propensity": "p"}, "Row 2, column 'p': 0"),
        ("arm,reward,p\na,1,1.5\nb,0,0.1\n", {"propensity": "p"}, "Row 1, column 'p': 1.5"),
        ("arm,reward,x\na,1,1\nb,0,?\n", {"context": ["x"]}, "Row 2, column 'x'"),
        ("", {}, "not a table"),
    ],
)
def test_logs_that_cannot_be_evaluated_are_refused(
    text: str, options: dict[str, Any], words: str, tmp_path: Path
) -> None:
    """The message names the row and the column."""
    path = tmp_path / "log.csv"
    path.write_text(text)
    with pytest.raises(LogError) as error:
        read_log(path, **options)
    assert words in str(error.value)


def test_other_wrong_wishes(tmp_path: Path) -> None:
    """A missing file, a belief of other arms, a policy without propensities."""
    with pytest.raises(DoubleSamplingError, match="cannot be read"):
        read_log(tmp_path / "nowhere.csv")
    with pytest.raises(SettingError, match="arms"):
        evaluate(ds.Greedy(), world(10, 1), belief=ds.BetaBernoulli(arms=2))
    with pytest.raises(SettingError, match="propensities"):
        evaluate(ds.BayesUCB(samples=10), world(10, 1))
    with pytest.raises(SettingError, match="read_log"):
        evaluate(ds.Greedy(), "log.csv")  # type: ignore[arg-type]
    with pytest.raises(DoubleSamplingError, match="Write its name"):
        read_log(5)  # type: ignore[arg-type]
    path = tmp_path / "log.csv"
    path.write_text("arm,reward,age\na,1,3\nb,0,4\n")
    assert read_log(path, context="age").contexts is not None


@pytest.mark.parametrize(
    ("name", "arms", "floor"), [("breast-cancer", 2, 0.8), pytest.param("digits", 10, 0.3, marks=pytest.mark.slow)]
)
def test_classification_as_a_bandit(name: str, arms: int, floor: float) -> None:
    """A linear belief learns the classes far better than chance from what it is paid."""
    log = classification_log(name)
    assert len(log.names) == arms
    assert log.rewards.mean() == pytest.approx(1 / arms, abs=0.1)
    found = evaluate(ds.DoubleSampling(), log)
    assert found.dr.low > floor


def test_parquet_and_csv_hold_the_same_log(tmp_path: Path) -> None:
    """The same rows, the same numbers."""
    table = pd.DataFrame({"arm": ["a", "b", "b"], "reward": [1.0, 0.0, 0.5], "p": [0.5, 0.25, 0.25]})
    table.to_csv(tmp_path / "log.csv", index=False)
    table.to_parquet(tmp_path / "log.parquet")
    one, two = (read_log(tmp_path / f"log.{kind}", propensity="p") for kind in ("csv", "parquet"))
    for name in ("arms", "rewards", "propensities"):
        assert (getattr(one, name) == getattr(two, name)).all()


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It prints a row per policy, and clear words for wrong wishes."""
    path = tmp_path / "log.csv"
    path.write_text("who,paid,p\n" + "".join(f"{'ab'[i % 2]},{i % 3 > 0:d},0.5\n" for i in range(40)))
    command = ["replay", str(path), "--arm", "who", "--reward", "paid", "--propensity", "p"]
    assert main([*command, "--policy", "thompson", "--policy", "greedy"]) == 0
    shown = capsys.readouterr().out
    assert "thompson" in shown
    assert "BetaBernoulli" in shown
    assert main([*command, "--policy", "tompson"]) == 1
    assert main(["replay"]) == 1
    assert main(["replay", "--dataset", "iris"]) == 1
    error = capsys.readouterr().err
    assert "Did you mean 'thompson'" in error
    assert "--dataset" in error
    assert "breast-cancer" in error


@pytest.mark.parametrize("form", ["csv", "jsonl", "parquet"])
def test_files_give_every_digit_back(form: str, tmp_path: Path) -> None:
    numbers = pd.DataFrame({"share": np.random.default_rng(1).random(2000)})
    file = tmp_path / f"log.{form}"
    if form == "parquet":
        numbers.to_parquet(file)
    elif form == "csv":
        numbers.to_csv(file, index=False)
    else:
        file.write_text("\n".join(json.dumps({"share": share}) for share in numbers.share))
    assert (logs.read_table(file).share == numbers.share).all()


def test_versions_of_pandas_that_must_be_asked_for_every_digit() -> None:
    assert logs._exact_floats("2.2.2") == logs._exact_floats("3.0.1") == {"float_precision": "round_trip"}
    assert logs._exact_floats("3.1.0.dev0+1") == logs._exact_floats("4.0.0") == {}


def test_an_export_of_a_live_experiment_is_read_as_it_is(tmp_path: Path, sqlite_url: str) -> None:
    """CSV, Parquet and JSON Lines: propensities and contexts are used, pending decisions are left out and counted."""
    belief = ds.LinearGaussian(arms=3, dimension=2)
    exp = ds.Experiment.create("t", arms=["a", "b", "never"], belief=belief, seed=1, storage=sqlite_url)
    rng = np.random.default_rng(1)
    told = []
    for i in range(30):
        decision = exp.ask(unit=f"u{i}", context=rng.normal(size=2))
        if i % 3:
            exp.tell(decision.id, float(i))
            told.append((decision.arm, float(i), decision.propensities[decision.arm], decision.context))
    for form in ("csv", "parquet", "jsonl"):
        exp.export(form, tmp_path / f"t.{form}")
        log = read_log(tmp_path / f"t.{form}")
        assert log.names == ("a", "b", "never"), "an arm that was never played is an arm"
        assert log.skipped == 10
        assert log.arms.tolist() == [arm for arm, *_ in told]
        assert log.rewards.tolist() == [reward for _, reward, *_ in told]
        assert log.propensities is not None
        assert log.propensities.tolist() == [p for _, _, p, _ in told]
        assert log.contexts is not None
        expected = np.column_stack([np.ones(len(told)), [context for *_, context in told]])
        np.testing.assert_allclose(log.contexts, expected, rtol=1e-12)
        assert log.adaptive
    assert main(["replay", str(tmp_path / "t.csv"), "--policy", "thompson"]) == 0


def test_contexts_may_be_lists_in_a_column(tmp_path: Path) -> None:
    """JSON in a CSV file; ragged and broken lists are named with their row."""
    path = tmp_path / "log.csv"
    path.write_text('arm,reward,x\na,1,"[1, 2]"\nb,0,"[3, 4]"\n')
    log = read_log(path, context=["x"])
    assert log.contexts is not None
    assert log.contexts.tolist() == [[1, 1, 2], [1, 3, 4]]
    path.write_text('arm,reward,x\na,1,"[1, 2]"\nb,0,"[3]"\n')
    with pytest.raises(LogError, match="Row 2, column 'x': 1 numbers, where row 1 has 2"):
        read_log(path, context=["x"])
    path.write_text('arm,reward,x\na,1,"[1, 2]"\nb,0,"[3, z]"\n')
    with pytest.raises(LogError, match=r"Row 2, column 'x': .* is not a list of numbers"):
        read_log(path, context=["x"])


def test_a_column_that_cannot_be_the_arm_is_refused_at_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Thousands of different values are no arms: the count is named, and nothing hangs."""
    path = tmp_path / "log.csv"
    path.write_text("arm,reward,age\n" + "".join(f"{'ab'[i % 2]},{i % 2},{i / 7:.3f}\n" for i in range(5000)))
    assert main(["replay", str(path), "--arm", "age"]) == 1
    assert "Column 'age' has 5,000 different values in 5,000 rows" in capsys.readouterr().err


def test_estimates_say_how_many_rows_carry_them() -> None:
    """Effective rows by their definition; no interval from fewer than thirty."""
    log = world(4000, 3)
    found = evaluate(Always(2), log)
    weights = np.where(log.arms == 2, 1 / LOGGED[2], 0.0)
    assert found.ips.effective == pytest.approx(weights.sum() ** 2 / (weights**2).sum())
    assert found.dr.effective == found.ips.effective
    assert found.replay.effective == found.replay.rows
    assert found.warnings == ()
    few = evaluate(Always(2), world(60, 3))
    assert few.replay.rows < 30
    assert np.isnan(few.replay.low)
    assert np.isnan(few.ips.high)
    assert "fewer than 30: no interval" in few.warnings[0]
    assert "a few large weights decide them" in few.warnings[1]
    rare = make_log(["a"] * 500 + ["b"] * 500, [1.0] * 1000, [0.5] * 999 + [1e-4])
    heavy = evaluate(Always(1), rare)
    assert heavy.ips.effective == pytest.approx((499 * 2 + 1e4) ** 2 / (499 * 4 + 1e8))
    assert np.isnan(heavy.ips.low), "one row of weight 10 000 is no sample"
    assert heavy.ips.rows == 1000


def test_adaptive_logs_are_recognised() -> None:
    """Propensities that change from row to row tell a policy that learned."""
    assert not world(100, 1).adaptive
    learned = make_log(["a", "b"] * 50, [1.0, 0.0] * 50, np.linspace(0.2, 0.8, 100))
    assert learned.adaptive
    assert "made by a policy that learned" in evaluate(Always(0), learned).warnings[-1]


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda log: evaluate("greedy", log), "policy must be one such as"),
        (lambda log: evaluate(ds.Greedy, log), r"Write Greedy\(\)"),
        (lambda log: evaluate(ds.Greedy(), log, belief=3), "belief must be one such as"),
        (lambda log: evaluate(ds.Greedy(), log, belief=ds.BetaBernoulli), r"Write BetaBernoulli\("),
        (lambda log: evaluate(ds.Greedy(), log, seed="x"), "seed must be"),  # type: ignore[arg-type]
        (lambda log: evaluate(ds.Greedy(), log, level=2.0), "level must be"),
    ],
)
def test_wrong_types_are_named(call: Any, words: str) -> None:
    with pytest.raises(SettingError, match=words):
        call(world(10, 1))


class Walker:
    """It keeps its own list of what was played, and compares it with what it is shown."""

    def __init__(self) -> None:
        self.played: list[tuple[int, float]] = []
        self.calls = 0

    def choose(self, evidence: Any) -> Any:
        """Probabilities that depend on its own memory."""
        self.calls += 1
        if evidence.counts.sum() > len(self.played):
            self.played.append(evidence.last)
        assert self.calls == len(self.played) + 1, "a choice that does not count leaves no trace"
        assert evidence.sums.sum() == pytest.approx(sum(reward for _, reward in self.played))
        assert evidence.counts.tolist() == [sum(arm == k for arm, _ in self.played) for k in range(3)]
        wins = np.ones(3)
        for arm, reward in self.played:
            wins[arm] += reward
        return wins / wins.sum()


def test_own_policies_see_what_they_learned_from() -> None:
    """Counts, sums and last reward are those of the walk; a policy's own state follows it, and the caller's stays."""
    policy = Walker()
    found = evaluate(policy, world(300, 1))
    assert policy.calls == 0
    assert found.ips.rows == 300
    assert found.replay.rows > 20


def test_an_own_policy_and_belief_have_the_estimates_of_ours() -> None:
    """The same belief, written twice; the same policy with a known value."""
    log = world(600, 5)
    own, ours = evaluate(ds.ThompsonSampling(), log, belief=Counting(3)), evaluate(ds.ThompsonSampling(), log)
    assert own.dr.low < ours.dr.mean < own.dr.high
    uniform = evaluate(Softmax(temperature=1e9), log)
    assert uniform.ips.mean == pytest.approx(float((log.rewards / log.propensities / 3).mean()), rel=1e-6)
    with pytest.raises(SettingError, match="Return the probability of each arm from choose"):
        evaluate(Commit(), log)


def test_a_log_that_never_plays_what_the_policy_would_gives_no_interval() -> None:
    """Every row has a large propensity, so no weight is large; that they do not average to 1 gives it away."""
    rows = 200
    propensities = np.linspace(0.9, 0.99, rows)
    arms = ["a" if i % 40 else "b" for i in range(rows)]
    log = make_log(arms, np.arange(rows) % 2, np.where(np.arange(rows) % 40, propensities, 0.9))
    found = evaluate(Softmax(temperature=50.0, bonus=0.0), log)
    assert found.dr.effective > 100
    assert np.isnan(found.dr.low)
    assert any("average 0.5" in words and "floor" in words for words in found.warnings)
    fair = make_log(arms, np.arange(rows) % 2, np.full(rows, 0.5))
    assert np.isfinite(evaluate(Softmax(temperature=50.0, bonus=0.0), fair).dr.low)
