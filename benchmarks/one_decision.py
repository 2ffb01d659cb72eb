"""Microseconds of one ``decide`` and one ``update``: ``python benchmarks/one_decision.py [OLD/src NEW/src]``.

Without source trees it measures the installed package; with several it measures them in turns and prints the ratio of
the last to the first. Processor time of one thread, the best of all rounds; states are those of a run of 500 decisions.
"""

import json
import subprocess
import sys

ROUNDS = 3
CASES = [
    ("2 Beta arms", "DoubleSampling()"),
    ("2 Beta arms", "ThompsonSampling()"),
    ("2 linear arms, d = 2", "DoubleSampling()"),
]

CODE = """
import json, sys, time
if sys.argv[1]:
    sys.path.insert(0, sys.argv[1])
import numpy as np
import doublesampling as ds
world, policy = json.loads(sys.argv[2])
rng = np.random.default_rng(1)
belief, draw, context = {
    "2 Beta arms": (ds.BetaBernoulli(arms=2), lambda arm: float(rng.random() < [0.4, 0.5][arm]), None),
    "2 linear arms, d = 2": (ds.LinearGaussian(arms=2, dimension=2), lambda arm: rng.normal(), [0.3, 0.7]),
}[world]
policy = eval("ds." + policy)
def run(steps):
    state = belief.prior()
    clock = time.process_time
    states = []
    for _ in range(steps):  # a real path of states
        arm = ds.decide(policy, belief, state, context, seed=1).arm
        reward = draw(arm)
        states.append((state, arm, reward))
        state = belief.update(state, arm, reward, context)
    began = clock()
    for state, _, _ in states:
        ds.decide(policy, belief, state, context, seed=1)
    middle = clock()
    for state, arm, reward in states:
        belief.update(state, arm, reward, context)
    return (middle - began) / steps, (clock() - middle) / steps
run(20)
print(json.dumps(np.min([run(500) for _ in range(8)], axis=0).tolist()))
"""


def measure(source: str, case: tuple[str, str]) -> tuple[float, float]:
    """Return seconds per decision and per update of a case, in a process of its own."""
    command = [sys.executable, "-c", CODE, source, json.dumps(case)]
    deciding, learning = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    return deciding, learning


def main() -> None:
    """Print one line per case and source tree."""
    sources = sys.argv[1:] or [""]
    print("| | policy | decide, µs | update, µs | both, µs |\n| --- | --- | ---: | ---: | ---: |")
    for case in CASES:
        rounds = [[measure(source, case) for source in sources] for _ in range(ROUNDS)]
        totals = []
        for i in range(len(sources)):
            deciding, learning = (1e6 * min(turn[i][part] for turn in rounds) for part in (0, 1))
            totals.append(deciding + learning)
            label = case[0] if len(sources) == 1 else f"{case[0]}, tree {i + 1}"
            print(f"| {label} | `{case[1]}` | {deciding:.1f} | {learning:.1f} | {totals[-1]:.1f} |", flush=True)
        if len(sources) > 1:
            print(f"| | ratio of both | | | {totals[-1] / totals[0]:.2f} |", flush=True)


if __name__ == "__main__":
    main()
