"""HTTP can do what Python can: arms, history, batches, void, withdraw, tell by unit, audit; and reads leave a trace."""

import csv
import io
import json
import time

import pandas as pd
import pytest

import doublesampling as ds
from doublesampling.live.stores import open_store
from doublesampling.service import access_log
from tests.service import asked, client, make_key, problem, trial


@pytest.fixture
def c(storage):
    with client(storage) as made:
        yield made


def test_arms_are_added_and_dropped(c, storage):
    address = trial(c)
    made = c.post(f"{address}/arms", json={"name": "d", "reason": "a new dose"})
    assert made.status_code == 201
    assert [arm["name"] for arm in made.json()["arms"]] == ["a", "b", "c", "d"]
    problem(c.post(f"{address}/arms", json={"name": "d"}), 409, "name-taken")
    dropped = c.post(f"{address}/arms/drop", json={"arm": "b", "reason": "safety"}).json()
    assert (dropped["changed"], [arm["active"] for arm in dropped["arms"]]) == (True, [True, False, True, True])
    assert not c.post(f"{address}/arms/drop", json={"arm": "b"}).json()["changed"]
    problem(c.post(f"{address}/arms/drop", json={"arm": "nobody"}), 422, "arm")
    assert ds.Experiment.load("trial", storage=storage).state.active == (0, 2, 3)


def test_history_is_added_once(c):
    address, key = trial(c), {"Idempotency-Key": "before"}
    body = {"arms": ["a", "b", 2], "rewards": [1, 0, 1]}
    assert [c.post(f"{address}/history", json=body, headers=key).json()["added"] for _ in range(2)] == [3, 0]
    assert c.get(address).json()["results"]["history"] == 3
    problem(c.post(f"{address}/history", json={"arms": ["a"], "rewards": [0.5]}), 422, "reward")
    problem(c.post(f"{address}/history", json={"arms": ["a"], "rewards": [1, 1]}), 422, "reward")


def test_several_are_asked_at_once(c):
    address, key = trial(c), {"Idempotency-Key": "monday"}
    made = c.post(f"{address}/decisions/batch", json={"units": ["p1", "p2"]}, headers=key)
    again = c.post(f"{address}/decisions/batch", json={"units": ["p1", "p2"]}, headers=key)
    assert (made.status_code, again.status_code) == (201, 200)
    ids = [d["id"] for d in made.json()["decisions"]]
    assert ids == [d["id"] for d in again.json()["decisions"]]
    assert asked(c, address, "p3") not in ids
    assert c.post(f"{address}/decisions", json={"unit": "p1"}).json()["id"] == ids[0]
    assert len(c.post(f"{address}/decisions/batch", json={"count": 5}).json()["decisions"]) == 5
    problem(c.post(f"{address}/decisions/batch", json={"count": 3, "units": ["x"]}), 422, "setting")
    problem(c.post(f"{address}/decisions/batch", json={}), 422, "setting")


def test_outcomes_are_withdrawn_and_decisions_voided(c, storage):
    address = trial(c)
    first, second = asked(c, address, "p1"), asked(c, address, "p2")
    place = f"{address}/decisions/{first}"
    problem(c.post(f"{place}/withdrawals", json={"reason": "r"}), 409, "conflict")
    c.put(f"{place}/outcome", json={"reward": 1})
    problem(c.post(f"{place}/withdrawals", json={}), 422, "invalid")
    gone = c.post(f"{place}/withdrawals", json={"reason": "wrong patient"})
    assert (gone.status_code, gone.json()["kind"], gone.json()["reward"]) == (201, "withdrawn", None)
    assert c.post(f"{place}/withdrawals", json={"reason": "wrong patient"}).status_code == 200
    assert c.put(f"{place}/outcome", json={"reward": 0}).status_code == 201
    void = f"{address}/decisions/{second}/void"
    assert [c.post(void, json={"reason": "not given"}).status_code for _ in range(2)] == [201, 200]
    problem(c.put(f"{address}/decisions/{second}/outcome", json={"reward": 1}), 409, "voided")
    rows = {row["unit"]: row for row in c.get(f"{address}/decisions").json()["decisions"]}
    assert (rows["p1"]["status"], rows["p1"]["reward"], rows["p2"]["status"]) == ("told", 0.0, "voided")
    assert c.get(f"{address}/decisions/{second}").json()["decision"]["voided"]
    assert asked(c, address, "p2") != second  # a voided unit is asked anew
    assert ds.Experiment.load("trial", storage=storage).replay().agrees


