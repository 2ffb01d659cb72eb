"""A release: versions agree, wheel and sdist hold what they must, and the files for a forge are valid."""

import email
import re
import subprocess
import sys
import tarfile
import tomllib
import venv
import zipfile
from pathlib import Path
from typing import Any

import pytest

import doublesampling as ds

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
yaml = pytest.importorskip("yaml")


def page(name: str) -> Path:
    """A page of the documentation, in whichever folder it is."""
    (found,) = (ROOT / "docs").rglob(name)
    return found


def parsed(path: str) -> Any:
    return yaml.safe_load((ROOT / path).read_text())


def test_all_files_name_the_same_version():
    assert PROJECT["project"]["dynamic"] == ["version"]
    assert PROJECT["tool"]["hatch"]["version"]["path"] == "src/doublesampling/__init__.py"
    assert str(parsed("CITATION.cff")["version"]) == ds.__version__
    latest = re.search(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert latest is not None
    assert latest.group(1) == ds.__version__
    assert f"v{ds.__version__}" in page("versioning.md").read_text()


def test_the_citation_has_what_the_format_requires():
    found = parsed("CITATION.cff")
    assert {"cff-version", "message", "title", "authors"} <= found.keys()
    assert found["license"] == PROJECT["project"]["license"]
    (paper,) = found["references"]
    assert [author["family-names"] for author in paper["authors"]] == ["Urteaga", "Wiggins"]


@pytest.fixture(scope="module")
def built(tmp_path_factory) -> tuple[Path, Path]:
    """The wheel and the sdist, built from this tree."""
    pytest.importorskip("hatchling")
    folder = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "hatchling", "build", "--directory", str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    (wheel,), (sdist,) = folder.glob("*.whl"), folder.glob("*.tar.gz")
    return wheel, sdist


def test_the_wheel_holds_the_package_and_nothing_else(built):
    wheel, _ = built
    assert wheel.name == f"doublesampling-{ds.__version__}-py3-none-any.whl"
    with zipfile.ZipFile(wheel) as found:
        names = set(found.namelist())
        information = f"doublesampling-{ds.__version__}.dist-info"
        metadata = email.message_from_bytes(found.read(f"{information}/METADATA"))
        scripts = found.read(f"{information}/entry_points.txt").decode()
    package = {
        path.relative_to(ROOT / "src").as_posix()
        for path in (ROOT / "src" / "doublesampling").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert {"doublesampling/py.typed", "doublesampling/service/static/index.html"} <= package
    assert {name for name in names if not name.startswith(information)} == package
    assert f"{information}/licenses/LICENSE" in names
    assert metadata["Version"] == ds.__version__
    assert metadata["Requires-Python"] == ">=3.11"
    assert set(metadata.get_all("Provides-Extra") or []) == set(PROJECT["project"]["optional-dependencies"])
    assert "doublesampling = doublesampling.cli.main:main" in scripts


def test_the_sdist_holds_what_the_tests_need_and_builds_the_same_wheel(built, tmp_path):
    wheel, sdist = built
    top = f"doublesampling-{ds.__version__}"
    with tarfile.open(sdist) as found:
        names = {name.removeprefix(f"{top}/") for name in found.getnames()}
        assert {"pyproject.toml", "README.md", "LICENSE", "CHANGELOG.md", "Makefile", "requirements.lock"} <= names
        assert {"Containerfile", "compose.yaml", "deploy/install.sh", "tests/conftest.py", "SECURITY.md"} <= names
        assert not [name for name in names if name.startswith((".venv", "out/", "dist/")) or "__pycache__" in name]
        found.extractall(tmp_path, filter="data")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "--directory", str(tmp_path)]
    subprocess.run(command, cwd=tmp_path / top, check=True, capture_output=True)
    with zipfile.ZipFile(tmp_path / wheel.name) as again, zipfile.ZipFile(wheel) as first:
        assert set(again.namelist()) == set(first.namelist())


@pytest.mark.slow
def test_the_wheel_works_in_a_clean_environment(built, tmp_path):
    """Installed with its requirements and nothing else; skipped where pip cannot fetch them."""
    venv.create(tmp_path / "clean", with_pip=True)
    python = tmp_path / "clean" / ("Scripts" if sys.platform == "win32" else "bin") / "python"
    done = subprocess.run([python, "-m", "pip", "install", "--quiet", str(built[0])], capture_output=True, text=True)
    if done.returncode and "No matching distribution" in done.stderr:
        pytest.skip(f"pip cannot fetch the requirements: {done.stderr.strip().splitlines()[-1]}")
    assert done.returncode == 0, done.stderr
    code = (
        "import doublesampling as ds; b = ds.BetaBernoulli(arms=2);"
        "e = ds.Experiment.create('t', arms=['a', 'b'], seed=1, storage='sqlite:///t.db'); e.tell(e.ask().id, 1.0);"
        "assert e.replay().agrees; print(ds.__version__, ds.decide(ds.DoubleSampling(), b, b.prior(), seed=7).arm)\n"
        "for call in (lambda: ds.connect('http://localhost'),):\n"
        "    try: call()\n"
        "    except ds.DoubleSamplingError as missing: print(missing)"
    )
    shown = subprocess.run([python, "-c", code], capture_output=True, text=True, cwd=tmp_path)
    assert shown.returncode == 0, shown.stderr
    lines = shown.stdout.splitlines()
    assert lines[0].startswith(f"{ds.__version__} ")
    assert "pip install 'doublesampling[client]'" in lines[1]
    serve = subprocess.run([python.with_name("doublesampling"), "serve"], capture_output=True, text=True, cwd=tmp_path)
    assert "pip install 'doublesampling[service]'" in serve.stdout + serve.stderr


class TestForge:
    @pytest.mark.parametrize(
        "path",
        [".pre-commit-config.yaml", *sorted(p.relative_to(ROOT).as_posix() for p in (ROOT / ".github").rglob("*.yml"))],
    )
    def test_yaml_is_valid(self, path):
        assert isinstance(parsed(path), dict)

    def test_the_matrix_covers_pythons_systems_and_dependencies(self):
        matrix = parsed(".github/workflows/test.yml")["jobs"]["matrix"]["strategy"]["matrix"]
        listed = [c.rsplit(" ", 1)[1] for c in PROJECT["project"]["classifiers"] if ":: 3." in c]
        assert matrix["python"] == listed
        assert {system.split("-")[0] for system in matrix["os"]} == {"ubuntu", "macos", "windows"}
        every = {*matrix["dependencies"], *(each["dependencies"] for each in matrix["include"])}
        assert every == {"oldest", "newest"}

    def test_commands_name_files_and_targets_that_exist(self):
        text = (ROOT / ".github" / "workflows" / "test.yml").read_text()
        for name in re.findall(r"tests/\w+\.py", text + (ROOT / ".pre-commit-config.yaml").read_text()):
            assert (ROOT / name).is_file(), name
        targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
        assert set(re.findall(r"make ([a-z]+)$", text, re.MULTILINE)) <= targets
        extras = re.search(r"-e '\.\[(.*?)\]'", text)
        assert extras is not None
        assert set(extras.group(1).split(",")) <= set(PROJECT["project"]["optional-dependencies"])

    def test_hooks_use_the_checks_of_make_check(self):
        (repository,) = parsed(".pre-commit-config.yaml")["repos"]
        entries = " ".join(hook["entry"] for hook in repository["hooks"])
        for tool in ("ruff check", "ruff format", "mypy", "lint-imports"):
            assert f".venv/bin/{tool}" in entries

    def test_issue_forms_have_fields_with_names(self):
        for form in ("bug", "feature"):
            found = parsed(f".github/ISSUE_TEMPLATE/{form}.yml")
            assert found["name"]
            assert found["description"]
            assert len({field["id"] for field in found["body"]}) == len(found["body"])


def test_make_test_installs_no_system_packages():
    recipe = (ROOT / "Makefile").read_text().split("\ntest:")[1].split("\n\n")[0]
    assert "sudo" not in recipe
    assert not re.search(r"^\s*(apt|apt-get|yum|brew)\b", recipe.replace("@", ""), re.MULTILINE)
    assert "To run them, install it" in recipe


@pytest.mark.parametrize("name", ["SECURITY.md", "versioning.md", "client.md", "deploy.md"])
def test_links_lead_to_files(name):
    path = ROOT / name if (ROOT / name).is_file() else page(name)
    links = [link.partition("#")[0] for link in re.findall(r"\]\(([^)]+)\)", path.read_text()) if "://" not in link]
    assert links
    for link in links:
        assert (path.parent / link).exists(), link


def test_promised_error_codes_are_documented():
    """The versioning policy promises codes; the service's page lists those that a request can meet."""
    from doublesampling.service.problems import STATUS

    text = page("service.md").read_text()
    for code in ("conflict", "name-taken", "paused", "voided", "unauthorized", "forbidden", "too-many", "timeout"):
        assert code in STATUS
        assert f"`{code}`" in text
