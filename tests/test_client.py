"""The client has the interface of ds.Experiment: same methods, arguments, results and exceptions, over HTTP."""

import asyncio
import dataclasses
import functools
import inspect
import sys
from typing import Any

import httpx2
import numpy as np
import pandas as pd
import pytest

import doublesampling as ds
from doublesampling import errors
from doublesampling.client import (
    AsyncConnection,
    AsyncRemoteExperiment,
    BlindOutcome,
    BlindReceipt,
    Connection,
    ForbiddenError,
    RemoteExperiment,
    ServiceError,
    UnauthorizedError,
)
from doublesampling.live.analysing import Analysed
from doublesampling.service.app import create_app
from tests.client import connected, new_key, service
from tests.service import HERE

same_table = functools.partial(pd.testing.assert_frame_equal, check_exact=True)
LOCAL_ONLY = {"create", "load", "list", "session", "design", "state", "known", "current_design"}
SERVER_SIDE = {"actor", "scope", "optimal_at", "bounds"}  # who writes follows from the key; settings of sequences


def public(kind: type) -> dict[str, Any]:
    return {name: found for name, found in vars(kind).items() if not name.startswith("_")}


def signature(method: Any, leave_out: set[str]) -> dict[str, Any]:
    found = inspect.signature(method).parameters.values()
    return {p.name: (p.kind, p.default, str(p.annotation)) for p in found if p.name not in leave_out}


class TestInterface:
    def test_every_method_of_an_experiment_exists(self):
        local = {name for name in public(ds.Experiment) if name not in LOCAL_ONLY}
        assert len(local) >= 20
        assert set(public(RemoteExperiment)) == local | set(public(Analysed)) | {"status"}
        assert set(public(AsyncRemoteExperiment)) == set(public(RemoteExperiment))
        assert set(public(AsyncConnection)) == set(public(Connection)) == {"create", "load", "list", "me", "close"}

    @pytest.mark.parametrize(
        "name", sorted(set(public(ds.Experiment)) - LOCAL_ONLY - {"name"} | {"analyse", "exact_test", "sequence"})
    )
    def test_arguments_and_results_are_the_same(self, name):
        local, remote = getattr(ds.Experiment, name), getattr(RemoteExperiment, name)
        assert signature(remote, set()) == signature(local, SERVER_SIDE)
        results = [str(inspect.signature(method).return_annotation) for method in (local, remote)]
        assert results[1].removeprefix("inference.") == results[0]  # two classes are called Sequence
        later = getattr(AsyncRemoteExperiment, name)
        assert inspect.iscoroutinefunction(later)
        assert inspect.signature(later) == inspect.signature(remote)

    def test_an_experiment_is_created_with_the_same_arguments(self):
        named = signature(ds.Experiment.create, {"storage"})
        for kind in (Connection, AsyncConnection):
            assert signature(kind.create, {"self"}) == named


def live(exp: Any) -> list[Any]:
    """What happens to an experiment: every kind of write, with the results of each."""
    first = exp.ask(unit="u1", request_key="visit 1")
    results: list[Any] = [first, exp.ask(unit="u1"), exp.tell(first.id, 1.0), exp.tell(first.id, True)]
    more = exp.ask_many(units=["u2", "u3", "u4"], request_key="batch")
    results += [*more, *exp.tell_many({more[0].id: 0.0, more[1].id: 1.0})]
    results += [exp.amend(first.id, 0.0, reason="typo"), exp.withdraw(more[1].id, reason="wrong unit")]
    results += [exp.tell(more[1].id, 1, imputed=True, reason="last value"), exp.void(more[2].id, reason="not given")]
    results += [exp.pause("audit"), exp.pause(), exp.resume(), exp.resume("done")]
    results += [exp.add_history(["a", 1, "c"], [1, 0, 1], request_key="old"), exp.add_history([], [])]
    results += [exp.add_history(["a", 1, "c"], [1, 0, 1], request_key="old"), exp.tell_many([])]
    results += [exp.add_arm("d", "new drug"), exp.drop_arm("b"), exp.drop_arm(1, "again"), exp.drop_arm(2)]
    return [*results, exp.ask()]


DIFFERENT = {"id", "decision", "asked_at", "told_at", "request_key", "digest", "actor", "snapshot"}


def plain(result: Any) -> Any:
    if not dataclasses.is_dataclass(result):
        return result
    found = {f.name: getattr(result, f.name) for f in dataclasses.fields(result) if f.name not in DIFFERENT}
    return {name: v.tolist() if isinstance(v, np.ndarray) else v for name, v in found.items()} | {"is": type(result)}


