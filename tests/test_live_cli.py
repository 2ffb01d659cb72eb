"""The command line of live experiments, as people and machines meet it."""

import json
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

import doublesampling as ds
from doublesampling.cli.main import main
from doublesampling.errors import SettingError
from doublesampling.live.operating_characteristics import characteristics
from doublesampling.live.stores import schema
from tests.chance import FALSE_ALARM


@pytest.fixture
def cli(capsys, storage, monkeypatch):
    monkeypatch.setenv("DOUBLESAMPLING_STORAGE", storage)

    return Shell(capsys)


class Shell:
    """Calls the command line; checks the exit status and that no traceback is shown."""

    def __init__(self, capsys):
        self.capsys = capsys

    def __call__(self, *words, status=0):
        try:
            found = main(words)
        except SystemExit as end:
            found = int(end.code or 0)
        out = self.capsys.readouterr()
        assert found == status, out.out + out.err
        assert "Traceback" not in out.err
        return out.out + out.err

    def json(self, *words, status=0):
        return json.loads(self(*words, "--json", status=status))


def test_a_trial_from_first_to_last(cli, tmp_path):
    made = cli.json("experiment", "create", "trial", "--arms", "placebo", "10 mg", "--policy",
                    "DoubleSampling:horizon=40",
                    "--seed", "7")  # fmt: skip
    assert made["policy"] == "DoubleSampling(horizon=40)"
    d = cli.json("experiment", "ask", "trial", "--unit", "p1", "--key", "k", "--actor", "nurse")
    assert d["actor"] == "nurse"
    assert cli.json("experiment", "ask", "trial", "--unit", "p1")["id"] == d["id"]
    assert cli.json("experiment", "tell", "trial", d["id"], "1")["reward"] == 1.0
    assert cli.json("experiment", "tell", "trial", d["id"], "1")["repeated"]
    error = cli.json("experiment", "tell", "trial", d["id"], "0", status=1)
    assert error["error"] == "conflict"
    assert cli.json("experiment", "amend", "trial", d["id"], "0", "--reason", "adjudicated")["revision"] == 2
    assert len(cli.json("experiment", "ask", "trial", "--count", "3")) == 3
    assert len(cli.json("experiment", "pending", "trial")) == 3
    status = cli.json("experiment", "status", "trial")
    assert (status["decisions"], status["outcomes"], status["amended"]) == (4, 1, 1)
    assert sum(arm["posterior"]["probability_optimal"] for arm in status["arms"]) == pytest.approx(1)
    assert cli.json("experiment", "explain", "trial", d["id"])["verified"]
    assert cli.json("experiment", "replay", "trial")["agrees"]
    assert cli.json("experiment", "pause", "trial") == {"changed": True}
    assert cli.json("experiment", "ask", "trial", status=1)["error"] == "paused"
    assert cli.json("experiment", "resume", "trial") == {"changed": True}
    assert cli.json("experiment", "add-arm", "trial", "20 mg") == {"changed": True}
    assert cli.json("experiment", "drop-arm", "trial", "placebo") == {"changed": True}
    assert [row["name"] for row in cli.json("experiment", "list")] == ["trial"]
    path = cli.json("experiment", "export", "trial", "--out", str(tmp_path / "t.jsonl"))["path"]
    assert len(Path(path).read_text().splitlines()) == 4
    assert cli.json("db", "upgrade") == {"before": schema.HEAD, "after": schema.HEAD}


