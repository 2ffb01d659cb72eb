"""The overview of an experiment: counts, differences and mood agree with the live layer; answers are shared."""

import asyncio
import concurrent.futures
import time

import numpy as np
import pytest
from scipy import stats

import doublesampling as ds
from doublesampling.live.queries.outcome_counts import OutcomeCounts
from doublesampling.service.response_cache import Budget, Computed, ResponseCache, to_response
from doublesampling.service.routes import overview
from doublesampling.service.schemas.results import AllocationMood
from tests.service import asked, client, problem, trial


@pytest.fixture
def exp(storage):
    """Outcomes of every kind: told, imputed, amended, withdrawn, voided, from before, and waiting."""
    made = ds.Experiment.create(
        "trial", arms=["a", "b", "c"], policy=ds.DoubleSampling(horizon=40), seed=1, storage=storage
    )
    made.add_history(["a", "a", "b"], [1, 0, 1])
    asked = [made.ask(unit=f"u{i}") for i in range(24)]
    for i, d in enumerate(asked[:18]):
        made.tell(d.id, float(i % 3 == 0), imputed=i == 5)
    made.amend(asked[0].id, 0.0, reason="checked")
    made.withdraw(asked[1].id, reason="wrong patient")
    made.withdraw(asked[3].id, reason="wrong patient")
    made.tell(asked[3].id, 1.0)
    made.void(asked[2].id, reason="not carried out")
    made.void(asked[20].id, reason="not carried out")
    return made


def test_counts_are_those_of_the_summary(exp, storage):
    with client(storage) as c:
        found = c.get("/v1/experiments/trial/overview").json()
    summary = exp.summary()
    for arm, wanted in zip(found["arms"], summary["arms"], strict=True):
        assert (arm["assigned"], arm["outcomes"], arm["history"], arm["voided"]) == tuple(
            wanted[name] for name in ("decisions", "outcomes", "history", "voided")
        )
        assert arm["total"] == pytest.approx(wanted["total_reward"])
        assert arm["waiting"] == wanted["decisions"] - wanted["outcomes"]
        assert arm["share"] == pytest.approx(wanted["decisions"] / summary["decisions"])
    assert (
        sum(arm["waiting"] for arm in found["arms"]) == found["experiment"]["results"]["waiting"] == summary["waiting"]
    )
    assert found["horizon"] == 40


def test_counts_that_are_topped_up_are_counts_from_the_start(exp):
    running = OutcomeCounts(exp.session)
    running.read(3)
    for i in range(20):
        d = exp.ask()
        exp.tell(d.id, float(i % 2))
        if i % 4 == 0:
            exp.amend(d.id, 1.0, reason="r")
        if i % 5 == 0:
            exp.withdraw(d.id, reason="r")
        if i % 7 == 0:
            exp.void(d.id, reason="r")
        again, fresh = running.read(3), OutcomeCounts(exp.session).read(3)
        for name in ("outcomes", "total", "history", "history_total", "voided"):
            assert getattr(again, name) == pytest.approx(getattr(fresh, name)), name
        assert [change.kind for change in again.corrections] == [change.kind for change in fresh.corrections]
    assert fresh.outcomes.sum() == exp.summary()["outcomes"]


