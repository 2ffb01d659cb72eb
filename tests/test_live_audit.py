"""The audit trail: everything that was stored, in order, page by page, in files, and on the command line."""

import dataclasses
import json

import pandas as pd
import pytest

import doublesampling as ds
from doublesampling.cli.main import main
from doublesampling.errors import OutputError, SettingError
from doublesampling.live.exporting import file_name
from doublesampling.live.queries import audit
from tests.test_live_experiment import create


def life(storage):
    """An experiment to which everything has happened once."""
    exp = create(storage, actor="sponsor")
    first = exp.ask(unit="p1", request_key="visit-1", actor="nurse")
    exp.tell(first.id, 0.0, imputed=True, reason="lost to follow-up", actor="nurse")
    exp.tell(first.id, 1.0, actor="nurse")
    exp.amend(first.id, 0.0, reason="adjudicated", actor="board")
    exp.withdraw(first.id, reason="another patient's", actor="board")
    second = exp.ask(unit="p2", request_key="visit-1", scope="ward a", actor="nurse")
    exp.void(second.id, reason="never given", actor="board")
    exp.add_history(["placebo", 1], [0.0, 1.0], request_key="2019", actor="sponsor")
    exp.pause("safety", actor="board")
    exp.resume("safe", actor="board")
    exp.drop_arm("placebo", "futile", actor="board")
    exp.add_arm("40 mg", actor="sponsor")
    return exp


KINDS = ["created", "asked", "imputed", "told", "amended", "withdrawn", "asked", "voided", "history",
         "history_outcome", "history_outcome", "pause", "resume", "drop_arm", "add_arm"]  # fmt: skip


def test_every_row_is_in_the_trail_with_who_when_and_why(storage):
    exp = life(storage)
    frame = exp.audit()
    assert frame["kind"].tolist() == KINDS
    assert frame["actor"].tolist() == ["sponsor", "nurse", "nurse", "nurse", "board", "board", "nurse", "board",
                                       *["sponsor"] * 3, "board", "board", "board", "sponsor"]  # fmt: skip
    assert frame["at"].is_monotonic_increasing
    assert str(frame["at"].dt.tz) == "UTC"
    amended = frame.iloc[4]
    assert (amended["revision"], amended["reward"], amended["previous"], amended["reason"]) == (3, 0, 1, "adjudicated")
    assert (amended["unit"], amended["number"]) == ("p1", 1)
    assert frame["unit"].iloc[5] == "p1"
    assert pd.isna(frame["reward"].iloc[5])
    assert frame["previous"].iloc[5] == 0.0
    assert json.loads(frame["detail"].iloc[0])["arms"] == list(exp.design.arms)
    assert json.loads(frame["detail"].iloc[6]) == {"request_key": "visit-1", "scope": "ward a"}
    assert frame["reason"].iloc[11:13].tolist() == ["safety", "safe"]
    assert (frame["arm_name"].iloc[13], frame["reason"].iloc[13]) == ("placebo", "futile")
    assert set(frame["version"]) == {ds.__version__}


@pytest.mark.parametrize("size", [1, 2, 4, 15, 100])
def test_pages_hold_what_the_whole_holds(storage, size):
    exp = life(storage)
    exp.tell_many([(d.id, 1.0) for d in exp.ask_many(5)])  # several rows of one transaction
    whole, nothing = audit.read(exp.session)
    assert nothing is None
    pages, after = [], None
    for _ in range(len(whole) + 1):
        entries, after = audit.read(exp.session, after, size)
        pages += entries
        if after is None:
            break
    assert pages == whole
    assert len({entry.cursor for entry in whole}) == len(whole) == len(KINDS) + 10
    json.dumps([entry.to_dict() for entry in whole], allow_nan=False)
    assert exp.audit(after=whole[3].cursor, limit=2)["cursor"].tolist() == [e.cursor for e in whole[4:6]]
    with pytest.raises(dataclasses.FrozenInstanceError):
        whole[0].actor = "x"  # type: ignore[misc]


def test_a_cursor_that_is_none_is_refused(sqlite_url):
    exp = create(sqlite_url)
    for wrong in ("x", "1.2", 3, "1.2.x", "-1.0.0", "9" * 30 + ".0.0"):
        with pytest.raises(SettingError, match="cursor"):
            exp.audit(after=wrong)
    with pytest.raises(SettingError, match="limit"):
        exp.audit(limit=0)


