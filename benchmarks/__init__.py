"""Benchmarks and long tests; see the Makefile for how they are run."""