def test_the_difference_of_two_normal_arms_is_normal(sqlite_url):
    exp = ds.Experiment.create(
        "trial", arms=["a", "b"], belief=ds.Gaussian(arms=2, mean=0.0, noise=1.0), seed=1, storage=sqlite_url
    )
    exp.add_history(["a"] * 9 + ["b"] * 4, [0.1 * i for i in range(9)] + [1.0, 1.2, 0.8, 1.0])
    table = exp.posterior()
    with client(sqlite_url) as c:
        found = c.get("/v1/experiments/trial/overview").json()
        swapped = c.get("/v1/experiments/trial/overview", params={"reference": "b"}).json()
        best = c.get("/v1/experiments/trial/overview", params={"reference": "best"}).json()
        problem(c.get("/v1/experiments/trial/overview", params={"reference": "nobody"}), 422, "arm")
    law = stats.norm(table["mean"]["b"] - table["mean"]["a"], np.hypot(*table["sd"]))
    difference = found["arms"][1]["difference"]
    assert found["arms"][0]["difference"] is None
    assert (found["reference"], swapped["reference"], best["reference"]) == ("a", "b", "best")
    assert difference["mean"] == pytest.approx(law.mean())
    assert (difference["low"], difference["high"]) == pytest.approx(law.interval(0.95), abs=0.01 * law.std())
    assert difference["probability_better"] == pytest.approx(law.sf(0.0), abs=0.003)
    assert swapped["arms"][0]["difference"]["mean"] == pytest.approx(-difference["mean"])
    assert best["arms"][1]["difference"] == difference
    assert best["arms"][0]["difference"]["reference"] == 1


def test_the_difference_of_two_beta_arms(sqlite_url):
    exp = ds.Experiment.create("trial", arms=["a", "b"], seed=1, storage=sqlite_url)
    exp.add_history(["a"] * 20 + ["b"] * 12, [1] * 5 + [0] * 15 + [1] * 9 + [0] * 3)
    draws = exp.state.belief.marginals(exp.state.belief_state).draws(200_000, seed=1)
    apart = draws[:, 1] - draws[:, 0]
    with client(sqlite_url) as c:
        found = c.get("/v1/experiments/trial/overview").json()["arms"][1]
    assert (found["difference"]["low"], found["difference"]["high"]) == pytest.approx(
        np.quantile(apart, [0.025, 0.975]), abs=0.004
    )
    assert found["difference"]["probability_better"] == pytest.approx(found["probability_optimal"], abs=0.002)


def test_even_odds_are_exploring_however_many_candidates_are_drawn(sqlite_url):
    """With P(best) 50/50 and a horizon the page once said "exploiting: sure enough", because N was large."""
    policy = {"kind": "DoubleSampling", "settings": {"horizon": 100}}
    with client(sqlite_url) as c:
        address = trial(c, arms=["a", "b"], policy=policy)
        found = c.get(f"{address}/overview").json()
        assert found["candidates"] > 3
        assert found["arms"][0]["next_allocation"] == pytest.approx(0.5, abs=0.1)
        assert found["mood"]["word"] == "exploring"
        ds.Experiment.load("trial", storage=sqlite_url).add_history(["a"] * 40 + ["b"] * 40, [1] * 36 + [0] * 44)
        c.app.state.service.responses.wrote("trial")
        sure = c.get(f"{address}/overview").json()
        assert (sure["mood"]["word"], sure["mood"]["arm"]) == ("exploiting", 0)


@pytest.mark.parametrize("arms", [2, 3, 50])
def test_mood_speaks_from_propensities(arms):
    even = [1 / arms] * arms
    every = tuple(range(arms))
    assert overview.mood(even, every).word == "exploring"
    assert overview.mood([0.7, *[0.3 / (arms - 1)] * (arms - 1)], every) == AllocationMood(
        word="leaning", arm=0, probability=0.7
    )
    assert overview.mood([*[0.02 / (arms - 1)] * (arms - 1), 0.98], every).arm == arms - 1
    assert overview.mood([None] * arms, every).word == "unknown"


def test_a_context_is_chosen_where_none_is_asked_for(sqlite_url):
    with client(sqlite_url) as c:
        address = trial(c, belief={"kind": "Logistic", "settings": {"dimension": 2}})
        assert c.get(address).json()["binary"]  # rewards of Logistic are 0 or 1
        assert c.get(f"{address}/overview").json()["context_source"] == "ones"
        for x in (0.0, 1.0):
            c.post(f"{address}/decisions", json={"context": [1.0, x]})
        found = c.get(f"{address}/overview").json()
        assert (found["context_source"], found["context"]) == ("recent", [1.0, 0.5])
        asked_for = c.get(f"{address}/overview", params={"context": "1,3"}).json()
        assert (asked_for["context_source"], asked_for["context"]) == ("asked", [1.0, 3.0])
        assert asked_for["arms"][1]["difference"] is not None


