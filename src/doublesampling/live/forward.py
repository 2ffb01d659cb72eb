"""An experiment's own design, run forward on supposed truths."""
