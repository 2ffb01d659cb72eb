"""A real Chromium walks through the dashboard as a person does: create, ask, tell, see it move, read why, export."""

import re
import shutil
from collections.abc import Iterator
from typing import Any

import pytest

import doublesampling as ds
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


@pytest.fixture(scope="module")
def shared(tmp_path_factory: Any) -> Iterator[tuple[str, str]]:
    """A server that several tests use, each with an experiment of its own; its address, and its store."""
    url = f"sqlite:///{tmp_path_factory.mktemp('browser') / 'trial.db'}"
    with served(url) as (address, _):
        yield address, url


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
    # the browser itself tells of refusals, and of a server that was stopped before the page was closed
    assert not [c for c in complaints if not re.search("status of 4(01|22)|ERR_CONNECTION_REFUSED", c)]
    assert hosts <= {"127.0.0.1", "blob"}, hosts


def settled(element: Any) -> Any:
    """Where an element is once the page has loaded: what is above it may come later."""
    before, now = None, element.bounding_box()
    while before != now:
        element.page.wait_for_timeout(500)
        before, now = now, element.bounding_box()
    return now


def poll(page: Any) -> None:
    """Let the page look at once for what others have written: it does when it is shown again, or after seconds."""
    page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")


def mean(page: Any, arm: str) -> str:
    return str(page.locator(f'tr[data-arm="{arm}"] .mean').first.inner_text())


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
        expect(page.get_by_text("No outcomes yet")).to_be_visible()
        expect(page.locator(".arms")).to_contain_text("Posterior mean")
        assert mean(page, "placebo") == "0.500"

        page.get_by_label("Unit").fill("patient-1")
        page.get_by_label("Unit").press("Enter")  # no mouse is needed
        arm = page.locator("#asked-arm").inner_text()
        assert arm in ("placebo", "10 mg", "20 mg")
        page.get_by_role("button", name="Tell success for patient-1").first.click()
        store(page, "patient-1", arm, "success (1)")
        expect(page.locator(f'tr[data-arm="{arm}"] .mean').first).to_have_text("0.667", timeout=PATIENCE)
        expect(page.locator(f'tr[data-arm="{arm}"]')).to_contain_text("1 / 1")
        expect(page.locator("#n-outcomes")).to_have_text("1")
        expect(page.locator(".answer-first")).to_contain_text(f"{arm} is most probably the best")

        page.get_by_role("button", name="Why this arm for decision 1").click()
        dialog = page.get_by_role("dialog")
        expect(dialog).to_contain_text("was the best arm with probability")
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
        page.get_by_label("Reason").fill("holiday")
        page.get_by_role("button", name="Pause now").click()
        expect(page.get_by_role("button", name="Ask for an arm")).to_be_disabled(timeout=PATIENCE)
        page.get_by_role("button", name="Resume").click()
        page.get_by_role("button", name="Resume now").click()
        expect(page.get_by_role("button", name="Ask for an arm")).to_be_enabled(timeout=PATIENCE)
        page.get_by_role("link", name="Audit trail").click()
        expect(page.locator("table.audit")).to_contain_text("holiday", timeout=PATIENCE)


def test_limits_are_entered_in_the_form(page, shared):
    """The arms to choose the control from are those of the form; a limit that cannot hold is said, nothing is made."""
    page.goto(f"{shared[0]}/#/new")
    page.get_by_label("Name").fill("limited")
    page.get_by_label("Arms").fill("placebo\n10 mg\n20 mg")
    page.get_by_text("Limits on the shares of arms").click()
    page.get_by_label("Floor").fill("0.4")
    page.get_by_role("button", name="Create").click()
    expect(page.get_by_role("alert").first).to_contain_text("floor can be at most 0.333", timeout=PATIENCE)
    page.get_by_label("Floor").fill("0.1")
    page.get_by_label("Control arm").select_option("placebo")
    page.get_by_label("Share of the control").select_option("share")
    page.get_by_label("Fixed share").fill("0.3")
    page.get_by_label("Block").fill("10")
    page.get_by_role("button", name="Create").click()
    expect(page.locator("h1")).to_have_text("limited", timeout=PATIENCE)
    expect(page.locator("main")).to_contain_text("Allocation(floor=0.1, control={'placebo': 0.3}, block=10)")