def test_happenings_are_marked_with_their_place_and_reason(exp, storage):
    exp.pause("stock ran out")
    exp.resume()
    exp.drop_arm("c", "safety")
    exp.add_arm("d")
    with client(storage) as c:
        found = c.get("/v1/experiments/trial/series").json()["happenings"]
    kinds = [each["kind"] for each in found]
    assert kinds == [
        "history",
        "amended",
        "withdrawn",
        "withdrawn",
        "voided",
        "voided",
        "pause",
        "resume",
        "drop_arm",
        "add_arm",
    ]
    texts = {each["kind"]: each["text"] for each in found}
    assert "stock ran out" in texts["pause"]
    assert "c: safety" in texts["drop_arm"]
    assert "not carried out" in texts["voided"]
    assert [found[0]["number"], found[-1]["number"]] == [0, 24]


def test_an_answer_is_computed_once_for_all_who_ask(sqlite_url):
    with client(sqlite_url) as c, concurrent.futures.ThreadPoolExecutor(16) as crowd:
        address, answers = trial(c), c.app.state.service.responses
        asked(c, address)
        before = answers.computed
        found = list(crowd.map(lambda _: c.get(f"{address}/overview"), range(32)))
        assert {answer.status_code for answer in found} == {200}
        assert len({answer.content for answer in found}) == 1
        assert answers.computed - before <= 2  # one, and one more where a second had passed
        tag = found[0].headers["etag"]
        assert c.get(f"{address}/overview", headers={"If-None-Match": tag}).status_code == 304
        asked(c, address)
        assert c.get(f"{address}/overview", headers={"If-None-Match": tag}).status_code == 200  # its own writes show


def run(work):
    return asyncio.run(work())


def test_a_budget_is_a_share_of_the_time():
    budget = Budget(share=0.5, most=1.0, debt=2.0)
    budget.spend(2.5)
    assert budget.left == pytest.approx(-1.5, abs=0.05)
    budget._at -= 1.0  # a second later
    assert budget.left == pytest.approx(-1.0, abs=0.05)
    budget.spend(100.0)
    assert budget.left == pytest.approx(-2.0, abs=0.05)
    budget._at -= 1000.0
    assert budget.left == 1.0


def test_without_budget_an_old_answer_is_given_until_it_is_too_old(monkeypatch):
    async def work():
        cache, made = ResponseCache(Budget(share=0.0, most=1.0)), []

        async def compute(kept):
            made.append(kept)
            return Computed(f"v{len(made)}", f"{len(made)}".encode(), 2.0)

        first = await cache.get("trial", "q", compute)
        cache.budget.spend(5.0)
        cache.wrote("trial")
        assert await cache.get("trial", "q", compute, pause=0.0) is first  # nothing is left to spend
        monkeypatch.setattr("doublesampling.service.response_cache._OLDEST", -1.0)
        second = await cache.get("trial", "q", compute, pause=-1.0)
        assert (second.body, made) == (b"2", [None, "v1"])
        assert not cache.affordable("trial", "another")
        assert cache.affordable("trial", "q")

    run(work)


def test_who_has_just_written_sees_it_also_without_budget():
    async def work():
        cache, made = ResponseCache(Budget(share=0.0, most=1.0)), []
        cache.forced = Budget(share=0.0, most=1.05)

        async def compute(kept):
            made.append(kept)
            mine = len(made)
            await asyncio.sleep(0.02)
            return Computed(f"v{mine}", f"{mine}".encode(), 0.1)

        await cache.get("e", "q", compute)
        cache.budget.spend(10.0)
        assert (await cache.get("e", "q", compute, pause=0.0)).body == b"1"
        assert (await cache.get("e", "q", compute, fresh=True)).body == b"2"
        early = asyncio.ensure_future(cache.get("e", "q", compute, fresh=True))
        await asyncio.sleep(0)
        late = await cache.get("e", "q", compute, fresh=True)  # after what was under way when it asked
        assert ((await early).body, late.body) == (b"3", b"4")
        for _ in range(20):
            await cache.get("e", "q", compute, fresh=True)
        assert len(made) == 1 + 11  # the budget of fresh responses is spent

    run(work)


