"""Estimates and intervals that hold although a policy chose the data."""

from doublesampling.inference.analysis import Analysis, analyse
from doublesampling.inference.sequences import Sequence, sequence
from doublesampling.inference.streaming import ConfidenceSequence

__all__ = ["Analysis", "ConfidenceSequence", "Sequence", "analyse", "sequence"]