def test_a_stopping_rule_is_entered_in_the_form(page, shared):
    """What is wrong is said beside its field, by the form or by the server; then a trial is made and simulated."""
    page.goto(f"{shared[0]}/#/new")
    page.get_by_label("Name").fill("looks")
    page.get_by_label("Arms").fill("placebo\n10 mg\n20 mg")
    page.locator("#policy").select_option("ThompsonSampling")
    page.get_by_text("When to stop").click()

    def refused(name: str, said: str) -> None:
        page.get_by_role("button", name="Create").click()
        expect(page.locator(f"#stop-{name}-error")).to_contain_text(said, timeout=PATIENCE)
        expect(page.locator(f"#stop-{name}")).to_be_focused()
        expect(page.get_by_role("alert")).to_have_count(2)  # this one, and the empty one of the whole form

    page.get_by_label("Superiority").fill("1.5")
    refused("looks", "enter how many outcomes")
    page.get_by_label("Looks", exact=True).fill("20, 40, twenty")
    refused("looks", 'got "20, 40, twenty"')
    page.get_by_label("Looks", exact=True).fill("20")
    refused("superiority", "less than 1")
    page.get_by_label("Superiority").fill("0.95")
    page.get_by_label("Inferiority").fill("0.4")
    refused("inferiority", "must be below 1/3")
    page.get_by_label("Inferiority").fill("0.02")
    page.get_by_label("Futility", exact=True).fill("0.99")
    refused("futility_margin", "needs its margin")
    page.get_by_label("Futility margin").fill("0")
    refused("control", "choose it here")
    page.get_by_label("Compared with").select_option("placebo")
    page.get_by_label("What looks do").select_option("0")
    page.get_by_label("Largest number of decisions").fill("10")
    refused("looks", "at most the horizon, 10")
    page.get_by_label("Largest number of decisions").fill("60")
    page.get_by_text("Limits on the shares of arms").click()
    page.get_by_label("Shares are renewed").select_option("look")
    page.get_by_role("button", name="Create").click()
    expect(page.locator("h1")).to_have_text("looks", timeout=PATIENCE)
    stored = ds.Experiment.load("looks", storage=shared[1]).design
    assert stored.stopping == ds.Stopping(
        looks=(20, 40, 60), superiority=0.95, inferiority=0.02, futility=0.99, futility_margin=0.0, control="placebo",
        enforce=False,
    )  # fmt: skip
    assert (stored.participants, stored.allocation) == (60, ds.Allocation(update="look"))
    page.goto(f"{shared[0]}/#/e/looks/what-if")
    expect(page.get_by_label("Decisions per trial")).to_have_value("60", timeout=PATIENCE)
    page.get_by_label("Trials").fill("40")
    page.get_by_label("Delay").fill("5")
    page.get_by_role("button", name="Simulate").click()
    expect(page.locator("#size")).to_contain_text("±", timeout=120_000)
    expect(page.get_by_role("columnheader", name="Selected")).to_be_visible()


def store(page: Any, unit: str, arm: str, value: str) -> None:
    """Read the question, and say yes."""
    dialog = page.get_by_role("dialog")
    for words in (unit, arm, value):
        expect(dialog).to_contain_text(words, timeout=PATIENCE)
    dialog.get_by_role("button", name=f"Store {value}").click()
    expect(dialog).to_have_count(0, timeout=PATIENCE)


