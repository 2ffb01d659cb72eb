"""Documents: the protocol and the report of an experiment, and the qualification of an installation."""

import re

import numpy as np
import pytest
import xarray as xr

import doublesampling as ds
from doublesampling.cli.main import main
from doublesampling.errors import OutputError, SettingError
from doublesampling.reports import qualification
from doublesampling.reports.planned import scenario_table
from tests.service import client, make_key

ARMS = ["placebo", "10 mg", "20 mg"]


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    """The file of a finished experiment, with a pause, a correction and a dropped arm."""
    path = tmp_path_factory.mktemp("reports") / "trial.db"
    exp = ds.Experiment.create(
        "trial", arms=ARMS, policy=ds.EpsilonGreedy(epsilon=0.4), seed=7, storage=f"sqlite:///{path}", units="many"
    )
    rng = np.random.default_rng(1)
    for _ in range(20):
        made = exp.ask_many(10)
        exp.tell_many([(d.id, float(rng.random() < [0.3, 0.45, 0.6][d.arm])) for d in made[:9]])
    exp.pause("safety review")
    exp.resume("cleared")
    exp.void(made[9].id, reason="never given")
    exp.drop_arm("10 mg", "inferior <script>")
    return path


@pytest.fixture
def exp(store):
    return ds.Experiment.load("trial", storage=f"sqlite:///{store}")


def test_a_report_says_what_happened(exp):
    made = ds.report(exp)
    text = made.markdown
    sections = re.findall(r"^## (.*)$", text, re.MULTILINE)
    assert sections == [
        "Flow of participants", "Design", "Looks and stopping rules", "Looks, events and deviations",
        "Allocation over time", "Estimates", "Confidence sequences", "Sensitivity to unknown outcomes", "Posterior",
        "Replay", "Run it again",
    ]  # fmt: skip
    assert "not a claim of regulatory compliance" in text
    for item in ("3b", "7b", "12b", "13a", "14c", "17a"):
        assert re.search(rf"CONSORT-ACE items?[^.]*\b{item}\b", text), item
    found = exp.analyse(("20 mg", "placebo"))
    assert f"| 20 mg - placebo | aw-aipw | {found.estimate:.4f} | {found.low:.4f} to {found.high:.4f} |" in text
    low, high = exp.sequence((2, 0)).interval
    assert f"{low:.4f} to {high:.4f}" in text
    assert "| pause |  | safety review |" in text
    assert "All 200 decisions follow" in text
    assert "1 voided" in text


def test_the_page_needs_no_network_and_runs_nothing(exp):
    page = ds.report(exp, replay=False).html
    assert "<script" not in page
    assert page.count("data:image/png;base64,") == 2
    assert not re.search(r"(src|href)=\"http", page)
    assert "Not replayed for this report" in page


def test_a_protocol_is_simulated_beside_equal_allocation(exp):
    made = ds.protocol(exp, [[0.3, 0.3, 0.3], [0.3, 0.45, 0.6]], realizations=50)
    assert "failures, equal allocation" in made.markdown
    assert re.search(r"\| 0\.3, 0\.45, 0\.6 \| 500 \| \d+\.\d ± ", made.markdown)
    assert "No scenarios were given" in ds.protocol(exp).markdown
    assert "EpsilonGreedy(epsilon=0.4)" in made.html
    again = ds.protocol(exp, [[0.3, 0.3, 0.3], [0.3, 0.45, 0.6]], realizations=50)
    assert again.markdown == made.markdown


def test_a_vanishing_arm_is_reported_as_refused(sqlite_url):
    exp = ds.Experiment.create(
        "trial", arms=["a", "b"], policy=ds.EpsilonGreedy(epsilon=0.001), seed=1, storage=sqlite_url, units="many"
    )
    for _ in range(30):
        exp.tell_many([(d.id, float(d.arm)) for d in exp.ask_many(4)])
    text = ds.report(exp).markdown
    assert "refused" in text
    assert "floor" in text


def test_scenarios_of_a_trial_become_a_table():
    data = xr.Dataset(
        {
            "probability_superiority": ("scenario", [0.05, 0.8]),
            "probability_superiority_error": ("scenario", [0.01, 0.02]),
            "expected_size": ("scenario", [180.0, 120.0]),
            "expected_size_error": ("scenario", [1.0, 2.0]),
            "expected_size_equal": ("scenario", [190.0, 150.0]),
            "probability_superiority_equal": ("scenario", [0.04, 0.7]),
        },
        coords={"scenario": ["null", "effect"]},
    )
    table = scenario_table(data)
    assert table.columns == ("scenario", "allocation", "superiority", "participants")
    assert table.rows[0] == ("null", "adaptive", "5.0 ± 1.0 %", "180.0 ± 1.0")
    assert table.rows[3] == ("effect", "equal", "70.0 %", "150.0")


def test_the_commands_write_files(store, tmp_path, capsys):
    page, text = tmp_path / "report.html", tmp_path / "protocol.md"
    assert main(["report", str(store), "trial", "--out", str(page), "--reference", "20 mg", "--level", "0.9"]) == 0
    assert "90 % interval" in page.read_text()
    assert "placebo - 20 mg" in page.read_text()
    truth = ["--truth", "0.3,0.4,0.5", "--realizations", "20"]
    assert main(["protocol", str(store), "trial", "--out", str(text), *truth]) == 0
    assert text.read_text().startswith("# Protocol of experiment 'trial'")
    assert main(["protocol", str(store), "trial", "--out", str(text)]) == 1
    assert main(["report", str(store), "trial", "--reference", "30 mg"]) == 1
    assert main(["protocol", str(store), "trial", "--truth", "high"]) == 1
    assert main(["report", str(tmp_path / "no.db"), "trial"]) == 1
    assert "Report of experiment" in capsys.readouterr().out


def test_wrong_arguments_are_refused(exp, tmp_path):
    for wrong in (None, "trial", 7):
        with pytest.raises(SettingError):
            ds.report(wrong)
        with pytest.raises(SettingError):
            ds.protocol(wrong)
    with pytest.raises(OutputError, match=r"html or \.md"):
        ds.protocol(exp).save(tmp_path / "protocol.pdf")


def test_the_service_gives_both_to_readers_and_neither_to_blind_keys(store):
    url = f"sqlite:///{store}"
    reader, writer = make_key(url, "reader"), make_key(url, "writer")
    with client(url) as c:
        for kind in ("protocol", "report"):
            answer = c.get(f"/v1/experiments/trial/{kind}.html", headers=reader)
            assert answer.status_code == 200
            assert answer.headers["content-type"].startswith("text/html")
            assert f"{kind.capitalize()} of experiment" in answer.text
            assert c.get(f"/v1/experiments/trial/{kind}.html", headers=writer).status_code == 403


def test_this_installation_qualifies(tmp_path, capsys):
    page = tmp_path / "qualification.html"
    assert main(["qualify", "--out", str(page)]) == 0
    printed = capsys.readouterr().out
    assert printed.count("pass") >= 16
    assert "All checks passed." in page.read_text()


def test_a_wrong_number_fails_the_qualification(monkeypatch, capsys):
    monkeypatch.setattr(qualification, "_REGRET", 2.0)
    monkeypatch.setattr(qualification, "_experiment", lambda: 1 / 0)
    assert main(["qualify"]) == 1
    printed = capsys.readouterr().out
    assert "FAIL  regret of double sampling after 100 decisions" in printed
    assert "ZeroDivisionError" in printed
