"""The command line as a person meets it."""

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from doublesampling import __version__
from doublesampling.cli.illustrate import bar, sparkline
from doublesampling.cli.main import main


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    try:
        status = main(arguments)
    except SystemExit as end:
        status = int(end.code or 0)
    out = capsys.readouterr()
    return status, out.out, out.err


def test_help_names_the_commands(capsys):
    status, out, _ = run(capsys, "--help")
    assert status == 0
    assert "illustrate" in out


def test_version(capsys):
    assert run(capsys, "--version")[1].strip() == f"doublesampling {__version__}"


def test_illustrate_shows_arms_and_candidates(capsys):
    status, out, _ = run(capsys, "illustrate", "--theta", "0.2", "0.9", "--steps", "60", "--seed", "3")
    assert status == 0
    assert "step 60 of 60" in out
    assert "▶" in out
    assert "N  " in out
    assert run(capsys, "illustrate", "--theta", "0.2", "0.9", "--steps", "60", "--seed", "3")[1] == out


def test_illustrate_saves_both_panels(capsys, tmp_path):
    for suffix in (".png", ".pdf", ".svg"):
        file = tmp_path / f"figure{suffix}"
        assert run(capsys, "illustrate", "--steps", "20", "--save", str(file))[0] == 0
        assert file.stat().st_size > 5000


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "required: COMMAND"),
        (("illustrat",), "invalid choice"),
        (("illustrate", "--theta", "0.4", "x"), "invalid float value: 'x'"),
        (("illustrate", "--theta", "0.4"), "two arms at least"),
        (("illustrate", "--theta", "0.4", "1.2"), "probabilities[1] must be a number from 0 to 1, got 1.2"),
        (("illustrate", "--steps", "0"), "--steps must be"),
        (("illustrate", "--seed", "-3"), "seed must be"),
        (("illustrate", "--pace", "-1"), "--pace must be"),
        (("illustrate", "--pace", "nan"), "--pace must be"),
        (("illustrate", "--save", "figure.gif"), "Name it figure.png"),
        (("illustrate", "--save", "nowhere/at/all.png"), "does not exist"),
    ],
)
def test_wrong_words_get_a_clear_answer(capsys, arguments, message):
    status, out, error = run(capsys, *arguments)
    assert status in (1, 2)
    assert message in error
    assert "Traceback" not in error
    assert out == ""


def test_a_file_that_cannot_be_written_is_named(capsys, tmp_path, monkeypatch):
    from matplotlib.figure import Figure

    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Figure, "savefig", refuse)
    status, _, error = run(capsys, "illustrate", "--steps", "2", "--save", str(tmp_path / "f.png"))
    assert status == 1
    assert "Permission denied" in error


def test_live_in_a_real_terminal():
    """A pseudo-terminal: the live picture is drawn and ends on the last step."""
    master, slave = pty.openpty()
    command = [sys.executable, "-m", "doublesampling.cli.main", "illustrate", "--steps", "40", "--pace", "0"]
    with subprocess.Popen(
        command, stdout=slave, stderr=slave, stdin=slave, env=os.environ | {"TERM": "xterm"}
    ) as process:
        os.close(slave)
        shown = b""
        while True:
            try:
                piece = os.read(master, 65536)
            except OSError:
                break
            if not piece:
                break
            shown += piece
    assert process.returncode == 0
    assert "step 40 of 40" in shown.decode()


def test_bars_and_sparklines():
    assert bar(1.0, 4) == "████"
    assert bar(0.0, 4) == "    "
    assert bar(0.5, 3) == "█▌ "
    assert sparkline([1, 10, 100, 1000, 5000]) == "▁▃▆██"


def test_help_is_quick_because_nothing_heavy_is_imported():
    code = "import sys; from doublesampling.cli.main import parser; parser(); print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert not {"numba", "numpy", "scipy", "matplotlib", "rich"} & set(loaded)
    assert Path(__file__).exists()


