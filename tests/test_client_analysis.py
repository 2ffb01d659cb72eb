"""Analyses over HTTP: analyse, exact_test and sequence of a remote experiment are those of the local one."""

import asyncio
import dataclasses
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any, get_args

import httpx2
import numpy as np
import pytest
from pydantic import BaseModel

import doublesampling as ds
from doublesampling import errors
from doublesampling.client import ForbiddenError
from doublesampling.client.analysing import POINTS
from doublesampling.exact import significance
from doublesampling.inference import analysis, streaming
from doublesampling.live import exact_testing
from doublesampling.live.experiment import Experiment
from doublesampling.live.sequence_cache import Summary
from doublesampling.service.app import create_app
from doublesampling.service.schemas.analysis import AnalysisQuery, ExactTestQuery
from doublesampling.service.version_cache import VersionCache
from tests.client import Transport, connected, new_key, service
from tests.own_policies import Commit
from tests.service import HERE, asked, client, problem

ARMS = ["a", "b", "c"]
PAIR = ["placebo", "20 mg"]
GREEDY = ds.EpsilonGreedy(epsilon=0.5)


def make_experiments(url: str) -> None:
    """Experiments of every kind that an analysis may meet, by name."""
    rng = np.random.default_rng(5)
    plenty = Experiment.create("plenty", arms=ARMS, policy=GREEDY, storage=url, seed=1, units="many")
    made = plenty.ask_many(200)
    plenty.tell_many([(d.id, float(rng.random() < 0.3 + 0.2 * d.arm)) for d in made[:180]])
    plenty.tell(made[180].id, 1.0, imputed=True, reason="last value")
    plenty.amend(made[0].id, 1.0 - plenty.decisions()["reward"][0], reason="typo")
    plenty.withdraw(made[1].id, reason="another patient's")
    plenty.void(made[2].id, reason="never given")
    constant = Experiment.create("constant", arms=PAIR, policy=GREEDY, storage=url, seed=1, units="many")
    constant.tell_many([(d.id, 0.0) for d in constant.ask_many(40)])
    wide = Experiment.create(
        "wide", arms=PAIR, belief=ds.Gaussian(arms=2), policy=GREEDY, storage=url, seed=1, units="many"
    )
    wide.tell_many([(d.id, 10.0 * rng.standard_normal()) for d in wide.ask_many(60)])
    pair = Experiment.create(
        "pair", arms=PAIR, policy=ds.ThompsonSampling(), allocation=ds.Allocation(floor=0.2), storage=url, seed=7
    )
    for _ in range(20):
        d = pair.ask()
        pair.tell(d.id, float(rng.random() < (0.3, 0.7)[d.arm]))
    Experiment.create("empty", arms=PAIR, policy=GREEDY, storage=url, seed=1)
    few = Experiment.create("few", arms=PAIR, policy=GREEDY, storage=url, seed=1, units="many")
    few.tell_many([(d.id, 1.0) for d in few.ask_many(3)])
    unknown = Experiment.create("unknown", arms=PAIR, policy=Commit(), storage=url, seed=1)
    for _ in range(3):
        unknown.tell(unknown.ask().id, 1.0)


@pytest.fixture(scope="module")
def url(tmp_path_factory, migrations):
    url = f"sqlite:///{tmp_path_factory.mktemp('analysis') / 'trial.db'}"
    make_experiments(url)
    return url


@pytest.fixture(scope="module")
def transport(url):
    with service(url) as transport:
        yield Transport(transport)


@pytest.fixture(scope="module")
def connection(transport, url):
    with connected(transport) as connection:
        yield connection


def same(remote: Any, local: Any) -> None:
    """Two results are of the same class and equal in every field."""
    assert type(remote) is type(local)
    for each in dataclasses.fields(local):
        one, two = getattr(remote, each.name), getattr(local, each.name)
        if isinstance(two, np.ndarray):
            assert one.dtype == two.dtype, each.name
            np.testing.assert_array_equal(one, two, each.name)
        else:
            assert (one, type(one)) == (two, type(two)), each.name


