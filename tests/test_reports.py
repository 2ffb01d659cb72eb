"""Documents: the protocol and the report of an experiment, and the qualification of an installation."""

import re
from typing import Any

import numpy as np
import pytest
import xarray as xr

import doublesampling as ds
from doublesampling.cli.main import main
from doublesampling.errors import OutputError, SettingError
from doublesampling.live.operating_characteristics import words_of_truth
from doublesampling.reports import qualification
from doublesampling.reports.characteristics import scenario_table
from tests.own_policies import Commit
from tests.service import client, make_key
from tests.test_exact_trial import enumerate_ends

ARMS = ["placebo", "10 mg", "20 mg"]


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    """The file of a finished experiment, with a pause, a correction and a dropped arm."""
    path = tmp_path_factory.mktemp("reports") / "trial.db"
    trial = ds.Trial(
        arms=ARMS, policy=ds.ThompsonSampling(), allocation=ds.Allocation(floor=0.13), horizon=200
    )  # fmt: skip
    exp = ds.Experiment.create("trial", design=trial, seed=7, storage=f"sqlite:///{path}", units="many")
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
        "Operating characteristics", "Replay", "Run it again",
    ]  # fmt: skip
    assert "not a claim of regulatory compliance" in text
    # the new items of the statement are 3b, 11c, 12b, 14c, 15b, 17c and 24b
    for item in ("trial design (3a, 3b)", "interim decision-making criteria (7b)", "participant flow (13a)",
                 "outcomes and estimation (17a)", "adaptation decisions (14c)", "interim results (17c)"):  # fmt: skip
        assert re.search(rf"CONSORT-ACE:[^.]*{re.escape(item)}", text), item
    found = exp.analyse(("20 mg", "placebo"))
    assert f"| 20 mg - placebo | aw-aipw | {found.estimate:.4f} | {found.low:.4f} to {found.high:.4f} |" in text
    low, high = exp.sequence((2, 0)).interval
    assert f"{low:.4f} to {high:.4f}" in text
    assert "| pause |  | safety review |" in text
    assert "All 200 decisions follow" in text
    assert "1 voided" in text


def test_the_page_needs_no_network_and_runs_nothing(exp):
    page = ds.report(exp, replay=False, truths=[]).html
    assert "<script" not in page
    assert page.count("data:image/png;base64,") == 2
    assert not re.search(r"(src|href)=\"http", page)
    assert "Not replayed for this report" in page


def test_a_protocol_is_simulated_beside_equal_allocation(exp):
    made = ds.protocol(exp, [[0.3, 0.3, 0.3], [0.3, 0.45, 0.6]], realizations=50)
    for allocation in ("adaptive", "equal"):
        assert re.search(rf"\| 0\.3, 0\.45, 0\.6 \| {allocation} \| .*\| 200\.0 ± 0\.0 \|", made.markdown)
    assert "No scenarios were given" in ds.protocol(exp).markdown
    assert "Allocation(floor=0.13)" in made.html
    again = ds.protocol(exp, [[0.3, 0.3, 0.3], [0.3, 0.45, 0.6]], realizations=50)
    assert again.markdown == made.markdown


def two_arms(storage, decisions, **changes):
    given: dict[str, Any] = {
        "arms": ["old", "new"],
        "policy": ds.ThompsonSampling(),
        "seed": 1,
        "units": "many",
    } | changes
    exp = ds.Experiment.create("two", storage=storage, **given)
    rng = np.random.default_rng(2)
    for _ in range(decisions):
        made = exp.ask()
        exp.tell(made.id, float(rng.random() < (0.3, 0.6)[made.arm]))
    return exp


def test_two_binary_arms_are_tested_and_described_exactly(sqlite_url):
    trial = ds.Trial(arms=["old", "new"], policy=ds.ThompsonSampling(), horizon=30)
    exp = two_arms(sqlite_url, 30, arms=None, policy=None, design=trial)
    text = ds.report(exp, truths=[(0.3, 0.6)]).markdown
    assert f"p = {exp.exact_test().p_value:.4f} (two-sided" in text
    assert "It assumes: Nothing beside the design." in text
    exact = trial.exact([(0.3, 0.6)])
    assert "Computed exactly" in text
    for suffix, words in (("", "adaptive"), ("_equal", "equal")):
        best = 100 * float(exact[f"probability_best_selected{suffix}"][0])
        failures = float(exact[f"expected_failures{suffix}"][0])
        assert re.search(rf"\| 0\.3, 0\.6 \| {words} \| {best:.1f} % \|.*\| {failures:.1f} \|", text)
    assert "Operating characteristics" not in ds.report(exp, truths=[]).markdown
    assert "posterior means: " in ds.report(exp).markdown
    assert "Computed exactly" in ds.protocol(exp, [(0.3, 0.3)]).markdown


