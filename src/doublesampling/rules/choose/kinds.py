"""The numbers of the policies and of their forms in compiled rules."""

DOUBLE_SAMPLING = 0
THOMPSON = 1
BAYES_UCB = 2
GREEDY = 3
EPSILON_GREEDY = 4
ORACLE = 5
TOP_TWO = 6
UCB1 = 7
KL_UCB = 8
IMED = 9
LIN_UCB = 10
INFORMATION_DIRECTED = 11
GITTINS = 12
EPSILON_THOMPSON = 13
RELAXATION = 14

# forms of a policy, constants of the compiled code like its kind: how double sampling counts its candidates (from a
# table of N for two arms, from a table of p_FA, from p_FA itself, from the doubt and the decisions left, or from these
# or the time and the precisions), or whether samples are used
EXACT, TWO_ARM_TABLE, TABLE, FALSE_ALARM, DOUBT, CHALLENGER, ANYTIME, SAMPLES = range(8)


def needs_optimality(kind: int) -> bool:
    """Tell whether a policy looks at p, the probability of each arm being the best."""
    return kind in (DOUBLE_SAMPLING, TOP_TWO, EPSILON_THOMPSON)


def follows_recurrence(kind: int, samples: int) -> bool:
    """Tell whether the recurrence of p (optimal_arm/recurrence.py) is all that a policy needs."""
    return needs_optimality(kind) or kind == THOMPSON or (kind == INFORMATION_DIRECTED and samples == 0)


def needs_precisions(form: int) -> bool:
    """Tell whether double sampling counts its candidates by how well each arm is known."""
    return form in (CHALLENGER, ANYTIME)