def test_everything_happens_as_in_a_local_experiment(storage, tmp_path):
    """The same calls on a local and a remote experiment give the same results, and both logs read the same."""
    settings: Any = {"arms": ["a", "b", "c"], "policy": ds.DoubleSampling(horizon=50), "seed": 3}
    local = ds.Experiment.create("trial", storage=f"sqlite:///{tmp_path / 'local.db'}", **settings)
    with service(storage) as transport, connected(transport) as connection:
        remote = connection.create("trial", **settings)
        assert [plain(each) for each in live(remote)] == [plain(each) for each in live(local)]
        same = ds.Experiment.load("trial", storage=storage)
        assert remote.summary() == same.summary()
        assert set(remote.audit()["kind"]) == set(local.audit()["kind"])
        same_table(remote.decisions(), same.decisions())
        same_table(remote.decisions(after=2, limit=2), same.decisions(after=2, limit=2))
        assert len(remote.decisions(limit=0)) == 0
        same_table(remote.pending(), same.pending())
        same_table(remote.audit(), same.audit())
        same_table(remote.audit(limit=3), same.audit(limit=3))
        same_table(remote.posterior(), same.posterior())
        which = same.decisions()["id"].iloc[-1]
        assert plain(remote.decision(which)) == plain(same.decision(which))
        assert str(remote.explain(which)) == str(same.explain(which))
        assert remote.replay() == same.replay()
        assert remote.replay().agrees
        (listed,) = connection.list()
        assert listed == {**ds.Experiment.list(storage)[0], "arms": ["a", "b", "c", "d"], "status": "running"}
        assert remote.status()["results"]["decisions"] == same.summary()["decisions"]


def test_long_tables_are_read_in_pages(sqlite_url, monkeypatch):
    from doublesampling.client import paging

    exp = ds.Experiment.create("trial", arms=["a", "b"], storage=sqlite_url)
    exp.ask_many(7)
    monkeypatch.setattr(paging, "DECISIONS", 3)
    monkeypatch.setattr(paging, "AUDIT_PAGE", 3)
    with service(sqlite_url) as transport, connected(transport) as connection:
        remote = connection.load("trial")
        for limit in (None, 1, 3, 5, 7, 100):
            same_table(remote.decisions(limit=limit), exp.decisions(limit=limit))
            same_table(remote.audit(limit=limit), exp.audit(limit=limit))
        assert len(remote.decisions(after=7)) == 0


@pytest.mark.parametrize("form", ["csv", "jsonl", "parquet"])
def test_an_export_is_the_local_one(form, sqlite_url, tmp_path, monkeypatch):
    pytest.importorskip("pyarrow")
    exp = ds.Experiment.create("trial", arms=["a", "b"], storage=sqlite_url)
    exp.tell(exp.ask(unit="=1+1").id, 1.0)
    exp.ask()
    monkeypatch.chdir(tmp_path)
    with service(sqlite_url) as transport, connected(transport) as connection:
        remote = connection.load("trial")
        path = remote.export(form, tmp_path / f"remote.{form}", audit=True)
        assert path == tmp_path / f"remote.{form}"
        exp.export(form, tmp_path / f"local.{form}", audit=True)
        for end in ("", "-audit"):
            one, two = (tmp_path / f"{name}{end}.{form}" for name in ("remote", "local"))
            if form == "parquet":
                frames = [pd.read_parquet(each).astype(object) for each in (one, two)]
                same_table(*(frame.where(frame.notna(), None) for frame in frames))
            else:
                assert one.read_bytes() == two.read_bytes()
        with pytest.raises(errors.OutputError, match="exists"):
            remote.export(form, path)
        assert remote.export(form, path, force=True) == path
        with (tmp_path / "stream").open("wb") as stream:
            assert remote.export(form, stream) is stream
        assert len((tmp_path / "stream").read_bytes()) == len((tmp_path / f"remote.{form}").read_bytes())
        assert str(remote.export(form)) == f"trial.{form}"
        assert not list(tmp_path.glob(".*"))  # no temporary files are left


