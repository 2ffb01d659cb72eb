"""Void and withdraw: what was not carried out counts for nothing, what was told by mistake is unknown again."""

import pytest

import doublesampling as ds
from doublesampling.errors import ConflictError, NotFoundError, SettingError, VoidedError
from doublesampling.live.queries import activity, decision_pages
from tests.test_live_experiment import create, oracle


def test_a_voided_decision_stays_in_the_log_and_counts_for_nothing(storage):
    exp = create(storage)
    kept, gone = exp.ask(unit="p1"), exp.ask(unit="p2")
    exp.tell_many({kept.id: 1.0, gone.id: 1.0})
    before = exp.ask(unit="p3")
    found = exp.void(gone.id, reason="the bottle was never opened", actor="dr.who")
    assert (found.kind, found.reward, found.revision, found.actor) == ("voided", None, 2, "dr.who")
    assert exp.void(gone.id, reason="again").repeated
    assert exp.state.belief_state == oracle(exp)
    assert exp.state.belief_state.observations == 1
    assert exp.state.decisions == 2
    frame = exp.decisions().set_index("id")
    assert frame.loc[gone.id, ["status", "reason"]].tolist() == ["voided", "the bottle was never opened"]
    assert frame["reward"].isna().loc[gone.id]
    assert exp.pending()["id"].tolist() == [before.id]
    summary = exp.summary()
    assert (summary["decisions"], summary["outcomes"], summary["waiting"], summary["voided"]) == (2, 1, 1, 1)
    assert sum(arm["decisions"] for arm in summary["arms"]) == 2
    assert sum(arm["voided"] for arm in summary["arms"]) == 1
    assert exp.decision(gone.id).voided
    assert not exp.decision(kept.id).voided
    assert "VOIDED" in str(exp.explain(gone.id))
    assert exp.explain(before.id).unknown_then == 0
    assert exp.ask().observations == 1
    assert exp.replay().agrees


def test_a_voided_decision_can_never_be_told_of(storage):
    exp = create(storage)
    d = exp.ask()
    assert exp.void(d.id, reason="duplicate").revision == 1
    for touch in (lambda: exp.tell(d.id, 1.0), lambda: exp.tell(d.id, 1.0, imputed=True),
                  lambda: exp.amend(d.id, 1.0, reason="r"), lambda: exp.withdraw(d.id, reason="r"),
                  lambda: exp.tell_many({d.id: 1.0})):  # fmt: skip
        with pytest.raises(VoidedError, match="was voided \\(duplicate\\)") as caught:
            touch()
        assert caught.value.code == "voided"
    assert exp.state.belief_state.observations == 0
    with pytest.raises(NotFoundError):
        exp.void("nope", reason="r")
    with pytest.raises(SettingError, match="reason"):
        exp.void(exp.ask().id, reason=" ")


def test_a_voided_unit_can_be_asked_anew_and_its_key_cannot(storage):
    exp = create(storage)
    first = exp.ask(unit="patient", request_key="visit-1")
    exp.void(first.id, reason="consent withdrawn")
    with pytest.raises(VoidedError, match="do not carry it out"):  # a late retry of the same request
        exp.ask(unit="patient", request_key="visit-1")
    second = exp.ask(unit="patient", request_key="visit-2")
    assert (second.id != first.id, second.repeated) == (True, False)
    assert exp.ask(unit="patient").id == second.id
    exp.void(second.id, reason="again")
    third = exp.ask_many(units=["patient", "patient"])
    assert third[0].id == third[1].id
    assert not third[0].repeated
    assert exp.ask(unit="patient").id == third[0].id
    assert exp.state.decisions == 1
    assert exp.replay().agrees


def test_an_outcome_told_by_mistake_goes_back_to_unknown(storage):
    exp = create(storage)
    d = exp.ask(unit="p1")
    with pytest.raises(ConflictError, match="no outcome to withdraw"):
        exp.withdraw(d.id, reason="too early")
    exp.tell(d.id, 1.0)
    between = exp.ask(unit="p2")
    found = exp.withdraw(d.id, reason="another patient's")
    assert (found.kind, found.reward, found.revision) == ("withdrawn", None, 2)
    assert exp.withdraw(d.id, reason="again").repeated
    assert exp.state.belief_state == exp.design.belief.prior()
    assert exp.state.decisions == 2
    assert exp.pending()["status"].tolist() == ["withdrawn", "waiting"]
    assert [row["status"] for row in decision_pages.page(exp.session, waiting=True)[0]] == ["withdrawn", "waiting"]
    assert exp.summary()["withdrawn"] == 1
    with pytest.raises(ConflictError, match="Use tell"):
        exp.amend(d.id, 0.0, reason="r")
    assert exp.tell(d.id, 0.0).revision == 3  # no conflict with what was withdrawn
    assert exp.tell(d.id, 0.0).repeated
    with pytest.raises(ConflictError, match="amend"):
        exp.tell(d.id, 1.0)
    assert exp.state.belief_state == oracle(exp)
    assert exp.explain(between.id).arms[d.arm]["observations"] == 1
    assert exp.explain(between.id).unknown_then == 0
    assert exp.replay().agrees


def test_times_do_not_count_what_was_voided(storage):
    """A horizon counts decisions that were carried out; replay finds the same times, also of decisions in between."""
    exp = create(storage, policy=ds.DoubleSampling(horizon=20))
    some = [exp.ask() for _ in range(4)]
    exp.void(some[1].id, reason="r")
    exp.void(some[2].id, reason="r")
    batch = exp.ask_many(2)
    assert [d.time for d in batch] == [3, 4]
    assert [d.number for d in batch] == [5, 6]
    assert ds.Experiment.load("trial", storage=storage).state.decisions == 4
    assert exp.replay().agrees


def test_waiting_times_leave_voided_decisions_out(storage):
    import datetime

    exp = create(storage)
    told, voided, withdrawn, _ = exp.ask_many(4)
    exp.tell_many({told.id: 1.0, withdrawn.id: 1.0})
    exp.withdraw(withdrawn.id, reason="r")
    exp.void(voided.id, reason="r")
    found = activity.delays(exp.session, datetime.datetime.now(datetime.UTC))
    assert (found["looked_at"], found["waiting"]) == (3, 2)


def test_a_tell_and_a_void_at_the_same_moment_have_one_order(storage):
    import threading

    exp = create(storage)
    for decision in exp.ask_many(10):
        start, found = threading.Barrier(2), list[str]()

        def tell(which=decision.id, start=start, found=found):
            start.wait()
            try:
                found.append(exp.tell(which, 1.0).kind)
            except VoidedError as problem:
                found.append(problem.code)

        other = threading.Thread(target=tell)
        other.start()
        start.wait()
        assert exp.void(decision.id, reason="race").kind == "voided"
        other.join()
        assert found[0] in ("told", "voided")
    assert exp.state.belief_state.observations == 0
    assert exp.state.decisions == 0
    assert exp.replay().agrees
