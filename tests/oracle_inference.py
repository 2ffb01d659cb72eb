"""Slow twins of ds.analyse and ds.sequence: the formulas of docs/how-to/inference.md as plain loops over rows."""

import math

from scipy import stats


def scores(arm, arms, rewards, shares, known=None, initial=None):
    """Γ_t(arm) of every row, m̂ being the mean of the arm's outcomes that were known before decision t."""
    out = []
    for t in range(len(arms)):
        past = [s for s in range(len(arms)) if (s + 1 if known is None else known[s]) <= t]
        mine = [rewards[s] for s in past if arms[s] == arm]
        every = [rewards[s] for s in past]
        if mine:
            model = sum(mine) / len(mine)
        elif initial is not None:
            model = initial
        else:
            model = sum(every) / len(every) if every else 0.0
        out.append(model + ((rewards[t] - model) / shares[t][arm] if arms[t] == arm else 0.0))
    return out


def stick_breaking(e, decay):
    rows, spent, out = len(e), 0.0, []
    for t in range(1, rows + 1):
        future = (rows ** (1 - decay) - t ** (1 - decay)) / (1 - decay)
        rate = e[t - 1] / (rows - t + 1) + (1 - e[t - 1]) * t**-decay / (t**-decay + future)
        part = (1.0 - spent) * rate
        spent += part
        out.append(math.sqrt(part * e[t - 1]))
    return out


def weighted(gamma, h):
    total = math.fsum(h)
    value = math.fsum(a * b for a, b in zip(h, gamma, strict=True)) / total
    return value, [a * (g - value) / total for a, g in zip(h, gamma, strict=True)]


def contrast(gammas, hs):
    """The difference of two weighted means, its standard error, and the terms' variances."""
    (first, one), (second, two) = (weighted(g, h) for g, h in zip(gammas, hs, strict=True))
    error = math.sqrt(math.fsum((a - b) ** 2 for a, b in zip(one, two, strict=True)))
    return first - second, error, [math.fsum(a * a for a in one), math.fsum(b * b for b in two)]


def effective(arm, arms, shares, h):
    w = [h[t] / shares[t][arm] for t in range(len(arms)) if arms[t] == arm]
    return sum(w) ** 2 / sum(x * x for x in w)


def reach(error, variances, sizes, level):
    freedom = sum(variances) ** 2 / sum(v * v / (n - 1) for v, n in zip(variances, sizes, strict=True))
    return float(stats.t.ppf(0.5 + level / 2, freedom)) * error, freedom


def bernstein(values, alpha):
    """The lower bound after all values, each non-negative with the same mean."""
    total = squares = won = paid = bets = 0.0
    for i, value in enumerate(values, 1):
        centre = min(1.0, (0.5 + total) / i)
        bet = min(0.5, math.sqrt(2 * math.log(1 / alpha) / ((0.25 + squares) / i * i * math.log(1 + i))))
        away = (value - centre) ** 2
        won, bets = won + bet * value, bets + bet
        paid += (-math.log(1 - bet) - bet) * away
        total, squares = total + value, squares + away
    return (won - math.log(1 / alpha) - paid) / bets
