"""The policies' rules: double sampling (candidates, mode, propensities) and the baselines."""
