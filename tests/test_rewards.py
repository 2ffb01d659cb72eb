"""Other rewards: counts, waiting times, categories, log odds, and beliefs that forget, each against something slow."""

import math
from typing import Any

import numpy as np
import pytest
from scipy import integrate, optimize, stats
from scipy import special as special_functions

import doublesampling as ds
from doublesampling.errors import ContextError, RewardError, SettingError
from doublesampling.rules import draws, entry_points, laws, special, tallies, worlds
from doublesampling.rules.choose import baselines, information_directed
from tests import oracle
from tests.chance import assert_counts, assert_law, assert_mean
from tests.compiled_rules import CallableRules
from tests.short import short
from tests.test_engine import run, same

draws = CallableRules(draws)  # type: ignore[assignment]
laws = CallableRules(laws)  # type: ignore[assignment]
special = CallableRules(special)  # type: ignore[assignment]
worlds = CallableRules(worlds)  # type: ignore[assignment]
baselines = CallableRules(baselines)  # type: ignore[assignment]
information_directed = CallableRules(information_directed)  # type: ignore[assignment]

RNG = np.random.default_rng
ADDRESS = (np.uint64(5), np.uint64(0), np.uint64(3), np.uint64(9))
LOGISTIC = ds.Logistic(arms=2, dimension=2)
CONTEXTS = RNG(0).normal(size=(7, 2))

WORLDS = [
    ds.PoissonBandit([2.0, 2.5]),
    ds.PoissonBandit([0.0, 0.5, 0.7]),
    ds.ExponentialBandit([1.0, 1.5]),
    ds.ExponentialBandit([0.1, 0.2, 0.3]),
    ds.CategoricalBandit([[0.5, 0.3, 0.2], [0.4, 0.3, 0.3]], values=[0, 1, 5]),
    ds.LogisticBandit(weights=[[1.0, 0.0], [0.5, 0.5], [0.0, -1.0]], context=CONTEXTS),
]
POLICIES = [
    ds.DoubleSampling(),
    ds.DoubleSampling(horizon=40),
    ds.DoubleSampling(samples=None),
    ds.ThompsonSampling(),
    ds.BayesUCB(),
    ds.BayesUCB(samples=50),
    ds.Greedy(),
    ds.EpsilonGreedy(0.3),
    ds.TopTwo(),
    ds.InformationDirected(),
    ds.InformationDirected(samples=60),
    ds.Oracle(),
]
FORGETFUL = [
    (ds.BernoulliBandit([0.3, 0.5, 0.6]), ds.BetaBernoulli(arms=3, discount=0.95)),
    (ds.PoissonBandit([2.0, 2.5]), ds.GammaPoisson(arms=2, discount=0.9)),
    (ds.ExponentialBandit([1.0, 2.0]), ds.GammaExponential(arms=2, discount=0.9)),
    (ds.GaussianBandit([0.0, 0.3], noise=0.5), ds.Gaussian(arms=2, mean=0.0, discount=0.9)),
    (
        ds.LinearGaussianBandit(weights=[[0.4, 0.4], [0.8, 0.2]], noise=0.2, context=CONTEXTS),
        ds.LinearGaussian(arms=2, dimension=2, covariance=[[2.0, 0.5], [0.5, 1.0]], discount=0.9),
    ),
    (
        ds.CategoricalBandit([[0.5, 0.3, 0.2], [0.4, 0.3, 0.3]], values=[0, 1, 5]),
        ds.DirichletCategorical(arms=2, values=[0, 1, 5], discount=0.9),
    ),
]


def default(bandit):
    from doublesampling.engine.plan import default_belief

    return default_belief(bandit)


