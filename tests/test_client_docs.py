"""The Python blocks of docs/how-to/client.md run, in order, against a service in this process."""

import builtins
import re
from pathlib import Path

import httpx2
import pytest

import doublesampling as ds
from doublesampling.service.app import create_app
from tests.client import new_key, service

(PAGE,) = (Path(__file__).parent.parent / "docs").rglob("client.md")


def test_every_block_of_the_page_runs(sqlite_url, monkeypatch, capsys):
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert len(blocks) == 4
    key, plain, plain_async = new_key(sqlite_url), ds.connect, ds.connect_async
    app = create_app(sqlite_url)
    names: dict[str, object] = {"__name__": "__main__"}
    with service(sqlite_url) as transport:
        monkeypatch.setattr(ds, "connect", lambda url, key: plain(url, real_key(key), transport=transport))
        asgi = httpx2.ASGITransport(app, client=("127.0.0.1", 1))
        monkeypatch.setattr(ds, "connect_async", lambda url, key: plain_async(url, real_key(key), transport=asgi))

        def real_key(shown: str) -> str:
            assert shown == "ds_..."
            return key

        for number, block in enumerate(blocks, 1):
            exec(compile(block, f"client.md, block {number}", "exec"), names)
    app.state.service.close()
    printed = capsys.readouterr().out
    assert "10 mg" in printed
    assert "'outcomes': 11" in printed
    assert "20 mg - placebo: " in printed


@pytest.mark.parametrize("name", sorted(set(re.findall(r"`(\w+Error)`", PAGE.read_text()))))
def test_every_error_of_the_page_exists(name):
    from doublesampling import client, errors

    (kind,) = [vars(module)[name] for module in (client, errors, builtins) if name in vars(module)]
    assert issubclass(kind, Exception)
