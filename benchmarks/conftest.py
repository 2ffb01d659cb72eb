"""Benchmarks call single rules from Python; the software calls them from machine code only. See rules/compiled.py."""

import os

os.environ.setdefault("DOUBLESAMPLING_CALL_RULES_FROM_PYTHON", "1")
