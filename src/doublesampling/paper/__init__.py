"""The paper's evaluation: experiments as data, figures as pure functions of what was run."""
