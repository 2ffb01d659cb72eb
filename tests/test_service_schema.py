"""Schemathesis runs the whole OpenAPI document against the app: no 5xx, and answers are as they are described."""

import hypothesis
import pytest

from doublesampling.service.app import create_app

schemathesis = pytest.importorskip("schemathesis", reason="pip install schemathesis")

from schemathesis.checks import not_a_server_error  # noqa: E402
from schemathesis.specs.openapi.checks import (  # noqa: E402
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from tests.service import HERE, asked, make_key, trial  # noqa: E402
from tests.test_service_access import ROUTES  # noqa: E402

CHECKS = [not_a_server_error, content_type_conformance, response_schema_conformance, status_code_conformance]
EXAMPLES, FEW = 60, 15
KEY: dict[str, str] = {}
THERE: dict[str, str] = {}


@pytest.fixture(scope="module")
def schema(tmp_path_factory):
    from starlette.testclient import TestClient

    url = f"sqlite:///{tmp_path_factory.mktemp('schema') / 'trial.db'}"
    KEY.update(make_key(url, "admin"))  # with a key, any name of the host will do
    app = create_app(url)
    with TestClient(app, base_url=HERE, headers=KEY) as c:
        address = trial(c, units="many")
        THERE.update(name="trial", id=asked(c, address))
        yield schemathesis.openapi.from_asgi("/openapi.json", without_life(app))


def without_life(app):
    """The app without its end: Schemathesis starts and stops an app around every request."""

    async def plain(scope, receive, send):
        if scope["type"] != "lifespan":
            await app(scope, receive, send)
            return
        for step in ("startup", "shutdown"):
            await receive()
            await send({"type": f"lifespan.{step}.complete"})

    return plain


@pytest.mark.parametrize("examples", [FEW, pytest.param(EXAMPLES, marks=pytest.mark.slow)], ids=["few", "many"])
@pytest.mark.parametrize(("method", "path"), sorted(ROUTES))
def test_no_request_breaks_the_server(schema, method, path, examples):
    """Hypothesis is called by hand: the plugin of Schemathesis does not go with every pytest."""

    @hypothesis.settings(
        max_examples=examples, deadline=None, derandomize=True, database=None,
        suppress_health_check=list(hypothesis.HealthCheck), phases=[hypothesis.Phase.generate],
    )  # fmt: skip
    @hypothesis.given(case=schema[path][method].as_strategy())
    def ask(case):
        send(case)

    ask()


def send(case):
    """Half of the requests are led to things that exist: else nearly all would end at an unknown experiment."""
    for name, value in (case.path_parameters or {}).items():
        if len(str(value)) % 2:
            case.path_parameters[name] = THERE[name]
    if case.operation.label == "POST /v1/experiments" and isinstance(case.body, dict):
        for part, kind in (("belief", "BetaBernoulli"), ("policy", "DoubleSampling")):
            if isinstance(case.body.get(part), dict) and len(str(case.body)) % 2:
                case.body[part]["kind"] = kind
    if case.operation.path.endswith("/what-if") and isinstance(case.body, dict):
        case.body |= {"realizations": 20, "horizon": 5}
    answer = case.call(headers=KEY, timeout=60)
    case.validate_response(answer, checks=CHECKS)
    assert b"Traceback" not in answer.content
