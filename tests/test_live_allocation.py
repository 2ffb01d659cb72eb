"""Live experiments with an allocation: what is drawn from is logged, and replays; burn-in and blocks in order."""

import json
import threading
from itertools import pairwise

import numpy as np
import pytest
import sqlalchemy as sa

import doublesampling as ds
from doublesampling.errors import SettingError
from doublesampling.live.design import design_from_json
from doublesampling.live.stores import open_store, schema
from doublesampling.live.verify import verify

ARMS = ["placebo", "10 mg", "20 mg"]


def create(storage, allocation, **changes):
    settings = {"arms": ARMS, "seed": 7, "storage": storage, "policy": ds.ThompsonSampling()} | changes
    return ds.Experiment.create("trial", allocation=allocation, **settings)


def play(exp, count, good="20 mg"):
    for _ in range(count):
        d = exp.ask()
        exp.tell(d.id, float(d.arm_name == good))


def test_the_floor_is_logged_and_replays(storage):
    exp = create(storage, ds.Allocation(floor=0.1))
    exp.add_history(["placebo", "20 mg"] * 30, [0.0, 1.0] * 30)
    play(exp, 10)
    table = exp.decisions()
    logged = np.array([exp.decision(i).propensities for i in table["id"]])
    assert logged.min() >= 0.1 - 1e-12
    assert logged[0] == pytest.approx(0.1 + 0.7 * ds.probability_optimal(exp.state.belief, _then(exp)), abs=1e-9)
    assert exp.replay().agrees
    assert "Allocation(floor=0.1)" in str(exp.explain(table["id"][0]))
    assert exp.summary()["allocation"] == "Allocation(floor=0.1)"
    again = ds.Experiment.load("trial", storage=storage)
    assert again.design.allocation == ds.Allocation(floor=0.1)
    assert again.design.to_json() == exp.design.to_json()


def _then(exp):
    """The state that the first decision saw: the history."""
    belief = exp.state.belief
    return belief.update_batch(belief.prior(), [0, 2] * 30, [0.0, 1.0] * 30)


def test_a_replay_notices_a_changed_propensity(sqlite_url):
    exp = create(sqlite_url, ds.Allocation(floor=0.1))
    play(exp, 3)
    with open_store(sqlite_url).writing() as connection:
        connection.execute(sa.text("DROP TRIGGER IF EXISTS ds_decisions_update"))
        triggers = connection.execute(sa.text("SELECT name FROM sqlite_master WHERE type = 'trigger'")).scalars().all()
        for name in triggers:
            connection.execute(sa.text(f"DROP TRIGGER {name}"))
        connection.execute(
            sa.update(schema.decisions).where(schema.decisions.c.number == 2).values(propensities="[0.2, 0.3, 0.5]")
        )
    assert not exp.replay().agrees