def test_the_words_for_people(cli):
    assert "is ready" in cli("experiment", "create", "trial", "--arms", "placebo", "10 mg", "--seed", "7")
    assert "No decision waits" in cli("experiment", "pending", "trial")
    told = cli("experiment", "ask", "trial", "--unit", "p1")
    identity = told.split("decision ")[1].split(";")[0]
    assert "propensity" in told
    assert "asked before" in cli("experiment", "ask", "trial", "--unit", "p1")
    assert identity in cli("experiment", "pending", "trial")
    assert "Stored: 1" in cli("experiment", "tell", "trial", identity, "1")
    assert "amend" in cli("experiment", "tell", "trial", identity, "0", status=1)
    status = cli("experiment", "status", "trial")
    for part in ("running", "placebo", "P(best)", "█", "N  ▁"):
        assert part in status
    assert "all agree" in cli("experiment", "replay", "trial")
    assert "Paused" in cli("experiment", "pause", "trial", "--reason", "board")
    assert "paused" in cli("experiment", "status", "trial")
    assert "trial" in cli("experiment", "list")
    assert "up to date" in cli("db", "upgrade")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("experiment",), "required: COMMAND"),
        (("experiment", "ask"), "required: NAME"),
        (("experiment", "ask", "trail"), "holds no experiment called 'trail'"),
        (("experiment", "create", "trial", "--arms", "a", "b"), "Load it, or choose another name"),
        (("experiment", "create", "x", "--arms", "a"), "two arms"),
        (("experiment", "create", "x", "--arms", "a", "b", "--belief", "Gausian"), "Did you mean 'Gaussian'?"),
        (("experiment", "create", "x", "--arms", "a", "b", "--policy", "DoubleSampling:horizon"), "setting=value"),
        (("experiment", "create", "x", "--arms", "a", "b", "--policy", "DoubleSampling:horizn=3"), "Did you mean"),
        (("experiment", "create", "x", "--arms", "a", "b", "--policy", "Oracle"), "Decide with another policy"),
        (("experiment", "tell", "trial", "nope", "1"), "pending"),
        (("experiment", "tell", "trial", "nope", "x"), "invalid float"),
        (("experiment", "amend", "trial", "nope", "1"), "required: --reason"),
        (("experiment", "simulate", "trial", "--truth", "0.3"), "one number per arm"),
        (("experiment", "simulate", "trial", "--truth", "a,b"), "takes numbers"),
        (("experiment", "status", "trial", "--storage", "sqlite:///no/such/folder/t.db"), "does not exist"),
        (("experiment", "status", "trial", "--storage", "nonsense"), "Write sqlite:///trial.db"),
        (("db",), "required: COMMAND"),
    ],
)
def test_wrong_words_get_a_clear_answer(capsys, sqlite_url, monkeypatch, words, message):
    monkeypatch.setenv("DOUBLESAMPLING_STORAGE", sqlite_url)
    ds.Experiment.create("trial", arms=["a", "b"])
    try:
        status = main(words)
    except SystemExit as end:
        status = int(end.code or 0)
    out = capsys.readouterr()
    assert status in (1, 2)
    assert message in out.err
    assert "Traceback" not in out.err


def test_a_forged_log_fails_the_replay_command(sqlite_url, capsys):
    import sqlalchemy as sa

    exp = ds.Experiment.create("trial", arms=["a", "b"], storage=sqlite_url)
    exp.tell(exp.ask().id, 1.0)
    exp.ask()
    with exp.session.store.engine.begin() as connection:
        connection.execute(sa.text("DROP TRIGGER ds_outcomes_no_update"))
        connection.execute(sa.text("UPDATE ds_outcomes SET reward = 0"))
    assert main(["experiment", "replay", "trial", "--storage", sqlite_url]) == 1
    assert "1 DIFFER" in capsys.readouterr().out


