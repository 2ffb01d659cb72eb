"""The service over HTTP: what each route answers, on both stores, and what it refuses."""

import io
import json

import numpy as np
import pandas as pd
import pytest

import doublesampling as ds
from doublesampling import errors
from doublesampling.service import problems
from tests.service import asked, client, problem, trial


@pytest.fixture
def c(storage):
    with client(storage) as made:
        yield made


def test_every_code_of_the_package_has_a_status():
    everything = {
        e.code for e in vars(errors).values() if isinstance(e, type) and issubclass(e, errors.DoubleSamplingError)
    }
    unreachable = {"error", "output", "store"}  # of files and folders, which no route touches
    assert everything - unreachable <= set(problems.STATUS)


def test_ask_tell_and_amend(c, storage):
    address = trial(c)
    key = {"Idempotency-Key": "request-1"}
    first = c.post(f"{address}/decisions", json={"unit": "p1"}, headers=key)
    again = c.post(f"{address}/decisions", json={"unit": "p1"}, headers=key)
    assert (first.status_code, again.status_code) == (201, 200)
    assert first.json() | {"repeated": True} == again.json()
    assert sum(first.json()["propensities"]) == pytest.approx(1.0)
    problem(c.post(f"{address}/decisions", json={"unit": "p2"}, headers=key), 409, "conflict")

    outcome = f"{address}/decisions/{first.json()['id']}/outcome"
    assert [c.put(outcome, json={"reward": 1}).status_code for _ in range(2)] == [201, 200]
    assert "already has the outcome 1" in problem(c.put(outcome, json={"reward": 0}), 409, "conflict")
    amend = {"reward": 0, "reason": "adjudicated"}
    amendments = outcome.replace("outcome", "amendments")
    assert [c.post(amendments, json=amend).status_code for _ in range(2)] == [201, 200]

    stored = ds.Experiment.load("trial", storage=storage).decisions()
    assert stored[["reward", "status", "revisions"]].values.tolist() == [[0.0, "amended", 2]]


def test_outcomes_in_a_batch_are_all_stored_or_none(c):
    address = trial(c)
    ids = [asked(c, address) for _ in range(3)]
    batch = {"outcomes": [{"decision": i, "reward": 1} for i in ids]}
    wrong = {"outcomes": [*batch["outcomes"], {"decision": "nobody", "reward": 1}]}
    problem(c.post(f"{address}/outcomes", json=wrong), 404, "not-found")
    assert c.get(address).json()["results"]["outcomes"] == 0
    assert [c.post(f"{address}/outcomes", json=batch).status_code for _ in range(2)] == [201, 200]
    batch["outcomes"][1]["reward"] = 0
    problem(c.post(f"{address}/outcomes", json=batch), 409, "conflict")
    assert c.get(address).json()["results"]["outcomes"] == 3


def test_pause_and_resume(c):
    address = trial(c)
    waiting = asked(c, address)
    assert c.post(f"{address}/pause", json={"reason": "safety"}).json() == {"changed": True, "status": "paused"}
    assert c.post(f"{address}/pause").json() == {"changed": False, "status": "paused"}
    assert c.get(address).json()["status"] == "paused"
    problem(c.post(f"{address}/decisions"), 409, "paused")
    assert c.put(f"{address}/decisions/{waiting}/outcome", json={"reward": 1}).status_code == 201
    assert c.post(f"{address}/resume").json() == {"changed": True, "status": "running"}
    asked(c, address)


def test_decisions_are_paged_up_and_down(c):
    address = trial(c)
    ids = [asked(c, address) for _ in range(7)]
    found, after = [], 0
    while after is not None:
        page = c.get(f"{address}/decisions", params={"after": after, "limit": 3}).json()
        found += [row["id"] for row in page["decisions"]]
        after = page["following"]
    assert found == ids
    down = c.get(f"{address}/decisions", params={"before": 2**60, "limit": 2}).json()
    assert [row["id"] for row in down["decisions"]] == ids[:-3:-1]
    c.put(f"{address}/decisions/{ids[0]}/outcome", json={"reward": 1})
    waiting = c.get(f"{address}/decisions", params={"status": "waiting", "limit": 2}).json()
    assert [row["id"] for row in waiting["decisions"]] == ids[1:3]
    assert waiting["following"] == 3


def test_a_decision_is_explained(c):
    address = trial(c)
    c.put(f"{address}/decisions/{asked(c, address)}/outcome", json={"reward": 1})
    made = asked(c, address)
    found = c.get(f"{address}/decisions/{made}").json()
    assert found["verified"]
    assert found["decision"]["id"] == made
    assert found["outcome"] is None
    assert "was the best arm with probability" in found["why"]
    assert sum(arm["observations"] for arm in found["arms"]) == 1


