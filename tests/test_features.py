"""Features: records and tables to context vectors, against pandas.get_dummies and plain Python."""

import json
import pickle
from typing import Any

import numpy as np
import pandas as pd
import pytest

import doublesampling as ds
from doublesampling import logs, off_policy
from doublesampling.cli.main import main
from doublesampling.errors import ContextError, LogError, SettingError

RNG = np.random.default_rng


def people(count: int, seed: int = 0) -> pd.DataFrame:
    rng = RNG(seed)
    return pd.DataFrame(
        {
            "age": rng.integers(18, 90, count),
            "weight": rng.normal(70.0, 12.0, count),
            "smoker": rng.random(count) < 0.3,
            "site": rng.choice(["a", "b", "c"], count),
            "stage": rng.integers(1, 5, count),
            "dose": rng.uniform(0.0, 40.0, count),
            "arm": rng.integers(0, 2, count),
        }
    )


def features(**more: Any) -> ds.Features:
    return ds.Features(
        age="standard", weight="number", smoker="boolean", site=["a", "b", "c"], stage="category", dose=(0, 40), **more
    )


def by_pandas(table: pd.DataFrame, *, intercept: bool = True, drop_first: bool = False) -> pd.DataFrame:
    """The same columns by pandas.get_dummies and plain arithmetic."""
    first = pd.DataFrame({"intercept": np.ones(len(table))} if intercept else {}, index=table.index)
    numbers = pd.DataFrame(
        {
            "age": (table["age"] - table["age"].mean()) / table["age"].std(ddof=0),
            "weight": table["weight"],
            "smoker": table["smoker"].astype(float),
        }
    )
    site, stage = (
        pd.get_dummies(table[name], prefix=name, prefix_sep="=", drop_first=drop_first, dtype=float)
        for name in ("site", "stage")
    )
    return pd.concat([first, numbers, site, stage, (table["dose"] / 40.0).rename("dose")], axis=1)


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("drop_first", [True, False])
def test_a_table_becomes_what_pandas_makes_of_it(intercept, drop_first):
    table = people(300)
    made = features(intercept=intercept, drop_first=drop_first).fit(table)
    wanted = by_pandas(table, intercept=intercept, drop_first=drop_first)
    assert list(made.names) == list(wanted.columns)
    assert made.dimension == len(made.names)
    np.testing.assert_allclose(made.matrix(table), wanted.to_numpy(dtype=float), rtol=1e-12, atol=1e-12)


def test_a_row_a_record_and_a_table_agree():
    table = people(20)
    made = features().fit(table)
    rows = table.drop(columns="arm").to_dict("records")
    np.testing.assert_array_equal(made.matrix(rows), made.matrix(table))
    np.testing.assert_array_equal(made.matrix(table.astype({"age": "Int64", "site": "category"})), made.matrix(table))
    for i, row in enumerate(rows):
        np.testing.assert_array_equal(made.vector(row), made.matrix(table)[i])
        np.testing.assert_array_equal(made.vector(table.iloc[i]), made.matrix(table)[i])  # other columns are ignored
    assert made.matrix([]).shape == (0, made.dimension)


@pytest.mark.parametrize(
    ("unknown", "wanted"), [("other", [1.0, 0.0, 0.0, 1.0]), ("zero", [1.0, 0.0, 0.0])], ids=["other", "zero"]
)
def test_unknown_categories_are_mapped_as_set(unknown, wanted):
    made = ds.Features(site=["a", "b"], unknown=unknown)
    assert made.vector({"site": "elsewhere"}).tolist() == wanted
    assert made.record({"site": "elsewhere"}) == {"site": "elsewhere"}  # what came is kept
    assert made.vector({"site": "b"}).tolist()[:3] == [1.0, 0.0, 1.0]


def test_fit_learns_once_and_leaves_what_is_known():
    table = people(50)
    made = ds.Features(age=("standard", 60, 10), site="category")
    learned = made.fit(table)
    assert not made.fitted
    assert learned == ds.Features(age=("standard", 60, 10), site=["a", "b", "c"])
    assert learned.fit(people(5, seed=3)) == learned
    with pytest.raises(SettingError, match=r"site is .category. and nothing is learned"):
        made.vector({"age": 1, "site": "a"})
    with pytest.raises(SettingError, match=r"age is .standard.*fit"):
        ds.LinearGaussian(arms=2, features=ds.Features(age="standard"))


MIXED = ds.Features(
    {"body mass": "number", "intercept": "boolean"}, site={"kind": "category", "categories": ["é", "b"],
    "unknown": "other"}, stage=[1, 2, 3], dose=(0.1, 0.7), intercept=False,
)  # fmt: skip


