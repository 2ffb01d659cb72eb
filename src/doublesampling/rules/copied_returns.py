"""Returns of a rule whose statements are copied into its caller: they become assignments."""

import ast
import copy


def assign_returns(statements: list[ast.stmt], target: ast.expr | None) -> list[ast.stmt] | None:
    """Return statements that assign what they returned; None where a return stands where it cannot be replaced."""
    found: list[ast.stmt] = []
    for i, statement in enumerate(statements):
        if isinstance(statement, ast.Return):
            return found + ([] if target is None or statement.value is None else _assigned(target, statement.value))
        if any(isinstance(node, ast.Return) for node in ast.walk(statement)):
            if not isinstance(statement, ast.If):
                return None
            rest = statements[i + 1 :]
            if rest and not (_returns(statement.body) or _returns(statement.orelse)):
                return None
            body = assign_returns(statement.body + ([] if _returns(statement.body) else rest), target)
            otherwise = assign_returns(statement.orelse + ([] if _returns(statement.orelse) else rest), target)
            if body is None or otherwise is None:
                return None
            return [*found, ast.If(statement.test, body or [ast.Pass()], otherwise)]
        found.append(statement)
    return found


def _returns(statements: list[ast.stmt]) -> bool:
    """Tell whether statements surely end in a return."""
    if not statements:
        return False
    last = statements[-1]
    return isinstance(last, ast.Return) or (isinstance(last, ast.If) and _returns(last.body) and _returns(last.orelse))


def _assigned(target: ast.expr, value: ast.expr) -> list[ast.stmt]:
    """Assign a value; several at once become one assignment each, where none of them reads another's target."""
    target = copy.deepcopy(target)
    if not isinstance(target, ast.Tuple) or not isinstance(value, ast.Tuple):
        return [ast.Assign([target], value)]
    written = [{n.id for n in ast.walk(one) if isinstance(n, ast.Name)} for one in target.elts]
    read = [{n.id for n in ast.walk(one) if isinstance(n, ast.Name)} for one in value.elts]
    if any(written[i] & read[j] for i in range(len(written)) for j in range(i + 1, len(read))):
        return [ast.Assign([target], value)]
    return [ast.Assign([one], other) for one, other in zip(target.elts, value.elts, strict=True)]
