"""What is handed in wrongly gets an error of ours, with a stable code and a remedy, and writes nothing."""

import io
import json

import pandas as pd
import pytest

import doublesampling as ds
from doublesampling import beliefs, policies
from doublesampling.errors import (
    ArmError,
    ConflictError,
    ContextError,
    NameTakenError,
    NotFoundError,
    OtherExperimentError,
    OutputError,
    PausedError,
    RewardError,
    SettingError,
)
from doublesampling.live.design import build, design_from_json, kinds
from tests.test_live_experiment import ARMS, create


def linear(storage):
    belief = ds.LinearGaussian(arms=2, dimension=3)
    return ds.Experiment.create("linear", arms=["a", "b"], belief=belief, storage=storage)


CASES = {
    "name taken": (lambda e, s: create(s), NameTakenError, "name-taken", "Load it, or choose another name"),
    "unknown experiment": (lambda e, s: ds.Experiment.load("trail", storage=s), NotFoundError, "not-found", "'trial'"),
    "unknown decision": (lambda e, s: e.tell("no such id", 1.0), NotFoundError, "not-found", "pending"),
    "decision by number": (lambda e, s: e.tell(17, 1.0), NotFoundError, "not-found", "id that ask returned"),
    "explain unknown": (lambda e, s: e.explain("no"), NotFoundError, "not-found", "pending"),
    "amend unknown": (lambda e, s: e.amend("no", 1.0, reason="r"), NotFoundError, "not-found", "pending"),
    "unknown arm": (lambda e, s: e.drop_arm("30 mg"), ArmError, "arm", "There are 'placebo'"),
    "arm out of range": (lambda e, s: e.drop_arm(3), ArmError, "arm", "counted from 0"),
    "outcomes that are none": (lambda e, s: e.tell_many(None), SettingError, "setting", "pairs or a mapping"),
    "units in one word": (lambda e, s: e.ask_many(units="abc"), SettingError, "setting", "list of names"),
    "a page beyond all": (lambda e, s: e.decisions(after=10**30), SettingError, "setting", "after must be"),
    "history of an unknown arm": (lambda e, s: e.add_history(["30 mg"], [1]), ArmError, "arm", "There are 'placebo'"),
    "an arm twice": (lambda e, s: e.add_arm("10 mg"), NameTakenError, "name-taken", "another name"),
    "reward too high": (lambda e, s: e.tell(e.ask().id, 2.0), RewardError, "reward", "use Gaussian"),
    "reward between": (lambda e, s: e.tell(e.ask().id, 0.5), RewardError, "reward", "fractional=True"),
    "reward nan": (lambda e, s: e.tell(e.ask().id, float("nan")), RewardError, "reward", "0 or 1"),
    "reward text": (lambda e, s: e.tell(e.ask().id, "yes"), RewardError, "reward", "0 or 1"),
    "history reward": (lambda e, s: e.add_history([0, 1], [1, 7]), RewardError, "reward", "At index 1"),
    "history lengths": (lambda e, s: e.add_history([0, 1], [1]), RewardError, "reward", "as many as arms"),
    "superfluous context": (lambda e, s: e.ask(context=[1.0]), ContextError, "context", "LinearGaussian"),
    "context missing": (lambda e, s: linear(s).ask(), ContextError, "context", "Pass context="),
    "context too short": (lambda e, s: linear(s).ask(context=[1, 2]), ContextError, "context", "3 numbers"),
    "context nan": (lambda e, s: linear(s).ask(context=[1, 2, float("nan")]), ContextError, "context", "finite"),
    "one arm": (lambda e, s: create(s, name="x", arms=["a"]), ArmError, "arm", "two arms"),
    "arms as text": (lambda e, s: create(s, name="x", arms="ab"), ArmError, "arm", "list of names"),
    "equal arms": (lambda e, s: create(s, name="x", arms=["a", "a"]), NameTakenError, "name-taken", "own name"),
    "arms and belief": (
        lambda e, s: create(s, name="x", belief=ds.BetaBernoulli(arms=2)), ArmError, "arm", "Make them agree",
    ),
    "own belief": (lambda e, s: create(s, name="x", belief=object()), SettingError, "setting", "BetaBernoulli"),
    "belief class": (lambda e, s: create(s, name="x", belief=ds.BetaBernoulli), SettingError, "setting", "arms=2"),
    "oracle": (lambda e, s: create(s, name="x", policy=ds.Oracle()), SettingError, "setting", "another policy"),
    "unsuited": (lambda e, s: create(s, name="x", policy=ds.LinUCB()), SettingError, "setting", "KLUCB"),
    "units": (lambda e, s: create(s, name="x", units="twice"), SettingError, "setting", "'once', 'many'"),
    "seed": (lambda e, s: create(s, name="x", seed=-1), SettingError, "setting", "seed"),
    "empty name": (lambda e, s: create(s, name=""), SettingError, "setting", "1 to 500"),
    "opened by calling": (lambda e, s: ds.Experiment("trial"), SettingError, "setting", "Experiment.load"),
    "blank before a unit": (lambda e, s: e.ask(unit=" p1"), SettingError, "setting", "begin or end with a blank"),
    "blank behind a unit": (lambda e, s: e.ask(unit="p1\u2003"), SettingError, "setting", "begin or end with a blank"),
    "a joiner that nobody sees": (lambda e, s: e.ask(unit="p\u200d1"), SettingError, "setting", "control characters"),
    "a space of no width": (lambda e, s: e.ask(unit="p\u200b1"), SettingError, "setting", "control characters"),
    "no scope": (lambda e, s: e.ask(request_key="k", scope=""), SettingError, "setting", "scope must be"),
    "nul in a unit": (lambda e, s: e.ask(unit="a\0b"), SettingError, "setting", "control characters"),
    "amend without reason": (lambda e, s: e.amend(e.ask().id, 1.0, reason=""), SettingError, "setting", "reason"),
    "ask none": (lambda e, s: e.ask_many(0), SettingError, "setting", "at least 1"),
    "too few units": (lambda e, s: e.ask_many(3, units=["a"]), SettingError, "setting", "as many units"),
    "no pairs": (lambda e, s: e.tell_many(["abc"]), SettingError, "setting", "pairs"),
    "format": (lambda e, s: e.export("xlsx"), SettingError, "setting", "'parquet', 'csv', 'jsonl'"),
    "export nowhere": (lambda e, s: e.export("csv", "no/such/folder.csv"), OutputError, "output", "folder that exists"),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_errors_name_the_remedy(sqlite_url, case):
    call, kind, code, remedy = CASES[case]
    exp = create(sqlite_url)
    with pytest.raises(kind) as caught:
        call(exp, sqlite_url)
    assert caught.value.code == code
    assert remedy in str(caught.value)
    assert exp.state.belief_state.observations == 0
    assert exp.decisions()["reward"].isna().all()


def test_a_decision_of_another_experiment(storage):
    one, two = create(storage, name="one"), create(storage, name="two")
    d = one.ask()
    for touch in (lambda: two.tell(d.id, 1.0), lambda: two.amend(d.id, 1.0, reason="r"), lambda: two.explain(d.id)):
        with pytest.raises(OtherExperimentError, match="belongs to experiment 'one'") as caught:
            touch()
        assert caught.value.code == "other-experiment"
    assert one.state.belief_state.observations == two.state.belief_state.observations == 0


def test_paused_and_conflict_have_codes():
    assert (PausedError.code, ConflictError.code) == ("paused", "conflict")


def test_two_arms_stay(storage):
    exp = create(storage)
    exp.drop_arm("placebo")
    assert not exp.drop_arm("placebo")
    with pytest.raises(ArmError, match=r"pause\(\) it"):
        exp.drop_arm("10 mg")
    with pytest.raises(NameTakenError, match="was dropped"):
        exp.add_arm("placebo")


def test_an_arm_without_a_prior_is_refused(sqlite_url):
    exp = create(sqlite_url, belief=ds.BetaBernoulli(arms=3, alpha=[1, 2, 3]))
    with pytest.raises(SettingError, match="settings that all arms share"):
        exp.add_arm("40 mg")
    exp.ask()


def test_a_design_of_a_later_version_is_refused():
    text = '{"arms": ["a"], "belief": {"class": "Quantum", "settings": {}}, "policy": {}, "seed": 1, "units": "once"}'
    with pytest.raises(SettingError, match="Update the package"):
        design_from_json(text)


def test_a_password_is_never_shown():
    from doublesampling.errors import StorageError

    with pytest.raises(StorageError) as caught:
        ds.Experiment.load("t", storage="postgresql://me:secret@127.0.0.1:9/none")
    assert "secret" not in str(caught.value)
    assert "Is the server running" in str(caught.value)


def test_tables_and_files(storage, tmp_path):
    exp = create(storage, belief=ds.LinearGaussian(arms=3, dimension=2))
    for i in range(4):
        exp.tell(exp.ask(unit=f"p{i}", context=[i, 1]).id, i / 3)
    exp.ask(unit="open", context=[1, 1])
    frame = exp.decisions()
    assert {"id", "unit", "time", "arm", "propensity", "probability", "candidates", "reward"} <= set(frame.columns)
    assert frame["reward"].isna().tolist() == [False] * 4 + [True]
    assert frame["status"].tolist() == ["told"] * 4 + ["waiting"]
    assert str(frame["asked_at"].dt.tz) == "UTC"
    assert exp.decisions(after=1, limit=2)["unit"].tolist() == ["p1", "p2"]
    csv = pd.read_csv(exp.export("csv", tmp_path / "t.csv"))
    parquet = pd.read_parquet(exp.export("parquet", tmp_path / "t.parquet"))
    lines = [json.loads(x) for x in exp.export("jsonl", tmp_path / "t.jsonl").read_text().splitlines()]
    assert csv["reward"].tolist()[:4] == parquet["reward"].tolist()[:4] == frame["reward"].tolist()[:4]
    assert lines[2]["context"] == [2.0, 1.0]
    assert lines[4]["reward"] is None
    assert sum(lines[0]["propensities"]) == pytest.approx(1.0)
    with pytest.raises(OutputError, match="force=True"):
        exp.export("csv", tmp_path / "t.csv")
    exp.export("csv", tmp_path / "t.csv", force=True)
    stream = io.BytesIO()
    exp.export("csv", stream)
    assert stream.getvalue() == (tmp_path / "t.csv").read_bytes()


def test_an_empty_experiment_has_tables_too(storage):
    exp = create(storage)
    assert len(exp.decisions()) == len(exp.pending()) == 0
    assert exp.summary()["decisions"] == 0
    assert exp.posterior()["mean"].tolist() == [0.5] * 3
    assert exp.replay().agrees
    assert json.dumps(exp.summary(), allow_nan=False)
    assert [a["name"] for a in exp.summary()["arms"]] == ARMS


def test_a_design_names_only_what_is_public():
    """What policies are made of has no name that a stored design, the command line or HTTP may use."""
    assert {"BetaBernoulli", "GammaPoisson", "Logistic"} <= set(kinds(beliefs))
    assert {"DoubleSampling", "UCB1", "InformationDirected"} <= set(kinds(policies))
    assert not [name for name in kinds(policies) + kinds(beliefs) if name.startswith("_")]
    with pytest.raises(SettingError, match="Update the package"):
        build({"class": "_ByIndex", "settings": {}}, policies)


def test_a_database_that_is_not_there_is_not_an_empty_one(tmp_path, capsys):
    from doublesampling.cli.main import main

    where = tmp_path / "nope.db"
    assert main(["experiment", "list", "--storage", f"sqlite:///{where}"]) == 1
    assert "There is no database at" in capsys.readouterr().err
    assert not where.exists()


def test_a_password_is_never_repeated(capsys):
    from doublesampling.cli.main import main

    assert main(["experiment", "list", "--storage", "postgresql://u:p@ss:w0rd@nohost:port/db"]) == 1
    said = capsys.readouterr().err
    assert "storage must be a URL" in said
    assert "w0rd" not in said


def test_units_that_look_the_same_are_the_same(storage):
    exp = create(storage)
    one = exp.ask(unit="Am\u00e9lie", request_key="cl\u00e9")
    assert exp.ask(unit="Ame\u0301lie").id == one.id
    assert exp.ask(request_key="cle\u0301").id == one.id
    assert exp.decision(one.id).unit == "Am\u00e9lie"
    for picture in ("\U0001f468\u200d\U0001f469\u200d\U0001f467", "\U0001f3f3\ufe0f\u200d\U0001f308"):  # family, flag
        assert exp.ask(unit=picture).unit == picture
    made = create(storage, name="Cafe\u0301", arms=["the\u0301", "b", "c"])
    assert ds.Experiment.load("Caf\u00e9", storage=storage).name == made.name == "Caf\u00e9"
    assert made.drop_arm("th\u00e9")
    assert exp.pause("  a board's reason ")
    assert exp.audit()["reason"].dropna().tolist() == ["a board's reason"]
