"""The layout of the package: private names, signatures, sizes, and where SQL is read."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "src" / "doublesampling"
MODULES = sorted(PACKAGE.rglob("*.py"))
NAMED_TUPLE = {"_fields", "_make", "_replace", "_asdict"}  # public methods that start with an underscore
MOST_PARAMETERS = 10
# Numba has no public name for how a library is optimised; without these, rules are compiled in full
ALLOWED = {("rules/linked_rules.py", "_module_pass_manager"), ("rules/linked_rules.py", "_opt_level")}


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__") and name != "_" and name not in NAMED_TUPLE


def defined_here(tree: ast.Module) -> set[str]:
    """Names that a module defines itself: functions, classes, variables, and attributes that it assigns."""
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Store):
            found.add(node.id if isinstance(node, ast.Name) else node.attr)
    return found


def private_names(source: str) -> Iterator[str]:
    """Private names of other modules that a source uses: ``from m import _n`` and ``x._y``."""
    tree = ast.parse(source)
    own = defined_here(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            yield from (alias.name for alias in node.names if is_private(alias.name))
        elif isinstance(node, ast.Attribute) and is_private(node.attr) and node.attr not in own:
            of_a_base_class = isinstance(node.value, ast.Name) and node.value.id in ("self", "cls")
            yield from [] if of_a_base_class else [node.attr]


def parameters(source: str) -> Iterator[tuple[str, int]]:
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            a = node.args
            count = (
                len(a.posonlyargs) + len(a.args) + len(a.kwonlyargs) + (a.vararg is not None) + (a.kwarg is not None)
            )
            yield getattr(node, "name", "lambda"), count


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("from m import _hidden", ["_hidden"]),
        ("import m\nm._hidden()", ["_hidden"]),
        ("def f(x):\n    return x._book", ["_book"]),
        (
            "class A:\n    def f(self, other):\n        self._mine = 1\n        return other._mine",
            [],
        ),
        ("def _mine(): ...\n_mine()\nx.__dict__\nrow._fields", []),
    ],
)
def test_the_check_finds_private_names_of_other_modules(source, found):
    assert list(private_names(source)) == found


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_no_module_uses_a_private_name_of_another(path):
    where = path.relative_to(PACKAGE).as_posix()
    assert [name for name in private_names(path.read_text()) if (where, name) not in ALLOWED] == []


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_no_function_has_more_than_ten_parameters(path):
    assert [found for found in parameters(path.read_text()) if found[1] > MOST_PARAMETERS] == []


def test_sql_reads_stand_in_queries_and_stores():
    readers = {
        path.relative_to(PACKAGE / "live").as_posix()
        for path in (PACKAGE / "live").rglob("*.py")
        if "sa.select(" in path.read_text() or "sqlalchemy import select" in path.read_text()
    }
    assert readers
    assert {name for name in readers if not name.startswith(("queries/", "stores/"))} == set()


def test_files_have_at_most_three_hundred_lines():
    """All but the special functions, which stand together."""
    long = {p.relative_to(PACKAGE).as_posix(): n for p in MODULES if (n := len(p.read_text().splitlines())) > 300}
    assert set(long) <= {"rules/special.py"}