def test_looks_are_reported_with_their_numbers(sqlite_url):
    rule = ds.Stopping(looks=10, superiority=0.999, control="old")
    exp = two_arms(sqlite_url, 20, stopping=rule)
    text = ds.report(exp, truths=[]).markdown
    assert "P(better than the control)" in text
    for number, look in enumerate(exp.looks, start=1):
        best = ", ".join(f"{arm} {chance:.4f}" for arm, chance in look.probability_best.items())
        assert f"| {number} | {str(look.at)[:19]} | {10 * number} | {best} |" in text
        assert look.reason in text


def test_a_report_says_why_there_is_no_exact_test_and_no_simulation(sqlite_url):
    exp = two_arms(sqlite_url, 8, policy=Commit())
    exp.ask_many(2)
    text = ds.report(exp, truths=[(0.3, 0.6)], realizations=5).markdown
    assert "There is no exact test: 1 of 10 decisions did not know" in text
    assert "Simulated with 5 realizations" in text
    belief = ds.LinearGaussian(arms=2, features=ds.Features(age="number"))
    other = ds.Experiment.create("features", arms=["a", "b"], belief=belief, storage=sqlite_url)
    truths = [[[0.0, 3.0], [1.0, 0.0]]]
    assert "The design could not be simulated: " in ds.protocol(other, truths).markdown


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
    said = ["--reference", "20 mg", "--level", "0.9", "--truth", "0.3,0.4,0.5", "--realizations", "20"]
    assert main(["report", str(store), "trial", "--out", str(page), *said]) == 0
    assert "Simulated with 20 realizations" in page.read_text()
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
    assert printed.count("pass") >= 20
    assert "All checks passed." in page.read_text()


def test_the_stored_numbers_of_the_trial_are_those_of_its_ends():
    trial = qualification.small_trial()
    ends = enumerate_ends(trial, (0.3, 0.6))
    assert sum(p for end, p in ends.items() if end[0] == "superiority") == pytest.approx(qualification._SUPERIORITY)
    assert sum(p * sum(end[2:]) for end, p in ends.items()) == pytest.approx(qualification._SIZE)
    null = {end[2:]: p for end, p in enumerate_ends(trial, (0.45, 0.45)).items() if sum(end[2:]) == 8}
    alike = {(s1, f1, s2, f2): p for (s1, f1, s2, f2), p in null.items() if s1 + s2 == 5}
    rates = {s: s[2] / max(s[2] + s[3], 1) - s[0] / max(s[0] + s[1], 1) for s in alike}
    extreme = sum(p for s, p in alike.items() if rates[s] >= rates[0, 2, 5, 1] - 1e-12)
    assert extreme / sum(alike.values()) == pytest.approx(qualification._P_VALUE)


def test_a_wrong_number_fails_the_qualification(monkeypatch, capsys):
    monkeypatch.setattr(qualification, "_REGRET", 2.0)
    monkeypatch.setattr(qualification, "_experiment", lambda: 1 / 0)
    assert main(["qualify"]) == 1
    printed = capsys.readouterr().out
    assert "FAIL  regret of double sampling after 100 decisions" in printed
    assert "ZeroDivisionError" in printed


def test_truths_are_written_as_people_write_them():
    assert words_of_truth((0.3, 0.5)) == "0.3, 0.5"
    assert words_of_truth([[1.0, 0.0], [0.0, 2.5]]) == "1, 0; 0, 2.5"


@pytest.mark.slow
def test_a_protocol_takes_the_weights_of_arms_with_contexts(sqlite_url):
    belief = ds.Logistic(arms=2, dimension=1)
    exp = ds.Experiment.create("weights", arms=["a", "b"], belief=belief, storage=sqlite_url)
    assert "| 0.5; 1 |" in ds.protocol(exp, truths=[[[0.5], [1.0]]], realizations=20).markdown


@pytest.mark.slow
def test_characteristics_follow_looks_that_only_advise(sqlite_url):
    stopping = ds.Stopping(looks=[20, 40], superiority=0.95, enforce=False)
    exp = ds.Experiment.create("advice", arms=["a", "b"], participants=40, stopping=stopping, storage=sqlite_url)
    text = ds.protocol(exp, truths=[[0.2, 0.8]]).markdown
    assert "Looks of this design only advise; the numbers hold if their advice is followed." in text
    assert "| superiority |" in text


@pytest.mark.parametrize(
    ("truths", "words"),
    [
        ([0.3, 0.3], "truths are scenarios"),
        (0.3, "truths are scenarios"),
        ("0.3", "truths are scenarios"),
        ([[0.3, 0.3, 0.3]], r"one number per arm \(2\), got 3"),
        ([[30, 50]], "between 0 and 1, got 30"),
        ({"none": [0.3, "x"]}, "a truth"),
    ],
)
def test_truths_that_a_design_cannot_have_are_refused(truths, words):
    trial = ds.Trial(arms=["old", "new"], policy=ds.ThompsonSampling(), horizon=12)
    with pytest.raises(SettingError, match=words):
        ds.protocol(trial, truths)


def test_truths_may_have_names():
    trial = ds.Trial(arms=["old", "new"], policy=ds.ThompsonSampling(), horizon=12)
    assert "| no effect |" in ds.protocol(trial, {"no effect": [0.3, 0.3]}).markdown
