"""The probability that each arm is the best (the paper's first sampling): quadrature, recurrences, closed forms."""
