"""A simulated trial: participants are assigned to arms, outcomes become known, and looks may end it."""
