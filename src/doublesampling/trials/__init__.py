"""Trials: a design without a store, its operating characteristics, calibration and comparison."""

from doublesampling.trials.trial import Trial

__all__ = ["Trial"]
