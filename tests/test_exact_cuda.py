"""Exact computations on a GPU, without one: in the simulator they give the numbers of the CPU, and compile to PTX."""

import os
import subprocess
import sys

import pytest

pytest.importorskip("numba_cuda", reason="numba-cuda is not installed: pip install 'doublesampling[cuda]'")

PARITY = """
import warnings; warnings.simplefilter("ignore")
import numpy as np, doublesampling as ds
uneven = ((1.0, 2.0), (3.0, 1.5))
for prior in (None, uneven):
    cpu, gpu = (ds.bayes_optimal(6, prior=prior, keep=6, device=device) for device in ("cpu", "cuda"))
    assert abs(cpu.successes - gpu.successes) < 1e-12
    assert all((a == b).all() for a, b in zip(cpu.decisions, gpu.decisions, strict=True))
    doubled = ds.DoubleSampling(samples=None, horizon=9)
    for policy in (ds.ThompsonSampling(), doubled, ds.Greedy(), ds.KLUCB(ties="first")):
        for theta in (None, (0.3, 0.8)):
            cpu, gpu = (ds.exact_regret(policy, 5, prior=prior, theta=theta, device=d) for d in ("cpu", "cuda"))
            assert abs(cpu - gpu) < 1e-12, (policy, prior, theta)
print("equal")
"""


def test_kernels_in_the_simulator_give_the_numbers_of_the_cpu():
    environment = os.environ | {"NUMBA_ENABLE_CUDASIM": "1"}
    done = subprocess.run([sys.executable, "-c", PARITY], env=environment, capture_output=True, text=True)
    assert done.stdout.strip() == "equal", done.stderr[-3000:]


COMPILE = """
import warnings; warnings.simplefilter("ignore")
from types import SimpleNamespace
import numpy as np, numba
from numba import cuda
from numba.cuda import dispatcher
dispatcher.get_current_device = lambda: SimpleNamespace(compute_capability=(9, 0))  # there is none: name one
import doublesampling as ds
from doublesampling.exact import cuda_kernels as kernels
one, two, three = np.zeros(1), np.zeros((2, 2)), np.zeros((3, 3, 2))
policy = ds.DoubleSampling(samples=None, horizon=9)
index = ds.FiniteHorizonGittins(horizon=9)
form, settings = policy.rule()
tabled = settings._replace(table=np.zeros((1, 1)))
calls = [
    (kernels.improve_kernel(), (2, True, two, one, one, np.zeros(1, np.int8), True)),
    (kernels.edge_kernel(), (2, 2, two, three, three)),
    (kernels.share_kernel(policy.kind, form), (2, two, three, three, settings, one, one)),
    (kernels.share_kernel(index.kind, index.rule()[0]), (2, two, three, three, tabled, one, one)),
    (kernels.split_kernel(), (2, one, one)),
    (kernels.advance_kernel(), (2, True, one, one, one)),
]
for kernel, arguments in calls:
    ptx, _ = cuda.compile_ptx(kernel.py_func, tuple(map(numba.typeof, arguments)), cc=(9, 0))
    assert ".visible .entry" in ptx
print("compiled")
"""


@pytest.mark.slow
def test_kernels_compile_to_ptx_without_a_device():
    done = subprocess.run([sys.executable, "-c", COMPILE], capture_output=True, text=True)
    if "NotFoundError" in done.stderr and "compiled" not in done.stdout:
        pytest.skip("NVVM and NVRTC are not installed: pip install nvidia-nvvm nvidia-cuda-nvrtc")
    assert done.stdout.strip() == "compiled", done.stderr[-3000:]