def test_simulate_prints_a_table_and_writes_files(capsys, tmp_path):
    what = ("simulate", "--bandit", "bernoulli:0.4,0.8", "--policy", "double-sampling", "--policy", "thompson")
    files = ("--out", str(tmp_path / "r.nc"), "--plot", str(tmp_path / "r.png"))
    arguments = (*what, "--horizon", "50", "--realizations", "100", *files)
    status, out, _ = run(capsys, *arguments)
    assert status == 0
    assert "double-sampling" in out
    assert "±" in out
    import xarray as xr

    with xr.open_dataset(tmp_path / "r.nc", engine="scipy") as found:
        assert found.sizes["time"] == 50
        assert found.attrs["seed"] == "1"
        row = found.ds.table().set_index("policy").loc["thompson"]
        assert f"{row['regret']:.3f}" in out
    assert (tmp_path / "r.png").stat().st_size > 5000
    status, _, error = run(capsys, *arguments)
    assert status == 1
    assert "add --force" in error
    assert run(capsys, *arguments, "--force")[0] == 0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("--bandit", "bernouli:0.4,0.8"), "is not known. Write bernoulli:0.4,0.8"),
        (("--bandit", "bernoulli:0.4,x"), "is not a list of numbers"),
        (("--bandit", "bernoulli:0.4"), "two arms at least"),
        (("--bandit", "linear:1,2;3"), "numbers in a regular array"),
        (("--policy", "tompson"), "Did you mean 'thompson'?"),
        (("--horizon", "0"), "horizon must be"),
        (("--realizations", "-1"), "realizations must be"),
        (("--device", "gpu"), "device must be one of"),
        (("--out", "result.csv"), "--out writes .nc files"),
        (("--out", "no/such/folder/r.nc"), "does not exist"),
        (("--plot", "picture.gif"), "--plot writes .png"),
        (("--dask", "nonsense"), "No Dask scheduler answers at 'nonsense'"),
    ],
)
def test_simulate_with_wrong_words(capsys, change, message):
    status, out, error = run(capsys, "simulate", "--bandit", "gaussian:0,1:0.5", "--policy", "greedy", *change)
    assert status in (1, 2)
    assert message in error
    assert "Traceback" not in error
    assert out == ""


def test_pictures_of_a_result_are_figures():
    import doublesampling as ds

    result = ds.simulate(ds.BernoulliBandit([0.4, 0.8]), [ds.DoubleSampling(), ds.Greedy()], horizon=20, realizations=9)
    for figure in (result.ds.plot_regret(), result.ds.plot_regret(spread="std"), result.ds.plot_optimal_arm(),
                   result.ds.plot_candidates()):  # fmt: skip
        axes = figure.axes[0]
        assert len(axes.lines) == 2
        assert axes.get_xlabel() == "time step t"
        assert axes.get_ylabel()


def test_policies_with_settings(capsys):
    """As experiment create takes them."""
    policies = ["--policy", "double-sampling:horizon=20", "--policy", "thompson"]
    assert main(["simulate", "--bandit", "bernoulli:0.4,0.8", *policies, "--horizon", "20", "--realizations", "1"]) == 0
    text = capsys.readouterr().out
    assert "double-sampling:horizon=20" in text
    assert "± –" in text  # one realization has no error to speak of
    assert main(["simulate", "--bandit", "bernoulli:0.4,0.8", "--policy", "double-sampling:horizn=20"]) == 1
    assert "horizon" in capsys.readouterr().err


def test_piped_tables_cut_no_names(capsys):
    """Nothing is folded or cut where the output is no terminal."""
    long = "double-sampling:horizon=20,samples=1000,max_candidates=999"
    bandit = "bernoulli:0.12345678912345,0.23456789123456,0.34567891234567"
    assert main(["simulate", "--bandit", bandit, "--policy", long, "--horizon", "5", "--realizations", "2"]) == 0
    out = capsys.readouterr().out
    assert any(bandit in line and long in line and "±" in line for line in out.splitlines())
    assert "…" not in out


def test_a_long_command_says_what_it_waits_for(capsys, monkeypatch):
    """Not a terminal: a line after two seconds, then one now and then; never more often."""
    import time

    from doublesampling import progress

    monkeypatch.setattr(progress, "_PATIENCE", 0.02)
    monkeypatch.setattr(progress, "_LINE_EVERY", 0.0)
    shown = progress.Progress(True, "simulating", lambda: True)
    with shown.over(2, 0, "blocks"):
        deadline = time.monotonic() + 20
        while "compiling" not in capsys.readouterr().err and time.monotonic() < deadline:
            time.sleep(0.01)
        assert time.monotonic() < deadline, "the compiler is named"
        shown.advance(1)
    assert "simulating, 1 of 2 blocks" in capsys.readouterr().err
    quiet = progress.Progress(None, "simulating", lambda: True)
    with quiet.over(1, 0, "blocks"):
        quiet.advance(1)
    assert capsys.readouterr().err == "", "a library is silent where nobody looks"


def test_settings_of_policies_are_in_the_help(capsys):
    with pytest.raises(SystemExit):
        main(["simulate", "--help"])
    assert "double-sampling:horizon=1500" in "".join(capsys.readouterr().out.split())
