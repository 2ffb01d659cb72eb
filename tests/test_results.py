"""Results: errors by the sample variance, pictures that say what they show, tables, the accessor after reloading."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from matplotlib.figure import Figure

import doublesampling as ds
from doublesampling.errors import SettingError

FIFTY = [ds.BernoulliBandit([0.1, 0.1 + 0.015 * k]) for k in range(1, 51)]


@pytest.fixture(scope="module")
def fifty() -> xr.Dataset:
    """Fifty problems, two policies."""
    return ds.simulate(FIFTY, {"ours": ds.DoubleSampling(), "greedy": ds.Greedy()}, horizon=20, realizations=5, seed=1)


@pytest.mark.parametrize("realizations", [2, 10, 130])
def test_errors_are_those_of_the_sample_variance(realizations: int) -> None:
    """What SciPy calls the standard error of the mean, at every step, for regrets and for rates."""
    found = ds.simulate(
        ds.BernoulliBandit([0.4, 0.8]), [ds.ThompsonSampling()], horizon=12, realizations=realizations, seed=3,
        keep="trajectories",
    )  # fmt: skip
    from scipy import stats

    arms = found.trajectory_arm.values[0, 0].astype(int)
    regret = np.cumsum(0.8 - np.array([0.4, 0.8])[arms], axis=1)
    expected = stats.sem(regret, axis=0)
    np.testing.assert_allclose(found.cumulative_regret_error.values[0, 0], expected, atol=1e-12)
    np.testing.assert_allclose(found.cumulative_regret_std.values[0, 0], regret.std(axis=0, ddof=1), atol=1e-12)
    rates = stats.sem((arms == 1).astype(float), axis=0)
    np.testing.assert_allclose(found.optimal_arm_rate_error.values[0, 0], rates, atol=1e-12)


def test_one_realization_has_no_error_and_says_so() -> None:
    """nan, not 0; and the dataset says why."""
    found = ds.simulate(ds.BernoulliBandit([0.4, 0.8]), [ds.ThompsonSampling()], horizon=5, realizations=1, seed=3)
    for name in ("cumulative_regret", "observed_cumulative_regret", "optimal_arm_rate"):
        for kind in ("std", "error"):
            assert np.isnan(found[f"{name}_{kind}"].values).all()
            assert "one realization has none" in found[f"{name}_{kind}"].attrs["long_name"]
    assert np.isfinite(found.cumulative_regret.values).all()
    figure = found.ds.plot_regret()
    assert not figure.axes[0].collections, "no band"
    assert figure.axes[0].get_ylabel() == "cumulative regret"


def test_several_bandits_are_averaged_and_the_title_says_so(fifty: xr.Dataset) -> None:
    """Never silently the first one; the band goes from the 10th to the 90th per cent of the bandits."""
    axes = fifty.ds.plot_regret().axes[0]
    assert axes.get_title() == "mean of 50 bandits, band: 10% to 90% of them"
    for line, policy in zip(axes.lines, ("ours", "greedy"), strict=True):
        expected = fifty.cumulative_regret.sel(policy=policy).mean("bandit").values
        assert np.asarray(line.get_ydata()) == pytest.approx(expected)
    assert axes.get_ylabel() == "cumulative regret"
    one = fifty.ds.plot_regret(bandit=7).axes[0]
    assert one.get_title() == "bandit 7"
    assert np.asarray(one.lines[0].get_ydata()) == pytest.approx(fifty.cumulative_regret.values[7, 0])
    assert one.get_ylabel() == "cumulative regret (± 2 standard errors)"


@pytest.mark.parametrize("name", ["plot_regret", "plot_optimal_arm", "plot_candidates"])
def test_pictures_work_after_choosing_and_averaging(fifty: xr.Dataset, name: str) -> None:
    """As people do it with xarray: isel, sel, mean."""
    for part, lines, title in (
        (fifty.isel(bandit=3), 2, "bandit 3"),
        (fifty.sel(policy="ours"), 1, "mean of 50 bandits, band: 10% to 90% of them"),
        (fifty.sel(policy="ours").isel(bandit=[4]), 1, "bandit 4"),
        (fifty.mean("bandit"), 2, ""),
        (fifty.isel(bandit=0, policy=0), 1, "bandit 0"),
    ):
        axes = getattr(part.ds, name)().axes[0]
        assert len(axes.lines) == lines
        assert axes.get_title() == title


def test_pictures_go_into_given_axes(fifty: xr.Dataset) -> None:
    """One's own figure, two panels."""
    figure = Figure()
    left, right = figure.subplots(1, 2)
    assert fifty.ds.plot_regret(bandit=0, ax=left) is figure
    fifty.ds.plot_optimal_arm(bandit=0, ax=right)
    assert len(left.lines) == len(right.lines) == 2


