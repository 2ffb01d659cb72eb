"""A key without the scope read learns nothing of any outcome, whatever it sends and however often."""

import re

import hypothesis
import pytest
from hypothesis import strategies as st

import doublesampling as ds
from doublesampling.live.stores import open_store
from doublesampling.service import keys
from tests.service import client, problem, trial

UNIFORM = ds.EpsilonGreedy(epsilon=1.0)  # arms at random: what is asked later does not depend on outcomes either
UNITS = 30
# looks that see other numbers in both stores: one rule that only advises, and one that always ends the experiment
RULES = {
    "advised": ds.Stopping(looks=5, superiority=0.5, inferiority=0.3, enforce=False),
    "ended": ds.Stopping(looks=[UNITS - 4], superiority=0.34),
}
BLIND = {"writer": "ask,tell", "asker": "ask", "teller": "tell", "amender": "ask,tell,amend"}


class House:
    """A store of decisions, most of them with an outcome, and blind keys to it."""

    def __init__(self, url, flip):
        self.url, self.names = url, {}
        trials = [ds.Experiment.create(name, arms=["a", "b", "c"], policy=UNIFORM, seed=3, storage=url, codes=codes,
                                       stopping=RULES.get(name))
                  for name, codes in (("trial", False), ("coded", ["K1", "K2", "K3"]), ("advised", False),
                                      ("ended", False))]  # fmt: skip
        self.headers = {}
        store = open_store(url)
        for name, scopes in BLIND.items():
            self.headers[name] = {"Authorization": f"Bearer {keys.create(store, scopes=scopes)[1]}"}
        self.ids = {}
        for exp in trials:
            self.ids[exp.name] = made = [exp.ask(unit=f"u{i}") for i in range(UNITS)]
            for i, d in enumerate(made[:-4]):
                exp.tell(d.id, float((i % 2) ^ flip), imputed=i % 5 == 4)
                if i % 7 == 3:
                    exp.amend(d.id, float((i % 3 == 0) ^ flip), reason="checked")
            for i, d in enumerate(made):
                self.names[d.id] = f"<{exp.name} {i}>"
        self.names |= {exp.session.actor: "<server>" for exp in trials}

    def plain(self, answer):
        """An answer with ids, keys and times replaced by names that both stores share."""
        text = answer.text
        for found in re.findall(r'"(?:id|decision)":"([0-9a-f]{20})"', text):
            self.names.setdefault(found, f"<new {len(self.names)}>")
        for found, name in self.names.items():
            text = text.replace(found, name)
        text = re.sub(r"\d{4}-\d\d-\d\dT[\d:.]+(Z|\+00:00)", "<time>", text)
        text = re.sub(r"key [0-9a-f]{8}", "<key>", text)
        headers = {k: v for k, v in answer.headers.items() if k not in ("date", "content-length")}
        return answer.status_code, headers, text


@pytest.fixture(scope="module")
def houses(tmp_path_factory):
    folder = tmp_path_factory.mktemp("blind")
    made = [House(f"sqlite:///{folder / f'{name}.db'}", flip) for name, flip in (("one", 0), ("two", 1))]
    with client(made[0].url) as one, client(made[1].url) as two:
        yield list(zip(made, (one, two), strict=True))


who = st.sampled_from(sorted(BLIND))
where = st.sampled_from(["trial", "coded", *RULES])
which = st.integers(0, UNITS + 1)  # the last two: of the other experiment, and of none
reward = st.sampled_from([0.0, 1.0, 0.5])
reason = st.sampled_from(["checked", "another"])
CALLS = st.one_of(
    st.tuples(st.just("ask"), who, where, st.integers(0, UNITS + 5), st.sampled_from([None, "k1", "k2"])),
    st.tuples(st.just("tell"), who, where, which, reward, st.booleans()),
    st.tuples(st.just("batch"), who, where, st.lists(st.tuples(which, reward), min_size=1, max_size=4), st.booleans()),
    st.tuples(st.just("amend"), who, where, which, reward, reason),
    st.tuples(st.just("many"), who, where, st.lists(st.integers(0, UNITS + 5), min_size=1, max_size=3)),
    st.tuples(st.just("unit"), who, where, st.integers(0, UNITS + 5), reward),
    st.tuples(st.just("retract"), who, where, which, st.sampled_from(["withdrawals", "void"])),
    st.tuples(st.just("own"), who, where, st.sampled_from([None, "u1"]), st.integers(1, 5)),
    st.tuples(st.just("get"), who, where, st.sampled_from(["", "/decisions", "/posterior", "/series", "/health",
              "/sequence", "/report.html", "/replay", "/export.csv", "/decisions/{id}", "/overview", "/audit",
              "/waiting", "/summary", "/analysis", "/exact-test"]), which),
    st.tuples(st.just("list"), who),
)  # fmt: skip


