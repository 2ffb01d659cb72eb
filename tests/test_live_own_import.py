"""Policies and beliefs of one's own in live experiments: what can be stored, and what may be imported."""

import importlib
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sqlalchemy as sa

import doublesampling as ds
from doublesampling.cli.main import main
from doublesampling.errors import ArmError, RewardError, SettingError, StateError
from doublesampling.live import own_classes
from doublesampling.live.own_classes import OwnCodeError
from doublesampling.live.stores import open_store, schema
from doublesampling.live.unavailable import NotImportedError
from doublesampling.live.verify import verify
from tests.own_policies import Commit, Counting, Softmax
from tests.test_live_own import create


@pytest.fixture
def stranger(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that did not create the experiment."""
    monkeypatch.setattr(own_classes, "CREATED_HERE", set())
    monkeypatch.delenv(own_classes.ALLOW_IMPORT, raising=False)


class Nested:
    class Inner:
        def choose(self, evidence: Any) -> int:
            return 0


class Hidden:
    def __init__(self, rate: float) -> None:
        self._rate = rate

    def choose(self, evidence: Any) -> int:
        return 0


class Arguments:
    def __init__(self, *rates: float) -> None:
        self.rates = rates

    def choose(self, evidence: Any) -> int:
        return 0


class Doubling:
    def __init__(self, rate: float) -> None:
        self.rate = 2 * rate

    def choose(self, evidence: Any) -> int:
        return 0


class Any_:  # a class that keeps whatever it is given
    def __init__(self, value: Any = None) -> None:
        self.value = value

    def choose(self, evidence: Any) -> int:
        return 0


class Tuples(Counting):
    def start(self) -> Any:
        return {1, 2, 3}


class Failing:
    def choose(self, evidence: Any) -> Any:
        if evidence.counts.sum() > 0:
            return evidence.missing
        return 0


class Strict(Counting):
    def check_reward(self, reward: Any) -> float:
        if reward not in (0, 1):
            raise ValueError("rewards are 0 or 1")
        return float(reward)


def local_policy() -> Any:
    class Local:
        def choose(self, evidence: Any) -> int:
            return 0

    return Local()


def in_main() -> Any:
    made = type("Typed", (Commit,), {"__module__": "__main__"})
    return made()


def replaced() -> Any:
    return type("Commit", (Commit,), {"__module__": "tests.own_policies"})()


@pytest.mark.parametrize(
    ("changes", "error", "words"),
    [
        ({"policy": local_policy()}, SettingError, r"Local is defined inside a function"),
        ({"policy": in_main()}, SettingError, r"defined in the running program \(__main__\)"),
        ({"policy": replaced()}, SettingError, r"is not what tests.own_policies holds"),
        ({"policy": Hidden(1.0)}, SettingError, r"Write self.rate = rate in __init__"),
        ({"policy": Arguments(1.0)}, SettingError, r"takes \*rates"),
        ({"policy": Doubling(1.0)}, SettingError, r"'rate' is 2.0 and would be 4.0"),
        ({"policy": Any_((1, 2))}, SettingError, r"use lists, not tuples"),
        ({"policy": Any_({1: 2})}, SettingError, r"does not come back equal"),
        ({"policy": Any_(np.zeros(2))}, SettingError, r"cannot be stored as JSON"),
        ({"policy": Any_(float("nan"))}, SettingError, r"cannot be stored as JSON"),
        ({"policy": Any_("\ud800")}, SettingError, r"cannot be stored as JSON"),
        ({"policy": Commit}, SettingError, r"Write Commit\(\)"),
        ({"policy": "thompson"}, SettingError, r"policy must be one such as"),
        ({"belief": object()}, SettingError, r"subclass of OwnBelief"),
        ({"belief": Counting}, SettingError, r"Write Counting\(\.\.\.\)"),
        ({"belief": Counting(2)}, ArmError, r"2 arms, but 3 names"),
        ({"belief": Tuples(3)}, StateError, r"cannot be stored as JSON"),
    ],
)
def test_what_another_process_could_not_make_again_is_refused(
    sqlite_url: str, changes: Any, error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        create(sqlite_url, **changes)
    assert not ds.Experiment.list(sqlite_url)


def test_nested_classes_can_be_stored(sqlite_url: str, stranger: None) -> None:
    create(sqlite_url, policy=Nested.Inner())
    own_classes.CREATED_HERE.clear()
    assert ds.Experiment.load("trial", storage=sqlite_url, allow_import=["tests"]).ask().arm == 0


def test_errors_in_ones_own_code_name_file_and_line(sqlite_url: str) -> None:
    exp = create(sqlite_url, policy=Failing(), belief=Strict(3))
    with pytest.raises(RewardError, match="Strict refuses the reward: rewards are 0 or 1"):
        exp.tell(exp.ask().id, 0.5)
    exp.tell(exp.ask().id, 1.0)
    with pytest.raises(OwnCodeError, match=r"Failing or Strict raised AttributeError.*test_live_own_import.py, line"):
        exp.ask()
    assert len(exp.decisions()) == 2


def test_without_permission_nothing_is_imported(
    storage: str, stranger: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Listing, counts, export and audit work; what needs the class is refused with the name of the module."""
    made = create(storage, belief=Counting(3), policy=Softmax())
    made.add_history(["a"], [1.0])
    receipts = [made.ask(unit=f"u{i}") for i in range(4)]
    for receipt in receipts[:3]:
        made.tell(receipt.id, 1.0)
    full = made.summary()
    own_classes.CREATED_HERE.clear()
    asked: list[str] = []
    real = importlib.import_module

    def spy(name: str, *more: Any) -> Any:
        asked.append(name)
        return real(name, *more)

    monkeypatch.setattr("importlib.import_module", spy)
    exp = ds.Experiment.load("trial", storage=storage)
    found = exp.summary()
    assert {k: v for k, v in found.items() if k not in ("belief", "policy")} == {
        k: v for k, v in full.items() if k not in ("belief", "policy")
    }
    assert found["policy"] == "tests.own_policies:Softmax(temperature=0.5, bonus=0.3) (not imported)"
    assert ds.Experiment.list(storage)[0]["name"] == "trial"
    assert len(exp.decisions()) == 4
    assert len(exp.pending()) == 1
    assert len(exp.audit()) == len(made.audit())
    assert exp.ask(unit="u1").id == receipts[1].id, "a repeated request gets its stored decision"
    assert exp.decision(receipts[0].id).arm == receipts[0].arm
    exp.export("csv", tmp_path / "out.csv", audit=True)
    assert exp.pause()
    assert exp.resume()
    for call in (
        exp.ask,
        exp.replay,
        exp.posterior,
        lambda: exp.explain(receipts[0].id),
        lambda: exp.tell(receipts[3].id, 1.0),
        lambda: exp.add_history(["a"], [1.0]),
        lambda: exp.add_arm("d"),
    ):
        with pytest.raises(NotImportedError, match=r"module 'tests.own_policies'.*allow_import=\[.*DOUBLESAMPLING_ALL"):
            call()
    found_problems = verify(open_store(storage)).problems
    assert len(found_problems) == 1
    assert "trial: not replayed." in found_problems[0]
    assert not [name for name in asked if name.startswith("tests")]


def test_a_policy_that_is_not_imported_leaves_the_posterior(sqlite_url: str, stranger: None) -> None:
    made = create(sqlite_url, policy=Softmax())
    decision = made.ask()
    own_classes.CREATED_HERE.clear()
    exp = ds.Experiment.load("trial", storage=sqlite_url)
    exp.tell(decision.id, 1.0)
    assert exp.posterior()["observations"].sum() == 1
    assert exp.explain(decision.id).verified
    with pytest.raises(NotImportedError):
        exp.ask()


@pytest.mark.parametrize("allowed", ["tests", "tests.own_policies"])
def test_permission_by_argument_or_environment(
    sqlite_url: str, stranger: None, allowed: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    create(sqlite_url, policy=Commit())
    own_classes.CREATED_HERE.clear()
    assert ds.Experiment.load("trial", storage=sqlite_url, allow_import=[allowed]).ask().arm == 0
    monkeypatch.setenv(own_classes.ALLOW_IMPORT, f"other.package, {allowed}")
    assert ds.Experiment.load("trial", storage=sqlite_url).ask().arm == 0
    for wrong in ("tests.own", "own_policies", "tests.own_policies.more"):
        monkeypatch.setenv(own_classes.ALLOW_IMPORT, wrong)
        with pytest.raises(NotImportedError):
            ds.Experiment.load("trial", storage=sqlite_url).ask()
    wrong_types: list[Any] = ["tests", ["*"], [3]]
    for bad in wrong_types:
        with pytest.raises(SettingError, match="allow_import must list names of modules"):
            ds.Experiment.load("trial", storage=sqlite_url, allow_import=bad)


def rename(storage: str, **parts: Any) -> None:
    """Write another class into the stored design, as an attacker with the file could."""
    with open_store(storage).engine.begin() as connection:
        triggers = connection.execute(sa.text("SELECT name FROM sqlite_master WHERE type = 'trigger'")).scalars().all()
        for name in triggers:
            connection.execute(sa.text(f'DROP TRIGGER "{name}"'))
        text = connection.execute(sa.select(schema.experiments.c.design)).scalar_one()
        content = json.loads(text)
        content["policy"] |= parts
        connection.execute(sa.update(schema.experiments).values(design=json.dumps(content)))


@pytest.mark.parametrize(
    ("stored", "words"),
    [
        ({"class": "subprocess:Popen", "settings": {"args": "true"}}, "not told to trust"),
        ({"class": "tests.own_policies:np.random.Generator"}, "defines no such class"),
        ({"class": "tests.own_policies:ds"}, "defines no such class"),
        ({"class": "tests.own_policies:Missing"}, "defines no such class"),
        ({"class": "tests.own_policies:Counting", "settings": {"arms": 3}}, "is not a policy"),
        ({"class": "tests.own_policies:Commit", "settings": {"every": 3}}, "does not take its stored settings"),
        ({"class": "tests.missing:Commit"}, r"cannot be imported here: ModuleNotFoundError.*PYTHONPATH"),
        ({"class": "tests.own_policies:Commit()"}, "no module and class"),
    ],
)
def test_a_store_cannot_make_its_reader_run_other_code(
    sqlite_url: str, stranger: None, stored: Any, words: str
) -> None:
    create(sqlite_url, policy=Commit())
    rename(sqlite_url, **stored)
    exp = ds.Experiment.load("trial", storage=sqlite_url, allow_import=["tests"])
    with pytest.raises(NotImportedError, match=words):
        exp.ask()
    assert exp.summary()["decisions"] == 0


def test_another_process_imports_what_it_is_allowed(sqlite_url: str) -> None:
    """The command line in a process of its own: refused by default, allowed by an option or the environment."""
    exp = create(sqlite_url, policy=Commit())
    exp.tell(exp.ask().id, 1.0)
    root = Path(__file__).parent.parent
    environment = {**os.environ, "PYTHONPATH": f"{root / 'src'}{os.pathsep}{root}"}
    environment.pop(own_classes.ALLOW_IMPORT, None)
    code = """
import sys
from doublesampling.cli.main import main
refused = main(sys.argv[1:])
print("then", file=sys.stderr)
allowed = main([*sys.argv[1:], "--allow-import", "tests.own_policies"])
sys.exit(10 * refused + allowed)
"""
    command = [sys.executable, "-c", code, "experiment", "ask", "trial", "--storage", sqlite_url]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 10, done.stderr
    assert "allow_import" in done.stderr.partition("then")[0]
    assert "Traceback" not in done.stderr
    assert exp.replay().agrees


def test_the_status_of_an_experiment_without_its_classes(
    sqlite_url: str, stranger: None, capsys: pytest.CaptureFixture[str]
) -> None:
    create(sqlite_url, belief=Counting(3)).ask()
    own_classes.CREATED_HERE.clear()
    assert main(["experiment", "pending", "trial", "--storage", sqlite_url]) == 0
    assert main(["experiment", "replay", "trial", "--storage", sqlite_url]) == 1
    assert "allow_import" in capsys.readouterr().err
    assert main(["experiment", "status", "trial", "--storage", sqlite_url]) == 0
    shown = capsys.readouterr().out
    assert "1 decisions" in shown
    assert "Counts only. The belief of this experiment is Counting" in shown
    assert main(["experiment", "replay", "trial", "--storage", sqlite_url, "--allow-import", "tests"]) == 0


def test_the_service_imports_only_what_is_allowed(
    storage: str, stranger: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tests.service import client

    create(storage, belief=Counting(3), policy=Softmax()).ask()
    own_classes.CREATED_HERE.clear()
    with client(storage) as c:
        shown = c.get("/v1/experiments/trial").json()
        assert shown["results"]["decisions"] == 1
        assert "not imported" in shown["policy"]
        refused = c.post("/v1/experiments/trial/decisions", json={"unit": "x"})
        assert refused.status_code == 501
        assert refused.json()["code"] == "not-imported"
        assert "DOUBLESAMPLING_ALLOW_IMPORT=tests.own_policies" in refused.json()["detail"]
        body = {"name": "n", "arms": ["a", "b"], "policy": {"kind": "tests.own_policies:Commit", "settings": {}}}
        assert c.post("/v1/experiments", json=body).status_code == 422
        assert c.get("/v1/experiments").status_code == 200
        assert len(c.get("/v1/experiments/trial/decisions").json()["decisions"]) == 1
    monkeypatch.setenv(own_classes.ALLOW_IMPORT, "tests.own_policies")
    with client(storage) as c:
        made = c.post("/v1/experiments/trial/decisions", json={"unit": "x"})
        assert made.status_code == 201
        told = c.put(f"/v1/experiments/trial/decisions/{made.json()['id']}/outcome", json={"reward": 1})
        assert told.status_code == 201, told.json()
        shown = c.get("/v1/experiments/trial/overview").json()
        assert sum(arm["next_allocation"] for arm in shown["arms"]) == pytest.approx(1.0)
        assert shown["experiment"]["policy"] == "Softmax(temperature=0.5, bonus=0.3)"
        assert c.get("/v1/experiments/trial/posterior?density=20").status_code == 200
        assert c.get(f"/v1/experiments/trial/decisions/{made.json()['id']}").json()["verified"]
