"""One conformance suite for both stores: ask, tell, amend, and what is known."""

import datetime
import json

import numpy as np
import pytest
import sqlalchemy as sa

import doublesampling as ds
from doublesampling.errors import ConflictError, PausedError, RewardError
from doublesampling.live.stores import open_store, schema

ARMS = ["placebo", "10 mg", "20 mg"]


def create(storage, name="trial", **changes):
    return ds.Experiment.create(name, **({"arms": ARMS, "seed": 7, "storage": storage} | changes))


def oracle(exp):
    """The state from the latest outcomes one by one: decisions with an outcome, by their first revision."""
    belief = exp.state.belief
    with exp.session.store.reading() as connection:
        rows = connection.execute(
            sa.select(schema.outcomes)
            .where(schema.outcomes.c.experiment == exp.session.id)
            .order_by(schema.outcomes.c.seq)
        ).all()
    values = {row.decision: row.reward for row in rows if row.decision}
    state = belief.prior()
    for row in rows:
        if row.revision == 1:
            reward = values[row.decision] if row.decision else row.reward
            if reward is None:  # withdrawn, or the decision was voided
                continue
            state = belief.update(state, row.arm, reward, json.loads(row.context) if row.context else None)
    return state


def test_the_issue_word_for_word(storage):
    exp = ds.Experiment.create(
        "trial", arms=ARMS, belief=ds.BetaBernoulli(arms=3), policy=ds.DoubleSampling(horizon=400), seed=7,
        storage=storage,
    )  # fmt: skip
    exp = ds.Experiment.load("trial", storage=storage)
    d = exp.ask(unit="patient-17", context=None, request_key=None)
    assert d.arm_name == ARMS[d.arm]
    assert d.propensities.sum() == pytest.approx(1.0)
    assert d.probability_optimal.shape == (3,)
    assert d.candidates >= 1
    first = exp.tell(d.id, 1.0)
    assert not first.repeated
    assert exp.tell(d.id, 1.0).repeated
    with pytest.raises(ConflictError, match="amend"):
        exp.tell(d.id, 0.0)
    exp.amend(d.id, 0.0, reason="adjudicated")
    assert len(exp.ask_many(4)) == 4
    exp.tell_many([(i, 1.0) for i in exp.pending()["id"]])
    exp.add_history(["placebo", 1], [0.0, 1.0])
    assert exp.decisions().shape[0] == 5
    assert exp.pause()
    assert exp.resume()
    assert exp.drop_arm("placebo")
    assert exp.add_arm("40 mg")
    assert exp.replay().agrees
    assert exp.state.belief_state == oracle(exp)


def test_a_decision_is_the_one_that_the_rules_make(storage):
    """Recomputed here from the belief alone, with the address that the receipt names."""
    from doublesampling.beliefs.marginals import address_words
    from doublesampling.rules import entry_points

    exp = create(storage)
    for reward in (1, 0, 1):
        exp.tell(exp.ask().id, reward)
    state, d = oracle(exp), exp.ask()
    belief = ds.BetaBernoulli(arms=3)
    words = address_words(d.address.seed, d.address.time, realization=d.number)
    laws = belief.marginals(state)
    p = entry_points.estimated_optimality(entry_points.exact_optimality(laws.law, laws.parameters), 1000, words)
    assert d.probability_optimal.tolist() == p.tolist()
    number = ds.DoubleSampling.anytime().number_of_candidates(laws.probability_optimal, 4, laws.precisions)
    arm, votes, propensities = entry_points.choose_candidate(p, number, False, words)
    assert (d.arm, d.candidates, d.votes.tolist()) == (arm, number, votes.tolist())
    assert d.propensities.tolist() == propensities.tolist()
    assert (d.observations, d.time, d.address.seed) == (3, 4, 7)