@pytest.mark.parametrize("batch", [1, 4])
def test_burn_in_gives_every_arm_its_number_first(storage, batch):
    exp = create(storage, ds.Allocation(burn_in=4), policy=ds.Greedy())
    made = [d for _ in range(12 // batch) for d in exp.ask_many(batch)]
    arms = [d.arm for d in made]
    for start in range(0, 12, 3):
        assert sorted(arms[start : start + 3]) == [0, 1, 2]
    expected = [1 / 3, 1 / 2, 1.0] * 4
    assert [d.propensity for d in made] == pytest.approx(expected)
    exp.tell_many([(d.id, float(d.arm == 1)) for d in made])
    assert exp.ask().propensities.tolist() == [0.0, 1.0, 0.0]
    assert exp.replay().agrees


def test_blocks_hold_the_shares_and_replay(storage):
    exp = create(storage, ds.Allocation(burn_in=1, block=5, floor=0.2))
    play(exp, 3)
    made = list(exp.ask_many(2)) + [exp.ask() for _ in range(8)] + list(exp.ask_many(7))
    rest, blocks = made[:2], [made[2:7], made[7:12], made[12:17]]
    assert sum(d.number for d in rest) == 4 + 5
    for block in blocks:
        slots = np.rint(block[0].propensities * 5).astype(int)
        assert slots.sum() == 5
        assert slots.min() >= 1
        assert np.bincount([d.arm for d in block], minlength=3).tolist() == slots.tolist()
        for left, (d, following) in zip(range(5, 1, -1), pairwise(block), strict=True):
            slots[d.arm] -= 1
            assert following.propensities == pytest.approx(slots / (left - 1))
    assert exp.replay().agrees
    assert ds.Experiment.load("trial", storage=storage).ask().number == 21
    assert verify(open_store(storage)).ok


def test_blocks_with_many_writers(storage):
    """Concurrent asks share one sequence of blocks: none is overdrawn, and the log replays."""
    create(storage, ds.Allocation(burn_in=2, block=4), arms=["a", "b"])
    problems: list[BaseException] = []

    def work() -> None:
        try:
            exp = ds.Experiment.load("trial", storage=storage)
            for _ in range(6):
                d = exp.ask()
                exp.tell(d.id, 1.0)
        except BaseException as problem:
            problems.append(problem)

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not problems
    exp = ds.Experiment.load("trial", storage=storage)
    table = exp.decisions().sort_values("number")
    assert table["number"].tolist() == list(range(1, 37))
    made = [exp.decision(i) for i in table["id"]]
    assert sorted(d.arm for d in made[:2]) == sorted(d.arm for d in made[2:4]) == [0, 1]
    for start in range(4, 36, 4):
        block = made[start : start + 4]
        slots = np.rint(block[0].propensities * 4)
        assert np.bincount([d.arm for d in block], minlength=2).tolist() == slots.tolist()
    assert exp.replay().agrees


def test_arms_are_dropped_and_added(storage):
    exp = create(storage, ds.Allocation(burn_in=2, block=6, minimum=0.2, control="placebo"))
    play(exp, 4)
    exp.drop_arm("10 mg")
    play(exp, 5)
    late = [exp.decision(i) for i in exp.decisions()["id"][-5:]]
    assert all(d.propensities[1] == 0.0 for d in late)
    exp.add_arm("40 mg")
    play(exp, 9)
    assert exp.replay().agrees
    assert (exp.decisions()["arm"][12:] == 3).any()  # in the first block that begins after it was added
    assert exp.current_design.arms == ("placebo", "20 mg", "40 mg")
    assert exp.current_design.allocation == exp.design.allocation


def test_an_arm_that_leaves_no_room_is_refused(storage):
    exp = create(storage, ds.Allocation(floor=0.3))
    with pytest.raises(SettingError, match=r"floor can be at most 0\.25"):
        exp.add_arm("40 mg")
    assert exp.state.arms == tuple(ARMS)
    exp.drop_arm("10 mg")
    exp.add_arm("40 mg")
    assert exp.ask().propensities[[0, 2, 3]].min() >= 0.3 - 1e-12


def test_a_dropped_control_keeps_no_share(sqlite_url):
    exp = create(sqlite_url, ds.Allocation(control="placebo", fixed={"20 mg": 0.2}))
    assert exp.ask().propensities[[0, 2]] == pytest.approx([np.sqrt(2) / (np.sqrt(2) + 2), 0.2])
    exp.drop_arm("placebo")
    assert exp.ask().propensities == pytest.approx([0.0, 0.8, 0.2])
    assert exp.current_design.allocation == ds.Allocation(fixed={"20 mg": 0.2})
    assert exp.replay().agrees


def test_voided_decisions_have_used_their_slot(sqlite_url):
    exp = create(sqlite_url, ds.Allocation(block=4), arms=["a", "b"])
    first = exp.ask()
    exp.void(first.id, reason="not carried out")
    rest = [exp.ask() for _ in range(3)]
    slots = np.rint(first.propensities * 4)
    assert np.bincount([d.arm for d in (first, *rest)], minlength=2).tolist() == slots.tolist()
    assert exp.replay().agrees


@pytest.mark.parametrize(
    ("allocation", "said"),
    [
        (ds.Allocation(floor=0.4), r"floor can be at most 0\.333"),
        (ds.Allocation(control="control"), "'control', which is none of the 3 arms: 'placebo'"),
        (ds.Allocation(fixed={"placebo": 0.6, "10 mg": 0.4}), "leaves none for '20 mg'"),
        (ds.Allocation(update="look"), "renews shares at looks, and this experiment has none"),
        ({"floor": 0.1}, r"Allocation\(floor=0\.1\)"),
    ],
)
def test_bad_allocations_store_nothing(sqlite_url, allocation, said):
    with pytest.raises(SettingError, match=said):
        create(sqlite_url, allocation)
    create(sqlite_url, None)


def test_unknown_propensities_are_refused_at_creation(sqlite_url):
    with pytest.raises(SettingError, match="does not know with which probability"):
        create(sqlite_url, ds.Allocation(floor=0.1), policy=ds.BayesUCB(samples=50))


def test_designs_from_before_allocations_load():
    text = json.dumps(
        {
            "arms": ["a", "b"],
            "belief": {"class": "BetaBernoulli", "settings": {"arms": 2}},
            "policy": {"class": "ThompsonSampling", "settings": {}},
            "seed": 7,
            "units": "once",
        }
    )
    found = design_from_json(text)
    assert found.allocation is None
    assert "allocation" not in json.loads(found.to_json())


def test_arms_by_number_are_stored_by_name(sqlite_url):
    exp = create(sqlite_url, ds.Allocation(control={0: "match"}, minimum=0.1))
    assert json.loads(exp.design.to_json())["allocation"] == {"control": {"placebo": "match"}, "minimum": 0.1}