def test_the_trail_is_written_beside_the_decisions(sqlite_url, tmp_path):
    exp = life(sqlite_url)
    for form, read in (("csv", pd.read_csv), ("parquet", pd.read_parquet)):
        exp.export(form, tmp_path / f"t.{form}", audit=True)
        assert read(tmp_path / f"t-audit.{form}")["kind"].tolist() == KINDS
        assert len(read(tmp_path / f"t.{form}")) == 2
    exp.export("jsonl", tmp_path / "t.jsonl", audit=True)
    lines = [json.loads(line) for line in (tmp_path / "t-audit.jsonl").read_text().splitlines()]
    assert lines[0]["detail"]["seed"] == 7
    assert lines[5]["reward"] is None
    (tmp_path / "t.csv").unlink()
    with pytest.raises(OutputError, match="t-audit"):  # nothing is written where one of the two is in the way
        exp.export("csv", tmp_path / "t.csv", audit=True)
    assert not (tmp_path / "t.csv").exists()


def test_the_command_prints_and_writes_the_trail(sqlite_url, tmp_path, capsys):
    life(sqlite_url)
    command = ["experiment", "audit", "trial", "--storage", sqlite_url]
    assert main(command) == 0
    said = capsys.readouterr().out
    assert "by board: adjudicated" in said
    assert "(was 1)" in said
    assert main([*command, "--limit", "2", "--json"]) == 0
    page = json.loads(capsys.readouterr().out)
    assert [entry["kind"] for entry in page["entries"]] == KINDS[:2]
    assert main([*command, "--after", page["following"], "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["entries"]) == len(KINDS) - 2
    assert main([*command, "--out", str(tmp_path / "trail.csv")]) == 0
    assert len(pd.read_csv(tmp_path / "trail.csv")) == len(KINDS)


def test_void_and_withdraw_on_the_command_line(sqlite_url, capsys):
    exp = create(sqlite_url)
    d, other = exp.ask(unit="p1"), exp.ask(unit="p2")
    exp.tell(d.id, 1.0)
    where = ["--storage", sqlite_url]
    assert main(["experiment", "withdraw", "trial", d.id, "--reason", "wrong chart", *where]) == 0
    assert "waits for an outcome again" in capsys.readouterr().out
    assert main(["experiment", "void", "trial", other.id, "--reason", "never given", "--json", *where]) == 0
    assert json.loads(capsys.readouterr().out)["kind"] == "voided"
    assert main(["experiment", "void", "trial", other.id, "--reason", "x", *where]) == 0
    assert "never given" in capsys.readouterr().out
    assert main(["experiment", "status", "trial", *where]) == 0
    assert "1 withdrawn, 1 voided" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("name", "expected"),
    [("../x", "-x"), ("/etc/x", "-etc-x"), ("..", "experiment"), ("a\\b:c", "a-b-c"), ("con", "_con"),
     ("LPT1.old", "_LPT1.old"), ("x.", "x"), ("Ω 患者", "Ω 患者"), (".hidden", "hidden"),
     ("a/../../b", "a-..-..-b")],
)  # fmt: skip
def test_a_default_export_stays_in_the_current_folder(sqlite_url, tmp_path, monkeypatch, name, expected):
    inside = tmp_path / "inside"
    inside.mkdir()
    monkeypatch.chdir(inside)
    exp = create(sqlite_url, name=name)
    path = exp.export("csv", audit=True)
    assert str(path) == f"{expected}.csv"
    assert sorted(file.name for file in inside.iterdir()) == sorted([f"{expected}.csv", f"{expected}-audit.csv"])


def test_long_names_and_control_characters_make_file_names_too():
    assert file_name("a\nb\0c\x7f", ".csv") == "a-b-c-.csv"
    assert len(file_name("患" * 500, "-audit.parquet").encode()) < 255


def test_a_spreadsheet_runs_nothing_that_a_unit_is_called(sqlite_url, tmp_path):
    units = ["=1+1", "+1", "-1", "@x", "plain", "a=b"]
    exp = create(sqlite_url, arms=["=cmd|x", "b"])
    for unit in units:
        exp.ask(unit=unit)
    exp.export("csv", tmp_path / "t.csv")
    frame = pd.read_csv(tmp_path / "t.csv")
    assert frame["unit"].tolist() == ["'=1+1", "'+1", "'-1", "'@x", "plain", "a=b"]
    assert set(frame["arm_name"]) <= {"'=cmd|x", "b"}
    assert frame["probability"].between(0, 1).all()
    exp.export("jsonl", tmp_path / "t.jsonl")  # for machines: as it is
    assert json.loads((tmp_path / "t.jsonl").read_text().splitlines()[0])["unit"] == "=1+1"