def test_the_design_runs_forward(sqlite_url, capsys):
    """Thompson sampling over two arms, against a plain simulation here; and a sure winner is found."""
    exp = ds.Experiment.create("t", arms=["a", "b"], policy=ds.ThompsonSampling(), storage=sqlite_url)
    found = characteristics(exp.design, [0.2, 0.7], horizon=60, realizations=400)
    rng, belief = np.random.default_rng(1), ds.BetaBernoulli(arms=2)
    failures, wins, shares = [], [], []
    for _ in range(400):
        state = belief.prior()
        for _ in range(60):
            arm = int(np.argmax(rng.beta(state.alpha, state.beta)))
            state = belief.update(state, arm, float(rng.random() < (0.2, 0.7)[arm]))
        failures.append(state.beta.sum() - 2)
        shares.append(state.counts[1] / 60)
        wins.append(np.argmax(state.alpha / (state.alpha + state.beta)) == 1)
    limit = stats.norm.isf(FALSE_ALARM / 2)
    assert found.failures is not None
    assert found.failures[0] == pytest.approx(
        np.mean(failures), abs=limit * np.hypot(found.failures[1], np.std(failures) / 20)
    )
    assert found.shares[1][0] == pytest.approx(
        np.mean(shares), abs=limit * np.hypot(found.shares[1][1], np.std(shares) / 20)
    )
    assert found.best_arm_wins is not None
    assert found.best_arm_wins[0] == pytest.approx(np.mean(wins), abs=0.05)
    assert found.failures_of_equal_allocation == pytest.approx(33.0)
    assert found.shares[0][0] + found.shares[1][0] == pytest.approx(1.0)
    words = ("experiment", "simulate", "t", "--truth", "0.2,0.8", "--truth", "0.5,0.5", "--horizon", "30",
             "--realizations", "50", "--storage", sqlite_url)  # fmt: skip
    assert main(words) == 0
    text = capsys.readouterr().out
    assert "best wins" in text
    assert "0.2, 0.8" in text
    assert text.count("all equal") == 1  # of the second truth, where no arm is the best
    assert main([*words, "--json"]) == 0
    assert [row["best_arm_wins"] is None for row in json.loads(capsys.readouterr().out)] == [False, True]
    assert exp.state.decisions == 0  # nothing was asked


def test_a_design_runs_forward_with_the_arms_that_are_in(sqlite_url):
    exp = ds.Experiment.create("arms", arms=["a", "b", "c"], seed=3, storage=sqlite_url)
    assert exp.current_design is exp.design
    exp.drop_arm("a")
    exp.add_arm("d")
    assert exp.current_design.arms == ("b", "c", "d")
    found = characteristics(exp.current_design, [0.1, 0.2, 0.9], horizon=40, realizations=50)
    assert found.shares[2][0] > 0.5
    assert main(("experiment", "simulate", "arms", "--truth", "0.1,0.9", "--storage", sqlite_url)) == 1


def test_gaussian_designs_run_forward_and_linear_ones_want_weights(sqlite_url):
    policy = ds.ThompsonSampling()
    exp = ds.Experiment.create(
        "g", arms=["a", "b"], belief=ds.Gaussian(arms=2, noise=0.5), policy=policy, storage=sqlite_url
    )
    found = characteristics(exp.design, [0.0, 3.0], horizon=30, realizations=60)
    assert found.failures is None
    assert found.best_arm_wins is not None
    assert found.best_arm_wins[0] > 0.9
    exp = ds.Experiment.create("l", arms=["a", "b"], belief=ds.LinearGaussian(arms=2, dimension=2), storage=sqlite_url)
    with pytest.raises(SettingError, match="a list of 2 weights per arm"):
        characteristics(exp.design, [0.0, 3.0])
    belief = ds.LinearGaussian(arms=2, features=ds.Features(age="number"))
    exp = ds.Experiment.create("f", arms=["a", "b"], belief=belief, storage=sqlite_url)
    with pytest.raises(SettingError, match=r"ds\.simulate"):
        characteristics(exp.design, [[0.0, 3.0], [1.0, 0.0]])


@pytest.mark.slow
def test_logistic_designs_run_forward_with_their_weights(sqlite_url, capsys):
    limits = ds.Allocation(fixed={"b": 0.25})
    exp = ds.Experiment.create("x", arms=["a", "b", "c"], belief=ds.Logistic(arms=3, dimension=1), storage=sqlite_url,
                               policy=ds.TopTwo(), allocation=limits)  # fmt: skip
    found = characteristics(exp.design, [[0.0], [0.0], [0.0]], horizon=40, realizations=100)
    error = stats.norm.isf(FALSE_ALARM / 2) / np.sqrt(4000)
    assert found.shares[1][0] == pytest.approx(0.25, abs=error)
    assert found.failures is not None
    assert found.failures[0] / 40 == pytest.approx(0.5, abs=error)
    assert (found.regret[0], found.best_arm_wins) == (0.0, None)
    words = ("experiment", "simulate", "x", "--truth", "1;0;-1", "--horizon", "20", "--realizations", "20")
    assert main((*words, "--delay", "3", "--storage", sqlite_url)) == 0
    assert "1; 0; -1" in capsys.readouterr().out
    with pytest.raises(SettingError, match=r"trend is for"):
        characteristics(exp.design, [[0.0], [0.0], [0.0]], trend=0.1)