@pytest.mark.parametrize("made", [features().fit(people(30)), features(), MIXED], ids=["fitted", "unfitted", "mixed"])
def test_features_are_frozen_and_convert_to_json_and_back(made):
    again = ds.Features.from_json(made.to_json())
    assert again == made
    assert hash(again) == hash(made)
    assert again.to_json() == made.to_json()
    assert pickle.loads(pickle.dumps(made)) == made
    assert eval(repr(made), {"Features": ds.Features}) == made
    with pytest.raises(AttributeError):
        made.intercept = False
    assert made != ds.Features(age="number")


RECORD = {"age": 61, "smoker": True, "site": "a", "dose": 20}
SMALL = ds.Features(age=("standard", 60, 10), smoker="boolean", site=["a", "b", "c"], dose=(0, 40))


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"age": None}, "age is missing"),
        ({"age": float("nan")}, "age is missing"),
        ({"site": pd.NA}, "site is missing"),
        ({"age": "61"}, "age must be a number, got '61'"),
        ({"age": True}, "age must be a number"),
        ({"age": float("inf")}, "age must be a finite number"),
        ({"age": 10**400}, "age must be a finite number"),
        ({"smoker": "yes"}, "smoker must be True or False, got 'yes'"),
        ({"smoker": 2}, "smoker must be True or False"),
        ({"site": "A"}, "site must be one of 'a', 'b', 'c', got 'A'"),
        ({"site": ["a"]}, "site must be one of"),
        ({"site": True}, "site must be one of"),
        ({"dose": 41}, "dose must be a number from 0 to 40, got 41"),
        ({"agee": 3}, "Did you mean 'age'"),
        ({"zebra": 3}, "The fields are 'age'"),
    ],
    ids=str,
)  # fmt: skip
def test_wrong_values_are_refused_with_their_field(change, told):
    with pytest.raises(ContextError, match=told):
        SMALL.vector(RECORD | change)
    if not set(change) <= set(RECORD):
        return
    table = pd.DataFrame([RECORD, RECORD | change], dtype=object)
    with pytest.raises(ContextError, match=f"Row 2: .*{told}"):
        SMALL.matrix(table)
    with pytest.raises(ContextError, match=f"Row 2: .*{told}"):
        SMALL.matrix([RECORD, RECORD | change])


@pytest.mark.parametrize("data", [None, 3, "text", [1, 2], [[1.0] * 6], [RECORD, 3]], ids=str)
def test_what_is_no_record_is_refused(data):
    with pytest.raises(ContextError, match="record"):
        SMALL.matrix(data)
    with pytest.raises(ContextError, match="record"):
        SMALL.vector(data)
    with pytest.raises(ContextError, match="no column 'age'"):
        SMALL.matrix(pd.DataFrame({"x": [1]}))


def _any(value: object) -> Any:
    return value


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda: ds.Features(), "needs a field"),
        (lambda: ds.Features(age="standrad"), "Did you mean 'standard'"),
        (lambda: ds.Features(age=3), "age must be"),
        (lambda: ds.Features(age=("standard", 1)), "age must be"),
        (lambda: ds.Features(age=("standard", 60, 0)), "deviation must be above 0"),
        (lambda: ds.Features(age=("standard", "x", 1)), "mean of age must be"),
        (lambda: ds.Features(age=(3, 3)), "low must be below high"),
        (lambda: ds.Features(site=["a"]), "two or more different"),
        (lambda: ds.Features(site=["a", "a"]), "two or more different"),
        (lambda: ds.Features(site=[1.5, 2.5]), "texts or whole numbers"),
        (lambda: ds.Features(site=["a", "other"], unknown="other"), "has a category 'other' already"),
        (lambda: ds.Features(site=["a", "b"], unknown="zero", drop_first=True), "would read an unknown category"),
        (lambda: ds.Features(site=["a", "b"], unknown="refuse"), "unknown must be one of"),
        (lambda: ds.Features({"age": "number"}, age="number"), "given twice"),
        (lambda: ds.Features(_any([1])), "by name or in a dictionary"),
        (lambda: ds.Features({"site=a": "number"}, site=["a", "b"]), "Two columns would be called 'site=a'"),
        (lambda: ds.Features(age={"kind": "number", "mean": 3}), "has no setting 'mean'"),
        (lambda: ds.Features(age={"kind": "range", "low": 3}), "needs high"),
        (lambda: ds.Features(age="standard").fit([{"age": 3}, {"age": 3}]), "age is 3 in every record"),
        (lambda: ds.Features(age="standard").fit([]), "without rows"),
        (lambda: ds.Features.from_json("{"), "not JSON"),
        (lambda: ds.Features.from_json('{"fields": 3}'), "features must be"),
        (lambda: ds.Features.from_json('{"fields": [{"kind": "number"}]}'), "a name of its own"),
        (lambda: ds.LinearGaussian(arms=2, dimension=3, features=SMALL), "dimension must be 7"),
        (lambda: ds.LinearGaussian(arms=2), "needs dimension"),
        (lambda: ds.Logistic(arms=2, features=_any([1])), "features must be"),
    ],
)
def test_wrong_settings_are_refused(make, told):
    with pytest.raises(SettingError, match=told):
        make()


