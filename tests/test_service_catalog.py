"""The catalog names every belief and policy, and what it says of their settings is true."""

import re

import pytest

from doublesampling import beliefs, policies
from doublesampling.errors import SettingError
from doublesampling.live.design import kinds
from doublesampling.service.routes.catalog import CHOICES
from tests.service import client, problem


@pytest.fixture(scope="module")
def catalog(tmp_path_factory):
    with client(f"sqlite:///{tmp_path_factory.mktemp('catalog') / 'trial.db'}") as c:
        yield c, c.get("/v1/catalog").json()


def test_everything_that_an_experiment_may_have_is_listed(catalog):
    _, found = catalog
    assert [each["kind"] for each in found["beliefs"]] == kinds(beliefs)
    assert [each["kind"] for each in found["policies"]] == [kind for kind in kinds(policies) if kind != "Oracle"]
    assert all(each["about"] and each["title"] for each in found["beliefs"] + found["policies"])


NEEDED = {"horizon": 50, "dimension": 2, "values": [0, 1, 5]}


def test_every_belief_and_policy_can_be_created_from_what_the_catalog_says(catalog):
    """With required settings and the dimension filled in, and all others sent as the defaults that are shown."""
    c, found = catalog

    def settings(component):
        needed = [s["name"] for s in component["settings"] if s["required"] or s["name"] == "dimension"]
        return {s["name"]: NEEDED[s["name"]] if s["name"] in needed else s["default"] for s in component["settings"]}

    for what, other in (("beliefs", "policies"), ("policies", "beliefs")):
        for component in found[what]:
            kind = component["kind"]
            body = {"name": f"{what} {kind}", "arms": ["a", "b"],
                    what.replace("ies", "y").rstrip("s"): {"kind": kind, "settings": settings(component)}}  # fmt: skip
            if kind == "LinUCB":
                body["belief"] = {"kind": "Gaussian"}
            made = c.post("/v1/experiments", json=body)
            assert made.status_code == 201, (kind, made.text)
            assert other


@pytest.mark.parametrize("name", CHOICES)
def test_choices_are_those_that_the_policy_takes(name):
    with pytest.raises(SettingError) as refused:
        policies.DoubleSampling(**{name: "nobody"})  # type: ignore[arg-type]
    offered = str(refused.value).partition("one of")[2].partition(", got")[0]
    assert tuple(re.findall(r"'([^']+)'", offered)) == CHOICES[name]


WRONG = [
    ({"arms": ["a"]}, "arms needs at least 2 entries, got 1."),
    ({"name": ""}, "name must not be empty."),
    ({"seed": "x"}, "seed must be a whole number."),
    ({"seed": -1}, "seed must be at least 0."),
    ({"colour": 1}, "colour is not a known field."),
    ({"belief": {"kind": "LinearGaussian"}}, "dimension"),
    ({"policy": {"kind": "DoubleSampling", "settings": {"horizon": 0}}}, "horizon must be"),
]


@pytest.mark.parametrize(("change", "words"), WRONG)
def test_errors_of_the_form_are_plain(catalog, change, words):
    c, _ = catalog
    answer = c.post("/v1/experiments", json={"name": "wrong", "arms": ["a", "b"], **change})
    said = problem(answer, 422, answer.json()["code"])
    assert words in said
    assert "pydantic" not in said
    assert "validation" not in said
