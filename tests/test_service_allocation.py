"""Allocations over HTTP and on the command line: created, shown, obeyed, refused before anything is stored."""

import json

import pytest

from doublesampling.cli.main import main
from tests.service import client

ARMS = ["placebo", "10 mg", "20 mg"]


@pytest.fixture
def service(sqlite_url):
    with client(sqlite_url) as c:
        yield c


def test_an_experiment_with_limits(service):
    limits = {"floor": 0.1, "control": {"placebo": 0.3}, "block": 10}
    made = service.post("/v1/experiments", json={"name": "t", "arms": ARMS, "seed": 7, "allocation": limits})
    assert made.status_code == 201, made.text
    shown = "Allocation(floor=0.1, control={'placebo': 0.3}, block=10)"
    assert made.json()["allocation"] == shown
    decisions = [service.post("/v1/experiments/t/decisions", json={"unit": f"u{i}"}).json() for i in range(10)]
    assert [d["arm"] for d in decisions].count(0) == 3
    assert decisions[0]["propensities"][0] == pytest.approx(0.3)
    explained = service.get(f"/v1/experiments/t/decisions/{decisions[0]['id']}").json()
    assert explained["allocation"] == shown
    assert "within the allocation" in explained["why"]
    assert service.get("/v1/experiments/t").json()["allocation"] == shown
    assert service.get("/v1/experiments/t/overview").status_code == 200


def test_without_limits_nothing_changes(service):
    made = service.post("/v1/experiments", json={"name": "t", "arms": ARMS, "allocation": None})
    assert made.json()["allocation"] is None


@pytest.mark.parametrize(
    ("limits", "said"),
    [
        ({"floor": 0.4}, "floor can be at most 0.333"),
        ({"floor": 0.6}, "floor"),
        ({"control": "x"}, "names the arm 'x'"),
        ({"fixed": {"placebo": 1.2}}, "fixed"),
        ({"fixed": {"placebo": 0.7, "10 mg": 0.6}}, "sum 1.3"),
        ({"control": {"placebo": "root"}}, "control"),
        ({"burn_in": -1}, "burn_in"),
        ({"flor": 0.1}, "flor"),
    ],
)
def test_limits_that_cannot_hold_are_refused(service, limits, said):
    answer = service.post("/v1/experiments", json={"name": "t", "arms": ARMS, "allocation": limits})
    assert answer.status_code in (400, 422)
    assert said in answer.json()["detail"]
    assert service.get("/v1/experiments").json()["experiments"] == []


def run(capsys, *words):
    status = main(words)
    out = capsys.readouterr()
    return status, out.out + out.err


def test_command_line(capsys, sqlite_url, monkeypatch):
    monkeypatch.setenv("DOUBLESAMPLING_STORAGE", sqlite_url)
    create = ("experiment", "create", "t", "--arms", *ARMS, "--json")
    status, text = run(
        capsys, *create, "--floor", "0.05", "--cap", "10 mg=0.5", "20 mg=0.6", "--control", "placebo=match"
    )
    assert status == 1
    assert "only as one share for all arms" in json.loads(text)["message"]
    for options, said in (
        (("--minimum", "x"), "--minimum must be a share"),
        (("--fixed", "placebo"), "--fixed must be ARM=SHARE"),
        (("--fixed", "placebo=0.1", "placebo=0.2"), "twice"),
        (("--floor", "0.5"), "floor can be at most"),
    ):
        status, text = run(capsys, *create, *options)
        assert status == 1
        assert said in json.loads(text)["message"]
    status, text = run(
        capsys, *create, "--cap", "10 mg=0.5", "--fixed", "20 mg=0.2", "--control", "placebo", "--burn-in", "2"
    )
    assert status == 0
    shown = "Allocation(cap={'10 mg': 0.5}, fixed={'20 mg': 0.2}, control='placebo', burn_in=2)"
    assert json.loads(text)["allocation"] == shown
    assert shown in run(capsys, "experiment", "status", "t")[1]