@pytest.mark.parametrize("shape", [0.05, 0.7, 1.0, 3.0, 250.0, 1e5])
@pytest.mark.parametrize("log_tail", [-1e-3, -0.7, -5.0, -30.0, -500.0])
def test_gamma_quantiles(shape, log_tail):
    for side, quantile in ((1.0, stats.gamma(shape).isf), (-1.0, stats.gamma(shape).ppf)):
        wanted = quantile(math.exp(log_tail))
        for start in (math.nan, math.log(shape) - 1.0, math.log(shape) + 0.5):
            found = special.log_gamma_quantile(shape, log_tail, start, side)
            if 1e-290 < wanted < 1e290:
                assert math.exp(found) == pytest.approx(wanted, rel=1e-8)
            else:  # SciPy's quantile underflows; its tail is lower^shape / Gamma(shape + 1) there
                assert found * shape - math.lgamma(shape + 1.0) == pytest.approx(log_tail, rel=1e-8)


@pytest.mark.parametrize("family", [laws.GAMMA, laws.INVERSE_GAMMA])
@pytest.mark.parametrize("seed", range(12))
def test_probability_of_gamma_arms(family, seed):
    """Against panels between quantiles of SciPy's laws, over the logarithm of the reward."""
    rng = RNG(seed)
    arms = int(rng.integers(2, 6))
    shape = 10 ** rng.uniform(-0.3, 5, arms)
    rate = shape * np.exp(rng.choice([1.0, 0.1, 0.01]) * rng.normal(size=arms))
    arm_laws = [
        stats.gamma(s, scale=1 / r) if family == laws.GAMMA else stats.invgamma(s, scale=r)
        for s, r in zip(shape, rate, strict=True)
    ]
    tails = np.append(np.geomspace(1e-15, 0.1, 29), [0.2, 0.35])
    edges = np.log(np.sort(np.concatenate([np.append(law.ppf(tails), law.isf(tails)) for law in arm_laws])))
    node, weight = np.polynomial.legendre.leggauss(16)
    z = (0.5 * (edges[1:] + edges[:-1])[:, None] + 0.5 * np.diff(edges)[:, None] * node).ravel()
    x, width = np.exp(z), (0.5 * np.diff(edges)[:, None] * weight).ravel()
    below = np.array([law.cdf(x) for law in arm_laws])
    density = np.array([law.pdf(x) * x for law in arm_laws])
    wanted = [(width * density[a] * np.prod(np.delete(below, a, axis=0), axis=0)).sum() for a in range(arms)]
    found = entry_points.exact_optimality(family, np.column_stack([shape, rate, np.zeros(arms)]))
    np.testing.assert_allclose(found, wanted, atol=1e-8)


@pytest.mark.parametrize("mean", [0.0, 0.2, 3.7, 40.0, 5000.0])
def test_poisson_draws_by_inversion(mean):
    rng = RNG(1)
    drawn = np.array([draws.poisson_from_uniform(u, mean) for u in rng.random(20_000)])
    span = np.arange(int(drawn.max()) + 2)
    chances = np.append(stats.poisson(mean).pmf(span), stats.poisson(mean).sf(span[-1]))
    assert_counts(np.bincount(drawn, minlength=span.size + 1), chances / chances.sum())


def test_poisson_probabilities():
    for k, mean in ((0, 3.3), (1, 0.1), (7, 7.0), (1000, 950.0), (3, 1e4)):
        assert special.log_poisson_pmf(k, mean) == pytest.approx(stats.poisson(mean).logpmf(k), rel=1e-12)


def test_rewards_follow_their_laws():
    times = [(np.uint64(1), np.uint64(0), np.uint64(0), np.uint64(t)) for t in range(1, 8001)]
    assert_law([worlds.exponential_reward(2.5, 1, address) for address in times], stats.expon(scale=2.5).cdf)
    chances = np.array([0.2, 0.0, 0.5, 0.3])
    assert_counts(np.bincount([worlds.category_of_reward(chances, 1, a) for a in times], minlength=4), chances)


def test_dirichlet_draws_have_beta_shares():
    weights = np.array([0.3, 2.0, 5.0])
    out = np.empty((8000, 3))
    for i, row in enumerate(out):
        draws.fill_dirichlet(ADDRESS, draws.POSTERIOR, np.uint64(i), weights, row)
    np.testing.assert_allclose(out.sum(axis=1), 1.0)
    for k, weight in enumerate(weights):
        assert_law(out[:, k], stats.beta(weight, weights.sum() - weight).cdf)