@pytest.mark.parametrize("kind", [ds.LinearGaussian, ds.Logistic])
def test_a_belief_with_features_learns_and_decides_as_with_vectors(kind):
    belief, plain = kind(arms=2, features=SMALL), kind(arms=2, dimension=7)
    table = pd.DataFrame([RECORD, RECORD | {"site": "b", "age": 40}, RECORD | {"smoker": False}])
    arms, rewards = [0, 1, 1], [1.0, 0.0, 1.0]
    state = belief.update_batch(belief.prior(), arms, rewards, table)
    assert state == plain.update_batch(plain.prior(), arms, rewards, SMALL.matrix(table))
    assert belief.update_in_order(belief.prior(), arms, rewards, table.to_dict("records")) == plain.update_in_order(
        plain.prior(), arms, rewards, SMALL.matrix(table)
    )
    policy = ds.DoubleSampling()
    decided = ds.decide(policy, belief, state, RECORD, seed=3)
    assert decided == ds.decide(policy, plain, state, SMALL.vector(RECORD), seed=3)
    assert decided == ds.decide(policy, belief, state, SMALL.vector(RECORD), seed=3)  # numbers are still accepted
    many = ds.decide_many(policy, belief, state, table, seed=3)
    np.testing.assert_array_equal(many.arm, ds.decide_many(policy, plain, state, SMALL.matrix(table), seed=3).arm)
    np.testing.assert_array_equal(
        ds.probability_optimal(belief, state, RECORD), ds.probability_optimal(plain, state, SMALL.vector(RECORD))
    )
    with pytest.raises(ContextError, match="make the belief with features"):
        ds.decide(policy, plain, state, RECORD)
    with pytest.raises(ContextError, match="a record with the fields age, smoker, site, dose"):
        ds.decide(policy, belief, state)


def test_simulate_on_the_rows_of_a_table():
    table = people(40)
    made = features().fit(table)
    weights = RNG(1).normal(size=(2, made.dimension))
    bandit = ds.LinearGaussianBandit(weights=weights, context=made.matrix(table))
    runs: dict[str, Any] = {"horizon": 30, "realizations": 4, "seed": 1}
    belief = ds.LinearGaussian(arms=2, features=made)
    found = ds.simulate(bandit, ds.ThompsonSampling(), belief=belief, **runs)
    usual = ds.simulate(
        bandit, ds.ThompsonSampling(), belief=ds.LinearGaussian(arms=2, dimension=made.dimension), **runs
    )
    np.testing.assert_array_equal(found.cumulative_regret.values, usual.cumulative_regret.values)
    assert "Features(age=" in found.attrs["belief"]


def test_a_live_experiment_keeps_the_record(storage, tmp_path):
    made = ds.Features(age=("standard", 60, 10), smoker="boolean", site=["a", "b", "c"], unknown="other")
    belief = ds.LinearGaussian(arms=2, features=made)
    exp = ds.Experiment.create("f", arms=["x", "y"], belief=belief, seed=1, storage=storage)
    record = {"site": "é", "age": 61, "smoker": 1}
    first = exp.ask(unit="p1", context=record, request_key="k")
    assert first.context == {"age": 61.0, "smoker": True, "site": "é"}
    assert exp.ask(context={"age": 61.0, "smoker": True, "site": "é"}, request_key="k").id == first.id
    exp.tell(first.id, 2.5)
    table = pd.DataFrame([{"age": 50, "smoker": False, "site": "a", "more": 1}] * 2)
    for each in exp.ask_many(contexts=table):
        exp.tell(each.id, 0.5)
    assert exp.add_history(["x", "y"], [1.0, 2.0], table) == 2
    again = ds.Experiment.load("f", storage=storage)
    assert again.design == exp.design
    assert again.state.belief_state == exp.state.belief_state
    assert again.replay().agrees
    assert again.explain(first.id).verified
    assert again.posterior(record)["mean"].shape == (2,)
    stored = [json.loads(text) for text in again.decisions()["context"]]
    assert stored[0] == {"age": 61.0, "smoker": True, "site": "é"}
    again.export("jsonl", tmp_path / "f.jsonl")
    assert json.loads((tmp_path / "f.jsonl").read_text().splitlines()[0])["context"] == stored[0]
    before = len(again.decisions())
    for wrong in (None, [1.0] * 7, {"age": 61}, record | {"age": "x"}, record | {"name": "Amélie"}):
        with pytest.raises(ContextError):
            again.ask(context=wrong)
        with pytest.raises(ContextError):
            again.posterior(wrong)
    assert len(again.decisions()) == before


