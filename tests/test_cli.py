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