def test_contexts(sqlite_url):
    with service(sqlite_url) as transport, connected(transport) as connection:
        belief = ds.LinearGaussian(arms=2, dimension=2)
        exp = connection.create("trial", arms=["a", "b"], belief=belief, policy=ds.ThompsonSampling(), seed=1)
        same = ds.Experiment.load("trial", storage=sqlite_url)
        assert same.design.belief == belief
        d = exp.ask(context=np.array([0.1, 0.2]))
        assert d.context == [0.1, 0.2]
        assert [r.context for r in exp.ask_many(contexts=[[1, 2], [3, 4]])] == [[1.0, 2.0], [3.0, 4.0]]
        exp.tell(d.id, 0.123456789012345678)
        exp.add_history([0, 1], [0.5, 1.5], [[1, 0], [0, 1]])
        context = [1 / 3, 0.1 + 0.2]
        same_table(exp.posterior(context), same.posterior(context))
        same_table(exp.decisions(), same.decisions())
        for experiment in (exp, same):
            with pytest.raises(errors.ContextError):
                experiment.posterior()
        with pytest.raises(errors.ContextError):
            exp.ask()


@pytest.mark.parametrize("name", ["Dosis 10 %", "a?b#c&d", "Versuch ü", "..x", "a+b;c"])
def test_names_of_any_kind(name, shared):
    url, connection = shared
    exp = connection.create(name, arms=["ä b", "=x"], seed=1)
    exp.tell(exp.ask(unit="Zoë/1?").id, 1.0)
    assert exp.name == name == ds.Experiment.list(url)[-1]["name"]
    assert connection.load(name).summary()["outcomes"] == 1
    assert exp.decisions()["unit"].tolist() == ["Zoë/1?"]


def test_limits_on_shares_reach_the_service(sqlite_url):
    limits = ds.Allocation(floor=0.1, burn_in=2, fixed={"b": 0.3})
    with service(sqlite_url) as transport, connected(transport, new_key(sqlite_url)) as connection:
        made = connection.create("limited", arms=["a", "b", "c"], seed=3, allocation=limits)
        assert made.summary()["allocation"] == repr(limits)


def test_a_trial_reaches_the_service_and_its_looks_come_back(storage):
    trial = ds.Trial(
        arms=["a", "b"], policy=ds.ThompsonSampling(), horizon=40, allocation=ds.Allocation(minimum=0.2, update="look"),
        stopping=ds.Stopping(looks=10, superiority=0.9, control="a"),
    )  # fmt: skip
    admin, writer = new_key(storage), new_key(storage, "writer")
    with service(storage) as transport, connected(transport, admin) as connection:
        made = connection.create("trial", design=trial, seed=3)
        same = ds.Experiment.load("trial", storage=storage)
        assert same.design == ds.Experiment.create("local", design=trial, seed=3, storage=storage).design
        assert made.summary()["participants"] == 40
        assert made.looks == []
        while not (made.looks and made.looks[-1].selected):
            d = made.ask()
            made.tell(d.id, float(d.arm))
        with pytest.raises(errors.StoppedError, match="is superior"):
            made.ask()
        assert made.looks == same.looks
        assert made.looks[0].shares is not None
        assert made.replay() == same.replay()
        rule = ds.Stopping(looks=[5, 9], equivalence=0.9, equivalence_margin=0.1, enforce=False)
        other = connection.create("other", arms=["a", "b"], stopping=rule, participants=9, seed=3)
        assert other.summary()["stopping"] == repr(rule)
        for wrong, said in (({"design": trial, "arms": ["a", "b"]}, "part of the design already"),
                            ({"arms": ["a", "b"], "actor": "me"}, "follows from the key"),
                            ({"arms": ["a", "b"], "stopping": rule, "participants": 5}, "looks must lie within"),
                            ({"arms": ["a", "b"], "stoping": rule}, "Did you mean 'stopping'")):  # fmt: skip
            with pytest.raises(errors.SettingError, match=said):
                connection.create("wrong", **wrong)
        blind = connected(transport, writer).load("trial")
        with pytest.raises(ForbiddenError, match="looks are results"):
            _ = blind.looks


def test_a_key_that_may_not_see_results(sqlite_url):
    admin, writer = new_key(sqlite_url), new_key(sqlite_url, "writer")
    with service(sqlite_url) as transport, connected(transport, admin) as boss, connected(transport, writer) as nurse:
        boss.create("trial", arms=["a", "b"], codes=["X1", "X2"])
        exp = nurse.load("trial")
        d = exp.ask(unit="u1")
        assert isinstance(d, BlindReceipt)
        assert [d.unit, d.arm, d.repeated, d.experiment] == ["u1", None, False, "trial"]
        assert d.arm_name in ("X1", "X2")
        assert d.to_dict()["id"] == d.id
        assert d.id in repr(d)
        for name in ("number", "propensities", "propensity", "voided"):
            with pytest.raises(AttributeError, match="scope 'read'"):
                getattr(d, name)
        told = exp.tell(d.id, 1.0)
        assert isinstance(told, BlindOutcome)
        assert (told.decision, told.repeated, told.detail) == (d.id, False, None)
        assert "already has an outcome" in str(exp.tell(d.id, 0.0).detail)  # type: ignore[attr-defined]
        with pytest.raises(AttributeError, match="reward is not shown"):
            _ = told.reward
        assert exp.status()["results"] is None
        with pytest.raises(ForbiddenError, match="scope 'read'"):
            exp.summary()
        assert boss.load("trial").decision(d.id).arm_name in ("a", "b")