def test_a_design_without_features_is_stored_as_before(sqlite_url):
    belief = ds.LinearGaussian(arms=2, dimension=2)
    exp = ds.Experiment.create("p", arms=["x", "y"], belief=belief, seed=1, storage=sqlite_url)
    assert "features" not in json.loads(exp.design.to_json())["belief"]["settings"]
    with pytest.raises(ContextError, match="got a record"):
        exp.ask(context={"age": 3})


def run(*words: str) -> None:
    assert main(["experiment", *words]) == 0


def test_the_command_line_takes_fields(sqlite_url, tmp_path, capsys):
    made = ds.Features(age=("standard", 60, 10), smoker="boolean", stage=[1, 2], site=["a", "b"])
    (tmp_path / "features.json").write_text(made.to_json())
    store = ["--storage", sqlite_url]
    run("create", "t", "--arms", "x", "y", "--belief", "LinearGaussian", "--features", str(tmp_path / "features.json"),
        "--seed", "1", *store)  # fmt: skip
    run("ask", "t", "--context", "age=61", "smoker=yes", "stage=2", "site=a", *store)
    (tmp_path / "old.csv").write_text("arm,reward,age,smoker,stage,site\nx,1.5,50,no,1,b\ny,2,70,true,2,a\n")
    run("history", "t", str(tmp_path / "old.csv"), *store)
    run("status", "t", "--context", "age=61", "smoker=0", "stage=2", "site=a", *store)
    exp = ds.Experiment.load("t", storage=sqlite_url)
    assert exp.decision(exp.decisions()["id"][0]).context == {"age": 61.0, "smoker": True, "stage": 2, "site": "a"}
    assert exp.state.belief_state.observations == 2
    capsys.readouterr()
    for words, told in (
        (["age=61"], "smoker is missing"),
        (["61", "1"], "takes fields: age=... smoker=..."),
        (["age=x", "smoker=yes", "stage=2", "site=a"], "age must be a number, got 'x'"),
        (["age=1", "smoker=perhaps", "stage=2", "site=a"], "smoker must be True or False"),
    ):
        assert main(["experiment", "ask", "t", "--context", *words, *store]) != 0
        assert told in capsys.readouterr().err
    (tmp_path / "bad.csv").write_text("arm,reward,age,smoker,stage,site\nx,1.5,,no,1,b\n")
    assert main(["experiment", "history", "t", str(tmp_path / "bad.csv"), *store]) != 0
    assert "line 2: age is missing" in capsys.readouterr().err


def test_an_export_with_records_is_evaluated(sqlite_url, tmp_path):
    made = ds.Features(age=("standard", 60, 10), site=["a", "b"])
    belief = ds.LinearGaussian(arms=2, features=made)
    exp = ds.Experiment.create("e", arms=["x", "y"], belief=belief, seed=1, storage=sqlite_url)
    rng = RNG(0)
    for _ in range(12):
        d = exp.ask(context={"age": float(rng.integers(20, 90)), "site": str(rng.choice(["a", "b"]))})
        exp.tell(d.id, float(rng.normal()))
    exp.export("csv", tmp_path / "e.csv")
    with pytest.raises(LogError, match="holds records"):
        logs.read_log(tmp_path / "e.csv")
    log = logs.read_log(tmp_path / "e.csv", features=made)
    assert log.contexts is not None
    records = [json.loads(text) for text in exp.decisions()["context"]]
    np.testing.assert_array_equal(log.contexts, made.matrix(records))
    found = off_policy.evaluate(ds.ThompsonSampling(), log, belief=belief)
    assert np.isfinite(found.ips.mean)
    table = pd.DataFrame(records).assign(arm=["x", "y"] * 6, reward=1.0)
    table.to_csv(tmp_path / "plain.csv", index=False)
    read = logs.read_log(tmp_path / "plain.csv", features=made)
    np.testing.assert_array_equal(read.contexts, log.contexts)
    with pytest.raises(LogError, match="Row 1: age must be a number"):
        logs.make_log(["a", "b"], [0, 1], contexts=[{"age": "x", "site": "a"}] * 2, features=made)
