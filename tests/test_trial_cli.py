"""``doublesampling trial``: designs in files."""

from pathlib import Path

import pytest
import xarray as xr

import doublesampling as ds
from doublesampling.cli.main import main

DESIGN = """
arms = ["A", "B", "C"]
horizon = 120
delay = 10

[policy]
class = "ThompsonSampling"

[allocation]
minimum = 0.2
update = "look"

[stopping]
looks = 40
superiority = 0.95
inferiority = 0.05
"""


@pytest.fixture
def design(tmp_path: Path) -> Path:
    path = tmp_path / "design.toml"
    path.write_text(DESIGN)
    return path


def test_a_design_is_simulated(design, tmp_path, capsys):
    out, plot = tmp_path / "found.nc", tmp_path / "found.png"
    truths = ["--truth", "0.3", "0.3", "0.3", "--truth", "0.3", "0.3", "0.6"]
    assert (
        main(
            ["trial", "simulate", str(design), *truths, "--realizations", "40", "--out", str(out), "--plot", str(plot)]
        )
        == 0
    )
    shown = capsys.readouterr().out
    assert "0.3, 0.3, 0.6" in shown
    assert "equal" in shown
    assert "40 realizations, seed 1" in shown
    assert plot.stat().st_size > 1000
    with xr.open_dataset(out) as found:
        again = ds.Trial.read(design).simulate([[0.3] * 3, [0.3, 0.3, 0.6]], 40, seed=1)
        assert found.expected_size.values.tolist() == again.expected_size.values.tolist()


def test_a_design_is_calibrated(design, tmp_path, capsys):
    out = tmp_path / "calibrated.toml"
    given = ["--realizations", "60", "--tolerance", "0.01", "--mirror", "--alpha", "0.1", "--out", str(out)]
    assert main(["trial", "calibrate", str(design), "--null", "0.3", "0.3", "0.3", *given]) == 0
    assert "type I error" in capsys.readouterr().out
    stopping = ds.Trial.read(out).stopping
    assert stopping is not None
    assert isinstance(stopping.superiority, float)
    assert stopping.inferiority == pytest.approx(1.0 - stopping.superiority)
    assert main(["trial", "calibrate", str(design), "--null", "0.3", "0.3", "0.3", "--out", str(out)]) == 1
    assert "would overwrite" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (DESIGN.replace("looks = 40", "looks = [40, 400]"), "within the horizon"),
        (DESIGN.replace("ThompsonSampling", "Thompson"), "policy must have a class"),
        (DESIGN.replace("horizon = 120", ""), "A design needs horizon"),
        (DESIGN.replace("superiority = 0.95", "superiority = 1.5"), "strictly between 0 and 1"),
        ("arms = [", "cannot be read"),
    ],
)
def test_a_wrong_design_is_refused(text, said, tmp_path, capsys):
    path = tmp_path / "design.toml"
    path.write_text(text)
    assert main(["trial", "simulate", str(path), "--truth", "0.3", "0.3", "0.3"]) == 1
    assert said in capsys.readouterr().err


@pytest.mark.slow
def test_a_design_is_computed_exactly(tmp_path, capsys):
    path = tmp_path / "two.toml"
    path.write_text('arms = ["a", "b"]\nhorizon = 40\n[policy]\nclass = "ThompsonSampling"\n')
    assert main(["trial", "exact", str(path), "--truth", "0.3", "0.5"]) == 0
    first = capsys.readouterr().out
    assert "Exact" in first
    assert main(["trial", "exact", str(path), "--truth", "0.3,0.5"]) == 0
    assert capsys.readouterr().out == first


def test_what_cannot_be_computed_exactly_is_said_at_once(tmp_path, capsys):
    path = tmp_path / "three.toml"
    path.write_text('arms = ["a", "b", "c"]\nhorizon = 40\n[policy]\nclass = "ThompsonSampling"\n')
    assert main(["trial", "exact", str(path), "--truth", "0.3", "0.5", "0.6"]) == 1
    assert "for two arms with rewards of 0 and 1 (BetaBernoulli), got 3 arms" in capsys.readouterr().err
    assert main(["trial", "exact", str(path), "--truth", "0.3", "x"]) == 1
    assert "A truth is one number per arm, such as 0.3,0.5, got '0.3,x'" in capsys.readouterr().err
