"""Sampling one: how probably each arm is the best, by quadrature, recurrences and closed forms."""