def test_the_same_key_or_unit_is_the_same_decision(storage):
    exp = create(storage)
    d = exp.ask(unit="patient-1", request_key="k")
    assert not d.repeated
    for again in (
        exp.ask(request_key="k"),
        exp.ask(unit="patient-1"),
        exp.ask(unit="patient-1", request_key="k"),
        exp.ask(unit="patient-1", request_key="other"),
        ds.Experiment.load("trial", storage=storage).ask(unit="patient-1"),
    ):
        assert again.repeated
        assert again.to_dict() | {"repeated": False} == d.to_dict()
    with pytest.raises(ConflictError, match="Use a new key"):
        exp.ask(unit="patient-2", request_key="k")
    assert exp.state.decisions == 1
    assert exp.ask().id != exp.ask().id


def test_units_may_be_asked_many_times(storage):
    exp = create(storage, units="many")
    assert exp.ask(unit="visitor").id != exp.ask(unit="visitor").id
    assert exp.ask(unit="visitor", request_key="k").id == exp.ask(unit="visitor", request_key="k").id


def test_ask_many_is_idempotent_and_knows_one_thing(storage):
    exp = create(storage)
    exp.ask(unit="b")
    some = exp.ask_many(units=["a", "b", "c", "a"])
    assert [d.repeated for d in some] == [False, True, False, True]
    assert some[0].id == some[3].id
    assert [d.time for d in some] == [2, 1, 3, 2]
    batch = exp.ask_many(3, request_key="night")
    assert [d.id for d in exp.ask_many(3, request_key="night")] == [d.id for d in batch]
    assert len({d.digest for d in batch}) == 1
    assert len({d.address for d in batch}) == 3
    assert exp.replay().agrees


def test_outcomes_come_late_in_any_order_and_some_never(storage):
    exp = create(storage)
    opened = [exp.ask() for _ in range(6)]
    for d in (opened[4], opened[0], opened[2]):
        exp.tell(d.id, 1.0)
    assert set(exp.pending()["id"]) == {opened[i].id for i in (1, 3, 5)}
    assert exp.state.belief_state == oracle(exp)
    assert exp.summary()["waiting"] == 3
    assert exp.replay().agrees


def test_an_imputed_outcome_counts_until_the_real_one_comes(storage):
    exp = create(storage)
    d = exp.ask()
    guess = exp.tell(d.id, 0.0, imputed=True, reason="lost to follow-up")
    assert (guess.kind, guess.imputed, guess.revision) == ("imputed", True, 1)
    assert exp.tell(d.id, 0.0, imputed=True).repeated
    with pytest.raises(ConflictError):
        exp.tell(d.id, 1.0, imputed=True)
    assert exp.state.belief_state.beta.sum() == 4
    assert exp.pending()["status"].tolist() == ["imputed"]
    exp.ask()
    real = exp.tell(d.id, 1.0)
    assert (real.kind, real.imputed, real.revision) == ("told", False, 2)
    assert exp.state.belief_state == oracle(exp)
    assert exp.state.belief_state.alpha.sum() == 4
    assert exp.state.belief_state.observations == 1
    assert exp.tell(d.id, 1.0, imputed=True).repeated
    with pytest.raises(ConflictError):
        exp.tell(d.id, 0.0, imputed=True)
    assert len(exp.pending()) == 1
    assert exp.replay().agrees


def test_an_amendment_supersedes_and_stays_in_the_log(storage):
    exp = create(storage)
    d = exp.ask()
    with pytest.raises(ConflictError, match="Use tell"):
        exp.amend(d.id, 1.0, reason="too early")
    exp.tell(d.id, 1.0)
    before = exp.ask()
    one = exp.amend(d.id, 0.0, reason="adjudicated")
    assert exp.amend(d.id, 0.0, reason="adjudicated").repeated
    two = exp.amend(d.id, 1.0, reason="adjudicated again")
    assert (one.revision, two.revision) == (2, 3)
    assert exp.tell(d.id, 1.0).repeated  # the first tell, delivered twice
    frame = exp.decisions().set_index("id")
    assert frame.loc[d.id, ["reward", "status", "revisions", "reason"]].tolist() == [1.0, "amended", 3, two.reason]
    with exp.session.store.reading() as connection:
        rows = connection.execute(sa.select(schema.outcomes).order_by(schema.outcomes.c.revision)).all()
    assert [(r.reward, r.previous) for r in rows] == [(1.0, None), (0.0, 1.0), (1.0, 0.0)]
    assert exp.state.belief_state == oracle(exp)
    assert exp.explain(before.id).arms[d.arm]["observations"] == 1
    assert exp.replay().agrees