def test_a_sequence_is_that_of_the_live_layer(c, storage):
    address = trial(c, policy={"kind": "EpsilonGreedy", "settings": {"epsilon": 0.5}}, units="many")
    exp = ds.Experiment.load("trial", storage=storage)
    nothing = c.get(f"{address}/sequence").json()
    assert nothing["points"] == []
    exp.tell_many([(d.id, float(i % 2)) for i, d in enumerate(exp.ask_many(160))])
    made = exp.ask()
    found = c.get(f"{address}/sequence", params={"arm": 2, "reference": 0, "points": 40}).json()
    expected = exp.sequence((2, 0))
    assert (found["contrast"], found["pending"], found["reason"]) == ([2, 0], 1, None)
    assert found["points"][-1]["low"] == pytest.approx(expected.low[-1])
    assert found["points"][0]["low"] is None
    assert len(found["points"]) <= 40
    c.put(f"{address}/decisions/{made.id}/outcome", json={"reward": 1})
    again = c.get(
        f"{address}/sequence",
        params={"arm": 2, "reference": 0, "points": 40},
        headers={"Cache-Control": "no-cache"},
    ).json()
    assert again["points"][-1]["outcomes"] == 161
    one = c.get(f"{address}/sequence", params={"arm": 2, "reference": 2, "method": "empirical-bernstein"}).json()
    assert one["points"][-1]["high"] == pytest.approx(exp.sequence(2, method="empirical-bernstein").high[-1])
    assert c.get(f"{address}/sequence", params={"arm": 7}).status_code == 422


def test_results_agree_with_the_live_layer(c, storage):
    address = trial(c)
    for i in range(12):
        c.put(f"{address}/decisions/{asked(c, address)}/outcome", json={"reward": i % 2})
    exp = ds.Experiment.load("trial", storage=storage)
    table = exp.posterior()
    found = c.get(f"{address}/posterior", params={"density": 50}).json()
    assert [arm["posterior_mean"] for arm in found["arms"]] == pytest.approx(table["mean"].tolist())
    assert [arm["probability_optimal"] for arm in found["arms"]] == pytest.approx(table["probability_optimal"].tolist())
    assert sum(arm["next_allocation"] for arm in found["arms"]) == pytest.approx(1.0)
    for arm in found["arms"]:
        x, y = arm["density"]["x"], arm["density"]["y"]
        area = sum((b - a) * (u + v) / 2 for a, b, u, v in zip(x, x[1:], y, y[1:], strict=False))
        assert area == pytest.approx(1.0, abs=0.02)
    frame = exp.decisions()
    series = c.get(f"{address}/series", params={"points": 5}).json()
    assert [p["number"] for p in series["points"]] == [1, 4, 6, 9, 12]
    counts = frame.groupby("arm")["id"].count().reindex(range(3), fill_value=0).tolist()
    assert series["allocation"][-1] == {"number": 12, "counts": counts}
    assert series["complete"]
    health = c.get(f"{address}/health").json()
    assert [p["observed"] for p in health["propensities"]] == counts
    expected = [sum(json.loads(p)[arm] for p in frame["propensities"]) for arm in range(3)]
    assert [p["expected"] for p in health["propensities"]] == pytest.approx(expected)
    assert health["delays"]["delay_median"] > 0
    replay = c.get(f"{address}/replay").json()
    assert (replay["status"], replay["agrees"], replay["decisions"], replay["current"]) == ("done", True, 12, True)
    assert c.get(f"{address}/health").json()["replay"]["agrees"]
    asked(c, address)
    assert not c.get(f"{address}/health").json()["replay"]["current"]


def test_exports_are_what_the_live_layer_exports(c, storage, monkeypatch):
    monkeypatch.setattr("doublesampling.service.routes.export._PAGE", 4)  # several pages
    address = trial(c)
    for i in range(10):
        made = asked(c, address, unit='x=1,"y"' if i == 9 else None)
        if i < 5:
            c.put(f"{address}/decisions/{made}/outcome", json={"reward": 1})
    exp = ds.Experiment.load("trial", storage=storage)
    for form in ("csv", "jsonl"):
        whole = io.BytesIO()
        exp.export(form, whole)
        answer = c.get(f"{address}/export.{form}")
        assert answer.content == whole.getvalue()
        assert answer.headers["content-disposition"] == f'attachment; filename="trial.{form}"'
    frame = pd.read_parquet(io.BytesIO(c.get(f"{address}/export.parquet").content))
    assert frame["id"].tolist() == exp.decisions()["id"].tolist()
    assert frame["unit"].isna().sum() == 9


