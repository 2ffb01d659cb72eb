"""Stopping rules over HTTP and on the command line: created, shown, enforced, and hidden from blind keys."""

import json

import pytest

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
