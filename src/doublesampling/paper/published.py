"""What the paper says and shows: cited constants, and nothing that this project computed.

Source of every number here: I. Urteaga and C. H. Wiggins, "Bayesian bandits: balancing the exploration-exploitation
tradeoff via double sampling", arXiv 1709.03162, its text (section 4) or, where said so, its published vector figures;
and an independent check that was made before this project, called CHECK below.
"""

CITATION = (
    "Iñigo Urteaga and Chris H. Wiggins, Bayesian bandits: balancing the exploration-exploitation tradeoff via double "
    "sampling, arXiv 1709.03162"
)

# how policies are called throughout the reproduction
OURS = "double sampling"  # as published: ties to the first arm, p_FA rounded as the authors' code does
FAIR = "double sampling, fair ties"
THOMPSON = "Thompson sampling"
BAYES_UCB = "Bayes-UCB"
RIVALS = (THOMPSON, BAYES_UCB)

# figure 3, read off the published vector figure: time step -> policy -> mean and standard deviation of the regret
FIGURE_3: dict[int, dict[str, tuple[float, float]]] = {
    10: {THOMPSON: (1.25, 1.57), BAYES_UCB: (1.13, 1.52), OURS: (1.24, 1.56)},
    100: {THOMPSON: (3.08, 4.64), BAYES_UCB: (2.18, 4.71), OURS: (2.63, 4.95)},
    1000: {THOMPSON: (4.42, 13.0), BAYES_UCB: (3.55, 12.9), OURS: (2.79, 13.3)},
}
# figure 5, read off the same way: policy -> mean regret at t = 1000; the standard deviation is about 34
FIGURE_5 = {THOMPSON: 44.4, BAYES_UCB: 56.2, OURS: 39.1}
FIGURE_5_DEVIATION = 34.0
# what the authors' own code of 2018 gives at t = 1000 over 60 realizations, noise -> policy -> mean and its error
AUTHORS_CODE_FIGURE_5: dict[float, dict[str, tuple[float, float]]] = {
    0.2: {THOMPSON: (8.2, 0.8), BAYES_UCB: (9.9, 0.8)},
    1.0: {THOMPSON: (28.8, 4.7), BAYES_UCB: (32.5, 3.9)},
}
# the published curve of Bayes-UCB at t = 1, where it always plays arm 0: mean and standard deviation of the regret
FIGURE_5_FIRST_POINT = (1.162, 0.990)
# figure 6, read off the published vector figure: divergence from, to -> policy -> mean Delta of the points between
FIGURE_6: dict[tuple[float, float], dict[str, float]] = {
    (0.0, 0.1): {THOMPSON: -0.080, BAYES_UCB: -0.230},
    (0.1, 0.25): {THOMPSON: -0.17, BAYES_UCB: -0.35},
    (0.25, 0.5): {THOMPSON: -0.23, BAYES_UCB: -0.39},
    (0.5, 1.0): {THOMPSON: -0.27, BAYES_UCB: -0.42},
    (1.0, 2.5): {THOMPSON: -0.32, BAYES_UCB: -0.44},
    (2.5, 5.0): {THOMPSON: -0.34, BAYES_UCB: -0.44},
    (10.0, 30.0): {THOMPSON: -0.37, BAYES_UCB: -0.45},
}
REALIZATIONS = 5000  # footnote 1

# section 4.1, Bernoulli: reductions of the regret where the arms differ, and the divergence that divides the cases
DISTINGUISHABLE = 0.25
BERNOULLI_REDUCTION = {THOMPSON: 0.40, BAYES_UCB: 0.25}
# section 4.2, linear Gaussian: "up to"
LINEAR_REDUCTION = {THOMPSON: 0.40, BAYES_UCB: 0.50}
# section 4.1, the illustration: exploration until about here
EXPLORES_UNTIL = 200

# CHECK: mean Delta against Thompson sampling over the 969 problems of figure 4, by divergence, in per cent
KL_EDGES = (0.0, 0.05, 0.1, 0.25, 0.5, float("inf"))
CHECK_FIRST = (4.0, -7.0, -22.0, -37.0, -39.0)
CHECK_FAIR = (-9.0, -21.0, -33.0, -41.0, -42.0)
# CHECK: expected regret at T = 100 000, Thompson sampling and double sampling
CHECK_HORIZON = {
    (0.85, 0.9): (22.9, 283.0),
    (0.45, 0.5): (48.8, 166.0),
    (0.5, 0.7): (16.1, 32.1),
    (0.4, 0.8): (8.4, 3.4),
}
