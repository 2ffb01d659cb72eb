"""Compile a rule for given constants: which law, which policy. What the constants do not need is not compiled.

A rule whose parameters are annotated ``Constant`` is a template. Wherever one is called, its constants must be known
when the code is compiled: a ``Constant`` parameter of the caller, or a value of a module. For each set of constants
the rule's source is rewritten once: constants become numbers, branches that they decide are resolved, and calls of
other templates become calls of those compiled for their constants. Read the source as if constants were ordinary
arguments; called from Python, it behaves so.

Numba could prune such branches itself, but only after it has inlined everything behind them.
"""

import ast
import functools
import inspect
import textwrap
from collections.abc import Callable
from types import ModuleType
from typing import Annotated, Any, Generic, ParamSpec, TypeVar

from doublesampling.rules.compiled import SIMULATED

P = ParamSpec("P")
R = TypeVar("R")

Constant = Annotated[int, "known when the code is compiled"]
"""The annotation of parameters that are known when a rule is compiled."""


class Specialised(Generic[P, R]):
    """A rule with constants; ``at(**constants)`` is the compiled rule without them."""

    def __init__(self, function: Callable[P, R], compiler: Callable[[Any], Any]) -> None:
        functools.update_wrapper(self, function)
        self.py_func, self._compiler = function, compiler
        self.parameters = list(inspect.signature(function).parameters.values())
        self.constants = [p.name for p in self.parameters if p.annotation == Constant]
        self._compiled: dict[tuple[int, ...], Any] = {}

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        if SIMULATED:
            return self.py_func(*args, **kwargs)
        if not self.constants:
            result: R = self.at()(*args, **kwargs)
            return result
        given = dict(zip((p.name for p in self.parameters), args, strict=False)) | kwargs
        constants = {name: int(given.pop(name)) for name in self.constants}  # type: ignore[call-overload]
        result = self.at(**constants)(*given.values())
        return result

    def at(self, **constants: int) -> Any:
        """Return the rule compiled for these constants; it takes the other parameters, in their order."""
        key = tuple(constants[name] for name in self.constants)
        if key not in self._compiled:
            self._compiled[key] = self._compiler(written_out(self.py_func, constants))
        return self._compiled[key]


def written_out(function: Callable[P, R], constants: dict[str, int] | None = None) -> Callable[P, R]:
    """Return a function whose constants are numbers: parameters of these names, and numbers that it closes over."""
    constants = constants or {}
    tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    definition = tree.body[0]
    assert isinstance(definition, ast.FunctionDef)
    names = function.__globals__ | dict(inspect.getclosurevars(function).nonlocals)  # type: ignore[attr-defined]
    rewriting = _Rewriting(names, constants)
    definition.decorator_list = []
    definition.returns = None
    definition.args.args = [a for a in definition.args.args if a.arg not in constants]
    for argument in definition.args.args:
        argument.annotation = None
    definition.name = "_".join([definition.name, *map(str, constants.values())])
    definition.body = rewriting.block(definition.body)
    ast.increment_lineno(tree, function.__code__.co_firstlineno - 1)
    code = compile(ast.fix_missing_locations(tree), function.__code__.co_filename, "exec")
    space = names | rewriting.bound
    exec(code, space)  # noqa: S102 - our own source, with its constants written in
    return space[definition.name]  # type: ignore[no-any-return]


