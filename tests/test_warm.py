"""Compiling ahead: every family and policy has a run, and one of them fills the cache that the next process uses."""

import os
import subprocess
import sys

import pytest

from doublesampling import warm
from doublesampling.cli.main import main
from doublesampling.errors import SettingError


def test_every_family_and_policy_has_a_run():
    found = warm.tasks()
    assert {task.what for task in found} == {"decide", "simulate", "trial"}
    assert len({task.name for task in found}) == 9
    assert len(warm.tasks("decide")) == len(warm.tasks("simulate"))
    assert {task.name for task in warm.tasks("trial")} == {"two Bernoulli arms", "three Bernoulli arms"}
    with pytest.raises(SettingError, match="what must be one of"):
        warm.tasks("everything")


@pytest.mark.slow
def test_a_warmed_process_compiles_nothing(tmp_path):
    """The second process finds what the first one kept, and so does a live experiment."""
    decide = (
        "from doublesampling.warm import Task, compile_task; from doublesampling.rules.cached import compilations;"
        "compile_task(Task('decide', 'two Bernoulli arms', 2)); print(compilations())"
    )
    live = (
        "import doublesampling as ds; from doublesampling.rules.cached import compilations;"
        f"url = 'sqlite:///{tmp_path / 'trial.db'}';"
        "e = ds.Experiment.create('t', arms=['a', 'b'], policy=ds.ThompsonSampling(), storage=url);"
        "e.tell(e.ask().id, 1.0); e.ask(); e.posterior(); print(compilations())"
    )
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}

    def compiled(code: str) -> int:
        command = [sys.executable, "-c", code]
        return int(subprocess.run(command, env=environment, capture_output=True, text=True).stdout)

    counts = [compiled(code) for code in (decide, decide, live)]
    assert counts[0] > 0
    assert counts[1:] == [0, 0]


@pytest.mark.slow
def test_a_warmed_process_compiles_no_trial(tmp_path):
    warmed = (
        "from doublesampling.warm import Task, compile_task; from doublesampling.rules.cached import compilations;"
        "compile_task(Task('trial', 'two Bernoulli arms', 1)); print(compilations())"
    )
    planned = (
        "import doublesampling as ds; from doublesampling.rules.cached import compilations;"
        "t = ds.Trial(arms=['a', 'b'], policy=ds.DoubleSampling(horizon=40), allocation=ds.Allocation(floor=0.2),"
        " stopping=ds.Stopping(looks=10, superiority=0.97), horizon=40);"
        "t.simulate([[0.3, 0.5]], realizations=5); print(compilations())"
    )
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}
    counts = [
        int(subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True).stdout)
        for code in (warmed, planned)
    ]
    assert counts[0] > 0
    assert counts[1] == 0


def test_the_command_reports(monkeypatch, capsys):
    monkeypatch.setattr("doublesampling.cli.warm.warm", lambda what, processes, report: report(1, 1) or 1)
    assert main(["warm", "--what", "decide"]) == 0
    assert "1 runs" in capsys.readouterr().out