def test_bandits_have_names() -> None:
    """A dictionary names them, as it does policies; unknown names are refused in our words."""
    easy, hard = ds.BernoulliBandit([0.1, 0.9]), ds.BernoulliBandit([0.5, 0.55])
    found = ds.simulate({"easy": easy, "hard": hard}, [ds.Greedy()], horizon=5, realizations=2, seed=1)
    assert found.bandit.values.tolist() == ["easy", "hard"]
    assert found.ds.plot_regret(bandit="hard").axes[0].get_title() == "bandit hard"
    with pytest.raises(SettingError, match="bandit must be one of 'easy', 'hard', got 'eassy'"):
        found.ds.plot_regret(bandit="eassy")
    with pytest.raises(SettingError, match="bandit must be one of"):
        found.ds.plot_regret(bandit=0)
    same = ds.simulate([easy, hard], [ds.Greedy()], horizon=5, realizations=2, seed=1)
    assert (same.cumulative_regret.values == found.cumulative_regret.values).all(), "a name changes no number"


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda r: r.ds.plot_regret(bandit=50), "one of 0, 1, 2, 3, 4 and 45 others, got 50"),
        (lambda r: r.isel(bandit=0).ds.plot_regret(bandit=1), "one bandit only"),
        (lambda r: r.isel(time=-1).ds.plot_regret(), "time axis"),
        (lambda r: r[["candidates"]].ds.plot_regret(), "as ds.simulate returns it"),
        (lambda r: r.ds.plot_regret(spread="sd"), "spread must be"),
        (lambda r: r.ds.plot_regret(ax=3), "matplotlib axes"),
        (lambda r: r[["candidates"]].ds.table(), "no 'cumulative_regret'"),
    ],
)
def test_wrong_wishes_of_pictures(fifty: xr.Dataset, call, words: str) -> None:
    with pytest.raises(SettingError, match=words):
        call(fifty)


def test_the_table_is_a_dataframe(fifty: xr.Dataset) -> None:
    """One row per bandit and policy; parts of a result have one, too."""
    table = fifty.ds.table()
    assert isinstance(table, pd.DataFrame)
    assert table.columns.tolist() == ["bandit", "policy", "regret", "error", "best"]
    assert len(table) == 100
    row = table[(table.bandit == 7) & (table.policy == "greedy")].iloc[0]
    assert row.regret == fifty.cumulative_regret.values[7, 1, -1]
    assert row.error == fifty.cumulative_regret_error.values[7, 1, -1]
    assert len(fifty.isel(bandit=3).ds.table()) == 2
    assert len(fifty.mean("bandit").sel(policy="ours").ds.table()) == 1


def test_figures_appear_in_notebooks_without_magic(fifty: xr.Dataset) -> None:
    """What IPython calls on the last value of a cell."""
    assert fifty.ds.plot_regret()._repr_png_().startswith(b"\x89PNG")


@pytest.mark.parametrize("order", ["import doublesampling, xarray as xr", "import xarray as xr, doublesampling"])
def test_a_reloaded_result_has_the_accessor(order: str, tmp_path: Path, fifty: xr.Dataset) -> None:
    """As soon as doublesampling is imported, before or after xarray, which it does not load by itself."""
    fifty.isel(bandit=[0]).to_netcdf(tmp_path / "r.nc", engine="scipy")
    code = f"""
import sys
{order}
with xr.open_dataset({str(tmp_path / "r.nc")!r}, engine="scipy") as found:
    print(len(found.ds.table()), type(found.ds).__module__, len(found.ds.plot_regret().axes))
"""
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True)
    assert done.stdout.split() == ["2", "doublesampling.accessor", "1"], done.stderr
