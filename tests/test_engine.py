"""The engine: exact truth, the same numbers in any chunks, the same steps as decide, stores and errors."""

import itertools
import math
import warnings
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
import xarray as xr

import doublesampling as ds
from doublesampling.engine import simulate as engine
from doublesampling.engine.plan import make_plan
from doublesampling.errors import Interrupted, LongRunWarning, SettingError, StoreError
from doublesampling.rules import entry_points
from doublesampling.rules.laws import BETA
from tests import exact
from tests.chance import assert_mean
from tests.short import short

BERNOULLI = ds.BernoulliBandit([0.4, 0.8])
LINEAR = ds.LinearGaussianBandit(weights=[[0.4, 0.4], [0.8, 0.8]], noise=0.2)
EVERY = [
    ds.DoubleSampling(),
    ds.DoubleSampling(samples=None),
    ds.DoubleSampling(horizon=60),
    ds.DoubleSampling.as_published(),
    ds.ThompsonSampling(),
    ds.BayesUCB(),
    ds.BayesUCB(samples=20),
    ds.Greedy(),
    ds.EpsilonGreedy(0.2),
    ds.TopTwo(),
    ds.Oracle(),
]


def run(bandits, policies, **options):
    settings: Any = {"horizon": 40, "realizations": 150, "seed": 3, "device": "cpu"} | options
    return ds.simulate(bandits, policies, **settings)


def same(first, second):
    """Equal to the last bit, but for the date."""
    xr.testing.assert_identical(first.drop_attrs(), second.drop_attrs())


SMALL = 12  # samples: few enough that the oracle lists every candidate vote
TRUTHS = [
    (ds.DoubleSampling(samples=SMALL), exact.double_sampling),
    (ds.DoubleSampling(samples=SMALL, ties="first"), exact.double_sampling),
    (ds.DoubleSampling(samples=SMALL, false_alarm="markov", log_base=math.e, scale=2.0), exact.double_sampling),
    (ds.DoubleSampling(samples=SMALL, false_alarm="chebyshev", log_base=math.e, scale=3.0), exact.double_sampling),
    (ds.DoubleSampling.as_published(samples=SMALL, max_candidates=7), exact.double_sampling),
    (ds.DoubleSampling(samples=SMALL, horizon=14, max_candidates=9), exact.double_sampling),
    (ds.DoubleSampling(samples=SMALL, horizon=14, count="doubt"), exact.double_sampling),
    (ds.DoubleSampling.anytime(samples=SMALL), exact.double_sampling),
    (ds.ThompsonSampling(), lambda _: exact.thompson),
    (ds.BayesUCB(), lambda policy: exact.bayes_ucb(policy.ties)),
    (ds.BayesUCB(ties="first"), lambda policy: exact.bayes_ucb(policy.ties)),
    (ds.Greedy(), lambda policy: exact.greedy(policy.ties)),
    (ds.Greedy(ties="first"), lambda policy: exact.greedy(policy.ties)),
    (ds.EpsilonGreedy(0.3), lambda policy: exact.greedy(policy.ties, policy.epsilon)),
    (ds.TopTwo(), lambda policy: exact.top_two(policy.share)),
    (ds.TopTwo(0.8), lambda policy: exact.top_two(policy.share)),
]


@pytest.mark.parametrize("prior", [(1.0, 1.0), (0.5, 2.0)])
@pytest.mark.parametrize(("policy", "truth"), TRUTHS, ids=lambda value: repr(value) if hasattr(value, "choose") else "")
def test_simulated_regret_is_the_exact_one(policy, truth, prior):
    theta, horizon = (0.7, 0.45), 12
    expected = exact.expected_regret(theta, prior, horizon, truth(policy))
    belief = ds.BetaBernoulli(arms=2, alpha=prior[0], beta=prior[1])
    found = run(ds.BernoulliBandit(theta), [policy], belief=belief, horizon=horizon, realizations=40_000)
    assert_mean(found.final_regret.values[0, 0], expected)