def test_a_fresh_answer_over_http(sqlite_url):
    with client(sqlite_url) as c:
        address = trial(c)
        c.get(f"{address}/overview")
        c.app.state.service.responses.budget.spend(1000.0)
        ds.Experiment.load("trial", storage=sqlite_url).ask()
        found = c.get(f"{address}/overview", headers={"Cache-Control": "no-cache"}).json()
        assert found["experiment"]["results"]["decisions"] == 1


def test_responses_take_no_more_memory_than_they_may(monkeypatch):
    monkeypatch.setattr("doublesampling.service.response_cache._BYTES", 1000)

    async def work():
        cache = ResponseCache()
        for i in range(20):
            for _ in range(2):  # the second time it is replaced

                async def compute(_, i=i):
                    return Computed(f"{time.monotonic()}", b"x" * 300, 0.0)

                await cache.get("e", i, compute, pause=-1.0)
        assert list(cache._responses) == [("e", 17), ("e", 18), ("e", 19)]
        assert cache._size == 900
        assert len(cache._looked) == 3

        async def fail(_):
            raise ValueError("no answer")

        with pytest.raises(ValueError, match="no answer"):
            await cache.get("e", "wrong", fail)
        await asyncio.sleep(0)
        assert len(cache._looked) == 3

    run(work)


def test_the_same_version_is_not_computed_again_and_failures_are_not_kept():
    async def work():
        cache, calls = ResponseCache(), []

        async def compute(kept):
            calls.append(kept)
            await asyncio.sleep(0.01)
            if len(calls) == 1:
                raise ValueError("the first fails")
            return Computed("v", None if kept == "v" else b"{}", 0.0)

        failed = await asyncio.gather(*(cache.get("e", "q", compute) for _ in range(5)), return_exceptions=True)
        assert [type(each) for each in failed] == [ValueError] * 5
        assert calls == [None]  # one computation, whose failure all of them hear of
        first = await cache.get("e", "q", compute)
        assert await cache.get("e", "q", compute, pause=-1.0) is first
        assert calls == [None, None, "v"]
        assert to_response(first, f'"x", {first.tag}').status_code == 304

    run(work)


def test_responses_that_nobody_has_asked_before_wait_with_the_long_reads(sqlite_url):
    """Asking at ever new contexts does not go around the budget."""
    with client(sqlite_url) as c:
        address = trial(c, belief={"kind": "LinearGaussian", "settings": {"dimension": 1}})
        service = c.app.state.service
        c.get(f"{address}/overview")
        service.responses.budget.spend(1000.0)
        assert c.get(f"{address}/overview").status_code == 200  # it is kept
        assert c.get(f"{address}/overview", params={"context": "0.25"}).status_code == 200
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("doublesampling.service.pools.LONG_WAITING", 0)
            problem(c.get(f"{address}/overview", params={"context": "0.5"}), 429, "too-many")
            assert c.get(f"{address}/overview").status_code == 200


def test_an_answer_is_not_older_than_a_pause_where_nothing_is_left_to_do(sqlite_url):
    with client(sqlite_url) as c:
        address = trial(c)
        c.get(f"{address}/overview")
        ds.Experiment.load("trial", storage=sqlite_url).ask()  # by another process
        until = time.monotonic() + 20
        while time.monotonic() < until:
            if c.get(f"{address}/overview").json()["experiment"]["results"]["decisions"] == 1:
                break
            time.sleep(0.1)
        else:
            pytest.fail("what another process has written is never seen")