def test_tell_many_is_all_or_nothing(storage):
    exp = create(storage)
    a, b, c = exp.ask_many(3)
    exp.tell(b.id, 1.0)
    with pytest.raises(ConflictError):
        exp.tell_many([(a.id, 1.0), (b.id, 0.0), (c.id, 1.0)])
    assert exp.state.belief_state.observations == 1
    assert [o.repeated for o in exp.tell_many({a.id: 1.0, b.id: 1.0, c.id: 0.0})] == [False, True, False]
    assert exp.state.belief_state.observations == 3


def test_a_paused_experiment_decides_nothing_new(storage):
    exp = create(storage)
    d = exp.ask(unit="u")
    assert exp.pause("safety board")
    assert not exp.pause()
    with pytest.raises(PausedError, match="resume"):
        exp.ask()
    assert exp.ask(unit="u").id == d.id
    exp.tell(d.id, 1.0)
    assert exp.summary()["status"] == "paused"
    assert exp.resume()
    exp.ask()


def test_dropped_and_added_arms(storage):
    exp = create(storage)
    late = exp.ask()
    exp.drop_arm(late.arm_name, "futile")
    for _ in range(30):
        d = exp.ask()
        assert d.arm != late.arm
        assert d.propensities[late.arm] == d.votes[late.arm] == d.probability_optimal[late.arm] == 0
    exp.tell(late.id, 1.0)
    assert exp.state.belief_state.counts[late.arm] == 1
    exp.add_arm("40 mg")
    seen = {exp.ask().arm_name for _ in range(40)}
    assert "40 mg" in seen
    assert late.arm_name not in seen
    posterior = exp.posterior()
    assert posterior.index.tolist() == [*ARMS, "40 mg"]
    assert posterior["probability_optimal"].sum() == pytest.approx(1.0)
    assert posterior.loc[late.arm_name, "probability_optimal"] == 0
    assert exp.replay().agrees
    assert ds.Experiment.load("trial", storage=storage).state.digest == exp.state.digest


@pytest.mark.parametrize("policy", [ds.UCB1(), ds.KLUCB(), ds.BayesUCB(), ds.TopTwo(), ds.EpsilonGreedy(), ds.Greedy(),
                                    ds.ThompsonSampling(), ds.BayesUCB(samples=50),
                                    ds.InformationDirected()])  # fmt: skip
def test_every_policy_decides_among_the_arms_that_are_left(sqlite_url, policy):
    exp = create(sqlite_url, policy=policy)
    exp.tell(exp.ask().id, 1.0)
    exp.drop_arm("10 mg")
    for _ in range(5):
        d = exp.ask()
        assert d.arm_name != "10 mg"
        exp.tell(d.id, 0.0)
    assert exp.replay().agrees


def test_history_counts_and_is_added_once(storage):
    exp = create(storage)
    assert exp.add_history(["placebo", 2, "10 mg"], [1, 0, 1], request_key="2019") == 3
    assert exp.add_history(["placebo", 2, "10 mg"], [1, 0, 1], request_key="2019") == 0
    for arms, rewards in ((["placebo", 2, "10 mg"], [1, 1, 1]), ([0, 1], [1, 0]), ([2, 0, 1], [0, 1, 1])):
        with pytest.raises(ConflictError, match="2019"):  # other data under the same key
            exp.add_history(arms, rewards, request_key="2019")
    with pytest.raises(RewardError):
        exp.add_history([0], [2], request_key="2019")
    belief = exp.design.belief
    assert exp.state.belief_state == belief.update_batch(belief.prior(), [0, 2, 1], [1, 0, 1])
    assert exp.ask().observations == 3
    assert exp.summary()["history"] == 3
    assert exp.replay().agrees