def test_an_outcome_is_told_by_the_name_of_its_unit(c):
    address = trial(c)
    made = asked(c, address, "patient 7/a")
    told = c.put(f"{address}/units/outcome", json={"unit": "patient 7/a", "reward": 1})
    assert (told.status_code, told.json()["decision"]) == (201, made)
    assert c.put(f"{address}/units/outcome", json={"unit": "patient 7/a", "reward": 1}).status_code == 200
    problem(c.put(f"{address}/units/outcome", json={"unit": "patient 7/a", "reward": 0}), 409, "conflict")
    problem(c.put(f"{address}/units/outcome", json={"unit": "patient 8", "reward": 1}), 404, "not-found")
    many = trial(c, "many", units="many")
    problem(c.put(f"{many}/units/outcome", json={"unit": "u", "reward": 1}), 422, "setting")


def test_waiting_decisions_come_oldest_first_and_can_be_searched(c, monkeypatch):
    monkeypatch.setattr("doublesampling.live.queries.decision_pages.WINDOW", 5)
    address = trial(c)
    ids = [asked(c, address, f"Patient-{i}") for i in range(12)]
    for i in (0, 1, 2, 5):
        c.put(f"{address}/decisions/{ids[i]}/outcome", json={"reward": 1})
    left = [f"Patient-{i}" for i in (3, 4, 6, 7, 8, 9, 10, 11)]
    found, after = [], 0
    while after is not None:
        page = c.get(f"{address}/waiting", params={"after": after, "limit": 3}).json()
        found += [row["unit"] for row in page["decisions"]]
        after = page["following"]
    assert found == left
    search = c.get(f"{address}/waiting", params={"search": "PATIENT-1"}).json()
    assert [row["unit"] for row in search["decisions"]] == ["Patient-10", "Patient-11"]
    c.post(f"{address}/decisions/{ids[0]}/withdrawals", json={"reason": "wrong patient"})
    first = c.get(f"{address}/waiting", params={"limit": 1}).json()["decisions"][0]
    assert first["unit"] == "Patient-0"  # it waits again


def test_a_search_for_waiting_ones_begins_where_the_last_one_came_to(c, monkeypatch):
    monkeypatch.setattr("doublesampling.service.pending_start.SETTLED", -pd.Timedelta(days=1).to_pytimedelta())
    address, service = trial(c), c.app.state.service
    ids = [asked(c, address) for _ in range(6)]
    for each in ids[:4]:
        c.put(f"{address}/decisions/{each}/outcome", json={"reward": 1})
    assert [row["id"] for row in c.get(f"{address}/waiting").json()["decisions"]] == ids[4:]
    assert service.pending_start.found["trial"] == (4, 0)
    c.post(f"{address}/decisions/{ids[1]}/withdrawals", json={"reason": "wrong patient"})
    assert [row["id"] for row in c.get(f"{address}/waiting").json()["decisions"]] == [ids[1], *ids[4:]]


def own_id(c, header):
    """The id of a key."""
    return c.app.state.service.key_cache.find(header["Authorization"].removeprefix("Bearer ")).owner


