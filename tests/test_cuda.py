"""The CUDA driver without a GPU: it compiles to PTX, and in the simulator it walks the CPU's steps."""

import os
import subprocess
import sys

import pytest

pytest.importorskip("numba_cuda", reason="numba-cuda is not installed: pip install 'doublesampling[cuda]'")

PARITY = """
import sys, warnings; warnings.simplefilter("ignore")
import numpy as np, doublesampling as ds
from doublesampling.engine import cuda
from doublesampling.engine.blocks import Moments, Unit, play_block
from doublesampling.engine.plan import make_plan
some = [ds.DoubleSampling(samples=50), ds.ThompsonSampling(), ds.Greedy()]
others = [ds.DoubleSampling(samples=9, ties="first"), ds.DoubleSampling(horizon=4), ds.BayesUCB(), ds.TopTwo(),
          ds.BayesUCB(samples=20), ds.EpsilonGreedy(0.2), ds.Oracle(), ds.InformationDirected(),
          ds.EpsilonThompson(0.4), ds.DoubleSampling.anytime()]
long = sys.argv[1] == "all"
few = others if long else others[1:2]  # Bernoulli arms are played by all of them
counting = [ds.UCB1(), ds.KLUCB(), ds.IMED(), ds.FiniteHorizonGittins(horizon=4)]
linear = ds.LinearGaussianBandit(weights=[[0.4, 0.4], [0.8, 0.8]], noise=0.2)
two = [ds.BernoulliBandit([0.4, 0.8]), ds.BernoulliBandit([0.3, 0.5])]
cases = [
    (two, None, some[:2], 35),  # more than the threads of a warp
    (two[:1], None, some[2:] + others + counting, 3),
    ([ds.BernoulliBandit([0.4, 0.7, 0.8])], None, some + [ds.InformationDirected(samples=20)], 3),
    # arms that are equally good would leave it to the eighth digit of p where a binomial walk begins
    ([ds.BernoulliBandit([0.4, 0.7, 0.8, 0.2])], ds.BetaBernoulli(arms=4, alpha=(1.1, 1.3, 1.7, 0.9)), some, 2),
    ([ds.BernoulliBandit([0.4, 0.8])], ds.BetaBernoulli(arms=2, discount=0.9), some, 3),
    ([ds.ChangingBernoulliBandit([[0.2, 0.8], [0.8, 0.2]], every=1)], None, some, 3),
    ([ds.PoissonBandit([1.0, 2.0])], None, some + few, 3),
    ([ds.ExponentialBandit([1.0, 2.0])], None, some, 3),
    ([linear], None, some + few + [ds.LinUCB()], 3),
    ([linear], ds.LinearGaussian(arms=2, dimension=2, discount=0.9), some, 3),
    ([ds.GaussianBandit([0.1, 0.5, 0.2])], None, some, 2),
    ([ds.LogisticBandit(weights=[[1.0, -1.0], [0.0, 0.5]])], None, some, 3),
    ([ds.CategoricalBandit([[0.5, 0.3, 0.2], [0.4, 0.3, 0.3]], values=(0, 1, 5))], None, some, 2),
]
for worlds, belief, policies, realizations in cases:
    realizations = realizations if long or realizations > 3 else 2
    plan = make_plan(worlds, policies, horizon=4 if long else 2, realizations=realizations, seed=3, belief=belief)
    gpu = cuda.play_all(plan)
    for i in range(len(worlds)):
        for j in range(len(policies)):
            cpu = Moments()
            cpu.add(0, play_block(plan, Unit(i, j, 0)))
            for ours, theirs in ((gpu[i][j].means, cpu.means), (gpu[i][j].squares, cpu.squares),
                                 (np.concatenate(gpu[i][j].final), np.concatenate(cpu.final))):
                np.testing.assert_allclose(ours, theirs, rtol=1e-7, atol=1e-9, err_msg=f"{worlds} {policies[j]}")
print("equal")
"""


@pytest.mark.parametrize("policies", ["some", pytest.param("all", marks=pytest.mark.slow)])
def test_kernels_in_the_simulator_walk_the_steps_of_the_cpu(policies):
    """Both in plain Python here: the drivers are compared, realization by realization, for every family."""
    environment = os.environ | {"NUMBA_ENABLE_CUDASIM": "1"}
    done = subprocess.run([sys.executable, "-c", PARITY, policies], env=environment, capture_output=True, text=True)
    assert done.stdout.strip() == "equal", done.stderr[-3000:]


COMPILE = """
import warnings; warnings.simplefilter("ignore")
from types import SimpleNamespace
import numpy as np, numba
from numba import cuda
from numba.cuda import dispatcher
dispatcher.get_current_device = lambda: SimpleNamespace(compute_capability=(9, 0))  # there is none: name one
import doublesampling as ds
from doublesampling.engine import cuda as driver
from doublesampling.engine.cuda_kernels import Launch, Sums
from doublesampling.engine.plan import make_plan
import sys
world = {"Bernoulli": ds.BernoulliBandit([0.4, 0.7, 0.8]), "Poisson": ds.PoissonBandit([1.0, 2.0]),
         "linear": ds.LinearGaussianBandit(weights=[[0.4, 0.4], [0.8, 0.8]])}[sys.argv[1]]
plan = make_plan([world], [ds.DoubleSampling()], horizon=4, realizations=35, seed=3)
problem, policy = plan.problems[0], plan.policies[0]
arguments = (
    Launch(np.uint64(3), np.zeros(1, np.uint64), 0, 35, 4, np.asarray(plan.columns)),
    driver.stacked([problem.world]), driver.stacked([problem.prior]), policy.settings_for(problem),
    Sums(np.zeros((1, 2, 9, 4)), np.zeros((1, 35))),
)
signature = tuple(numba.typeof(argument) for argument in arguments)
ptx, _ = cuda.compile_ptx(driver.kernel_for(problem, policy).py_func, signature, cc=(9, 0))
assert ".visible .entry" in ptx and "shfl.sync" in ptx
print("compiled")
"""


@pytest.mark.parametrize(
    "world", ["Bernoulli", *(pytest.param(w, marks=pytest.mark.slow) for w in ("Poisson", "linear"))]
)
def test_kernels_compile_to_ptx_without_a_device(world):
    done = subprocess.run([sys.executable, "-c", COMPILE, world], capture_output=True, text=True)
    if "NotFoundError" in done.stderr and "compiled" not in done.stdout:
        pytest.skip("NVVM and NVRTC are not installed: pip install nvidia-nvvm nvidia-cuda-nvrtc")
    assert done.stdout.strip() == "compiled", done.stderr[-3000:]
