"""Sampling two and its rivals: how many candidates, their mode, and what other policies play."""