def refusals() -> dict[str, tuple[Any, type[errors.DoubleSamplingError], str]]:
    return {
        "404": (lambda c, e: c.load("other"), errors.NotFoundError, "not-found"),
        "404 decision": (lambda c, e: e.tell("00ff", 1.0), errors.NotFoundError, "not-found"),
        "409": (lambda c, e: e.tell(e.decisions()["id"][0], 0.0), errors.ConflictError, "conflict"),
        "409 key": (lambda c, e: e.ask(unit="z", request_key="k"), errors.ConflictError, "conflict"),
        "409 name": (lambda c, e: c.create(e.name, arms=["a", "b"]), errors.NameTakenError, "name-taken"),
        "409 arm": (lambda c, e: e.add_arm("a"), errors.NameTakenError, "name-taken"),
        "409 paused": (lambda c, e: (e.pause(), e.ask())[1], errors.PausedError, "paused"),
        "409 voided": (lambda c, e: e.tell(e.decisions()["id"][1], 0.0), errors.VoidedError, "voided"),
        "422 reward": (lambda c, e: e.tell(e.decisions()["id"][0], 0.5), errors.RewardError, "reward"),
        "422 context": (lambda c, e: e.ask(context=[1.0]), errors.ContextError, "context"),
        "422 arm": (lambda c, e: e.drop_arm("nobody"), errors.ArmError, "arm"),
        "422 schema": (lambda c, e: e.ask_many(10_001), ServiceError, "invalid"),
        "nan": (lambda c, e: e.tell("x", float("nan")), errors.RewardError, "reward"),
        "text": (lambda c, e: e.tell("x", "1"), errors.RewardError, "reward"),
        "unit": (lambda c, e: e.ask(unit=" x"), errors.SettingError, "setting"),
        "key": (lambda c, e: e.ask(request_key="é"), errors.SettingError, "setting"),
        "reason": (lambda c, e: e.amend("x", 1.0, reason=""), errors.SettingError, "setting"),
        "slash": (lambda c, e: c.load("a/b"), errors.SettingError, "setting"),
        "one arm": (lambda c, e: c.create("x", arms=["a"]), errors.ArmError, "arm"),
        "belief": (lambda c, e: c.create("x", arms=["a", "b"], belief=3), errors.SettingError, "setting"),
        "pairs": (lambda c, e: e.tell_many(3), errors.SettingError, "setting"),
        "cursor": (lambda c, e: e.audit(after="x"), errors.SettingError, "setting"),
        "format": (lambda c, e: e.export("xlsx"), errors.SettingError, "setting"),
    }


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    """One service for many small tests: its store, and a connection."""
    url = f"sqlite:///{tmp_path_factory.mktemp('client') / 'trial.db'}"
    with service(url) as transport, connected(transport) as connection:
        yield url, connection


@pytest.mark.parametrize("case", refusals())
def test_errors_are_those_of_a_local_experiment(case, shared):
    call, kind, code = refusals()[case]
    url, connection = shared
    exp = ds.Experiment.create(case, arms=["a", "b", "c"], storage=url)
    exp.tell(exp.ask(unit="y", request_key="k").id, 1.0, reason="first")
    exp.void(exp.ask().id, reason="not given")
    before = len(exp.audit())
    with pytest.raises(kind) as raised:
        call(connection, connection.load(case))
    assert type(raised.value) is kind
    assert raised.value.code == code
    assert str(raised.value)
    assert len(exp.audit()) == before + (case == "409 paused")


def test_keys_that_are_wrong_or_may_not(sqlite_url):
    reader = new_key(sqlite_url, "reader")
    with service(sqlite_url) as transport:
        for key in (None, "ds_wrong"):
            with pytest.raises(UnauthorizedError) as raised:
                connected(transport, key)
            assert (raised.value.status, raised.value.code) == (401, "unauthorized")
        with connected(transport, reader) as connection:
            assert connection.me()["scopes"] == ["read"]
            assert reader not in repr(connection) + repr(connection._sender.settings)
            with pytest.raises(ForbiddenError, match="scope 'admin'"):
                connection.create("trial", arms=["a", "b"])
        with pytest.raises(errors.StateError, match="closed"):
            connection.list()