def test_a_key_stands_for_one_context(storage):
    exp = ds.Experiment.create("x", arms=["a", "b"], belief=ds.LinearGaussian(arms=2, dimension=2), storage=storage)
    first = exp.ask("u", [1, 2], request_key="k")
    assert exp.ask("u", [1.0, 2.0], request_key="k").id == first.id
    with pytest.raises(ConflictError, match="another context"):
        exp.ask("u", [3, 4], request_key="k")


def test_a_reload_goes_on_where_it_was(storage, tmp_path):
    """The random stream does not restart: in one process or in many, the decisions are the same."""
    one = create(storage, name="one")
    at_once = [(one.ask(), one.tell(one.ask(unit=str(i)).id, i % 2))[0] for i in range(6)]
    create(storage, name="two")
    in_pieces = []
    for i in range(6):
        again = ds.Experiment.load("two", storage=storage)
        in_pieces.append(again.ask())
        again.tell(again.ask(unit=str(i)).id, i % 2)
    assert [(d.arm, d.number, d.digest) for d in at_once] == [(d.arm, d.number, d.digest) for d in in_pieces]


def test_times_are_utc_and_rows_say_who(storage):
    exp = create(storage)
    d = exp.ask(actor="dr.who")
    assert d.asked_at.utcoffset() == datetime.timedelta(0)
    assert abs((d.asked_at - datetime.datetime.now(datetime.UTC)).total_seconds()) < 60
    assert exp.decision(d.id).asked_at == d.asked_at
    assert (d.actor, d.version) == ("dr.who", ds.__version__)
    assert "@" in exp.tell(d.id, 1.0).actor
    assert ds.Experiment.load("trial", storage=storage, actor="nurse").ask().actor == "nurse"


def test_names_of_any_language(storage):
    exp = create(storage, name="Versuch Ω", arms=["plaçebo", "薬", "x' OR 1=1 --"])
    d = exp.ask(unit="患者 17", request_key="clé; DROP TABLE ds_decisions")
    assert exp.decision(d.id).unit == "患者 17"
    assert [e["name"] for e in ds.Experiment.list(storage)] == ["Versuch Ω"]


def test_explain_tells_what_was_known_then(storage):
    exp = create(storage)
    exp.tell(exp.ask().id, 1.0)
    d = exp.ask(unit="patient-2")
    exp.tell(d.id, 0.0)
    found = exp.explain(d.id)
    assert found.verified
    assert sum(arm["observations"] for arm in found.arms) == 1
    assert found.unknown_then == 1
    text = str(found)
    assert "patient-2" in text
    assert "P(best)" in text
    assert d.arm_name in found.why
    json.dumps(found.to_dict(), allow_nan=False)


def test_without_snapshots_nothing_changes(storage, monkeypatch):
    from doublesampling.live import state_cache

    monkeypatch.setattr(state_cache, "EVERY", 2)
    monkeypatch.setattr(state_cache, "MOST", 8)
    exp = create(storage)
    for i in range(30):
        exp.tell(exp.ask().id, i % 2)
    with exp.session.store.writing() as connection:
        kept = connection.execute(sa.select(sa.func.count()).select_from(schema.checkpoints)).scalar()
        assert 3 <= kept <= 9
    digest = ds.Experiment.load("trial", storage=storage).state.digest
    assert digest == exp.state.digest
    with exp.session.store.writing() as connection:
        connection.execute(sa.delete(schema.checkpoints))
    assert ds.Experiment.load("trial", storage=storage).state.digest == digest
    assert ds.Experiment.load("trial", storage=storage).state.decisions == 30


def test_experiments_of_one_store_do_not_meet(storage):
    one, two = create(storage, name="one"), create(storage, name="two")
    one.tell(one.ask(unit="u", request_key="k").id, 1.0)
    d = two.ask(unit="u", request_key="k")
    assert (d.number, d.observations, d.repeated) == (1, 0, False)
    assert two.state.decisions == 1
    assert np.all(two.state.belief_state.counts == 0)
    assert open_store(storage) is one.session.store
