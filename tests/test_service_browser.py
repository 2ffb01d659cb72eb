"""A real Chromium walks through the dashboard as a person does: create, ask, tell, see it move, read why, export."""

import re
import shutil
from collections.abc import Iterator
from typing import Any

import pytest

from tests.service import asked, client, make_key, served, trial

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
pytestmark = pytest.mark.skipif(
    CHROMIUM is None, reason="no Chromium to walk through the dashboard: apt-get install chromium, then make test"
)
playwright = pytest.importorskip("playwright.sync_api", reason="pip install playwright")
expect = playwright.expect
PATIENCE = 20_000  # milliseconds; the machine may be busy


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def page(chromium: Any) -> Iterator[Any]:
    """A page that must not complain, nor ask anything of another host."""
    yield from open_page(chromium)


def open_page(chromium: Any, **settings: Any) -> Iterator[Any]:
    context = chromium.new_context(accept_downloads=True, **settings)
    page, complaints, hosts = context.new_page(), [], set()
    page.set_default_timeout(PATIENCE)
    page.on("console", lambda m: complaints.append(m.text) if m.type in ("error", "warning") else None)
    page.on("pageerror", lambda e: complaints.append(str(e)))
    page.on("request", lambda r: hosts.add(re.split("[:/]+", r.url)[1]))
    page.complaints = complaints
    yield page
    context.close()
    # the browser itself tells of a refused key, and of a server that was stopped before the page was closed
    assert not [c for c in complaints if "401" not in c and "ERR_CONNECTION_REFUSED" not in c]
    assert hosts <= {"127.0.0.1", "blob"}, hosts


def mean(page: Any, arm: str) -> str:
    return str(page.locator(f'tr[data-arm="{arm}"] .mean').inner_text())


def test_the_walk(page, sqlite_url):
    with served(sqlite_url) as (address, _):
        page.goto(address)
        page.get_by_role("link", name="Create the first").click()
        page.get_by_label("Name").fill("trial <b>x")
        page.get_by_label("Arms").fill("placebo\n10 mg\n20 mg")
        page.get_by_label("Seed").fill("7")
        page.get_by_role("button", name="Create").click()
        expect(page.locator("h1")).to_have_text("trial <b>x", timeout=PATIENCE)
        expect(page.get_by_text("No decisions yet.")).to_be_visible(timeout=PATIENCE)
        expect(page.locator(".arms")).to_contain_text("Posterior mean")
        assert mean(page, "placebo") == "0.500"

        page.get_by_label("Unit").fill("patient-1")
        page.get_by_label("Unit").press("Enter")  # no mouse is needed
        arm = page.locator("#asked-arm").inner_text()
        assert arm in ("placebo", "10 mg", "20 mg")
        page.get_by_role("button", name="Tell success for patient-1").first.click()
        expect(page.locator(f'tr[data-arm="{arm}"] .mean')).to_have_text("0.667", timeout=PATIENCE)
        expect(page.locator("#n-outcomes")).to_have_text("1")

        page.get_by_role("button", name="Why this arm for decision 1").click()
        dialog = page.get_by_role("dialog")
        expect(dialog).to_contain_text("seemed the best with probability")
        expect(dialog).to_contain_text("agree with the stored digest")
        expect(dialog).to_contain_text("DoubleSampling")
        page.keyboard.press("Escape")
        expect(dialog).to_be_hidden()
        expect(page.locator("#replay")).to_contain_text("Replay agrees", timeout=PATIENCE)

        with page.expect_download() as waiting:
            page.get_by_role("link", name="csv").click()
        text = waiting.value.path().read_text()
        assert text.splitlines()[1].split(",")[2] == "patient-1"

        page.get_by_role("button", name="Pause").click()
        expect(page.get_by_role("button", name="Ask for an arm")).to_be_disabled(timeout=PATIENCE)
        page.get_by_role("button", name="Resume").click()
        expect(page.get_by_role("button", name="Ask for an arm")).to_be_enabled(timeout=PATIENCE)


def test_it_follows_what_others_write(page, sqlite_url):
    import doublesampling as ds

    exp = ds.Experiment.create("trial", arms=["a", "b"], seed=1, storage=sqlite_url)
    with served(sqlite_url) as (address, _):
        page.goto(f"{address}/#/e/trial")
        expect(page.locator("#n-decisions")).to_have_text("0", timeout=PATIENCE)
        for _ in range(5):
            exp.tell(exp.ask().id, 1.0)
        expect(page.locator("#n-outcomes")).to_have_text("5", timeout=PATIENCE)
        assert page.locator(".uplot").count() == 4


def test_a_key_is_asked_for_and_a_writer_stays_blind(page, sqlite_url):
    admin, writer = make_key(sqlite_url, "admin"), make_key(sqlite_url, "writer")
    with client(sqlite_url) as c:
        address = trial(c, headers=admin)
        asked(c, address, headers=admin)
    with served(sqlite_url) as (address, _):
        page.goto(f"{address}/#/e/trial")
        page.get_by_label("Key").fill("ds_wrong")
        page.get_by_role("button", name="Open").click()
        expect(page.get_by_role("alert")).to_contain_text("not known", timeout=PATIENCE)
        page.get_by_label("Key").fill(writer["Authorization"].removeprefix("Bearer "))
        page.get_by_role("button", name="Open").click()
        page.get_by_role("button", name="Ask for an arm").click()
        expect(page.locator("#asked-arm")).to_be_visible(timeout=PATIENCE)
        assert page.locator(".arms, .uplot, .log").count() == 0
        page.get_by_role("button", name="Tell success").click()
        expect(page.get_by_text("Outcome stored.")).to_be_visible(timeout=PATIENCE)
        page.get_by_role("button", name="Sign out").click()
        expect(page.get_by_label("Key")).to_be_visible(timeout=PATIENCE)


def test_what_if_shows_its_progress_and_an_answer(page, sqlite_url):
    with client(sqlite_url) as c:
        trial(c)
    with served(sqlite_url) as (address, _):
        page.goto(f"{address}/#/e/trial/what-if")
        page.get_by_label("Decisions per trial").fill("50")
        page.get_by_label("Trials").fill("40")
        page.get_by_role("button", name="Simulate").click()
        expect(page.get_by_role("progressbar")).to_be_visible(timeout=PATIENCE)
        expect(page.locator("#wins")).to_contain_text("%", timeout=120_000)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_it_fits_desk_and_phone_by_day_and_night(chromium, sqlite_url, width, scheme, tmp_path):
    with client(sqlite_url) as c:
        address = trial(c)
        for i in range(12):
            made = asked(c, address, f"a-rather-long-name-of-a-unit-{i:060d}")
            if i < 9:
                c.put(f"{address}/decisions/{made}/outcome", json={"reward": i % 2})
    with served(sqlite_url) as (address, _):
        for page in open_page(chromium, viewport={"width": width, "height": 800}, color_scheme=scheme):
            page.goto(f"{address}/#/e/trial")
            expect(page.locator("#replay")).to_contain_text("Replay agrees", timeout=PATIENCE)
            assert page.evaluate("document.documentElement.scrollWidth") <= width  # nothing hangs over the edge
            paper = page.evaluate("getComputedStyle(document.body).backgroundColor")
            assert (sum(map(int, re.findall(r"\d+", paper)[:3])) < 200) == (scheme == "dark")
            page.screenshot(path=tmp_path / f"{width}-{scheme}.png", full_page=True)
