"""The schema versions, in order."""
