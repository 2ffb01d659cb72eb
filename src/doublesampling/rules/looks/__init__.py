"""Looks of a trial: posterior probabilities with a margin, and what a stopping rule makes of them."""
