"""The script of docs/how-to/deploy.md: two servers on one PostgreSQL, one is killed and comes back."""

import json
import os
import re
import signal
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest

import doublesampling as ds
from tests.service import free_port, wait_until_up
from tests.test_service_scale import send

PAGE = (Path(__file__).parent.parent / "docs" / "how-to" / "deploy.md").read_text()


def pids_of(port):
    """The server processes at a port, from what they were called with."""
    found = []
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = entry.read_bytes().split(b"\0")
        except OSError:
            continue
        if b"serve" in words and str(port).encode() in words:
            found.append(int(entry.parent.name))
    return found


@pytest.mark.slow
def test_the_script_of_the_docs(postgres_url, tmp_path):
    (text,) = re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL)
    (tmp_path / "serve.sh").write_text(text)
    command = tmp_path / "doublesampling"
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m doublesampling.cli.main "$@"\n')
    command.chmod(0o755)
    ports = [free_port(), free_port()]
    environment = os.environ | {
        "PATH": f"{tmp_path}:{os.environ['PATH']}",
        "DOUBLESAMPLING_STORAGE": postgres_url,
        "PORTS": " ".join(map(str, ports)),
    }
    ds.Experiment.create("trial", arms=["a", "b"], seed=1, storage=postgres_url)
    process = subprocess.Popen(
        ["sh", str(tmp_path / "serve.sh")], env=environment, start_new_session=True, text=True,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        one, two = (f"http://127.0.0.1:{port}" for port in ports)
        for address in (one, two):
            wait_until_up(address, process)
        made = send(one, "POST", "/v1/experiments/trial/decisions", {"unit": "u"})[1]
        assert send(two, "PUT", f"/v1/experiments/trial/decisions/{made['id']}/outcome", {"reward": 1})[0] == 201
        (victim,) = pids_of(ports[0])
        os.kill(victim, signal.SIGKILL)
        time.sleep(0.5)
        wait_until_up(one, process)
        assert pids_of(ports[0]) != [victim]
        with urllib.request.urlopen(f"{one}/v1/experiments/trial") as answer:
            assert json.load(answer)["results"]["outcomes"] == 1
    finally:
        process.terminate()
        process.wait(30)
    until = time.monotonic() + 30
    while any(pids_of(port) for port in ports) and time.monotonic() < until:
        time.sleep(0.1)
    assert not any(pids_of(port) for port in ports)  # TERM ends both