def test_an_outcome_is_stored_for_the_unit_that_was_read(page, shared):
    """The list holds still while others ask and tell; a click meant for one patient was stored for another once."""
    exp = ds.Experiment.create("wrong-patient", arms=["a", "b"], seed=1, storage=shared[1])
    asked = {f"patient-{i}": exp.ask(unit=f"patient-{i}") for i in range(312, 322)}
    address = shared[0]
    page.goto(f"{address}/#/e/wrong-patient")
    rows = page.locator("#waiting li")
    expect(rows).to_have_count(10, timeout=PATIENCE)
    expect(rows.first).to_contain_text("patient-312")  # the oldest first
    wanted = page.locator("#waiting li", has_text="patient-320")
    before = settled(wanted)
    for i in range(3):  # others ask, and tell of what stands above
        exp.ask(unit=f"newer-{i}")
        exp.tell(asked[f"patient-{312 + i}"].id, 1.0)
    poll(page)
    expect(page.locator("#n-outcomes")).to_have_text("3", timeout=PATIENCE)
    expect(rows.first).to_contain_text("has an outcome now", timeout=PATIENCE)
    assert [row.split("\n")[0] for row in rows.all_inner_texts()][:10] == list(asked)
    after = wanted.bounding_box()
    assert (before["y"], before["height"]) == (after["y"], after["height"])
    wanted.get_by_role("button", name="Tell failure for patient-320").click()
    store(page, "patient-320", asked["patient-320"].arm_name, "failure (0)")
    expect(wanted).to_contain_text("failure (0) stored", timeout=PATIENCE)
    frame = exp.decisions().set_index("unit")
    assert (frame["reward"]["patient-320"], frame["status"]["patient-320"]) == (0.0, "told")
    assert frame["status"]["patient-321"] == "waiting"

    wanted.get_by_role("button", name="Undo for patient-320").click()
    page.get_by_label("Reason").fill("meant for another patient")
    page.get_by_role("button", name="Store the correction").click()
    expect(wanted.get_by_role("button", name="Tell failure for patient-320")).to_be_visible(timeout=PATIENCE)
    audit = exp.audit()
    assert audit["kind"].iloc[-1] == "withdrawn"
    assert audit["reason"].iloc[-1] == "meant for another patient"

    page.get_by_label("Search").fill("NEWER-1")
    expect(rows).to_have_count(1, timeout=PATIENCE)
    expect(rows.first).to_contain_text("newer-1")
    rows.first.get_by_role("button", name="Tell success for newer-1").click()
    page.get_by_role("button", name="Cancel").click()
    assert exp.decisions().set_index("unit")["status"]["newer-1"] == "waiting"


def test_an_outcome_is_corrected_from_the_log(page, shared):
    exp = ds.Experiment.create("correct", arms=["a", "b"], seed=1, storage=shared[1])
    made = exp.ask(unit="u")
    exp.tell(made.id, 1.0)
    address = shared[0]
    page.goto(f"{address}/#/e/correct")
    page.get_by_role("button", name="correct for u").click()
    page.get_by_label("What to do").select_option("amendments")
    page.get_by_label("Reason").fill("adjudicated")
    page.get_by_role("button", name="Store the correction").click()
    expect(page.locator("table.log")).to_contain_text("amended", timeout=PATIENCE)
    assert exp.decisions()["reward"].tolist() == [0.0]
    page.get_by_role("button", name="correct for u").click()
    page.get_by_label("What to do").select_option("void")
    page.get_by_label("Reason").fill("never given")
    page.get_by_role("button", name="Store the correction").click()
    expect(page.locator("table.log")).to_contain_text("voided", timeout=PATIENCE)
    expect(page.locator("#n-decisions")).to_have_text("0", timeout=PATIENCE)


def test_a_late_answer_does_not_undo_a_correction_in_the_log(page, shared):
    """The log was asked for before the correction, and the answer comes after it, while the pointer is on the log."""
    exp = ds.Experiment.create("late", arms=["a", "b"], seed=1, storage=shared[1])
    exp.tell(exp.ask(unit="u").id, 1.0)
    page.goto(f"{shared[0]}/#/e/late")
    log = page.locator("table.log")
    expect(page.get_by_role("button", name="correct for u")).to_be_visible(timeout=PATIENCE)
    held: list[Any] = []

    def hold_the_first(route: Any) -> None:
        if held:
            route.continue_()
        else:
            held.append((route, route.fetch()))

    page.route("**/decisions?limit=*", hold_the_first)
    exp.ask(unit="v")
    poll(page)
    while not held:
        page.wait_for_timeout(20)
    page.get_by_role("button", name="correct for u").click()
    page.get_by_label("What to do").select_option("void")
    page.get_by_label("Reason").fill("never given")
    page.get_by_role("button", name="Store the correction").click()
    expect(log).to_contain_text("voided", timeout=PATIENCE)
    log.hover()
    route, answer = held[0]
    with page.expect_response("**/overview*"):  # the next look of the page, after the late answer
        route.fulfill(response=answer)
    expect(log).to_contain_text("voided")


