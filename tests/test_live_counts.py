"""The count of double sampling in live experiments: the default, and designs stored before counts had names."""

import json

import doublesampling as ds
from doublesampling.live.design import design_from_json


def test_an_experiment_without_a_planned_end_keeps_looking(tmp_path):
    exp = ds.Experiment.create("open", arms=["a", "b"], seed=1, storage=f"sqlite:///{tmp_path}/x.db")
    assert exp.session.design.policy == ds.DoubleSampling.anytime()
    assert ds.Experiment.load("open", storage=f"sqlite:///{tmp_path}/x.db").session.design.policy.count == "anytime"


def test_a_design_stored_before_counts_had_names_keeps_its_count(tmp_path):
    exp = ds.Experiment.create(
        "old", arms=["a", "b"], policy=ds.DoubleSampling(horizon=90, count="doubt"), seed=1,
        storage=f"sqlite:///{tmp_path}/x.db",
    )  # fmt: skip
    stored = json.loads(exp.session.design.to_json())
    del stored["policy"]["settings"]["count"]
    assert design_from_json(json.dumps(stored)).policy == ds.DoubleSampling(horizon=90, count="doubt")
    stored["policy"]["settings"]["count"] = None
    assert design_from_json(json.dumps(stored)).policy == ds.DoubleSampling(horizon=90)
    assert ds.DoubleSampling(horizon=90) != ds.DoubleSampling(horizon=90, count="doubt")
