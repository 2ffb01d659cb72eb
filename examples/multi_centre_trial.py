"""A trial in several centres: a hierarchical posterior fitted by NumPyro, the next arm decided by double sampling.

Run it where NumPyro is installed: ``pip install numpyro`` and then ``python examples/multi_centre_trial.py``. Each arm
has a success rate per centre; the log odds of a centre scatter around those of the arm, so that centres learn from each
other. NumPyro draws from the posterior; double sampling takes the draws of the centre where the next patient is.
"""

import jax
import numpy as np
import numpyro
import numpyro.distributions as dist

import doublesampling as ds

# wins and losses by (centre, arm) so far
WINS = np.array([[9, 14], [3, 8], [1, 0]])
TRIED = np.array([[20, 22], [9, 11], [2, 1]])


def model(wins: np.ndarray, tried: np.ndarray) -> None:
    """Log odds of (centre, arm): an arm's own, plus what a centre adds."""
    centres, arms = tried.shape
    arm = numpyro.sample("arm", dist.Normal(0.0, 1.5).expand([arms]))
    scatter = numpyro.sample("scatter", dist.HalfNormal(0.5))
    centre = numpyro.sample("centre", dist.Normal(0.0, 1.0).expand([centres, arms]).to_event(2))
    log_odds = numpyro.deterministic("log_odds", arm + scatter * centre)
    numpyro.sample("wins", dist.Binomial(tried, logits=log_odds).to_event(2), obs=wins)


def posterior(samples: int, seed: int) -> np.ndarray:
    """Draws of the success rates, float array (sample, centre, arm)."""
    sampler = numpyro.infer.MCMC(
        numpyro.infer.NUTS(model, target_accept_prob=0.95), num_warmup=1000, num_samples=samples, progress_bar=False
    )
    sampler.run(jax.random.PRNGKey(seed), WINS, TRIED)
    return 1.0 / (1.0 + np.exp(-np.asarray(sampler.get_samples()["log_odds"], dtype=float)))


if __name__ == "__main__":
    rates = posterior(samples=2000, seed=1)
    patients = int(TRIED.sum())
    for centre in range(rates.shape[1]):
        decision = ds.decide_from_draws(ds.DoubleSampling(horizon=400), rates[:, centre], seed=7, time=patients + 1)
        print(f"centre {centre}: {TRIED[centre].sum()} patients seen here")
        print(decision, "\n")
