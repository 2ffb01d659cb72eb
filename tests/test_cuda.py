"""The CUDA driver without a GPU: it compiles to PTX, and in the simulator it walks the CPU's steps."""

import os
import subprocess
import sys

import pytest

pytest.importorskip("numba_cuda", reason="numba-cuda is not installed: pip install 'doublesampling[cuda]'")

PARITY = """
import warnings; warnings.simplefilter("ignore")
import numpy as np, doublesampling as ds
from doublesampling.engine import cuda
from doublesampling.engine.blocks import Moments, Unit, play_block
from doublesampling.engine.plan import make_plan
policies = [ds.DoubleSampling(samples=50), ds.DoubleSampling(samples=9, ties="first"), ds.ThompsonSampling(),
            ds.BayesUCB(), ds.BayesUCB(samples=20), ds.Greedy(), ds.EpsilonGreedy(0.2), ds.Oracle()]
worlds = [ds.BernoulliBandit([0.4, 0.8]), ds.BernoulliBandit([0.3, 0.5]), ds.BernoulliBandit([0.4, 0.7, 0.8]),
          ds.LinearGaussianBandit(weights=[[0.4, 0.4], [0.8, 0.8]], noise=0.2)]
plan = make_plan(worlds, policies, horizon=4, realizations=35, seed=3)
gpu = cuda.play_all(plan)
for i in range(len(worlds)):
    for j in range(len(policies)):
        cpu = Moments()
        cpu.add(0, play_block(plan, Unit(i, j, 0)))
        for ours, theirs in ((gpu[i][j].means, cpu.means), (gpu[i][j].squares, cpu.squares),
                             (np.concatenate(gpu[i][j].final), np.concatenate(cpu.final))):
            np.testing.assert_allclose(ours, theirs, rtol=1e-7, atol=1e-9)
print("equal")
"""


def test_kernels_in_the_simulator_walk_the_steps_of_the_cpu():
    """Both in plain Python here: the drivers are compared, realization by realization."""
    environment = os.environ | {"NUMBA_ENABLE_CUDASIM": "1"}
    done = subprocess.run([sys.executable, "-c", PARITY], env=environment, capture_output=True, text=True)
    assert done.stdout.strip() == "equal", done.stderr[-3000:]


COMPILE = """
import warnings; warnings.simplefilter("ignore")
from types import SimpleNamespace
import numba
from numba import cuda, types
from numba.cuda import dispatcher
dispatcher.get_current_device = lambda: SimpleNamespace(compute_capability=(9, 0))  # there is none: name one
from doublesampling.engine import cuda as driver
f1, f2, f3, f4 = (types.Array(types.float64, n, "C") for n in (1, 2, 3, 4))
i1, u1 = types.Array(types.int64, 1, "C"), types.Array(types.uint64, 1, "C")
head, tail = (types.uint64, u1, types.int64, types.int64, types.int64), (i1, f1, f2, i1, f4, f2)
beta = driver.beta_kernel(3, True).py_func
gaussian = driver.gaussian_kernel(2, 2, 2).py_func
for kernel, middle in (
    (beta, (f2, f2, f2, f2)),
    (gaussian, (f3, f2, types.int64, f3, types.boolean, types.boolean, f3, f4, f2, f2, f2, types.boolean)),
):
    ptx, _ = cuda.compile_ptx(kernel, (*head, *middle, *tail), cc=(9, 0))
    assert ".visible .entry" in ptx and "shfl.sync" in ptx
print("compiled")
"""


def test_kernels_compile_to_ptx_without_a_device():
    done = subprocess.run([sys.executable, "-c", COMPILE], capture_output=True, text=True)
    if "NotFoundError" in done.stderr and "compiled" not in done.stdout:
        pytest.skip("NVVM and NVRTC are not installed: pip install nvidia-nvvm nvidia-cuda-nvrtc")
    assert done.stdout.strip() == "compiled", done.stderr[-3000:]