def test_a_log_from_before_a_correction_is_asked_for_again(page, shared):
    """A busy server answers from its cache, also to a page that has just written; the pointer stays on the log."""
    exp = ds.Experiment.create("again", arms=["a", "b"], seed=1, storage=shared[1])
    exp.tell(exp.ask(unit="u").id, 1.0)
    page.goto(f"{shared[0]}/#/e/again")
    log, button = page.locator("table.log"), page.get_by_role("button", name="correct for u")
    expect(button).to_be_visible(timeout=PATIENCE)

    def nothing_new(route: Any) -> None:
        fresh = "no-cache" in route.request.headers.get("cache-control", "")
        route.fulfill(status=304, headers={"Doublesampling-Version": "before"}) if fresh else route.continue_()

    page.route("**/decisions?limit=*", nothing_new)
    button.click()
    page.get_by_label("What to do").select_option("void")
    page.get_by_label("Reason").fill("never given")
    page.get_by_role("button", name="Store the correction").click()
    log.hover()
    expect(page.locator("dialog[open]")).to_have_count(0, timeout=PATIENCE)
    poll(page)
    expect(log).to_contain_text("voided", timeout=PATIENCE)


def test_the_gauge_speaks_from_the_propensities(page, shared):
    """With even odds and a horizon it once said "exploiting: sure enough"."""
    policy = ds.DoubleSampling(horizon=100)
    exp = ds.Experiment.create("gauge", arms=["a", "b"], policy=policy, seed=1, storage=shared[1])
    address = shared[0]
    page.goto(f"{address}/#/e/gauge")
    expect(page.locator(".gauge")).to_contain_text("exploring", timeout=PATIENCE)
    expect(page.locator(".progress-row")).to_contain_text("0 of 100 planned decisions")
    exp.add_history(["a"] * 40 + ["b"] * 40, [1] * 36 + [0] * 44)
    poll(page)
    expect(page.locator(".gauge")).to_contain_text("exploiting: the next unit gets a", timeout=PATIENCE)


def test_a_context_is_chosen_and_charts_go_by_date(page, shared):
    belief = ds.LinearGaussian(arms=2, dimension=2)
    exp = ds.Experiment.create("context", arms=["a", "b"], belief=belief, seed=1, storage=shared[1])
    for i in range(12):
        d = exp.ask(context=[1.0, i / 12])
        exp.tell(d.id, float(d.arm) * i / 12)
    exp.pause("holiday")
    address = shared[0]
    page.goto(f"{address}/#/e/context")
    expect(page.get_by_label("Context 2")).to_have_value(re.compile("0.4"), timeout=PATIENCE)
    first = mean(page, "b")
    page.get_by_label("Context 2").fill("3")
    page.get_by_role("button", name="Show", exact=True).click()
    expect(page.locator('tr[data-arm="b"] .mean').first).not_to_have_text(first, timeout=PATIENCE)
    expect(page.locator("figure", has_text="Posterior densities")).to_contain_text("(1, 3)", timeout=PATIENCE)
    expect(page.locator("figure", has_text="Probability of being")).to_contain_text("Mean over the contexts")
    page.get_by_label("Charts").select_option("date")
    expect(page.locator("figure", has_text="Allocation").locator(".u-legend")).to_contain_text("date")
    page.locator("summary", has_text="Marks in the charts").click()
    expect(page.get_by_text("holiday")).to_be_visible()


