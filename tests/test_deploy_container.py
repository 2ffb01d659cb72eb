"""The Containerfile, the compose file and the scripts behind them; the image itself where a container tool works."""

import json
import os
import re
import secrets
import shlex
import shutil
import subprocess
import sys
import sysconfig
import time
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import pytest

import doublesampling as ds
from tests.service import free_port

ROOT = Path(__file__).parent.parent
CONTAINERFILE = (ROOT / "Containerfile").read_text()
STEPS = [line.split(maxsplit=1) for line in re.sub(r"\\\n", " ", CONTAINERFILE).splitlines() if line[:1].isupper()]


def steps(kind: str) -> list[str]:
    return [rest for name, rest in STEPS if name == kind]


class TestContainerfile:
    def test_it_has_two_stages_and_a_user_without_rights(self):
        assert len(steps("FROM")) == 2
        kinds = [kind for kind, _ in STEPS]
        assert kinds.index("USER") > kinds.index("FROM", kinds.index("FROM") + 1)
        (user,) = steps("USER")
        assert int(user) >= 1000
        assert f"--uid {user} " in CONTAINERFILE

    def test_it_copies_files_that_exist_and_are_not_ignored(self):
        sources = [word for rest in steps("COPY") if "--from" not in rest for word in rest.split()[:-1]]
        assert {"src", "pyproject.toml", "deploy"} <= set(sources)
        kept = [line[1:] for line in (ROOT / ".containerignore").read_text().splitlines() if line.startswith("!")]
        for source in sources:
            assert (ROOT / source).exists(), source
            assert any(fnmatch(source, pattern) for pattern in kept), f"{source} is ignored"
        assert (ROOT / ".containerignore").read_text() == (ROOT / ".dockerignore").read_text()

    def test_the_wheel_can_be_built_from_what_it_copies(self):
        text = (ROOT / "pyproject.toml").read_text()
        needed = [re.search(rf'^{name} = \[?"(.*?)"', text, re.MULTILINE) for name in ("readme", "license-files")]
        for found in needed:
            assert found is not None
            assert found.group(1) in CONTAINERFILE

    def test_scripts_and_image_compile_for_the_same_processor(self):
        """Code that is kept for one processor is not used on another."""
        for name in ("Containerfile", "deploy/install.sh", "deploy/start.sh"):
            assert "NUMBA_CPU_NAME=generic" in (ROOT / name).read_text(), name
        (environment,) = steps("ENV")
        assert "NUMBA_CACHE_DIR=/opt/doublesampling/cache" in environment
        assert any(run.startswith("deploy/install.sh /opt/doublesampling") for run in steps("RUN"))

    def test_it_starts_the_service_and_checks_its_health(self):
        (entry,), (command,), (health,) = steps("ENTRYPOINT"), steps("CMD"), steps("HEALTHCHECK")
        assert json.loads(entry) == ["/opt/doublesampling/bin/start"]
        words = json.loads(command)
        port = words[words.index("--port") + 1]
        assert words[0] == "serve"
        assert f"http://127.0.0.1:{port}/healthz" in health
        assert steps("EXPOSE") == [port]


class TestComposeFile:
    @pytest.fixture
    def found(self) -> Any:
        return pytest.importorskip("yaml").safe_load((ROOT / "compose.yaml").read_text())

    def test_services_refer_to_what_exists(self, found):
        service, db = found["services"]["service"], found["services"]["db"]
        build = service["build"]
        assert (ROOT / build["context"] / build["dockerfile"]).is_file()
        assert service["depends_on"] == {"db": {"condition": "service_healthy"}}
        for each in (service, db):
            assert set(each["secrets"]) <= set(found["secrets"])
        volumes = [mount.split(":")[0] for mount in db["volumes"]]
        assert set(volumes) == set(found["volumes"])

    def test_it_holds_no_password_and_listens_to_this_machine_only(self, found):
        text = (ROOT / "compose.yaml").read_text()
        service, db = found["services"]["service"], found["services"]["db"]
        assert not re.search(r"postgresql://\w+:", text)
        assert service["environment"]["PGPASSWORD_FILE"] == db["environment"]["POSTGRES_PASSWORD_FILE"]
        assert found["secrets"]["db_password"] == {"environment": "DOUBLESAMPLING_DB_PASSWORD"}
        assert all(port.startswith("127.0.0.1:") for port in service["ports"])
        assert "ports" not in db

    def test_the_url_names_the_database_that_is_created(self, found):
        url = found["services"]["service"]["environment"]["DOUBLESAMPLING_STORAGE"]
        db = found["services"]["db"]["environment"]
        assert url == f"postgresql://{db['POSTGRES_USER']}@db/{db['POSTGRES_DB']}"