@pytest.mark.parametrize("prior", [(1.0, 1.0), (0.5, 2.0)])
@pytest.mark.parametrize(
    ("policy", "value"),
    [
        (ds.UCB1(), exact.ucb1_value),
        (ds.UCB1(ties="first"), exact.ucb1_value),
        (ds.KLUCB(), exact.kl_ucb_value),
        (ds.IMED(), exact.imed_value),
        (ds.IMED(ties="first"), exact.imed_value),
    ],
    ids=lambda value: repr(value) if hasattr(value, "choose") else "",
)
def test_indices_have_the_exact_regret_whatever_the_prior(policy, value, prior):
    theta, horizon = (0.7, 0.45), 12
    expected = exact.expected_regret(theta, prior, horizon, exact.by_index(value, policy.ties, prior))
    belief = ds.BetaBernoulli(arms=2, alpha=prior[0], beta=prior[1])
    found = run(ds.BernoulliBandit(theta), [policy], belief=belief, horizon=horizon, realizations=40_000)
    assert_mean(found.final_regret.values[0, 0], expected)


def test_policies_for_one_kind_of_reward_are_refused_elsewhere():
    for policy, world in ((ds.KLUCB(), LINEAR), (ds.LinUCB(), BERNOULLI)):
        with pytest.raises(SettingError, match="is for"):
            run(world, [policy])
    with pytest.raises(SettingError, match="wins and losses"):
        ds.decide(ds.UCB1(), ds.Gaussian(arms=2), ds.Gaussian(arms=2).prior())
    with pytest.raises(SettingError, match="draws do not show"):
        ds.decide_from_draws(ds.IMED(), [[0.1, 0.2]] * 20, time=3)
    with pytest.raises(SettingError, match="KLUCB"):
        ds.decide(ds.LinUCB(), ds.BetaBernoulli(arms=2), ds.BetaBernoulli(arms=2).prior())


def test_long_runs_of_the_papers_rule_are_warned_of():
    options = {"realizations": 1, "times": "log", "horizon": 10_001}
    with pytest.warns(LongRunWarning, match="horizon=10001"):
        run(BERNOULLI, [ds.DoubleSampling()], **options)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run(BERNOULLI, [ds.DoubleSampling(horizon=10_001), ds.DoubleSampling(max_candidates=1)], **options)
        run(BERNOULLI, [ds.DoubleSampling()], **(options | {"horizon": 10_000}))


def test_a_horizon_that_has_passed_keeps_working():
    found = run(BERNOULLI, [ds.DoubleSampling(horizon=30)], horizon=90, realizations=500)
    rate = found.optimal_arm_rate.values[0, 0]
    assert rate[80:].mean() > rate[20:30].mean() > 0.8


def test_oracle_has_no_regret():
    found = run([BERNOULLI, ds.BernoulliBandit([0.9, 0.1])], [ds.Oracle()])
    assert (found.cumulative_regret == 0).all()
    assert (found.optimal_arm_rate == 1).all()


WORLDS = [
    BERNOULLI,
    ds.BernoulliBandit([0.2, 0.5, 0.6]),
    ds.BernoulliBandit([0.2, 0.5, 0.6, 0.7]),
    LINEAR,
    ds.GaussianBandit([0.0, 0.5], noise=(1.0, 0.5)),
]


def check_chunks(bandit, policies, monkeypatch):
    one = run(bandit, policies, threads=1)
    same(one, run(bandit, policies, threads=5))
    monkeypatch.setattr(engine, "_LOCAL_SECONDS", 1e-9)
    same(one, run(bandit, policies, threads=2))
    with ThreadPoolExecutor(3) as pool:
        same(one, run(bandit, policies, executor=pool))


@pytest.mark.parametrize("bandit", WORLDS, ids=repr)
def test_policies_give_the_same_numbers_in_any_chunks(bandit, monkeypatch):
    check_chunks(bandit, short(EVERY, bandit), monkeypatch)


@pytest.mark.slow
@pytest.mark.parametrize("bandit", WORLDS, ids=repr)
def test_every_policy_gives_the_same_numbers_in_any_chunks(bandit, monkeypatch):
    check_chunks(bandit, EVERY, monkeypatch)


def test_blocks_that_arrive_in_any_order_give_the_same_numbers():
    class Backwards(ThreadPoolExecutor):
        """Finishes the later pieces first."""

        def submit(self, call, /, *arguments):  # type: ignore[override]
            future: Future[Any] = Future()
            waiting.append((future, call, arguments))
            if len(waiting) == 5:
                for late, work, given in reversed(waiting):
                    late.set_result(work(*given))
            return future

    waiting: list[Any] = []
    expected = run(BERNOULLI, [ds.DoubleSampling()], realizations=64 * 5)
    original, engine._REMOTE_SECONDS = engine._REMOTE_SECONDS, 1e-9
    try:
        same(expected, run(BERNOULLI, [ds.DoubleSampling()], realizations=64 * 5, executor=Backwards()))
    finally:
        engine._REMOTE_SECONDS = original