class _Rewriting(ast.NodeTransformer):
    """Write constants into a function's source."""

    def __init__(self, names: dict[str, Any], constants: dict[str, int]) -> None:
        self.names, self.constants = names, constants
        self.bound: dict[str, Any] = {}

    def block(self, statements: list[ast.stmt]) -> list[ast.stmt]:
        """Rewrite statements, without branches that the constants rule out."""
        found: list[ast.stmt] = []
        for statement in statements:
            new = self.visit(statement)
            found.extend(new if isinstance(new, list) else [new])
            if found and isinstance(found[-1], ast.Return):
                break
        return found

    def value(self, node: ast.expr) -> Any:
        """Return the value of an expression that constants and modules decide, else raise LookupError."""
        if isinstance(node, ast.Constant):
            return node.value
        if isinstance(node, ast.Name):
            if node.id in self.constants:
                return self.constants[node.id]
            found = self.names[node.id]
        elif isinstance(node, ast.Attribute):
            found = getattr(self.value(node.value), node.attr)
        elif isinstance(node, ast.Compare) and len(node.ops) == 1 and isinstance(node.ops[0], ast.Eq | ast.NotEq):
            equal = self.value(node.left) == self.value(node.comparators[0])
            return equal is isinstance(node.ops[0], ast.Eq)
        elif isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.In) and isinstance(node.comparators[0], ast.Tuple):
            return self.value(node.left) in [self.value(element) for element in node.comparators[0].elts]
        elif isinstance(node, ast.BoolOp):
            return self._of_several(node)
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            return not self.value(node.operand)
        else:
            raise LookupError
        if isinstance(found, ModuleType | int | Specialised):
            return found
        raise LookupError

    def _of_several(self, node: ast.BoolOp) -> bool:
        """Return what and/or gives; one operand may decide it whatever the others are."""
        deciding = isinstance(node.op, ast.Or)
        unknown = False
        for operand in node.values:
            try:
                if bool(self.value(operand)) is deciding:
                    return deciding
            except (LookupError, AttributeError):
                unknown = True
        if unknown:
            raise LookupError
        return not deciding

    def visit_If(self, node: ast.If) -> Any:
        """Keep the branch that the constants choose, or both."""
        try:
            chosen = bool(self.value(node.test))
        except (LookupError, AttributeError):
            node.test = self.visit(node.test)
            node.body, node.orelse = self.block(node.body), self.block(node.orelse)
            node.body = node.body or [ast.Pass()]
            return node
        return self.block(node.body if chosen else node.orelse)

    def visit_IfExp(self, node: ast.IfExp) -> Any:
        """Keep the value that the constants choose, or both."""
        try:
            chosen = bool(self.value(node.test))
        except (LookupError, AttributeError):
            return self.generic_visit(node)
        return self.visit(node.body if chosen else node.orelse)

    def visit_BoolOp(self, node: ast.BoolOp) -> Any:
        """Leave out operands that the constants decide."""
        try:
            return ast.Constant(self._of_several(node))
        except LookupError:
            pass
        left: list[ast.expr] = []
        for operand in node.values:
            try:
                self.value(operand)
            except (LookupError, AttributeError):
                left.append(self.visit(operand))
        return left[0] if len(left) == 1 else ast.BoolOp(node.op, left)

    def visit_Name(self, node: ast.Name) -> Any:
        """Write a constant as its number."""
        return ast.Constant(self.constants[node.id]) if node.id in self.constants else node

    def visit_Call(self, node: ast.Call) -> Any:
        """Call the rule that is compiled for its constants."""
        try:
            callee = self.value(node.func)
        except (LookupError, AttributeError):
            callee = None
        if not isinstance(callee, Specialised):
            return self.generic_visit(node)
        constants, rest = {}, []
        for parameter, argument in zip(callee.parameters, node.args, strict=True):
            if parameter.name in callee.constants:
                constants[parameter.name] = int(self.value(argument))
            else:
                rest.append(self.visit(argument))
        name = "_".join([callee.py_func.__name__, *map(str, constants.values()), "compiled"])
        self.bound[name] = callee.at(**constants)
        return ast.Call(ast.Name(name, ast.Load()), rest, [])


def specialised(compiler: Callable[[Any], Any]) -> Callable[[Callable[P, R]], Specialised[P, R]]:
    """Make a rule a template, compiled as ``compiler`` says (rules/compiled.py) for each set of constants."""
    return lambda function: Specialised(function, compiler)