def test_an_unchanged_experiment_answers_304(c):
    address = trial(c)
    tag = c.get(address).headers["etag"]
    assert c.get(address, headers={"If-None-Match": tag}).status_code == 304
    asked(c, address)
    assert c.get(address, headers={"If-None-Match": tag}).status_code == 200


def test_contexts(c):
    belief = {"kind": "LinearGaussian", "settings": {"dimension": 2}}
    address = trial(c, belief=belief)
    assert c.get(address).json()["dimension"] == 2
    made = c.post(f"{address}/decisions", json={"context": [1.0, 0.5]})
    assert made.json()["context"] == [1.0, 0.5]
    problem(c.post(f"{address}/decisions", json={"context": [1.0]}), 422, "context")
    problem(c.post(f"{address}/decisions"), 422, "context")
    assert c.put(f"{address}/decisions/{made.json()['id']}/outcome", json={"reward": 2.5}).status_code == 201
    assert c.get(f"{address}/posterior", params={"context": "1,0.5"}).json()["context"] == [1.0, 0.5]
    problem(c.get(f"{address}/posterior", params={"context": "1,x"}), 422, "context")


def test_metrics_count_requests_and_name_no_experiment(sqlite_url):
    with client(sqlite_url) as c:
        address = trial(c, "secret-trial")
        asked(c, address)
        text = c.get("/metrics").text
    route = "/v1/experiments/{name}/decisions"
    assert f'doublesampling_requests_total{{method="POST",route="{route}",status="201"}} 1' in text
    assert "secret-trial" not in text
    assert "doublesampling_written_total 1" in text
    for line in text.splitlines():
        assert line.startswith("#") or float(line.rpartition(" ")[2]) >= 0.0


def test_what_if_is_played_in_the_background(sqlite_url):
    import time

    with client(sqlite_url) as c:
        address = trial(c, policy={"kind": "DoubleSampling", "settings": {"horizon": 60}})
        problem(c.post(f"{address}/what-if", json={"truth": [0.1, 0.9]}), 422, "setting")
        begun = c.post(f"{address}/what-if", json={"truth": [0.2, 0.2, 0.9], "realizations": 60})
        assert begun.status_code == 202
        job = begun.json()
        until = time.monotonic() + 120
        while job["status"] in ("waiting", "running") and time.monotonic() < until:
            time.sleep(0.1)
            job = c.get(f"{address}/what-if/{job['id']}").json()
        assert (job["status"], job["progress"]) == ("done", 1.0)
        found = job["result"]
        assert (found["realizations"], found["horizon"]) == (60, 60)
        assert found["best_arm_wins"]["value"] > 0.8
        assert sum(share["value"] for share in found["shares"]) == pytest.approx(1.0)
        assert found["shares"][2]["value"] > 0.5
        assert 0 < found["failures"]["value"] < found["failures_of_equal_allocation"]
        stopped = c.post(f"{address}/what-if", json={"truth": [0.2, 0.2, 0.9], "realizations": 20000}).json()
        assert c.delete(f"{address}/what-if/{stopped['id']}").json()["status"] == "stopped"
        problem(c.get(f"{trial(c, 'other')}/what-if/{stopped['id']}"), 404, "not-found")


def test_pieces_of_a_simulation_make_a_whole():
    """Means and errors of the pieces, put together, are those of all realizations at once."""
    from doublesampling.live.operating_characteristics import Characteristics
    from doublesampling.service.simulations import pooled

    values = np.random.default_rng(1).gamma(2.0, size=200)

    def error(part):
        return float(part.mean()), float(part.std(ddof=1) / np.sqrt(part.size))

    pieces = [
        Characteristics(
            truth=(0.5,), realizations=part.size, horizon=5, best_arm_wins=error(part), regret=error(part),
            failures=None, failures_of_equal_allocation=None, shares=(error(part),), size=error(part),
            ends={"maximum": error(part)}, selected=(error(part),),
        )
        for part in np.split(values, [30, 60, 150])
    ]  # fmt: skip
    found = pooled(pieces)
    assert (found.regret.value, found.regret.error) == pytest.approx(error(values))
    assert found.shares[0] == found.regret
    assert found.ends == {"maximum": found.regret}
    assert (found.size, found.selected) == (found.regret, [found.regret])
    assert found.realizations == 200