@pytest.mark.parametrize(
    ("url", "more"),
    [
        ("trials.example", {}),
        ("ftp://trials.example", {}),
        ("https://", {}),
        ("http://host:99999", {}),
        ("https://me:secret@host", {}),
        ("https://host/?x=1", {}),
        (None, {}),
        (HERE, {"key": "two words"}),
        (HERE, {"key": ""}),
        (HERE, {"key": 7}),
        (HERE, {"timeout": 0}),
        (HERE, {"retry_for": -1}),
        (HERE, {"verify": "/no/such/file"}),
    ],
)
def test_settings_are_checked_before_anything_is_sent(url, more):
    for connect in (ds.connect, ds.connect_async):
        with pytest.raises(errors.SettingError) as raised:
            connect(url, **more)
        assert "secret" not in str(raised.value)


def test_classes_of_ones_own_cannot_be_sent(sqlite_url):
    from tests.own_policies import Softmax

    with service(sqlite_url) as transport, connected(transport) as connection:
        with pytest.raises(errors.SettingError, match="of your own"):
            connection.create("trial", arms=["a", "b"], policy=Softmax())
        assert connection.list() == []


def test_the_extra_is_named_where_it_is_missing(monkeypatch):
    monkeypatch.setitem(sys.modules, "httpx2", None)
    with pytest.raises(errors.MissingExtraError, match=r"pip install 'doublesampling\[client\]'"):
        ds.connect(HERE)


def test_asyncio(sqlite_url, tmp_path):
    """Every method once, against the app in this process."""
    app = create_app(sqlite_url)

    async def work() -> None:
        transport = httpx2.ASGITransport(app, client=("127.0.0.1", 1))
        async with ds.connect_async(HERE, transport=transport) as connection:
            exp = await connection.create("trial", arms=["a", "b", "c"], seed=2)
            assert "AsyncRemoteExperiment" in repr(exp) + repr(connection)
            made = await asyncio.gather(*(exp.ask(unit=f"u{i}") for i in range(5)))
            assert len({d.id for d in made}) == 5
            await asyncio.gather(*(exp.tell(d.id, 1.0) for d in made[:4]))
            assert (await exp.amend(made[0].id, 0.0, reason="typo")).revision == 2
            assert (await exp.withdraw(made[1].id, reason="typo")).kind == "withdrawn"
            assert (await exp.void(made[2].id, reason="typo")).kind == "voided"
            many = await exp.ask_many(2)
            assert len(await exp.tell_many([(d.id, 0.0) for d in many])) == 2
            assert await exp.tell_many([]) == []
            assert (await exp.add_history(["a"], [1.0]), await exp.add_history([], [])) == (1, 0)
            changed = [await exp.pause(), await exp.resume(), await exp.add_arm("d"), await exp.drop_arm(0)]
            assert changed == [True] * 4
            same = ds.Experiment.load("trial", storage=sqlite_url)
            same_table(await exp.decisions(), same.decisions())
            same_table(await exp.pending(), same.pending())
            same_table(await exp.audit(), same.audit())
            same_table(await exp.posterior(), same.posterior())
            assert await exp.summary() == same.summary()
            assert await exp.looks() == same.looks == []
            assert (await exp.status())["name"] == exp.name == "trial"
            assert (await exp.decision(made[0].id)).unit == "u0"
            assert str(await exp.explain(made[0].id)) == str(same.explain(made[0].id))
            assert (await exp.replay()).agrees
            path = await exp.export("csv", tmp_path / "t.csv")
            same.export("csv", tmp_path / "u.csv")
            assert (tmp_path / "t.csv").read_bytes() == (tmp_path / "u.csv").read_bytes()
            assert path == tmp_path / "t.csv"
            assert [each["name"] for each in await connection.list()] == ["trial"]
            assert (await connection.load("trial")).name == "trial"
            odd = await connection.create("100%25 ü", arms=["a", "b"])  # (Starlette's test client decodes paths twice)
            assert (await odd.ask()).experiment == (await connection.load("100%25 ü")).name == "100%25 ü"
            with pytest.raises(errors.NotFoundError):
                await connection.load("other")
        with pytest.raises(errors.StateError, match="closed"):
            await exp.ask()
        transport = httpx2.ASGITransport(app, client=("127.0.0.1", 1))
        connection = await ds.connect_async(HERE, transport=transport)
        assert (await connection.me())["role"] == "admin"
        await connection.close()

    asyncio.run(work())
    app.state.service.close()
