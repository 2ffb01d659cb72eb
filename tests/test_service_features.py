"""Records as contexts over HTTP: creation, decisions, posteriors, refusals, and the OpenAPI document."""

import json
from typing import Any

from tests.service import client, trial

FEATURES = {
    "fields": [
        {"name": "age", "kind": "standard", "mean": 60, "deviation": 10},
        {"name": "smoker", "kind": "boolean"},
        {"name": "stage", "kind": "category", "categories": [1, 2, 3]},
        {"name": "site", "kind": "category", "categories": ["a", "b"], "unknown": "other"},
        {"name": "dose", "kind": "range", "low": 0, "high": 40},
    ]
}
BELIEF = {"kind": "LinearGaussian", "settings": {"features": FEATURES}}
RECORD: dict[str, Any] = {"age": 61, "smoker": True, "stage": 2, "site": "é", "dose": 20.5}


def test_records_over_http(sqlite_url):
    with client(sqlite_url) as c:
        at = trial(c, belief=BELIEF)
        view = c.get(at).json()
        assert view["dimension"] == 10
        assert [field["name"] for field in view["features"]] == list(RECORD)
        assert view["features"][2]["categories"] == [1, 2, 3]
        assert [field["open"] for field in view["features"]] == [False, False, False, True, False]
        neutral = c.get(f"{at}/overview").json()
        assert neutral["context"] == {"age": 60.0, "smoker": False, "stage": 1, "site": "a", "dose": 20.0}
        assert neutral["context_source"] == "default"
        made = c.post(f"{at}/decisions", json={"unit": "p", "context": RECORD}, headers={"Idempotency-Key": "k"})
        assert made.status_code == 201, made.text
        assert made.json()["context"] == RECORD
        again = c.post(f"{at}/decisions", json={"context": RECORD | {"age": 61.0}}, headers={"Idempotency-Key": "k"})
        assert again.status_code == 200
        assert c.put(f"{at}/decisions/{made.json()['id']}/outcome", json={"reward": 2.0}).status_code < 300
        batch = c.post(f"{at}/decisions/batch", json={"contexts": [RECORD, RECORD | {"stage": 3}]})
        assert batch.status_code == 201, batch.text
        added = c.post(f"{at}/history", json={"arms": ["a"], "rewards": [1.0], "contexts": [RECORD]})
        assert added.json() == {"added": 1}, added.text
        found = c.get(f"{at}/overview").json()
        assert found["context"] == RECORD  # means, and the most frequent categories
        assert found["context_source"] == "recent"
        asked = c.get(f"{at}/posterior", params={"context": json.dumps(RECORD), "density": 20}).json()
        assert asked["context"] == RECORD
        assert len(asked["arms"]) == 3
        rows = c.get(f"{at}/decisions").json()["decisions"]
        assert rows[0]["context"] == RECORD
        assert c.get(f"{at}/decisions/{made.json()['id']}").json()["decision"]["context"] == RECORD
        assert "site" in c.get(f"{at}/export.csv").text


REFUSED: list[tuple[Any, str]] = [
    (None, "a record with the fields age, smoker, stage, site, dose"),
    ([1.0] * 10, "must be a record"),
    (RECORD | {"age": None}, "age is missing"),
    ({"age": 61}, "smoker is missing"),
    (RECORD | {"stage": 9}, "stage must be one of 1, 2, 3, got 9"),
    (RECORD | {"dose": 50}, "dose must be a number from 0 to 40"),
    (RECORD | {"name": "Amélie"}, "a field 'name' that these features do not"),
    (RECORD | {"age": {"x": 1}}, "context"),
    (RECORD | {"site": "x" * 600}, "context"),
]


def test_wrong_records_are_refused_in_our_words(sqlite_url):
    with client(sqlite_url) as c:
        at = trial(c, belief=BELIEF)
        for context, told in REFUSED:
            answer = c.post(f"{at}/decisions", json={"context": context})
            assert answer.status_code == 422, answer.text
            assert answer.headers["content-type"] == "application/problem+json"
            assert told in answer.json()["detail"]
        assert c.get(f"{at}/decisions").json()["decisions"] == []


def test_wrong_features_and_contexts_of_a_query_are_refused(sqlite_url):
    with client(sqlite_url) as c:
        at = trial(c, belief=BELIEF)
        for text in ("{", "[1]", json.dumps({"age": 3}), "1,2"):
            assert c.get(f"{at}/posterior", params={"context": text}).status_code == 422
        wrong = {"kind": "LinearGaussian", "settings": {"features": {"fields": [{"name": "age", "kind": "standard"}]}}}
        answer = c.post("/v1/experiments", json={"name": "w", "arms": ["a", "b"], "belief": wrong})
        assert answer.status_code == 422
        assert "nothing is learned of it yet" in answer.json()["detail"]
        plain = trial(c, "plain", belief={"kind": "LinearGaussian", "settings": {"dimension": 2}})
        assert c.get(plain).json()["features"] is None
        answer = c.post(f"{plain}/decisions", json={"context": {"age": 3}})
        assert answer.status_code == 422
        assert "got a record" in answer.json()["detail"]


def test_the_openapi_document_and_the_catalog_know_records(sqlite_url):
    with client(sqlite_url) as c:
        schemas = c.get("/openapi.json").json()["components"]["schemas"]
        kinds = schemas["DecisionRequest"]["properties"]["context"]["anyOf"]
        assert {kind.get("type") for kind in kinds} == {"array", "object", "null"}
        assert "FeatureField" in schemas
        linear = next(b for b in c.get("/v1/catalog").json()["beliefs"] if b["kind"] == "LinearGaussian")
        types = {setting["name"]: setting["type"] for setting in linear["settings"]}
        assert types["features"] == "features"
        assert types["dimension"] == "integer"