def test_importing_stays_light():
    import subprocess
    import sys

    code = "import sys; from doublesampling.cli.main import parser; parser(); print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert not {"sqlalchemy", "alembic", "pandas", "numpy"} & set(loaded)


def test_history_comes_from_a_file(sqlite_url, tmp_path, capsys):
    file = tmp_path / "past.csv"
    file.write_text("\ufeffarm, reward ,date\n10 mg,1,2019\n0,0,2019\n10 mg,1,2020\n", encoding="utf-8")
    exp = ds.Experiment.create("trial", arms=["placebo", "10 mg"], storage=sqlite_url)
    command = ["experiment", "history", "trial", str(file), "--storage", sqlite_url]
    assert main(command) == 0
    assert "Added 3 outcomes" in capsys.readouterr().out
    assert main(command) == 0
    assert "added before" in capsys.readouterr().out
    belief = exp.design.belief
    assert exp.state.belief_state == belief.update_batch(belief.prior(), [1, 0, 1], [1, 0, 1])
    assert main([*command, "--key", "once more", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"added": 3, "request_key": "once more"}


def test_history_with_a_context(sqlite_url, tmp_path):
    file = tmp_path / "past.csv"
    file.write_text("age,arm,reward,dose\n0.5,a,1.5,2\n0.25,b,-1,3\n")
    belief = ds.LinearGaussian(arms=2, dimension=2)
    exp = ds.Experiment.create("c", arms=["a", "b"], belief=belief, storage=sqlite_url)
    assert main(["experiment", "history", "c", str(file), "--context", "dose", "age", "--storage", sqlite_url]) == 0
    state = belief.update(belief.update(belief.prior(), 0, 1.5, [2, 0.5]), 1, -1.0, [3, 0.25])
    assert exp.state.belief_state == state


@pytest.mark.parametrize(
    ("text", "more", "message"),
    [
        ("arm,value\na,1\n", (), "no column 'reward'. It has 'arm', 'value'"),
        ("arm,reward\n", (), "no rows below its headings"),
        ("", (), "no column 'arm'. It has none"),
        ("arm,reward\na,1\nc,1\n", (), "line 3: no arm is called 'c'"),
        ("arm,reward\na,1\nb,yes\n", (), "line 3: reward must be a number, got 'yes'"),
        ("arm,reward\na\n", (), "line 2: reward must be a number"),
        ("arm,reward\na,7\n", (), "0 or 1"),
        ("arm,reward,x\na,1,2\n", ("--context", "x"), "has no context"),
    ],
)
def test_a_history_that_does_not_fit_says_where(sqlite_url, tmp_path, capsys, text, more, message):
    file = tmp_path / "past.csv"
    file.write_text(text)
    exp = ds.Experiment.create("trial", arms=["a", "b"], storage=sqlite_url)
    assert main(["experiment", "history", "trial", str(file), *more, "--storage", sqlite_url]) == 1
    assert message in capsys.readouterr().err
    assert exp.state.belief_state.observations == 0


def test_a_history_file_that_is_not_there(sqlite_url, tmp_path, capsys):
    ds.Experiment.create("trial", arms=["a", "b"], storage=sqlite_url)
    ds.Experiment.create("c", arms=["a", "b"], belief=ds.LinearGaussian(arms=2, dimension=2), storage=sqlite_url)
    assert main(["experiment", "history", "trial", str(tmp_path / "no.csv"), "--storage", sqlite_url]) == 1
    assert "cannot be read" in capsys.readouterr().err
    (tmp_path / "latin.csv").write_bytes("arm,reward\né,1\n".encode("latin-1"))
    assert main(["experiment", "history", "trial", str(tmp_path / "latin.csv"), "--storage", sqlite_url]) == 1
    assert "not UTF-8" in capsys.readouterr().err
    (tmp_path / "x.csv").write_text("arm,reward,x\na,1,2\n")
    assert main(["experiment", "history", "c", str(tmp_path / "x.csv"), "--storage", sqlite_url]) == 1
    assert "has 2 numbers" in capsys.readouterr().err