ANALYSES: dict[str, tuple[Any, ...]] = {
    "default": ("plenty",),
    "by name": ("plenty", ("c", "a")),
    "by name and index": ("plenty", ["b", 2], "aipw", 0.9),
    "one arm": ("plenty", "b", "ips"),
    "arm 0": ("plenty", 0),
    "numpy": ("plenty", np.array([2, 1])),
    "naive": ("plenty", (2, 0), "naive"),
    "settings": ("plenty", (2, 0), "aw-aipw", 0.99,
                 {"weights": "stick-breaking", "decay": 0.3, "null": 0.1, "initial": 0.5, "bounds": (-0.5, 1.5)}),
    "without a context": ("plenty", (2, 0), "aw-aipw", 0.95, {"context": ()}),
    "infinite degrees of freedom": ("constant",),
    "unbounded rewards": ("wide", (1, 0), "aw-aipw", 2 / 3, {"null": 1 / 3}),
    "bounds that are given": ("wide", "placebo", "aw-aipw", 0.95, {"bounds": [-1000, 1e3]}),
}  # fmt: skip


@pytest.mark.parametrize("case", ANALYSES)
def test_an_analysis_is_the_local_one(case, url, connection):
    name, *given = ANALYSES[case]
    settings = given.pop() if given and isinstance(given[-1], dict) else {}
    local = Experiment.load(name, storage=url).analyse(*given, **settings)
    same(connection.load(name).analyse(*given, **settings), local)
    if case == "infinite degrees of freedom":
        assert local.degrees_of_freedom == np.inf
    if case == "default":
        assert (local.worst_case, local.pending, local.imputed, local.voided) != (None, 0, 0, 0)


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("pair", {}),
        ("pair", {"alternative": "greater"}),
        ("pair", {"statistic": "difference", "alternative": "less"}),
        ("pair", {"statistic": "probability"}),
        ("few", {"late": "ignore"}),
    ],
)
def test_an_exact_test_is_the_local_one(name, settings, url, connection):
    local = Experiment.load(name, storage=url).exact_test(**settings)
    same(connection.load(name).exact_test(**settings), local)
    assert local.assumes


@pytest.mark.parametrize(
    ("name", "given", "settings"),
    [
        ("plenty", (), {}),
        ("plenty", (("c", "a"), 0.9), {}),
        ("plenty", ("c",), {"method": "empirical-bernstein"}),
        ("plenty", ((2, 0), 0.9999), {"method": "empirical-bernstein"}),
        ("constant", (), {}),
        ("empty", (), {}),
    ],
)
def test_a_sequence_is_the_local_one(name, given, settings, url, connection):
    local = Experiment.load(name, storage=url).sequence(*given, **settings)
    remote = connection.load(name).sequence(*given, **settings)
    same(remote, local)
    assert str(remote) == str(local)
    assert (local.reason is None) == (name == "plenty")


def test_no_point_of_a_sequence_is_left_out():
    """The service keeps as many points as a request can have."""
    shares = type("Row", (), {"propensities": "[0.5, 0.5]", "arm": 0, "reward": 1.0, "number": 1})()
    summary = Summary(streaming.ConfidenceSequence(2, method="empirical-bernstein"))
    most = 0
    for _ in range(2100):
        summary.add(shares)
        most = max(most, len(summary.points) + 1)  # and the latest
    assert most <= POINTS


def test_settings_of_the_service_are_those_of_the_library():
    known: dict[tuple[type[BaseModel], str], Any] = {
        (AnalysisQuery, "method"): analysis.METHODS,
        (AnalysisQuery, "weights"): analysis.WEIGHTS,
        (ExactTestQuery, "statistic"): significance.STATISTICS,
        (ExactTestQuery, "alternative"): significance.ALTERNATIVES,
        (ExactTestQuery, "late"): exact_testing.LATE,
    }
    for (kind, name), words in known.items():
        assert get_args(kind.model_fields[name].annotation) == words
    plain = analysis.AnalysisSettings()
    for name, default in ((each, kind.default) for each, kind in AnalysisQuery.model_fields.items()):
        assert name in ("arm", "reference", "least", "largest") or getattr(plain, name) == default