@pytest.mark.parametrize("category", range(3))
def test_quick_draws_of_the_mean_value(category):
    """Where one category is worth something, its share, a Beta variable; arms and samples are independent."""
    weights = np.array([[1.0, 2.0, 5.0], [1.0, 1.5, 40.0]])
    words = np.array([category, 0, 0, 1], dtype=np.uint64)
    drawn = entry_points.dirichlet_draws(weights, np.eye(3)[category], 8000, words)
    levels = np.empty_like(drawn)
    for arm, weight in enumerate(weights):
        law = stats.beta(weight[category], weight.sum() - weight[category])
        assert_law(drawn[:, arm], law.cdf)
        levels[:, arm] = law.cdf(drawn[:, arm]) - 0.5
    assert_mean(levels[:, 0] * levels[:, 1], 0.0)
    assert_mean(levels[1:, 0] * levels[:-1, 0], 0.0)
    assert_mean(levels[1:, 0] * levels[:-1, 1], 0.0)


def test_quick_draws_follow_their_stream():
    """SplitMix64 and Marsaglia and Tsang's method in plain Python, two fresh uniforms per attempt."""
    weights, values = np.array([[1.0, 1.5, 4.0]] * 2), np.array([0.0, 1.0, 5.0])
    words = np.array([3, 0, 0, 1], dtype=np.uint64)
    drawn = entry_points.dirichlet_draws(weights, values, 300, words)
    for arm in range(2):
        address = (np.uint64(3), np.uint64(0), np.uint64(0), np.uint64(1))
        word = int(draws.stream(address, draws.SHARES, np.uint64(arm)))

        def fresh() -> float:
            nonlocal word
            word = (word + 0x9E3779B97F4A7C15) % 2**64
            mixed = (word ^ (word >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
            mixed = (mixed ^ (mixed >> 27)) * 0x94D049BB133111EB % 2**64
            return ((mixed ^ (mixed >> 31)) // 2**12 + 0.5) / 2**52

        def gamma(shape: float) -> float:
            d = shape - 1.0 / 3.0
            while True:
                x, u = float(stats.norm.ppf(fresh())), fresh()
                v = (1.0 + x / math.sqrt(9.0 * d)) ** 3
                if v > 0.0 and math.log(u) < 0.5 * x * x + d - d * v + d * math.log(v):
                    return d * v

        for sample in range(300):
            shares = np.array([gamma(weight) for weight in weights[arm]])
            assert drawn[sample, arm] == pytest.approx(shares @ values / shares.sum(), rel=1e-9)


def test_a_dirichlet_of_two_categories_is_a_beta():
    dirichlet, beta = ds.DirichletCategorical(arms=2, values=[0, 1]), ds.BetaBernoulli(arms=2)
    arms, rewards = [0, 0, 1, 1, 1], [0, 1, 1, 1, 0]
    first = dirichlet.update_batch(dirichlet.prior(), arms, rewards)
    second = beta.update_batch(beta.prior(), arms, rewards)
    wanted = beta.marginals(second)
    drawn = dirichlet.marginals(first).draws(20_000, seed=2)
    for arm in range(2):
        assert_law(drawn[:, arm], lambda x, arm=arm: wanted.cdf(x)[:, arm])
    p = ds.probability_optimal(beta, second)[0]
    assert_mean((drawn[:, 0] > drawn[:, 1]).astype(float), p)


@pytest.mark.parametrize("reward_paid", [0.0, 1.0])
@pytest.mark.parametrize("scale", [1.0, 100.0, 1e-3])
def test_logistic_update_is_laplaces_method(reward_paid, scale):
    mean, covariance = np.array([0.3, -0.2]), scale * np.array([[2.0, 0.3], [0.3, 1.0]])
    x, sign = np.array([1.0, 0.7]), 2.0 * reward_paid - 1.0
    inverse = np.linalg.inv(covariance)

    def slope(w):
        return inverse @ (w - mean) - sign * x / (1.0 + math.exp(sign * x @ w))

    mode = optimize.root(slope, mean, tol=1e-14).x
    chance = 1.0 / (1.0 + math.exp(-x @ mode))
    found = ds.Logistic(arms=2, dimension=2, mean=mean, covariance=covariance)
    state = found.update(found.prior(), 1, reward_paid, x)
    np.testing.assert_allclose(state.mean[1], mode, rtol=1e-9)
    wanted = np.linalg.inv(inverse + chance * (1 - chance) * np.outer(x, x))
    np.testing.assert_allclose(state.covariance[1], wanted, rtol=1e-8)
    assert np.array_equal(state.mean[0], mean)


def test_logistic_learns_what_the_exact_posterior_says():
    """One weight, 300 rewards, against the posterior by quadrature: within a tenth of its deviation."""
    rng = RNG(4)
    x = rng.normal(size=(300, 1))
    y = (rng.random(300) < 1 / (1 + np.exp(-0.8 * x[:, 0]))).astype(float)
    found = ds.Logistic(arms=2, dimension=1)
    state = found.update_batch(found.prior(), np.zeros(300), y, x)
    w = np.linspace(-3, 3, 6001)
    log_density = -0.5 * w**2 - np.logaddexp(0.0, -np.outer(2 * y - 1, w) * x).sum(axis=0)
    density = np.exp(log_density - log_density.max())
    mean = (w * density).sum() / density.sum()
    deviation = math.sqrt(((w - mean) ** 2 * density).sum() / density.sum())
    assert state.mean[0, 0] == pytest.approx(mean, abs=0.1 * deviation)
    assert state.root[0, 0, 0] == pytest.approx(deviation, rel=0.05)


def test_logistic_mean_by_quadrature():
    for location, scale in ((0.0, 1.0), (2.0, 0.1), (-3.0, 4.0), (1.0, 10.0), (20.0, 12.0), (20.0, 1000.0)):
        z = np.linspace(location - 12 * scale, location + 12 * scale, 200_001)
        wanted = integrate.simpson(stats.norm(location, scale).pdf(z) * special_functions.expit(z), x=z)
        assert laws.logistic_mean(location, scale) == pytest.approx(wanted, abs=1e-5 if scale <= 10.0 else 1e-4)


@pytest.mark.parametrize(
    ("known", "rewards", "likelihood"),
    [
        (ds.GammaPoisson(arms=2, shape=1.5, rate=0.5), [3.0, 0.0, 7.0], lambda y, mean: stats.poisson(mean).pmf(y)),
        (ds.GammaExponential(arms=2, shape=2.5, rate=3.0), [3.0, 0.2, 7.0], lambda y, m: stats.expon(scale=m).pdf(y)),
    ],
    ids=["poisson", "exponential"],
)
def test_gamma_updates_are_bayes_theorem(known, rewards, likelihood):
    """Prior times likelihood on a fine grid of means, against the conjugate update."""
    means = np.geomspace(1e-4, 1e4, 200_001)
    density = known.marginals(known.prior()).pdf(means)[:, 0]
    for paid in rewards:
        density = density * likelihood(paid, means)
    density /= np.trapezoid(density, means)
    state = known.update_batch(known.prior(), [0] * len(rewards), rewards)
    found = known.marginals(state)
    np.testing.assert_allclose(found.pdf(means)[:, 0], density, rtol=1e-5, atol=1e-9)
    assert found.mean[0] == pytest.approx(np.trapezoid(means * density, means), rel=1e-4)


def test_forgetting_fades_natural_parameters_towards_the_prior():
    found = ds.BetaBernoulli(arms=2, alpha=2.0, beta=3.0, discount=0.8)
    state = found.update_batch(found.prior(), [0, 1, 0], [1, 0, 0])
    np.testing.assert_allclose(state.alpha, [2 + 0.8**2, 2.0])
    np.testing.assert_allclose(state.beta, [3 + 1, 3 + 0.8])


def test_forgetting_a_linear_belief_is_the_geometric_mean_with_its_prior():
    rng = RNG(2)
    prior: dict[str, Any] = {"mean": [0.5, -1.0], "covariance": [[2.0, 0.5], [0.5, 1.0]], "alpha": 2.0, "beta": 3.0}
    found = ds.LinearGaussian(arms=2, dimension=2, discount=0.9, **prior)
    state = found.prior()
    first = np.linalg.inv(np.array(prior["covariance"]))
    u0 = np.array(prior["mean"])
    precision, shift, alpha, energy = first.copy(), first @ u0, 2.0, 3.0 + 0.5 * u0 @ first @ u0
    for _ in range(30):
        x, y = rng.normal(size=2), rng.normal()
        state = found.update(state, 0, y, x)
        precision = 0.9 * precision + 0.1 * first + np.outer(x, x)
        shift = 0.9 * shift + 0.1 * first @ u0 + y * x
        alpha = 0.9 * alpha + 0.1 * 2.0 + 0.5
        energy = 0.9 * energy + 0.1 * (3.0 + 0.5 * u0 @ first @ u0) + 0.5 * y * y
    mean = np.linalg.solve(precision, shift)
    np.testing.assert_allclose(state.covariance[0], np.linalg.inv(precision), rtol=1e-9)
    np.testing.assert_allclose(state.mean[0], mean, rtol=1e-9)
    assert state.alpha[0] == pytest.approx(alpha)
    assert state.beta[0] == pytest.approx(energy - 0.5 * mean @ precision @ mean, rel=1e-9)
    # the other arm saw nothing and is where it began
    np.testing.assert_allclose(state.mean[1], u0, rtol=1e-12)
    np.testing.assert_allclose(state.covariance[1], prior["covariance"], rtol=1e-12)
    assert (state.alpha[1], state.beta[1]) == pytest.approx((2.0, 3.0))


@pytest.mark.parametrize("long", [False, pytest.param(True, marks=pytest.mark.slow)], ids=["some", "all"])
@pytest.mark.parametrize("bandit", [b for b in WORLDS if not isinstance(b, ds.LogisticBandit)], ids=repr)
def test_new_worlds_give_the_same_numbers_in_any_chunks(bandit, long):
    policies = POLICIES if long else short(POLICIES, bandit)
    same(
        run(bandit, policies, threads=1, horizon=15, realizations=70),
        run(bandit, policies, threads=3, horizon=15, realizations=70),
    )


@pytest.mark.slow
def test_a_logistic_world_gives_the_same_numbers_in_any_chunks():
    bandit = next(b for b in WORLDS if isinstance(b, ds.LogisticBandit))
    chunks = [run(bandit, POLICIES, threads=n, horizon=15, realizations=70) for n in (1, 3)]
    same(*chunks)


STEPPED = [(bandit, default(bandit)) for bandit in WORLDS] + FORGETFUL


def _walked():
    """Every belief; only in the long form two that forget, whose kernels no other test compiles."""
    for i, (bandit, known) in enumerate(STEPPED):
        alone = i >= len(WORLDS) and isinstance(known, ds.BetaBernoulli | ds.Gaussian)
        for long in (False, True):
            name = f"{type(known).__name__}{i}-{'all' if long else 'some'}"
            yield pytest.param(bandit, known, long, marks=pytest.mark.slow if long or alone else (), id=name)


@pytest.mark.parametrize(("bandit", "known", "long"), list(_walked()))
def test_the_engine_walks_the_steps_that_decide_walks(bandit, known, long):
    """Beliefs, sampling and choices of realization 0 are those of decide, step by step."""
    samples = 50 if isinstance(known, ds.DirichletCategorical) else None  # its quantiles come from samples alone
    walked: list[Any] = [
        ds.DoubleSampling(), ds.DoubleSampling(horizon=30), ds.Greedy(), ds.EpsilonGreedy(0.3),
        ds.InformationDirected(samples=60), ds.InformationDirected(samples=samples), ds.BayesUCB(samples=samples),
    ]  # fmt: skip
    walked = walked if long else short(walked, bandit, known)
    found = run(bandit, walked, belief=known, realizations=1, keep="trajectories", horizon=30)
    for i, policy in enumerate(walked):
        state = known.prior()
        for t in range(30):
            context = CONTEXTS[t % len(CONTEXTS)] if known.dimension is not None else None
            arm = int(found.trajectory_arm.values[0, i, 0, t])
            assert ds.decide(policy, known, state, context, seed=3, time=t + 1).arm == arm
            state = known.update(state, arm, float(found.trajectory_reward.values[0, i, 0, t]), context)


def test_index_policies_can_be_seen_failing_where_the_world_changes():
    """UCB1, KL-UCB and IMED on arms that change places: the steps of decide, and regret that keeps growing."""
    bandit, known = ds.ChangingBernoulliBandit([[0.2, 0.8], [0.8, 0.2]], every=40), ds.BetaBernoulli(arms=2)
    walked: list[Any] = [ds.UCB1(), ds.KLUCB(), ds.IMED()]
    found = run(bandit, walked, realizations=40, keep="trajectories", horizon=80)
    for i, policy in enumerate(walked):
        state = known.prior()
        for t in range(80):
            arm = int(found.trajectory_arm.values[0, i, 0, t])
            assert ds.decide(policy, known, state, seed=3, time=t + 1).arm == arm
            state = known.update(state, arm, float(found.trajectory_reward.values[0, i, 0, t]))
    regret = found.cumulative_regret.values[0]
    still = run(ds.BernoulliBandit([0.2, 0.8]), walked, realizations=40, horizon=80).cumulative_regret.values[0]
    assert (regret[1:, -1] > 2.0 * still[1:, -1]).all(), "KL-UCB and IMED trust what has gone"


def test_posterior_draws_of_thompson_sampling_play_arms_by_their_probability():
    """Where the engine draws each arm, the first decision after the prior shows the exact probability."""
    bandit, known = ds.PoissonBandit([1.0, 1.0]), ds.GammaPoisson(arms=2, shape=(1.0, 3.0))
    found = run(bandit, [ds.ThompsonSampling()], belief=known, realizations=6000, horizon=1, keep="trajectories")
    p = ds.probability_optimal(known, known.prior())
    assert_mean(found.trajectory_arm.values.ravel(), p[1])


def test_directed_sampling_against_its_slow_twin():
    rng = RNG(8)
    for arms in (2, 3, 6):
        drawn = rng.normal(rng.normal(size=arms), rng.uniform(0.1, 2.0, arms), size=(500, arms))
        work = np.empty((arms + information_directed.EXTRA_ROWS, arms))
        information_directed.tally_draws(drawn, work)
        information_directed.fill_regret_and_information(work)
        regret, information = oracle.regret_and_information(drawn)
        np.testing.assert_allclose(work[arms + 1], regret, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(work[arms + 2], information, rtol=1e-9, atol=1e-12)
        chances = np.empty(arms)
        information_directed.fill_chances(work[arms + 1], work[arms + 2], chances)
        assert chances.sum() == pytest.approx(1.0)
        found = (chances @ regret) ** 2 / (chances @ information)
        assert found <= oracle.least_information_ratio(regret, information) * (1 + 2e-4)


def test_directed_sampling_favours_no_twin():
    """Two arms that are known equally well, and a third that is better known: a mixture with either is as good."""
    known = ds.BetaBernoulli(arms=3)
    state = known.prior()
    for paid in (1, 1, 1, 1, 0, 0):
        state = known.update(state, 1, paid)
    first, other, second = ds.decide(ds.InformationDirected(), known, state, seed=1).propensities
    assert 0.0 < other < 1.0
    assert first == pytest.approx(second)
    assert first + other + second == pytest.approx(1.0)


def test_directed_sampling_favours_no_arm_by_its_place():
    known = ds.GammaExponential(arms=3)
    decision = ds.decide(ds.InformationDirected(), known, known.prior(), seed=1)
    np.testing.assert_allclose(decision.propensities, 1 / 3)
    arms = [ds.decide(ds.InformationDirected(), known, known.prior(), seed=1, time=t).arm for t in range(1, 400)]
    assert_counts(np.bincount(arms, minlength=3), np.full(3, 1 / 3))


@pytest.mark.parametrize("family", [laws.BETA, laws.STUDENT, laws.GAMMA, laws.INVERSE_GAMMA, laws.LOGISTIC])
@pytest.mark.parametrize("arms", [2, 4])
def test_exact_regret_and_information_are_the_limit_of_draws(family, arms):
    rng = RNG(arms)
    shapes = {laws.STUDENT: (0.0, 2.0, 9.0), laws.LOGISTIC: (0.0, 2.0, math.inf)}.get(family, (4.0, 9.0, 0.0))
    parameters = np.column_stack([shapes[0] + rng.normal(size=arms) ** 2, shapes[1] * rng.uniform(0.5, 1, arms),
                                  np.full(arms, shapes[2])])  # fmt: skip
    work = tallies.tally_exactly(family, parameters)
    information_directed.fill_regret_and_information(work)
    assert work[arms].sum() == pytest.approx(1.0, abs=1e-8)
    batches = []
    for seed in range(100):  # enough that their mean is normal
        words = np.array([seed, 0, 0, 1], dtype=np.uint64)
        drawn = entry_points.posterior_draws(family, parameters, 5000, words)
        batches.append(np.concatenate(oracle.regret_and_information(drawn)))
    for found, wanted in zip(np.array(batches).T, work[arms + 1 : arms + 3].ravel(), strict=True):
        assert_mean(found, wanted)


@pytest.mark.parametrize("shape", [1e-6, 1e-4, 1e-2])
def test_gamma_arms_of_tiny_shape(shape):
    """Two Gamma arms by SciPy's incomplete beta function."""
    for first, second in ((shape, shape), (shape + 5.0, shape), (shape, 1.0)):
        parameters = np.array([[first, shape + 1.0, 0.0], [second, shape, 0.0]])
        wanted = special_functions.betaincc(first, second, (shape + 1.0) / (2.0 * shape + 1.0))
        assert entry_points.exact_optimality(laws.GAMMA, parameters)[0] == pytest.approx(wanted, abs=1e-7)


@pytest.mark.parametrize("size", [1e3, 1e9, 1e20, 1e50])
def test_logistic_updates_are_mirror_images(size):
    found = ds.Logistic(arms=2, dimension=1)
    won, lost = (found.update(found.prior(), 0, y, [size]) for y in (1, 0))
    assert won.mean[0, 0] == pytest.approx(-lost.mean[0, 0], rel=1e-9)
    log_odds = size * won.mean[0, 0]  # where the prior, of variance size^2, balances one success
    assert log_odds == pytest.approx(size**2 / (1.0 + math.exp(log_odds)), rel=1e-6)


def test_draws_that_tie_favour_no_arm():
    """Saturated draws: every arm is the best of them in turn."""
    work = tallies.tally_draws(np.ones((600, 3)))
    np.testing.assert_allclose(work[3], 1 / 3)
    known = ds.DirichletCategorical(arms=2, values=[0, 1], concentration=1e-4)
    bandit = ds.CategoricalBandit([[0.5, 0.5], [0.5, 0.5]], values=[0, 1])
    seen = run(bandit, [ds.DoubleSampling(samples=200)], belief=known, horizon=1, realizations=100)
    assert seen.probability_optimal.values.ravel() == pytest.approx([0.5, 0.5], abs=0.03)


def test_directed_sampling_exploits_when_sure():
    decision = ds.decide_from_draws(ds.InformationDirected(), [[0.1, 0.9], [0.2, 0.8]] * 10, seed=1)
    assert decision.arm == 1
    assert decision.propensities.tolist() == [0.0, 1.0]


def test_a_quantile_of_draws():
    drawn = RNG(3).normal(size=(101, 2))
    for rank in (0, 1, 30, 50, 51, 99, 100):
        assert baselines.sample_quantile(drawn.copy(), 1, rank) == np.sort(drawn[:, 1])[rank]


def test_forgetting_helps_where_the_best_arm_changes_and_not_where_it_stays():
    moving = ds.ChangingBernoulliBandit([[0.2, 0.8], [0.8, 0.2]], every=250)
    still = ds.BernoulliBandit([0.2, 0.8])
    options: Any = {"horizon": 1000, "realizations": 200, "times": [1000]}
    keeps, fades = ds.BetaBernoulli(arms=2), ds.BetaBernoulli(arms=2, discount=0.97)
    policy = [ds.ThompsonSampling()]
    assert (
        run(moving, policy, belief=fades, **options).cumulative_regret.item()
        < 0.5 * run(moving, policy, belief=keeps, **options).cumulative_regret.item()
    )
    assert (
        run(still, policy, belief=fades, **options).cumulative_regret.item()
        > run(still, policy, belief=keeps, **options).cumulative_regret.item()
    )


def test_a_changing_bandit_counts_regret_against_the_best_of_each_stage():
    moving = ds.ChangingBernoulliBandit([[1.0, 0.0], [0.0, 1.0]], every=3)
    found = run(moving, [ds.Oracle()], horizon=12, realizations=3, keep="trajectories")
    assert found.trajectory_arm.values[0, 0, 0].tolist() == [0, 0, 0, 1, 1, 1] * 2
    assert (found.cumulative_regret == 0.0).all()
    assert (found.observed_cumulative_regret == 0.0).all()


@pytest.mark.parametrize(
    ("wrong", "error", "words"),
    [
        (lambda: ds.GammaPoisson(arms=2).check_reward(1.5), RewardError, "a count"),
        (lambda: ds.GammaPoisson(arms=2).update_batch(ds.GammaPoisson(arms=2).prior(), [0, 1], [1, -1]), RewardError,
         "At index 1: reward must be a count"),
        (lambda: ds.GammaExponential(arms=2).check_reward(0.0), RewardError, "above 0"),
        (lambda: ds.GammaExponential(arms=2, shape=1.0), SettingError, "shape must be above 1"),
        (lambda: ds.DirichletCategorical(arms=2, values=[1, 1]), SettingError, "different numbers"),
        (lambda: ds.DirichletCategorical(arms=2, values=[0, 1]).check_reward(2), RewardError, "one of"),
        (lambda: ds.DirichletCategorical(arms=2, values=[0, 1], concentration=[1, 2, 3]), SettingError,
         "concentration"),
        (lambda: ds.Logistic(arms=2, dimension=2).check_reward(0.5), RewardError, "0 or 1"),
        (lambda: ds.decide(ds.Greedy(), LOGISTIC, LOGISTIC.prior(), [1.0]), ContextError, "must hold 2 numbers"),
        (lambda: ds.BetaBernoulli(arms=2, discount=1.1), SettingError, "discount must be a number from 0.5 to 1"),
        (lambda: ds.PoissonBandit([-1.0, 2.0]), SettingError, r"means\[0\]"),
        (lambda: ds.CategoricalBandit([[0.5, 0.6], [0.5, 0.5]], values=[0, 1]), SettingError, "add up to 1"),
        (lambda: ds.ChangingBernoulliBandit([0.5, 0.6]), SettingError, "stage, arm"),
        (lambda: run(ds.PoissonBandit([1, 2]), [ds.UCB1()]), SettingError, "without a discount"),
        (lambda: run(ds.PoissonBandit([1, 2]), [ds.Greedy()], belief=ds.BetaBernoulli(arms=2)), SettingError,
         "Use GammaPoisson"),
        (lambda: run(WORLDS[4], [ds.Greedy()], belief=ds.DirichletCategorical(arms=2, values=[0, 1])), SettingError,
         "the bandit pays"),
        (lambda: ds.InformationDirected(samples=1), SettingError, "at least 2"),
        (lambda: ds.LogisticBandit(weights=[[1.0], [2.0]], context=[1e200]), SettingError, "1e50"),
        (lambda: ds.CategoricalBandit([[0.5, 0.5], [0.5, 0.5]], values=[0, 1e200]), SettingError, "1e50"),
    ],
)  # fmt: skip
def test_bad_input(wrong, error, words):
    with pytest.raises(error, match=words):
        wrong()
