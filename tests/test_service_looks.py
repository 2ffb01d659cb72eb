"""Stopping rules over HTTP and on the command line: created, shown, enforced, and hidden from blind keys."""

import json

import pytest

import doublesampling as ds
from doublesampling.cli.main import main
from tests.service import client

RULE = {"looks": 5, "superiority": 0.8, "control": "old"}


@pytest.fixture
def service(sqlite_url):
    with client(sqlite_url) as c:
        yield c


def play_until_stopped(service):
    for _ in range(60):
        asked = service.post("/v1/experiments/t/decisions", json={})
        if asked.status_code == 409:
            return asked.json()
        reward = float(asked.json()["arm_name"] == "new")
        service.put(f"/v1/experiments/t/decisions/{asked.json()['id']}/outcome", json={"reward": reward})
    raise AssertionError("no look stopped the experiment")


def test_an_experiment_that_a_look_stops(service):
    made = service.post("/v1/experiments", json={"name": "t", "arms": ["old", "new"], "seed": 7, "stopping": RULE})
    assert made.status_code == 201, made.text
    assert made.json()["stopping"] == "Stopping(looks=5, superiority=0.8, control='old')"
    refused = play_until_stopped(service)
    assert refused["code"] == "stopped"
    assert "'new' is superior" in refused["detail"]
    view = service.get("/v1/experiments/t").json()
    assert view["status"] == "stopped"
    assert view["looks"][-1]["outcome"] == "superiority"
    assert view["looks"][-1]["probability_better"]["new"] > 0.8
    assert service.get("/v1/experiments/t/summary").json()["looks"] == len(view["looks"])
    kinds = [each["kind"] for each in service.get("/v1/experiments/t/series").json()["happenings"]]
    assert kinds == ["look"] * len(view["looks"])
    for path in ("overview", "posterior", "health"):
        assert service.get(f"/v1/experiments/t/{path}").status_code == 200, path
    assert service.post("/v1/experiments/t/resume").json() == {"changed": False, "status": "stopped"}


def test_a_trial_is_created_as_a_whole(service, sqlite_url):
    trial = ds.Trial(
        arms=["old", "new"], policy=ds.ThompsonSampling(), allocation=ds.Allocation(floor=0.1, update="look"),
        stopping=ds.Stopping(looks=20, superiority=0.99), horizon=50,
    )  # fmt: skip
    made = service.post("/v1/experiments", json={"name": "t", "seed": 7, "design": trial.to_dict()})
    assert made.status_code == 201, made.text
    design = ds.Experiment.load("t", storage=sqlite_url).design
    assert design.participants == 50
    assert design.stopping == ds.Stopping(looks=(20, 40, 50), superiority=0.99)
    assert (design.policy, design.allocation) == (trial.policy, trial.allocation)
    limited = {"name": "u", "arms": ["old", "new"], "participants": 7, "stopping": {"looks": 5, "superiority": 0.9}}
    assert service.post("/v1/experiments", json=limited).json()["stopping"] == (
        "Stopping(looks=(5, 7), superiority=0.9)"
    )
    assert service.get("/v1/experiments/u/summary").json()["participants"] == 7


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({}, "needs arms"),
        ({"design": {"arms": ["a", "b"]}}, "needs horizon"),
        ({"design": {"arms": ["a", "b"], "horizon": 9}, "arms": ["a", "b"]}, "part of the design already"),
        ({"design": {"arms": ["a", "b"], "horizon": 9}, "belief": {"kind": "BetaBernoulli"}}, "design alone"),
        ({"design": {"arms": ["a", "b"], "horizon": 9, "policy": {"class": "TopTwo", "x": 1}}}, "'x'"),
        ({"design": {"arms": ["a", "b"], "horizon": 9, "stopping": {"looks": 5, "y": 1}}}, "'y'"),
        ({"arms": ["a", "b"], "allocation": {"update": "look"}}, "this experiment has none"),
        ({"arms": ["a", "b"], "participants": 4, "stopping": {"looks": 5, "superiority": 0.9}}, "at most the horizon"),
    ],
)
def test_designs_that_are_not_whole_are_refused(service, body, said):
    answer = service.post("/v1/experiments", json={"name": "t", **body})
    assert answer.status_code == 422
    assert said in answer.json()["detail"]
    assert service.get("/v1/experiments").json()["experiments"] == []


@pytest.mark.parametrize("rule", [{"looks": 5}, {"looks": 0, "superiority": 0.9}, {"looks": 5, "superiority": 1.5},
                                  {"looks": 5, "superiority": 0.9, "control": "none"}])  # fmt: skip
def test_rules_that_cannot_hold_are_refused(service, rule):
    answer = service.post("/v1/experiments", json={"name": "t", "arms": ["old", "new"], "stopping": rule})
    assert answer.status_code == 422
    assert service.get("/v1/experiments").json()["experiments"] == []


def test_a_design_from_a_file(sqlite_url, tmp_path, capsys):
    design = tmp_path / "trial.toml"
    design.write_text('arms = ["old", "new"]\nhorizon = 30\n[stopping]\nlooks = 10\nsuperiority = 0.99\n')
    storage = ["--storage", sqlite_url, "--json"]
    assert main(["experiment", "create", "t", "--design", str(design), *storage]) == 0
    assert json.loads(capsys.readouterr().out)["stopping"] == "Stopping(looks=(10, 20, 30), superiority=0.99)"
    assert main(["experiment", "create", "u", *storage]) == 1
    assert "--design" in json.loads(capsys.readouterr().out)["message"]