def test_arms_are_changed_and_compared(page, shared):
    with client(shared[1]) as c:
        address = trial(c, "arms")
        for i in range(6):
            c.put(f"{address}/decisions/{asked(c, address)}/outcome", json={"reward": i % 2})
    address = shared[0]
    page.goto(f"{address}/#/e/arms")
    expect(page.locator('tr[data-arm="a"]')).to_contain_text("reference", timeout=PATIENCE)
    page.get_by_label("Compared with").select_option("b")
    expect(page.locator('tr[data-arm="b"]')).to_contain_text("reference", timeout=PATIENCE)
    page.get_by_role("button", name="Change arms").click()
    page.get_by_label("Name of the new arm").fill("d")
    page.get_by_role("button", name="Change", exact=True).click()
    expect(page.locator('tr[data-arm="d"]')).to_be_visible(timeout=PATIENCE)
    page.get_by_role("button", name="Change arms").click()
    page.get_by_label("What to do").select_option("drop")
    page.get_by_label("Arm to drop").select_option("c")
    page.get_by_role("button", name="Change", exact=True).click()
    expect(page.locator('tr[data-arm="c"]')).to_contain_text("dropped", timeout=PATIENCE)


def test_the_form_offers_every_belief_and_says_what_is_wrong(page, shared):
    address = shared[0]
    page.goto(f"{address}/#/new")
    page.get_by_label("Name").fill("categories")
    page.get_by_label("Arms").fill("only one")
    page.locator("#belief").select_option("DirichletCategorical")
    page.get_by_label("Values").fill("0, 1, 5")
    page.locator("#policy").select_option("TopTwo")
    page.get_by_text("More settings of Top Two").click()
    page.get_by_label("Share (optional)").fill("0.7")
    page.get_by_role("button", name="Create").click()
    expect(page.get_by_role("alert")).to_have_text("arms needs at least 2 entries, got 1.", timeout=PATIENCE)
    page.get_by_label("Arms").fill("one\ntwo")
    page.get_by_role("button", name="Create").click()
    expect(page.locator(".facts code")).to_contain_text("TopTwo(share=0.7) on DirichletCategorical", timeout=PATIENCE)
    page.goto(f"{address}/#/")
    card = page.locator(".cards li", has_text="categories")
    expect(card).to_contain_text("0 decisions, 0 outcomes, 0 waiting", timeout=PATIENCE)


def test_it_follows_what_others_write(page, shared):
    exp = ds.Experiment.create("follow", arms=["a", "b"], seed=1, storage=shared[1])
    address = shared[0]
    page.goto(f"{address}/#/e/follow")
    expect(page.locator("#n-decisions")).to_have_text("0", timeout=PATIENCE)
    for _ in range(5):
        exp.tell(exp.ask().id, 1.0)
    expect(page.locator("#n-outcomes")).to_have_text("5", timeout=PATIENCE)
    expect(page.locator(".uplot")).to_have_count(4, timeout=PATIENCE)


def test_a_key_is_asked_for_and_a_writer_stays_blind(page, sqlite_url):
    admin, writer = make_key(sqlite_url, "admin"), make_key(sqlite_url, "writer")
    with client(sqlite_url) as c:
        address = trial(c, headers=admin)
        asked(c, address, headers=admin)
    with served(sqlite_url) as (address, _):
        page.goto(f"{address}/#/e/trial")
        page.get_by_label("Key").fill("ds_wrong")
        page.get_by_role("button", name="Open").click()
        expect(page.get_by_role("alert")).to_contain_text("unknown", timeout=PATIENCE)
        page.get_by_label("Key").fill(writer["Authorization"].removeprefix("Bearer "))
        page.get_by_role("button", name="Open").click()
        page.get_by_label("Unit", exact=True).fill("mine")
        page.get_by_role("button", name="Ask for an arm").click()
        expect(page.locator("#asked-arm")).to_be_visible(timeout=PATIENCE)
        assert page.locator(".arms, .uplot, .log").count() == 0
        own = page.locator("#waiting li")
        expect(own).to_have_count(1, timeout=PATIENCE)  # and none that another key has asked for
        own.get_by_role("button", name="Tell success for mine").click()
        store(page, "mine", page.locator("#asked-arm").inner_text(), "success (1)")
        expect(own).to_contain_text("success (1) stored", timeout=PATIENCE)
        page.get_by_label("Unit to tell").fill("mine")
        page.get_by_role("region", name="Tell").get_by_role("button", name="Tell failure for mine").click()
        page.get_by_role("button", name="Store failure (0)").click()
        expect(page.locator("#toast")).to_contain_text("neither compared", timeout=PATIENCE)
        page.get_by_role("button", name="Sign out").click()
        expect(page.get_by_label("Key")).to_be_visible(timeout=PATIENCE)