def test_a_key_lists_the_units_that_it_asked_for(storage):
    admin, one, two = make_key(storage, "admin"), make_key(storage, "writer"), make_key(storage, "writer")
    with client(storage) as c:
        address = trial(c, headers=admin)
        for i in range(7):
            asked(c, address, f"u{i}", headers=one if i % 2 == 0 else two)
        mine, after = [], None
        while True:
            params = {"limit": 2} | ({} if after is None else {"after": after})
            page = c.get(f"{address}/units", params=params, headers=one).json()
            mine += [each["unit"] for each in page["units"]]
            assert all("number" not in each for each in page["units"])
            after = page["following"]
            if after is None:
                break
        assert mine == ["u0", "u2", "u4", "u6"]
        c.app.state.service.pending_start.found[f"trial\n{own_id(c, one)}"] = (3, 0)  # as after a minute
        again = c.get(f"{address}/units", headers=one).json()["units"]
        assert [each["unit"] for each in again] == ["u4", "u6"]
        found = c.get(f"{address}/units", params={"search": "U3"}, headers=two).json()["units"]
        assert [each["unit"] for each in found] == ["u3"]
        c.put(f"{address}/decisions/{found[0]['decision']}/outcome", json={"reward": 1}, headers=two)
        assert c.get(f"{address}/units", params={"search": "U3"}, headers=two).json()["units"] == []
        problem(c.get(f"{address}/units", params={"after": "00" * 16}, headers=one), 422, "setting")


def test_the_audit_trail_over_http_is_that_of_python(c, storage, monkeypatch):
    monkeypatch.setattr("doublesampling.service.routes.export._PAGE", 3)
    address = trial(c)
    made = asked(c, address, "=cmd|' /C calc'!A0")
    c.put(f"{address}/decisions/{made}/outcome", json={"reward": 1})
    c.post(f"{address}/decisions/{made}/amendments", json={"reward": 0, "reason": "-checked"})
    c.post(f"{address}/pause", json={"reason": "holiday"})
    wanted = ds.Experiment.load("trial", storage=storage).audit()
    found, after = [], None
    while True:
        params = {"limit": 2} | ({} if after is None else {"after": after})
        page = c.get(f"{address}/audit", params=params).json()
        found += page["entries"]
        after = page["following"]
        if after is None:
            break
    assert [each["kind"] for each in found] == wanted["kind"].tolist()
    assert [each["cursor"] for each in found] == wanted["cursor"].tolist()
    lines = list(csv.DictReader(io.StringIO(c.get(f"{address}/audit.csv").text)))
    assert [line["kind"] for line in lines] == wanted["kind"].tolist()
    assert lines[1]["unit"] == "'=cmd|' /C calc'!A0"  # no formula in a spreadsheet
    assert "'-checked" in [line["reason"] for line in lines]
    assert [json.loads(line)["kind"] for line in c.get(f"{address}/audit.jsonl").text.splitlines()] == wanted[
        "kind"
    ].tolist()
    frame = pd.read_parquet(io.BytesIO(c.get(f"{address}/audit.parquet").content))
    assert frame["kind"].tolist() == wanted["kind"].tolist()
    problem(c.get(f"{address}/audit", params={"after": "x"}), 422, "setting")


def test_cells_of_an_export_are_no_formulas(c):
    address = trial(c)
    for unit in ("=1+1", "+1", "-1", "@x", "plain"):
        c.put(f"{address}/decisions/{asked(c, address, unit)}/outcome", json={"reward": 1})
    lines = list(csv.DictReader(io.StringIO(c.get(f"{address}/export.csv").text)))
    assert [line["unit"] for line in lines] == ["'=1+1", "'+1", "'-1", "'@x", "plain"]
    assert {line["reward"] for line in lines} == {"1.0"}  # numbers stay numbers


