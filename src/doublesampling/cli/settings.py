"""Beliefs and policies with their settings, as the command line writes them."""

import ast
import difflib
from typing import Any

from doublesampling.errors import SettingError
from doublesampling.live.design import kinds

_WORDS = {"true": True, "false": False, "none": None}


def _value(node: ast.expr) -> Any:
    """A number, a text, a list; true and false in any case."""
    if isinstance(node, ast.Name) and node.id.lower() in _WORDS:
        return _WORDS[node.id.lower()]
    return ast.literal_eval(node)


def parse_settings(text: str, module: Any, **given: Any) -> Any:
    """A belief or policy such as ``Gaussian:mean=0,noise=0.5``.

    >>> from doublesampling import policies
    >>> parse_settings("EpsilonGreedy:epsilon=0.2", policies)
    EpsilonGreedy(epsilon=0.2)
    """
    name, _, rest = text.partition(":")
    known = kinds(module)
    plain = {n.lower(): n for n in known} | {"thompson": "ThompsonSampling", "beta": "BetaBernoulli"}
    found = plain.get(name.replace("-", "").replace("_", "").lower())
    if found is None:
        near = difflib.get_close_matches(name, known, n=1)
        hint = f"Did you mean {near[0]!r}?" if near else f"There are {', '.join(known)}."
        raise SettingError(f"{name!r} is not known. {hint}")
    try:
        call: Any = ast.parse(f"f({rest})", mode="eval").body
        settings = {word.arg: _value(word.value) for word in call.keywords}
        if call.args or None in settings:
            raise ValueError
    except (SyntaxError, ValueError):
        form = f"Write it as {found}:setting=value,setting=value; lists as values=[0,1,5]."
        raise SettingError(f"{text!r} cannot be read. {form}") from None
    return getattr(module, found)(**(given | settings))


def read_truth(text: str) -> list[Any]:
    """Return a scenario: one number per arm; with semicolons, the weights of each arm.

    >>> read_truth("0.3,0.5"), read_truth("0.1,0.2;0.4,0")
    ([0.3, 0.5], [[0.1, 0.2], [0.4, 0.0]])
    """
    try:
        rows = [[float(part) for part in row.split(",")] for row in text.split(";")]
    except ValueError:
        raise SettingError(
            f"A truth is one number per arm, such as 0.3,0.5, got {text!r}. It takes numbers only: with contexts, the "
            "weights of each arm, such as 0.1,0.2;0.4,0."
        ) from None
    return rows if len(rows) > 1 else rows[0]