def test_what_if_shows_its_progress_and_an_answer(page, shared):
    with client(shared[1]) as c:
        trial(c, "whatif")
    address = shared[0]
    page.goto(f"{address}/#/e/whatif/what-if")
    page.get_by_label("Decisions per trial").fill("50")
    page.get_by_label("Trials").fill("40")
    page.get_by_role("button", name="Simulate").click()
    expect(page.get_by_role("progressbar")).to_be_visible(timeout=PATIENCE)
    expect(page.locator("#wins")).to_contain_text("%", timeout=120_000)


@pytest.mark.parametrize(
    ("width", "scheme"),
    [
        (1280, "light"),
        (390, "dark"),
        pytest.param(1280, "dark", marks=pytest.mark.slow),
        pytest.param(390, "light", marks=pytest.mark.slow),
    ],
)
def test_it_fits_desk_and_phone_by_day_and_night(chromium, shared, width, scheme, tmp_path):
    arms = (
        ["n" * 500, "several words " * 35 + "end", *(f"arm {i}" for i in range(48))]
        if width == 390
        else ["a", "b", "c"]
    )
    with client(shared[1]) as c:
        address = trial(c, f"fits-{width}-{scheme}", arms=arms)
        for i in range(12):
            made = asked(c, address, f"a-rather-long-name-of-a-unit-{i:060d}")
            if i < 9:
                c.put(f"{address}/decisions/{made}/outcome", json={"reward": i % 2})
    address = shared[0]
    for page in open_page(chromium, viewport={"width": width, "height": 800}, color_scheme=scheme):
        page.goto(f"{address}/#/e/fits-{width}-{scheme}")
        expect(page.locator("#replay")).to_contain_text("Replay agrees", timeout=PATIENCE)
        assert page.evaluate("document.documentElement.scrollWidth") <= width  # nothing hangs over the edge
        paper = page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert (sum(map(int, re.findall(r"\d+", paper)[:3])) < 200) == (scheme == "dark")
        if width == 390:
            page.get_by_role("button", name="Show all 50 arms").click()
            expect(page.locator("tr[data-arm]")).to_have_count(50)
        page.get_by_role("button", name="Why this arm for decision 12").click()
        expect(page.get_by_role("dialog")).to_contain_text("Posterior mean")
        for box in (page.locator("dialog[open]"), page.locator("dialog[open] h2")):
            assert box.evaluate("e => e.scrollWidth <= e.clientWidth")
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        page.screenshot(path=tmp_path / f"{width}-{scheme}.png", full_page=True)


def test_a_record_is_entered_field_by_field(page, shared):
    """An experiment with features: created in the form, asked with one input per field, shown at another record."""
    address, _ = shared
    page.goto(f"{address}/#/new")
    page.get_by_label("Name").fill("records")
    page.get_by_label("Arms").fill("placebo\n20 mg")
    page.locator("#belief").select_option("LinearGaussian")
    page.locator("#belief-features").fill("age: standard 60 10\nsmoker: boolean\nsite: a, b, c\ndose: 0 to 40")
    page.get_by_role("button", name="Create").click()
    for name, value in (("age", "61"), ("dose", "20")):
        page.locator(f"#context-{name}").fill(value)
    page.locator("#context-site").select_option("b")
    page.get_by_role("button", name="Ask for an arm").click()
    expect(page.locator("#asked-arm")).to_have_count(0)  # the browser asks for the field that is empty
    page.locator("#context-smoker").select_option("true")
    page.get_by_role("button", name="Ask for an arm").click()
    expect(page.locator("#asked-arm")).to_have_text(re.compile("placebo|20 mg"))
    expect(page.locator("#context-age")).to_have_value("")
    expect(page.locator("#shown-age")).to_have_value("61")  # the table is shown at the latest records
    expect(page.locator("#shown-smoker")).to_have_value("true")
    page.locator("#shown-site").select_option("c")
    page.get_by_role("button", name="Show", exact=True).click()
    expect(page.locator("#shown-site")).to_have_value("c")
    expect(page.get_by_text("typical of the latest")).to_have_count(0)