def test_processes_give_the_same_numbers():
    with ProcessPoolExecutor(2) as pool:
        policies = short(EVERY, LINEAR)
        same(run(LINEAR, policies), run(LINEAR, policies, executor=pool))


def test_moments_are_those_of_the_trajectories():
    found = run(BERNOULLI, EVERY, keep=("trajectories",))
    played = found.trajectory_arm.values.astype(int)
    regret = np.cumsum(0.8 - np.array([0.4, 0.8])[played], axis=-1)
    np.testing.assert_allclose(found.cumulative_regret.values, regret.mean(axis=2), atol=1e-12)
    np.testing.assert_allclose(found.cumulative_regret_std.values, regret.std(axis=2, ddof=1), atol=1e-12)
    np.testing.assert_allclose(found.final_regret.values, regret[..., -1], atol=1e-12)
    observed = np.cumsum(0.8 - found.trajectory_reward.values, axis=-1)
    np.testing.assert_allclose(found.observed_cumulative_regret.values, observed.mean(axis=2), atol=1e-12)
    np.testing.assert_allclose(found.observed_cumulative_regret_std.values, observed.std(axis=2, ddof=1), atol=1e-12)
    np.testing.assert_allclose(found.optimal_arm_rate.values, (played == 1).mean(axis=2), atol=1e-12)
    np.testing.assert_allclose(
        found.candidates.values, found.trajectory_candidates.mean("realization").values, atol=1e-9
    )


@pytest.mark.parametrize("theta", [(0.4, 0.8), (0.4, 0.7, 0.8), (0.3, 0.45, 0.5, 0.55, 0.6)], ids=repr)
def test_probabilities_along_a_run_are_exact(theta):
    """Recurrences and carried densities against quadrature from scratch, along whole trajectories."""
    arms = len(theta)
    found = run(
        ds.BernoulliBandit(theta), [ds.DoubleSampling(samples=None)], horizon=1500, realizations=3, keep="trajectories"
    )
    played, rewards = found.trajectory_arm.values[0, 0].astype(int), found.trajectory_reward.values[0, 0]
    for r in range(3):
        alpha, beta = np.ones(arms), np.ones(arms)
        for t in range(1500):
            if t % 11 == 0 or t < 20:
                p = entry_points.exact_optimality(BETA, np.column_stack([alpha, beta, np.zeros(arms)]))
                seen = found.trajectory_probability_optimal.values[0, 0, r, t]
                np.testing.assert_allclose(seen, p, atol=1e-6)
            arm, paid = played[r, t], rewards[r, t]
            alpha[arm] += paid
            beta[arm] += 1 - paid


STEPPED = [
    EVERY[0],
    EVERY[2],
    ds.ThompsonSampling(),
    ds.BayesUCB(),
    ds.Greedy(),
    ds.EpsilonGreedy(0.2),
    ds.TopTwo(0.6),
    ds.UCB1(),
    ds.KLUCB(),
    ds.IMED(),
]


@pytest.mark.parametrize("policy", STEPPED, ids=repr)
def test_the_engine_walks_the_steps_that_decide_walks(policy):
    """Realization 0 of bandit 0 has the addresses of decide: the same arms, step by step."""
    found = run(BERNOULLI, [policy], realizations=1, keep="trajectories", horizon=60)
    belief = ds.BetaBernoulli(arms=2)
    state = belief.prior()
    for t in range(60):
        decision = ds.decide(policy, belief, state, seed=3, time=t + 1)
        assert decision.arm == int(found.trajectory_arm.values[0, 0, 0, t])
        assert decision.candidates == int(found.trajectory_candidates.values[0, 0, 0, t])
        reward = BERNOULLI.reward(decision.arm, seed=3, time=t + 1)
        assert reward == float(found.trajectory_reward.values[0, 0, 0, t])
        state = belief.update(state, decision.arm, reward)


def test_policies_meet_the_same_luck():
    found = run(BERNOULLI, [ds.Greedy(), ds.EpsilonGreedy(0.9)], keep="trajectories")
    arms, rewards = found.trajectory_arm.values[0], found.trajectory_reward.values[0]
    together = arms[0] == arms[1]
    assert together.any()
    assert (rewards[0][together] == rewards[1][together]).all()


