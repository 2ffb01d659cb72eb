"""Compile a rule for given constants: which law, which policy. What the constants do not need is not compiled.

A rule whose parameters are annotated ``Constant`` is a template (one without any is only copied into its callers).
Wherever one is called, its constants must be known when the code is compiled: a ``Constant`` parameter of the caller,
or a value of a module. For each set of constants the rule's source is rewritten once: constants become numbers,
branches that they decide are resolved, and calls of other templates become calls of those compiled for their
constants, or, where they are ``spliced``, their statements. Read the source as if constants were ordinary arguments;
called from Python, it behaves so.

Numba can prune such branches and inline functions itself, but it inlines everything before it prunes, which makes a
kernel many times slower to compile.
"""

import ast
import copy
import functools
import inspect
import textwrap
import threading
from collections.abc import Callable
from types import ModuleType
from typing import Annotated, Any, Generic, ParamSpec, TypeVar, cast

from doublesampling.rules.compiled import SIMULATED, spliced
from doublesampling.rules.copied_returns import assign_returns

_ONE_AT_A_TIME = threading.RLock()  # CPython's own count of how deep a syntax tree is belongs to no thread

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
        self.copied = compiler is spliced
        """Whether its statements are written into its callers."""
        self._compiled: dict[tuple[int, ...], Any] = {}

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Call the rule compiled for its constants, from Python."""
        if SIMULATED:
            return self.py_func(*args, **kwargs)
        if not self.constants:
            return cast(R, self.at()(*args, **kwargs))
        given = dict(zip((p.name for p in self.parameters), args, strict=False)) | kwargs
        constants = {name: int(cast(int, given.pop(name))) for name in self.constants}
        return cast(R, self.at(**constants)(*given.values()))

    def at(self, **constants: int) -> Any:
        """Return the rule compiled for these constants; it takes the other parameters, in their order."""
        key = tuple(constants[name] for name in self.constants)
        if key not in self._compiled:
            self._compiled[key] = self._compiler(written_out(self.py_func, constants))
        return self._compiled[key]


def written_out(function: Callable[P, R], constants: dict[str, int] | None = None) -> Callable[P, R]:
    """Return a function whose constants are numbers: parameters of these names, and numbers that it closes over."""
    with _ONE_AT_A_TIME:
        return _written_out(function, constants or {})


def _written_out(function: Callable[P, R], constants: dict[str, int]) -> Callable[P, R]:
    definition, names = _source_of(function)
    rewriting = _Rewriting(names, constants, {})
    definition.decorator_list = []
    definition.returns = None
    definition.args.args = [a for a in definition.args.args if a.arg not in constants]
    for argument in definition.args.args:
        argument.annotation = None
    definition.name = "_".join([definition.name, *map(str, constants.values())])
    definition.body = rewriting.block(definition.body)
    tree = ast.fix_missing_locations(ast.Module([definition], []))
    ast.increment_lineno(tree, function.__code__.co_firstlineno - 1)
    space = names | rewriting.bound
    exec(compile(tree, function.__code__.co_filename, "exec"), space)  # our own source
    return space[definition.name]


def _source_of(function: Callable[..., Any]) -> tuple[ast.FunctionDef, dict[str, Any]]:
    """Return a new syntax tree of a function without its docstring, and the names that it sees."""
    definition = ast.parse(textwrap.dedent(inspect.getsource(function))).body[0]
    assert isinstance(definition, ast.FunctionDef)
    if ast.get_docstring(definition) is not None:
        definition.body = definition.body[1:]
    return definition, function.__globals__ | dict(inspect.getclosurevars(function).nonlocals)


class _Rewriting(ast.NodeTransformer):
    """Write constants into a function's source, and the statements of rules that are to be copied."""

    def __init__(self, names: dict[str, Any], constants: dict[str, int], renamed: dict[str, ast.expr]) -> None:
        self.names, self.constants, self.renamed = names, constants, renamed
        self.bound: dict[str, Any] = {}
        self.copies = [0]
        self.mark = ""

    def block(self, statements: list[ast.stmt]) -> list[ast.stmt]:
        """Rewrite statements, without branches that the constants rule out."""
        found: list[ast.stmt] = []
        for statement in statements:
            new = self._copied(statement) or self.visit(statement)
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
            if node.id in self.renamed:
                raise LookupError
            found = self.names[node.id]
        elif isinstance(node, ast.Attribute):
            found = getattr(self.value(node.value), node.attr)
        elif isinstance(node, ast.Compare) and len(node.ops) == 1:
            return self._compared(node.left, node.ops[0], node.comparators[0])
        elif isinstance(node, ast.BoolOp):
            return self._of_several(node)
        else:
            raise LookupError
        if isinstance(found, ModuleType | int | Specialised):
            return found
        raise LookupError

    def _compared(self, left: ast.expr, operator: ast.cmpop, right: ast.expr) -> bool:
        if isinstance(operator, ast.In) and isinstance(right, ast.Tuple):
            return self.value(left) in [self.value(element) for element in right.elts]
        if isinstance(operator, ast.Eq | ast.NotEq):
            return (self.value(left) == self.value(right)) is isinstance(operator, ast.Eq)
        raise LookupError

    def _of_several(self, node: ast.BoolOp) -> bool:
        """Return what and/or gives; one operand may decide it whatever the others are."""
        deciding = isinstance(node.op, ast.Or)
        known = [self._try(operand) for operand in node.values]
        if deciding in known:
            return deciding
        if None in known:
            raise LookupError
        return not deciding

    def _try(self, node: ast.expr) -> bool | None:
        """Return whether an expression holds, or None where constants do not decide it."""
        try:
            return bool(self.value(node))
        except (LookupError, AttributeError):
            return None

    def visit_If(self, node: ast.If) -> Any:
        """Keep the branch that the constants choose, or both."""
        chosen = self._try(node.test)
        if chosen is not None:
            return self.block(node.body if chosen else node.orelse)
        body, otherwise = self.block(node.body), self.block(node.orelse)
        return ast.If(self.visit(node.test), body or [ast.Pass()], otherwise)

    def visit_For(self, node: ast.For) -> Any:
        """Rewrite a loop."""
        return ast.For(self.visit(node.target), self.visit(node.iter), self.block(node.body), self.block(node.orelse))

    def visit_While(self, node: ast.While) -> Any:
        """Rewrite a loop."""
        return ast.While(self.visit(node.test), self.block(node.body), self.block(node.orelse))

    def visit_AnnAssign(self, node: ast.AnnAssign) -> Any:
        """Leave annotations out: they would be names to look up."""
        if node.value is None:
            return ast.Pass()
        return ast.Assign([self.visit(node.target)], self.visit(node.value))

    def visit_IfExp(self, node: ast.IfExp) -> Any:
        """Keep the value that the constants choose, or both."""
        chosen = self._try(node.test)
        return self.generic_visit(node) if chosen is None else self.visit(node.body if chosen else node.orelse)

    def visit_BoolOp(self, node: ast.BoolOp) -> Any:
        """Leave out operands that the constants decide."""
        try:
            return ast.Constant(self._of_several(node))
        except LookupError:
            left = [self.visit(operand) for operand in node.values if self._try(operand) is None]
        return left[0] if len(left) == 1 else ast.BoolOp(node.op, left)

    def visit_Name(self, node: ast.Name) -> Any:
        """Write a constant as its number, and names of a copied rule as they are called in its caller."""
        if node.id in self.constants:
            return ast.Constant(self.constants[node.id])
        if self.mark and node.id not in self.renamed and node.id in self.names:  # of the copied rule's module
            self.bound[node.id + self.mark] = self.names[node.id]
            return ast.Name(node.id + self.mark, node.ctx)
        renamed = copy.deepcopy(self.renamed.get(node.id, node))
        if isinstance(renamed, ast.Name):
            renamed.ctx = node.ctx
        return renamed

    def visit_Call(self, node: ast.Call) -> Any:
        """Call the rule that is compiled for its constants."""
        callee = self._callee(node)
        if callee is None:
            return self.generic_visit(node)
        constants, rest = self._arguments(callee, node)
        name = "_".join([callee.py_func.__name__, *map(str, constants.values()), "compiled"])
        self.bound[name] = callee.at(**constants)
        return ast.Call(ast.Name(name, ast.Load()), list(rest.values()), [])

    def _callee(self, node: ast.expr | None) -> Specialised[Any, Any] | None:
        if not isinstance(node, ast.Call):
            return None
        try:
            found = self.value(node.func)
        except (LookupError, AttributeError):
            return None
        return found if isinstance(found, Specialised) else None

    def _arguments(self, callee: Specialised[Any, Any], node: ast.Call) -> tuple[dict[str, int], dict[str, ast.expr]]:
        """Return the constants of a call, and its other arguments, by parameter."""
        constants, rest = {}, {}
        for parameter, argument in zip(callee.parameters, node.args, strict=True):
            if parameter.name in callee.constants:
                constants[parameter.name] = int(self.value(argument))
            else:
                rest[parameter.name] = self.visit(argument)
        return constants, rest

    def _copied(self, statement: ast.stmt) -> list[ast.stmt] | None:
        """Return the statements of a rule that a statement calls, where they can be copied: less to compile."""
        value = getattr(statement, "value", None)
        callee = self._callee(value)
        if callee is None or not callee.copied or not isinstance(statement, ast.Expr | ast.Assign | ast.Return):
            return None
        definition, names = _source_of(callee.py_func)
        constants, rest = self._arguments(callee, cast(ast.Call, value))
        self.copies[0] += 1
        mark = f"_{self.copies[0]}"
        written = {n.id for n in ast.walk(definition) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
        renamed: dict[str, ast.expr] = {name: ast.Name(name + mark) for name in written}
        before: list[ast.stmt] = []
        for name, argument in rest.items():
            if isinstance(argument, ast.Name | ast.Constant) and name not in written:
                renamed[name] = argument
            else:
                renamed[name] = ast.Name(name + mark)
                before.append(ast.Assign([ast.Name(name + mark, ast.Store())], argument))
        inner = _Rewriting(names, constants, renamed)
        inner.bound, inner.copies, inner.mark = self.bound, self.copies, mark
        body = inner.block(definition.body)
        if isinstance(statement, ast.Return):
            return before + body
        target = self.visit(statement.targets[0]) if isinstance(statement, ast.Assign) else None
        assigned = assign_returns(body, target)
        return None if assigned is None else before + assigned


def specialised(compiler: Callable[[Any], Any]) -> Callable[[Callable[P, R]], Specialised[P, R]]:
    """Make a rule a template, compiled as ``compiler`` says (rules/compiled.py) for each set of constants."""
    return lambda function: Specialised(function, compiler)