REFUSED: dict[str, tuple[str, Any, type[errors.DoubleSamplingError], str]] = {
    "no such name": ("plenty", lambda e: e.analyse(("z", "a")), errors.ArmError, "'z'.*'a', 'b', 'c'"),
    "no such index": ("plenty", lambda e: e.analyse((7, 0)), errors.ArmError, "7"),
    "a large index": ("plenty", lambda e: e.analyse(10**9), errors.ArmError, "1000000000"),
    "negative": ("plenty", lambda e: e.analyse((-1, 0)), errors.ArmError, "-1"),
    "no number": ("plenty", lambda e: e.analyse((1.5, 0)), errors.ArmError, "1.5"),
    "the same twice": ("plenty", lambda e: e.analyse(("a", 0)), errors.ArmError, "two different"),
    "three arms": ("plenty", lambda e: e.analyse((0, 1, 2)), errors.ArmError, "two arms, or one"),
    "no arm": ("plenty", lambda e: e.analyse(()), errors.ArmError, "two arms, or one"),
    "method": ("plenty", lambda e: e.analyse(method="aw-aipv"), errors.SettingError, "Did you mean 'aw-aipw'"),
    "level": ("plenty", lambda e: e.analyse(level=95), errors.SettingError, "0.9999"),
    "weights": ("plenty", lambda e: e.analyse(weights=3), errors.SettingError, "weights"),
    "bounds": ("plenty", lambda e: e.analyse(bounds=(1, 0)), errors.SettingError, "least and the largest"),
    "rewards outside": ("wide", lambda e: e.analyse(bounds=(0, 1)), errors.SettingError, "the log holds a reward"),
    "null": ("plenty", lambda e: e.analyse(null="0"), errors.SettingError, "null must be"),
    "nan": ("plenty", lambda e: e.analyse(initial=float("nan")), errors.SettingError, "initial must be"),
    "nothing yet": ("empty", lambda e: e.analyse(), errors.LogError, "no rows"),
    "few": ("few", lambda e: e.analyse(), errors.PropensityError, "fewer than 5"),
    "no propensities": ("unknown", lambda e: e.analyse(), errors.LogError, "propensit"),
    "test nothing": ("empty", lambda e: e.exact_test(), errors.LogError, "No outcome is known"),
    "late": ("few", lambda e: e.exact_test(), errors.LogError, "late='ignore'"),
    "three are tested": ("plenty", lambda e: e.exact_test(), errors.SettingError, "two arms"),
    "statistic": ("pair", lambda e: e.exact_test(statistic="t"), errors.SettingError, "statistic must be"),
    "a number": ("pair", lambda e: e.exact_test(statistic=3), errors.SettingError, "statistic must be"),
    "direction": ("pair", lambda e: e.exact_test(statistic="probability", alternative="less"), errors.SettingError,
                  "no direction"),
    "alternative": ("pair", lambda e: e.exact_test(alternative="more"), errors.SettingError, "alternative must be"),
    "late of another kind": ("pair", lambda e: e.exact_test(late=True), errors.SettingError, "late must be"),
    "sequence of no arm": ("plenty", lambda e: e.sequence(("z", "a")), errors.ArmError, "There is no arm 'z'"),
    "sequence index": ("plenty", lambda e: e.sequence((7, 0)), errors.ArmError, "7"),
    "sequence twice": ("plenty", lambda e: e.sequence((1, 1)), errors.ArmError, "two different"),
    "sequence level": ("plenty", lambda e: e.sequence(level=0.1), errors.SettingError, "0.9999"),
    "sequence method": ("plenty", lambda e: e.sequence(method="exact"), errors.SettingError, "method must be"),
    "sequence of unbounded rewards": ("wide", lambda e: e.sequence(method="empirical-bernstein"), errors.RewardError,
                                      "within 0 and 1"),
    "sequence without propensities": ("unknown", lambda e: e.sequence(), errors.LogError, "has no propensities"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_errors_are_those_of_the_local_experiment(case, url, connection):
    name, call, kind, said = REFUSED[case]
    for exp in (Experiment.load(name, storage=url), connection.load(name)):
        with pytest.raises(kind, match=said.replace("two different", "two different|different ones")) as raised:
            call(exp)
        assert type(raised.value) is kind


def test_what_cannot_be_sent_is_refused_at_once(transport, connection):
    exp = connection.load("plenty")
    sent = len(transport.requests)
    for context in ("age", ["age"], None):
        with pytest.raises(errors.SettingError, match="context names columns"):
            exp.analyse(context=context)
    with pytest.raises(errors.SettingError, match="a function cannot be sent"):
        exp.exact_test(statistic=lambda s1, f1, s2, f2: s2 - s1)
    with pytest.raises(errors.SettingError, match="level must be"):
        exp.analyse(("z", "a"), level="high")
    for call in (exp.analyse, exp.sequence):
        with pytest.raises(TypeError, match="optimal_at"):  # as Python says it of any function
            call(optimal_at=3)
    assert len(transport.requests) == sent


def test_a_blind_key_sees_no_analysis(sqlite_url):
    admin, writer = new_key(sqlite_url), new_key(sqlite_url, "writer")
    with service(sqlite_url) as transport, connected(transport, admin) as boss:
        boss.create("trial", arms=PAIR, codes=["X1", "X2"])
        exp = connected(transport, writer).load("trial")
        for call in (exp.analyse, exp.exact_test, exp.sequence):
            with pytest.raises(ForbiddenError) as raised:
                call()
            assert (raised.value.status, raised.value.code) == (403, "forbidden")
        for names in (PAIR, ["X1", "X2"]):  # neither says which arms there are
            for by_name in (exp.analyse, exp.sequence):
                with pytest.raises(ForbiddenError, match="scope read"):
                    by_name(names)


def test_asyncio(url):
    app = create_app(url)

    async def work() -> None:
        transport = httpx2.ASGITransport(app, client=("127.0.0.1", 1))
        async with ds.connect_async(HERE, transport=transport) as connection:
            exp, pair = await connection.load("plenty"), await connection.load("pair")
            local = Experiment.load("plenty", storage=url)
            same(await exp.analyse(("c", "a"), null=0.25), local.analyse(("c", "a"), null=0.25))
            same(await exp.sequence("b", 0.9), local.sequence("b", 0.9))
            same(await pair.exact_test(late="ignore"), Experiment.load("pair", storage=url).exact_test())
            with pytest.raises(errors.ArmError, match="There is no arm 'z'"):
                await exp.analyse("z")
            with pytest.raises(errors.LogError, match="has no propensities"):
                await (await connection.load("unknown")).sequence()

    asyncio.run(work())
    app.state.service.close()


def test_over_http(url):
    """Numbers that JSON does not have are null, and refusals are problems with the library's sentence."""
    with client(url) as c:
        address = "/v1/experiments"
        found = c.get(f"{address}/constant/analysis")
        assert found.json()["degrees_of_freedom"] is None
        assert set(found.json()) == {each.name for each in dataclasses.fields(analysis.Analysis)}
        again = c.get(f"{address}/constant/analysis", headers={"If-None-Match": found.headers["etag"]})
        assert (again.status_code, again.content) == (304, b"")
        one = c.get(f"{address}/plenty/analysis", params={"arm": 2, "reference": 2}).json()
        assert (one["contrast"], len(one["outcomes"])) == ("c", 1)
        tested = c.get(f"{address}/pair/exact-test").json()
        assert set(tested) == {each.name for each in dataclasses.fields(significance.ExactTest)}
        said = problem(c.get(f"{address}/few/exact-test"), 422, "log")
        assert said.startswith("2 of 3 decisions did not know")
        assert "fewer than 5" in problem(c.get(f"{address}/few/analysis"), 422, "propensity")
        assert "7" in problem(c.get(f"{address}/plenty/analysis", params={"arm": 7}), 422, "arm")
        assert "both" in problem(c.get(f"{address}/plenty/analysis", params={"least": 0}), 422, "setting")
        problem(c.get(f"{address}/plenty/analysis", params={"least": 1, "largest": 0}), 422, "setting")
        problem(c.get(f"{address}/nobody/analysis"), 404, "not-found")
        for wrong in ({"method": "magic"}, {"level": 2}, {"null": "inf"}, {"levle": 0.9}, {"arm": -1}):
            problem(c.get(f"{address}/plenty/analysis", params=wrong), 422, "invalid")
        problem(c.get(f"{address}/pair/exact-test", params={"late": "never"}), 422, "invalid")


@pytest.fixture
def slow(monkeypatch):
    """Analyses that wait until a gate is opened; the gate, and the number of analyses that began."""
    opened, begun, plain = threading.Event(), list[int](), Experiment.analyse

    def analyse(self: Any, *arguments: Any, **settings: Any) -> Any:
        begun.append(1)
        opened.wait(60)
        return plain(self, *arguments, **settings)

    monkeypatch.setattr(Experiment, "analyse", analyse)
    yield opened, begun
    opened.set()


def test_an_analysis_is_computed_once_per_version_and_blocks_nobody(sqlite_url, slow, monkeypatch):
    gate, begun = slow
    came, plain = list[str](), VersionCache.get

    async def get(self: Any, key: Any, version: str, compute: Any) -> Any:
        came.append(version)
        return await plain(self, key, version, compute)

    monkeypatch.setattr(VersionCache, "get", get)
    exp = Experiment.create("trial", arms=PAIR, policy=GREEDY, storage=sqlite_url, seed=1, units="many")
    exp.tell_many([(d.id, float(i % 3 == 0)) for i, d in enumerate(exp.ask_many(40))])
    with client(sqlite_url) as c, ThreadPoolExecutor(4) as crowd:
        address = "/v1/experiments/trial"
        waiting = [crowd.submit(c.get, f"{address}/analysis") for _ in range(4)]
        until = time.monotonic() + 20
        while (len(came) < 4 or not begun) and time.monotonic() < until:
            time.sleep(0.01)
        made = asked(c, address)  # while the analysis is running
        assert not any(each.done() for each in waiting)
        assert (len(came), len(set(came)), len(begun)) == (4, 1, 1)
        gate.set()
        assert {each.result().status_code for each in waiting} == {200}
        first = c.get(f"{address}/analysis").json()
        assert c.get(f"{address}/analysis").json() == first
        assert len(begun) == 2
        c.put(f"{address}/decisions/{made}/outcome", json={"reward": 1})
        latest = c.get(f"{address}/analysis").json()
        assert (latest["rows"], first["rows"], first["pending"]) == (41, 40, 1)
        assert len(begun) == 3


def test_who_asks_again_after_a_timeout_gets_the_same_computation(sqlite_url, slow):
    gate, begun = slow
    exp = Experiment.create("trial", arms=PAIR, policy=GREEDY, storage=sqlite_url, seed=1, units="many")
    exp.tell_many([(d.id, float(i % 3 == 0)) for i, d in enumerate(exp.ask_many(40))])
    with client(sqlite_url, seconds=0.3) as c:
        for _ in range(2):
            problem(c.get("/v1/experiments/trial/analysis"), 503, "timeout")
        gate.set()
        answer = c.get("/v1/experiments/trial/analysis")
        while answer.status_code == 503:  # on a slow machine the computation itself may take longer
            answer = c.get("/v1/experiments/trial/analysis")
        assert answer.json()["rows"] == 40
        assert len(begun) == 1