def send(house, c, call):
    kind, name, *rest = call
    headers = dict(house.headers[name])
    if kind == "list":
        return c.get("/v1/experiments", headers=headers)
    trial_name, *rest = rest
    address = f"/v1/experiments/{trial_name}"
    other = "trial" if trial_name == "coded" else "coded"

    def identity(i):
        made = house.ids[trial_name]
        return made[i].id if i < UNITS else house.ids[other][0].id if i == UNITS else "0" * 20

    if kind == "ask":
        unit, key = rest
        headers |= {} if key is None else {"Idempotency-Key": f"{key}-{unit}"}
        return c.post(f"{address}/decisions", json={"unit": f"u{unit}"}, headers=headers)
    if kind == "tell":
        i, value, imputed = rest
        body = {"reward": value, "imputed": imputed}
        return c.put(f"{address}/decisions/{identity(i)}/outcome", json=body, headers=headers)
    if kind == "batch":
        pairs, imputed = rest
        body = {"outcomes": [{"decision": identity(i), "reward": v} for i, v in pairs], "imputed": imputed}
        return c.post(f"{address}/outcomes", json=body, headers=headers)
    if kind == "amend":
        i, value, why = rest
        body = {"reward": value, "reason": why}
        return c.post(f"{address}/decisions/{identity(i)}/amendments", json=body, headers=headers)
    if kind == "many":
        return c.post(f"{address}/decisions/batch", json={"units": [f"u{i}" for i in rest[0]]}, headers=headers)
    if kind == "unit":
        unit, value = rest
        return c.put(f"{address}/units/outcome", json={"unit": f"u{unit}", "reward": value}, headers=headers)
    if kind == "retract":
        i, how = rest
        return c.post(f"{address}/decisions/{identity(i)}/{how}", json={"reason": "a mistake"}, headers=headers)
    if kind == "own":
        search, limit = rest
        params = {"limit": limit} | ({} if search is None else {"search": search})
        return c.get(f"{address}/units", params=params, headers=headers)
    path, i = rest
    return c.get(address + path.format(id=identity(i)), headers=headers)


@pytest.mark.parametrize("examples", [20, pytest.param(60, marks=pytest.mark.slow)])
def test_no_sequence_of_calls_tells_two_stores_apart_that_differ_in_outcomes_only(houses, examples):
    @hypothesis.settings(
        max_examples=examples, deadline=None, derandomize=True, database=None,
        suppress_health_check=list(hypothesis.HealthCheck), phases=[hypothesis.Phase.generate],
    )  # fmt: skip
    @hypothesis.given(calls=st.lists(CALLS, min_size=1, max_size=8))
    def compare(calls):
        for call in calls:
            first, second = (house.plain(send(house, c, call)) for house, c in houses)
            assert first == second, call

    compare()


def test_looks_are_hidden_and_differ(houses):
    """The property above says something: looks found other things in both stores, and one ended the experiment."""
    found = [{name: ds.Experiment.load(name, storage=house.url).looks for name in RULES} for house, _ in houses]
    assert [look.reason for look in found[0]["advised"]] != [look.reason for look in found[1]["advised"]]
    assert found[0]["ended"][0].reason != found[1]["ended"][0].reason
    for (house, c), looks in zip(houses, found, strict=True):
        for name in RULES:
            for key in BLIND:
                view = c.get(f"/v1/experiments/{name}", headers=house.headers[key])
                assert view.json()["looks"] is None
                assert all(look.reason not in view.text for look in looks[name])
        refused = c.post("/v1/experiments/ended/decisions", json={}, headers=house.headers["writer"])
        assert "has ended" in problem(refused, 409, "stopped")
        assert not any(word in refused.text for word in ("superior", "P(", "Look"))


