"""A real Dask cluster on this machine, with a worker killed in mid-sweep."""

import os
import signal
import threading
import time
import warnings

import pytest
import xarray as xr

import doublesampling as ds
from doublesampling.engine import simulate as engine

distributed = pytest.importorskip("distributed", reason="Dask is not installed: pip install 'doublesampling[cluster]'")

pytestmark = pytest.mark.filterwarnings("ignore")  # Dask's own

BANDITS = [ds.BernoulliBandit([0.4, 0.8]), ds.BernoulliBandit([0.1, 0.5, 0.6])]
POLICIES = [ds.DoubleSampling(), ds.ThompsonSampling()]


def run(**options: object) -> xr.Dataset:
    return ds.simulate(BANDITS, POLICIES, horizon=400, realizations=640, seed=5, device="cpu", **options)  # type: ignore[arg-type]


@pytest.mark.slow
def test_a_cluster_gives_the_same_numbers_even_when_a_worker_dies(monkeypatch):
    expected = run()
    monkeypatch.setattr(engine, "_REMOTE_SECONDS", 1e-9)
    with (
        warnings.catch_warnings(),
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
    ):
        warnings.simplefilter("ignore")
        same = run(executor=client)
        xr.testing.assert_identical(expected.drop_attrs(), same.drop_attrs())
        victim = next(iter(client.run(os.getpid).values()))
        killed = threading.Event()

        def kill_once(done: int, total: int) -> None:
            if done > total // 4 and not killed.is_set():
                killed.set()
                os.kill(victim, signal.SIGKILL)
                time.sleep(0.1)

        survived = run(executor=client, progress=kill_once)
        assert killed.is_set()
        xr.testing.assert_identical(expected.drop_attrs(), survived.drop_attrs())