def start(folder: Path, *words: str, **environment: str) -> "subprocess.CompletedProcess[str]":
    """Run the start script of a folder; variables of this process that it reads are left out."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("DOUBLESAMPLING_", "PG", "NUMBA_", "PYTHONPATH"))}
    return subprocess.run(
        [folder / "bin" / "start", *words], env=kept | environment, capture_output=True, text=True, cwd=folder
    )


class TestStartScript:
    @pytest.fixture
    def folder(self, tmp_path: Path) -> Path:
        """A folder as install.sh makes it, with a command that prints what it was called with."""
        (tmp_path / "bin").mkdir()
        shutil.copy(ROOT / "deploy" / "start.sh", tmp_path / "bin" / "start")
        command = tmp_path / "bin" / "doublesampling"
        command.write_text('#!/bin/sh\necho "$@" "$DOUBLESAMPLING_STORAGE" "${PGPASSWORD:-}" "$NUMBA_CPU_NAME"\n')
        command.chmod(0o755)
        return tmp_path

    def test_it_upgrades_the_store_before_it_serves(self, folder):
        done = start(folder, "serve", "--port", "1", DOUBLESAMPLING_STORAGE="sqlite:///x.db", PGPASSWORD="p")
        assert done.stdout.splitlines() == [
            "db upgrade sqlite:///x.db p generic",
            "serve --port 1 sqlite:///x.db p generic",
        ]
        done = start(folder, "key", "list", DOUBLESAMPLING_STORAGE="sqlite:///x.db")
        assert done.stdout.splitlines() == ["key list sqlite:///x.db  generic"]

    def test_secrets_come_from_files(self, folder):
        (folder / "url").write_text("postgresql://u@h/d\n")
        (folder / "password").write_text("p w\n")
        files = {"DOUBLESAMPLING_STORAGE_FILE": str(folder / "url"), "PGPASSWORD_FILE": str(folder / "password")}
        assert start(folder, "key", "list", **files).stdout == "key list postgresql://u@h/d p w generic\n"
        missing = start(folder, "key", "list", PGPASSWORD_FILE="/no/such/file", DOUBLESAMPLING_STORAGE="x")
        assert missing.returncode != 0

    def test_a_store_must_be_named(self, folder):
        done = start(folder, "serve")
        assert done.returncode != 0
        assert "set it to a URL" in done.stderr


OTHER_PROCESSOR = """
import llvmlite.binding as ll
ll.get_host_cpu_name = lambda: "another-processor"
ll.get_host_cpu_features = lambda: {"another-feature": True}
import numpy as np
from doublesampling.rules.cached import compilations
from doublesampling.rules.entry_points import choose_largest
choose_largest(np.array([1.0, 3.0, 2.0]), True, np.zeros(4, dtype=np.uint64))
print(compilations())
"""


@pytest.fixture(scope="module")
def installed(tmp_path_factory) -> Path:
    """What install.sh makes of a fresh folder; the packages it needs are borrowed from this environment."""
    folder: Path = tmp_path_factory.mktemp("installed") / "doublesampling"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    (inside,) = folder.glob("lib/python*/site-packages")
    (inside / "borrowed.pth").write_text(f"{sysconfig.get_paths()['purelib']}\n")
    environment = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "NUMBA_CACHE_DIR")}
    done = subprocess.run(
        [ROOT / "deploy" / "install.sh", folder], capture_output=True, text=True, cwd=folder,
        env=environment | {"WARM": "none", "PIP_OPTIONS": "--no-deps --no-build-isolation"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert f"Installed: doublesampling {ds.__version__}" in done.stdout
    return folder


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="a shell script")
def test_the_install_script(installed):
    """The package in the folder is a copy, and its sources have whole seconds, as an image layer keeps them."""
    where = start(installed, "--version", DOUBLESAMPLING_STORAGE="sqlite:///x.db")
    assert where.stdout.strip() == f"doublesampling {ds.__version__}"
    (package,) = installed.glob("lib/python*/site-packages/doublesampling")
    assert all(path.stat().st_mtime == int(path.stat().st_mtime) for path in package.rglob("*.py"))
    assert (package / "service" / "static" / "index.html").is_file()
    storage = f"sqlite:///{installed / 'trial.db'}"
    made = start(installed, "key", "create", "--role", "admin", "--json", DOUBLESAMPLING_STORAGE=storage)
    assert json.loads(made.stdout)["scopes"] == ["ask", "tell", "amend", "read", "admin"]


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="a shell script")
def test_kept_code_is_used_on_another_processor(installed):
    """What was compiled for any processor is loaded where LLVM finds another one; its own code would not be."""
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"} | {
        "NUMBA_CPU_NAME": "generic",
        "NUMBA_CACHE_DIR": str(installed / "cache"),
    }
    here = OTHER_PROCESSOR.replace("ll.get_host", "ll.unused_get_host")
    counts = [
        int(subprocess.run([installed / "bin" / "python", "-c", code], env=environment, capture_output=True, check=True,
                           text=True, cwd=installed).stdout)
        for code in (here, OTHER_PROCESSOR)
    ]  # fmt: skip
    assert counts[0] > 0
    assert counts[1] == 0


def container_tool() -> str:
    """A container tool that works here; otherwise the test is skipped, with the reason."""
    for tool in ("podman", "docker"):
        if shutil.which(tool) and subprocess.run([tool, "info"], capture_output=True).returncode == 0:
            return tool
    pytest.skip("no container tool works here: install podman, or start the Docker daemon")


def _skip_where_containers_cannot_run(tool: str, done: "subprocess.CompletedProcess[str]") -> None:
    """Skip where the base image cannot be fetched, or the kernel does not allow containers."""
    if done.returncode and re.search(r"pull|resolv|dial tcp|no such host|OCI|crun|runc|cgroup", done.stderr):
        pytest.skip(f"{tool} cannot run containers here: {done.stderr.strip().splitlines()[-1][:200]}")


@pytest.mark.slow
def test_the_image_is_built_and_serves():
    """Set CONTAINER_BUILD_OPTIONS for another base image or package index, such as --build-arg BASE=... --volume ..."""
    tool, name, port = container_tool(), f"ds-{secrets.token_hex(4)}", free_port()
    options = shlex.split(os.environ.get("CONTAINER_BUILD_OPTIONS", ""))
    options += ["--format", "docker"] if tool == "podman" else []  # the OCI format has no health checks
    built = subprocess.run([tool, "build", "-f", "Containerfile", "-t", name, *options, "."], cwd=ROOT,
                           capture_output=True, text=True)  # fmt: skip
    _skip_where_containers_cannot_run(tool, built)
    assert built.returncode == 0, built.stderr[-2000:]
    run = [tool, "run", "--rm", "--network", "host", "--volume", f"{name}:/data"]
    try:
        assert (
            subprocess.run([*run, "--entrypoint", "id", name, "-u"], capture_output=True, text=True).stdout == "10001\n"
        )
        key = subprocess.run([*run, name, "key", "create", "--role", "admin", "--json"], capture_output=True, text=True)
        subprocess.run([*run, "--detach", "--name", name, name, "serve", "--port", str(port)], check=True)
        with ds.connect(f"http://127.0.0.1:{port}", key=json.loads(key.stdout)["key"], retry_for=120.0) as connection:
            exp = connection.create("trial", arms=["a", "b"])
            begun = time.monotonic()
            exp.tell(exp.ask().id, 1.0)
            assert time.monotonic() - begun < 5.0  # compiled code is inside the image
            assert exp.summary()["outcomes"] == 1
    finally:
        for words in (["rm", "--force", name], ["volume", "rm", name], ["rmi", "--force", name]):
            subprocess.run([tool, *words], capture_output=True)