def test_contexts_can_be_shared_given_or_constant():
    path = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    weights = [[1.0, 0.0], [0.0, 1.0]]
    given = ds.LinearGaussianBandit(weights=weights, noise=0.0, context=path)
    found = run(given, [ds.Oracle()], keep="trajectories", horizon=6, realizations=2)
    assert found.trajectory_reward.values[0, 0, 0].tolist() == [1.0] * 6
    assert found.trajectory_arm.values[0, 0, 0, :2].tolist() == [0.0, 1.0]
    for path_kind, equal in (("shared", True), ("fresh", False)):
        world = ds.LinearGaussianBandit(weights=weights, noise=0.0, path=path_kind)
        rewards = run(world, [ds.Oracle()], keep="trajectories", realizations=2).trajectory_reward.values[0, 0]
        assert (rewards[0] == rewards[1]).all() == equal
    constant = ds.LinearGaussianBandit(weights=weights, noise=0.0, context=[2.0, 3.0])
    assert (run(constant, [ds.Oracle()], keep="trajectories").trajectory_reward == 3.0).all()


def test_a_wrong_model_can_be_studied():
    found = run(LINEAR, [ds.ThompsonSampling()], belief=ds.Gaussian(arms=2))
    assert np.isfinite(found.cumulative_regret).all()
    assert np.isfinite(run(BERNOULLI, [ds.ThompsonSampling()], belief=ds.Gaussian(arms=2)).cumulative_regret).all()


def test_a_sweep_pads_arms_and_names_what_it_did():
    found = run(
        [BERNOULLI, ds.BernoulliBandit([0.1, 0.2, 0.3])], {"ours": ds.DoubleSampling(), "theirs": ds.ThompsonSampling()}
    )
    assert found.sizes == {"bandit": 2, "policy": 2, "time": 40, "arm": 3, "realization": 150}
    assert np.isnan(found.probability_optimal.values[0, 0, 0, 2])
    assert found.policy.values.tolist() == ["ours", "theirs"]
    assert found.attrs["seed"] == "3"
    assert "DoubleSampling" in found.attrs["policies"]
    ratio = found.cumulative_regret_std.values / found.cumulative_regret_error.values
    np.testing.assert_allclose(ratio[np.isfinite(ratio)], math.sqrt(150))


def test_time_grids_record_the_same_numbers():
    everything = run(BERNOULLI, [ds.DoubleSampling()])
    some = run(BERNOULLI, [ds.DoubleSampling()], times=[1, 7, 40])
    same(everything.sel(time=[1, 7, 40])[["cumulative_regret"]], some[["cumulative_regret"]])
    log = run(BERNOULLI, [ds.DoubleSampling()], times="log", horizon=10_000, realizations=2)
    assert 100 < log.sizes["time"] <= 200
    assert log.time.values[-1] == 10_000


def test_a_killed_sweep_goes_on_where_it_stopped(tmp_path):
    """Blocks that are stored are not played again, and the numbers are the same."""
    policies = [ds.DoubleSampling(), ds.ThompsonSampling()]
    expected = run([BERNOULLI, LINEAR], policies)
    calls = 0

    def stop_after_two(done: int, total: int) -> None:
        nonlocal calls
        calls += 1
        if calls == 2:
            raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(engine, "_LOCAL_SECONDS", 1e-9)
        with pytest.raises(Interrupted) as stopped:
            run([BERNOULLI, LINEAR], policies, store=tmp_path / "s", progress=stop_after_two, threads=1)
    partial = stopped.value.partial
    assert isinstance(partial, xr.Dataset)
    assert partial.attrs["interrupted"] == 1
    assert 0 < int(partial.realizations_done.sum()) < 600
    finished = len(list((tmp_path / "s").glob("chunk-*")))
    assert finished >= 1
    seen = []
    again = run([BERNOULLI, LINEAR], policies, store=tmp_path / "s", progress=lambda done, total: seen.append(done))
    same(expected, again)
    assert seen[0] > finished
    same(expected, run([BERNOULLI, LINEAR], policies, store=tmp_path / "s"))