def test_reads_leave_a_trace_and_writers_do_not_see_it(storage, monkeypatch):
    monkeypatch.setattr(access_log, "EVERY", 0.05)
    admin, reader, writer = (make_key(storage, role) for role in ("admin", "reader", "writer"))
    with client(storage) as c:
        address = trial(c, headers=admin)
        made = asked(c, address, "u", headers=writer)
        for _ in range(30):
            c.get(f"{address}/overview", headers=reader)
        c.get(f"{address}/decisions/{made}", headers=reader)
        for _ in range(2):
            c.get(f"{address}/export.csv", headers=reader)
        c.put(f"{address}/decisions/{made}/outcome", json={"reward": 1}, headers=writer)
        c.put(f"{address}/decisions/{made}/outcome", json={"reward": 0}, headers=writer)
        until = time.monotonic() + 20
        actions: list[str] = []
        while "contested" not in actions and time.monotonic() < until:
            time.sleep(0.05)
            entries = c.get("/v1/access", params={"experiment": "trial"}, headers=admin).json()["entries"]
            actions = [each["action"] for each in entries]
        assert actions.count("overview") == 1  # an open page is one row, not thirty
        assert actions.count("export_csv") == 2  # every file has its own
        by_action = {each["action"]: each for each in entries}
        assert by_action["explain_decision"]["detail"] == made
        assert "sent 0" in by_action["contested"]["detail"]
        assert all(each["actor"].startswith("key ") for each in entries)
        assert c.get("/v1/access", headers=writer).status_code == 403
    rows, _ = access_log.read(open_store(storage), experiment="trial")
    assert sum(row["count"] for row in rows if row["action"] == "overview") == 30  # the rest at the end


def test_the_access_log_in_pages(sqlite_url):
    with client(sqlite_url) as c:
        trial(c)
    store = open_store(sqlite_url)
    log = access_log.AccessLog(store)
    for i in range(7):
        log.note("somebody", "export_csv", "trial", f"{i}")
    log.flush()
    log.close()
    found, before = [], None
    while True:
        rows, before = access_log.read(store, before=before, limit=3)
        found += [row["detail"] for row in rows]
        if before is None:
            break
    assert found == [str(i) for i in range(6, -1, -1)]


def test_a_store_that_cannot_be_written_is_still_read(sqlite_url, monkeypatch, caplog):
    """The trace of a read goes to the server's log where the store takes none."""
    from doublesampling.errors import StorageFullError

    with client(sqlite_url) as c:
        address = trial(c)
        service = c.app.state.service

        def full():
            raise StorageFullError("No room.")

        monkeypatch.setattr(service.store, "writing", full)
        assert c.get(f"{address}/overview").status_code == 200
        service.access_log.flush()
        assert "access log: this machine, no key overview trial" in caplog.text
        monkeypatch.undo()


def test_an_archive_that_may_only_be_read_is_served(sqlite_url, tmp_path):
    exp = ds.Experiment.create("trial", arms=["a", "b"], seed=1, storage=sqlite_url)
    exp.tell(exp.ask(unit="u").id, 1.0)
    open_store(sqlite_url).close()
    with client(f"sqlite:///file:{tmp_path / 'trial.db'}?mode=ro&uri=true") as c:
        for path in ("", "/overview", "/series", "/waiting", "/audit", "/replay", "/export.csv"):
            assert c.get(f"/v1/experiments/trial{path}").status_code == 200, path
        assert c.get("/healthz").status_code == 200
        problem(c.post("/v1/experiments/trial/decisions"), 503, "storage-read-only")


def test_a_removed_file_is_not_healthy(sqlite_url, tmp_path):
    with client(sqlite_url) as c:
        address = trial(c)
        assert c.get("/healthz").status_code == 200
        for file in tmp_path.glob("trial.db*"):
            file.unlink()
        c.app.state.service._checked_at = 0.0
        problem(c.get("/healthz"), 503, "storage-replaced")
        problem(c.post(f"{address}/decisions"), 503, "storage-replaced")


def test_what_was_derived_from_a_restored_store_is_dropped(sqlite_url):
    with client(sqlite_url) as c:
        address, service = trial(c), c.app.state.service
        asked(c, address)
        c.get(f"{address}/overview")
        held = service._open["trial"]
        service.store.version += 1  # a restore was noticed
        assert c.get(f"{address}/overview").status_code == 200
        assert service._open["trial"] is not held