def test_the_value_of_an_outcome_cannot_be_probed(houses):
    """Re-ask a unit, then send 0 and 1: the status told the stored value once."""
    for house, c in houses:
        headers = house.headers["writer"]
        again = c.post("/v1/experiments/trial/decisions", json={"unit": "u0"}, headers=headers)
        assert again.status_code == 200
        place = f"/v1/experiments/trial/decisions/{again.json()['id']}"
        answers = [c.put(f"{place}/outcome", json={"reward": r}, headers=headers) for r in (0, 1)]
        assert [a.status_code for a in answers] == [200, 200]
        assert answers[0].json() == answers[1].json()
        assert "neither compared" in answers[0].json()["detail"]
        for text in (again.text, *(a.text for a in answers)):
            for word in ("number", "revision", "reward", "kind", "told_at"):
                assert f'"{word}"' not in text


def test_what_a_blind_key_sends_again_changes_nothing(houses):
    house, _ = houses[0]
    exp = ds.Experiment.load("trial", storage=house.url)
    frame = exp.decisions().set_index("unit")
    for i in range(UNITS - 4):
        if i % 5 != 4 and i % 7 != 3:
            assert frame.loc[f"u{i}", "revisions"] >= 1
    assert exp.replay().agrees


def test_scopes_are_rights_of_their_own(houses):
    house, c = houses[0]
    made = house.ids["trial"][1].id
    address, body = f"/v1/experiments/trial/decisions/{made}", {"reward": 1, "reason": "r"}
    expected = {"writer": (200, 200, 403), "asker": (200, 403, 403), "teller": (403, 200, 403)}
    for name, wanted in expected.items():
        headers = house.headers[name]
        answers = (
            c.post("/v1/experiments/trial/decisions", json={"unit": "u1"}, headers=headers),
            c.put(f"{address}/outcome", json={"reward": 1}, headers=headers),
            c.post(f"{address}/amendments", json=body, headers=headers),
        )
        assert tuple(a.status_code for a in answers) == wanted
        for a in answers:
            if a.status_code == 403:
                assert "scope" in problem(a, 403, "forbidden")
    assert c.get("/v1/me", headers=house.headers["amender"]).json()["scopes"] == ["ask", "tell", "amend"]


def test_blind_keys_see_codes_where_arms_are_coded(houses):
    house, c = houses[0]
    writer = house.headers["writer"]
    view = c.get("/v1/experiments/coded", headers=writer).json()
    assert [arm["name"] for arm in view["arms"]] == ["K1", "K2", "K3"]
    assert {arm["arm"] for arm in view["arms"]} == {None}
    assert view["belief"] is None
    made = c.post("/v1/experiments/coded/decisions", json={"unit": "u2"}, headers=writer).json()
    true = house.ids["coded"][2]
    assert (made["arm"], made["arm_name"]) == (None, f"K{true.arm + 1}")
    admin = {"Authorization": f"Bearer {keys.create(open_store(house.url), 'admin')[1]}"}
    c.app.state.service.key_cache._read_at = -1e9
    seen = c.post("/v1/experiments/coded/decisions", json={"unit": "u2"}, headers=admin).json()
    assert (seen["arm_name"], seen["arm_code"]) == (true.arm_name, f"K{true.arm + 1}")
    listed = c.get("/v1/experiments", headers=writer).json()["experiments"]
    assert next(e for e in listed if e["name"] == "coded")["arms"] == ["K1", "K2", "K3"]


def test_random_codes_and_codes_of_arms_that_come_later(sqlite_url):
    with client(sqlite_url) as c:
        address = trial(c, codes=True)
        codes = [arm["code"] for arm in c.get(address).json()["arms"]]
        assert len(set(codes)) == 3
        exp = ds.Experiment.load("trial", storage=sqlite_url)
        exp.add_arm("d")
        later = [exp.design.code(i) for i in range(4)]
        assert later[:3] == codes
        assert len(set(later)) == 4
        assert ds.Experiment.load("trial", storage=sqlite_url).design.code(3) == later[3]
        problem(c.post("/v1/experiments", json={"name": "x", "arms": ["a", "b"], "codes": ["1", "1"]}), 422, "setting")