def test_a_damaged_piece_is_played_again(tmp_path):
    expected = run(BERNOULLI, [ds.DoubleSampling()], store=tmp_path)
    for path in tmp_path.glob("chunk-*"):
        path.write_bytes(path.read_bytes()[:100])
    same(expected, run(BERNOULLI, [ds.DoubleSampling()], store=tmp_path))


def test_a_store_of_other_settings_is_refused(tmp_path):
    run(BERNOULLI, [ds.DoubleSampling()], store=tmp_path)
    with pytest.raises(StoreError, match="made with seed = '3', this run has '4'"):
        run(BERNOULLI, [ds.DoubleSampling()], store=tmp_path, seed=4)
    with pytest.raises(StoreError, match="policies"):
        run(BERNOULLI, [ds.Greedy()], store=tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="cannot be used"):
        run(BERNOULLI, [ds.Greedy()], store=tmp_path / "file")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "thesis.txt").write_text("")
    with pytest.raises(StoreError, match="holds other files"):
        run(BERNOULLI, [ds.Greedy()], store=tmp_path / "other")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"horizon": 0}, "horizon must be"),
        ({"realizations": 0}, "realizations must be"),
        ({"seed": -1}, "seed must be"),
        ({"belief": ds.BetaBernoulli(arms=3)}, "3 arms and the bandit 2"),
        ({"belief": ds.LinearGaussian(arms=2, dimension=2)}, "no context"),
        ({"store": 3}, "store must be the name of a folder, got 3"),
        ({"policies": [ds.KLUCB()], "belief": ds.BetaBernoulli(arms=2, discount=0.9)}, "that are all remembered"),
        ({"belief": "beta"}, "belief must be one such as"),
        ({"bandits": LINEAR, "belief": ds.BetaBernoulli(arms=2)}, "absorbs other rewards"),
        ({"bandits": LINEAR, "belief": ds.LinearGaussian(arms=2, dimension=3)}, "contexts of 2"),
        ({"bandits": []}, "needs a bandit"),
        ({"bandits": [0.4, 0.8]}, "A bandit is wanted"),
        ({"policies": []}, "needs a policy"),
        ({"policies": [ds.Greedy]}, r"Write Greedy\(\)"),
        ({"policies": [ds.Greedy(), ds.Greedy()]}, "listed twice"),
        ({"times": [0]}, "between 1 and the horizon"),
        ({"times": "every"}, "times must be one of"),
        ({"keep": "everything"}, "keep must be one of"),
        ({"keep": "trajectories", "realizations": 10**9}, r"would take .* GiB"),
        ({"device": "gpu"}, "device must be one of"),
        ({"executor": 3}, "executor must be"),
        ({"threads": 0}, "threads must be"),
    ],
)
def test_bad_input(change, message):
    options = {"bandits": BERNOULLI, "policies": [ds.DoubleSampling()]} | change
    with pytest.raises(SettingError, match=message):
        run(options.pop("bandits"), options.pop("policies"), **options)


def test_cuda_without_a_device_says_what_to_do():
    from doublesampling.engine.devices import cuda_problem

    if not cuda_problem():
        pytest.skip("there is a GPU here")
    with pytest.raises(SettingError, match=r"numba-cuda|NVIDIA GPU"):
        run(BERNOULLI, [ds.DoubleSampling()], device="cuda")
    assert run(BERNOULLI, [ds.DoubleSampling()], device="auto").attrs["device"] == "cpu"


def test_a_numba_cuda_that_fails_to_load_leaves_the_cpu(monkeypatch):
    from doublesampling.engine import devices

    def broken(name):
        if name == "numba.cuda":
            raise AttributeError("module 'numpy' has no attribute 'row_stack'")

    monkeypatch.setattr(devices, "import_module", broken)
    devices.cuda_problem.cache_clear()
    try:
        assert run(BERNOULLI, [ds.DoubleSampling()], device="auto").attrs["device"] == "cpu"
        with pytest.raises(SettingError, match="fails to load: module 'numpy' has no attribute"):
            run(BERNOULLI, [ds.DoubleSampling()], device="cuda")
    finally:
        devices.cuda_problem.cache_clear()


def test_plans_are_small_enough_to_send():
    import pickle

    plan = make_plan([BERNOULLI] * 50, [ds.ThompsonSampling()], horizon=100, realizations=10**6, seed=1)
    assert len(pickle.dumps(plan)) < 100_000
    assert sum(1 for _ in itertools.islice(engine.cut(plan, [], 1.0), 3)) == 0
