"""The playground's page in Chromium: typing, keys alone, small and dark screens, and what leaves the browser.

These run in `make browser`, because they need a browser of the system.
"""

import json
import re
import shutil
import time
from urllib.parse import urlsplit

import pytest
from tests.gateway.playground import CANARY, PROMPT, playing

from textveil.gateway import GatewayKeys, Policy

sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
axe = pytest.importorskip(
    "axe_playwright_python.sync_playwright", reason="axe-playwright-python is not installed"
)
expect = sync_api.expect

pytestmark = pytest.mark.browser

NAMES = ("chromium", "chromium-browser", "google-chrome")
MISSING = "these tests need Chromium: apt-get install chromium, or the package of your system"
OPTIONS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost",
]
SENT = "Write to <PERSON_1> at <EMAIL_1> about the lease."
PATIENCE = 15_000
"""Milliseconds: on a busy machine the first text waits for models."""


@pytest.fixture(scope="module")
def opened():
    with playing() as made:
        made.shows(PROMPT)  # the models are there
        made.shows(PROMPT, profile="document")
        yield made


@pytest.fixture(scope="module")
def chromium():
    found = next(filter(None, map(shutil.which, NAMES)), None)
    if found is None:
        pytest.fail(MISSING, pytrace=False)
    with sync_api.sync_playwright() as running:
        browser = running.chromium.launch(executable_path=found, args=OPTIONS)
        yield browser
        browser.close()


@pytest.fixture
def visit(chromium):
    """Opens pages; at the end none may have complained, or asked anybody but its own gateway."""
    contexts, complaints, asked = [], [], []

    def go(url, *, width=1280, **options):
        context = chromium.new_context(viewport={"width": width, "height": 900}, **options)
        contexts.append(context)
        context.set_default_timeout(PATIENCE)
        page = context.new_page()
        page.on(
            "console",
            lambda said: (
                complaints.append(said.text) if said.type in ("error", "warning") else None
            ),
        )
        page.on("pageerror", lambda error: complaints.append(str(error)))
        context.on("request", lambda request: asked.append((urlsplit(request.url).netloc, request)))
        page.add_init_script(
            "addEventListener('securitypolicyviolation', (e) => console.error(e.violatedDirective))"
        )
        page.goto(url)
        page.asked, page.complaints = asked, complaints
        return page

    sync_api.expect.set_options(timeout=PATIENCE)
    yield go
    for context in contexts:
        context.close()
    assert complaints == []
    assert len({where for where, _ in asked if where}) == 1


@pytest.fixture
def page(visit, opened):
    return visit(opened.url)


def typed(page, text=PROMPT):
    page.locator("#prompt").fill(text)


def audited(page):
    """No violation of any rule of axe."""
    found = axe.Axe().run(page)
    assert found.violations_count == 0, found.generate_report()


def narrow(page):
    return page.evaluate(
        "document.documentElement.scrollWidth <= document.documentElement.clientWidth"
    )


# ---- what it shows ---------------------------------------------------------------------------------------------------


def test_what_would_be_sent_is_shown_while_typing(page):
    page.locator("#prompt").press_sequentially(PROMPT, delay=3)
    expect(page.locator("#sent")).to_have_text(
        re.compile(
            r"Write to <PERSON_1> \(person .*\) at <EMAIL_1> \(e-mail address .*\) about the lease\."
        )
    )
    expect(page.locator("#legend li")).to_have_text(
        ["1e-mail address", "1person", re.compile("^7words and marks")]
    )
    expect(page.locator("#hidden")).to_contain_text("1 person and 1 e-mail address replaced")
    expect(page.locator("#statement")).not_to_be_empty()
    page.locator(".mark").first.hover()
    expect(page.locator("#explained")).to_have_text(
        f"<PERSON_1>: person (names of people and users). You wrote Anna {CANARY}."
    )
    page.locator("#full summary").click()
    expect(page.locator("#explanation")).to_contain_text("epsilon")


def test_levels_and_profiles_change_it(page):
    typed(page)
    expect(page.locator(".mark")).to_have_count(2)
    page.get_by_label("identifiers", exact=True).check()
    expect(page.locator(".mark")).to_have_count(1)
    expect(page.locator("#level-about")).to_contain_text("Only identifiers with a fixed form")
    page.locator("#profile").select_option("document")
    expect(page.locator(".mark.other").first).to_be_visible()
    expect(page.locator("#level input:checked")).to_have_value("personal")
    expect(page.locator("#undrawn")).to_be_hidden()
    page.locator("#assess").click()
    expect(page.locator("#risk")).to_contain_text("is expected to name")
    expect(page.locator("#risk")).to_contain_text("Choosing among draws")
    assert page.locator("#guessed .mark").count() == page.locator("#sent .mark").count()
    assert page.locator("#original .mark").count() == page.locator("#sent .mark").count()
    expect(page.locator("#bar svg.statement-bar")).to_be_visible()
    expect(page.locator("#curve svg.risk-curve")).to_be_visible()
    expect(page.locator("#curve tbody tr")).to_have_count(5)
    audited(page)
    assert narrow(page)


def test_an_old_answer_never_takes_the_place_of_a_newer_one(page, opened):
    held = []
    page.route("**/playground/protect", lambda route: held.append(route))
    typed(page, "Write to Peter Marsh")
    while not held:
        page.wait_for_timeout(20)
    typed(page, PROMPT)
    while len(held) < 2:
        page.wait_for_timeout(20)
    held[1].continue_()
    expect(page.locator(".mark")).to_have_count(2)
    old = held[
        0
    ].fetch()  # the gateway answers that it is old, and an answer that comes late changes nothing
    held[0].fulfill(response=old)
    page.wait_for_timeout(200)
    expect(page.locator(".mark")).to_have_count(2)
    page.unroute("**/playground/protect")


def test_a_page_that_is_left_is_forgotten(page, opened):
    typed(page)
    expect(page.locator(".mark")).to_have_count(2)
    (said,) = [
        json.loads(each.post_data) for _, each in page.asked if CANARY in (each.post_data or "")
    ]
    restored = {"token": said["token"], "number": said["number"], "answer": "<PERSON_1>"}
    assert CANARY in opened.post("/playground/restore", restored).text
    page.goto("about:blank")
    until = time.monotonic() + PATIENCE / 1000
    while opened.post("/playground/restore", restored).status_code != 410:
        assert time.monotonic() < until
        time.sleep(0.1)


def test_markup_in_a_prompt_is_text(page):
    typed(page, "<img src=x onerror=alert(1)> <b>Anna Kowalski</b>")
    expect(page.locator("#sent")).to_contain_text("<img src=x onerror=alert(1)>")
    assert page.locator("#sent img, #sent b").count() == 0


# ---- answers ---------------------------------------------------------------------------------------------------------


def test_a_pasted_answer_is_restored(page):
    typed(page)
    expect(page.locator(".mark")).to_have_count(2)
    page.locator("#answer").fill("Dear <PERSON_1>, dear <PERSON_5>")
    expect(page.locator("#restored")).to_have_text(f"Dear Anna {CANARY}, dear <PERSON_5>")
    expect(page.locator(".restored-word")).to_have_text([f"Anna {CANARY}"])
    expect(page.locator("#restored-about")).to_contain_text(
        "1 place restored. 1 placeholder was left"
    )
    typed(page, "Write to Peter Marsh")
    expect(page.locator("#restored")).to_contain_text("Dear Peter Marsh")


def test_a_model_is_asked_what_is_shown_and_nothing_before(page, opened):
    before = len(opened.upstream.asked)
    typed(page)
    expect(page.locator(".mark")).to_have_count(2)
    page.locator("#model").fill("small")
    page.locator("#key").fill("sk-of-mine")
    page.wait_for_timeout(300)
    assert len(opened.upstream.asked) == before
    page.locator("#ask").click()
    expect(page.locator("#restored")).to_have_text(
        f"Dear Anna {CANARY}, I write to anna.{CANARY.lower()}@example.org. <PERSON_9> knows."
    )
    expect(page.locator("#restored-about")).to_contain_text("Answered by small")
    (asked,) = opened.upstream.asked[before:]
    assert asked.body["messages"] == [{"role": "user", "content": SENT}]
    assert asked.headers["authorization"] == "Bearer sk-of-mine"
    assert CANARY.lower() not in opened.upstream.seen.lower()
    expect(page.locator("#requests tbody tr").first).to_contain_text("playground")
    expect(page.locator("#requests tbody tr").first).to_contain_text("1 e-mail address, 1 person")
    told = [
        urlsplit(each.url).path
        for _, each in page.asked
        if CANARY in (each.post_data or "") + each.url
    ]
    assert set(told) == {"/playground/protect"}
    assert page.evaluate("localStorage.length + sessionStorage.length") == 0
    assert page.context.cookies() == []


def test_an_upstream_that_fails_is_said(visit, opened):
    page = visit(opened.url)
    typed(page)
    expect(page.locator(".mark")).to_have_count(2)
    page.locator("#model").fill("small")
    kept, opened.upstream.answer = (
        opened.upstream.answer,
        lambda asked: (429, {"error": {"message": "slow down"}}),
    )
    try:
        page.locator("#model").press("Enter")
        expect(page.locator("#restored")).to_have_text("slow down")
    finally:
        opened.upstream.answer = kept
    assert len(page.complaints) == 1  # the browser itself says that a request failed
    page.complaints.clear()


# ---- a letter --------------------------------------------------------------------------------------------------------


@pytest.fixture
def letters(page):
    page.get_by_role("tab", name="Release a letter").click()
    expect(page.locator("#chance")).to_contain_text("Of 4 kinds of texts")
    return page


def test_a_public_text_takes_the_place_of_a_letter(letters, opened):
    before = len(opened.upstream.asked)
    expect(letters.locator("#prompt")).to_be_hidden()
    expect(letters.locator("#panel-letter h2").first).to_have_text("When not to use it")
    expect(letters.locator("#replace")).to_be_disabled()
    letters.locator("#letter").fill(f"Anna {CANARY} waits for a parcel that never arrived.")
    letters.locator("#replace").click()
    expect(letters.locator("#letter-statement")).to_contain_text("local DP 4 for a whole document")
    expect(letters.locator("#kinds")).to_contain_text("Your letter is of the kind delivery (")
    expect(letters.locator("#total")).to_have_text(
        "1 public text was drawn on this page: epsilon 4."
    )
    assert CANARY not in letters.locator("#public").text_content()
    letters.locator("#epsilon").fill("1")
    expect(letters.locator("#epsilon-value")).to_have_text("1")
    letters.locator("#replace").click()
    expect(letters.locator("#total")).to_contain_text("2 public texts were drawn")
    expect(letters.locator("#total")).to_contain_text("epsilon 5 together")
    told = [
        urlsplit(each.url).path for _, each in letters.asked if CANARY in (each.post_data or "")
    ]
    assert set(told) == {"/playground/letter"}
    assert len(opened.upstream.asked) == before
    letters.locator("#letter-clear").click()
    expect(letters.locator("#public")).to_be_empty()
    expect(letters.locator("#total")).to_contain_text("epsilon 5 together")


def test_letters_work_by_keys_alone(page):
    keys = page.keyboard
    page.locator("#tab-prompt").focus()
    keys.press("ArrowRight")
    expect(page.locator("#tab-letter")).to_be_focused()
    expect(page.locator("#tab-letter")).to_have_attribute("aria-selected", "true")
    expect(page.locator("#panel-letter")).to_be_visible()
    expect(page.locator("#chance")).to_contain_text("Of 4 kinds of texts")
    keys.press("Tab")
    expect(page.locator("#letter-example")).to_be_focused()
    keys.press("Enter")
    expect(page.locator("#letter")).to_be_focused()
    keys.press("Tab")
    expect(page.locator("#epsilon")).to_be_focused()
    keys.press("ArrowRight")
    expect(page.locator("#epsilon")).to_have_attribute("aria-valuetext", "4.5")
    keys.press("Tab")
    expect(page.locator("#replace")).to_be_focused()
    keys.press("Enter")
    expect(page.locator("#public")).not_to_be_empty()
    page.locator("#tab-letter").focus()
    keys.press("Home")
    expect(page.locator("#panel-prompt")).to_be_visible()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
def test_letters_are_for_everybody(visit, opened, scheme, width):
    page = visit(opened.url, width=width, color_scheme=scheme, reduced_motion="reduce")
    page.get_by_role("tab", name="Release a letter").click()
    page.locator("#letter-example").click()
    expect(page.locator("#replace")).to_be_enabled()
    page.locator("#replace").click()
    expect(page.locator("#public")).not_to_be_empty()
    page.locator("#letter-full summary").click()
    assert narrow(page)
    audited(page)


# ---- for everybody ---------------------------------------------------------------------------------------------------


def test_all_of_it_works_by_keys_alone(page):
    expect(page.locator("#profile option").first).to_be_attached()
    keys = page.keyboard
    reached = []

    def tab_to(name):
        for _ in range(40):
            keys.press("Tab")
            reached.append(
                page.evaluate("document.activeElement.id || document.activeElement.className")
            )
            if name in reached[-1]:
                return
        pytest.fail(f"{name} cannot be reached: {reached}")

    tab_to("skip")
    tab_to("profile")
    keys.press("Tab")  # the levels are one stop, at the one that is chosen
    keys.press("ArrowRight")
    expect(page.locator("#level input:checked")).to_have_value("names")
    keys.press("ArrowLeft")
    tab_to("example")
    keys.press("Enter")
    expect(page.locator("#prompt")).to_be_focused()
    expect(page.locator(".mark").first).to_be_visible()
    tab_to("mark")
    expect(page.locator("#explained")).to_contain_text("Anna Kowalski")
    keys.press("ArrowRight")
    expect(page.locator("#explained")).to_contain_text("anna.kowalski@example.org")
    keys.press("End")
    expect(page.locator("#explained")).to_contain_text("7946 0958")
    outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
    assert outline == "solid"
    tab_to("model")
    keys.type("small")
    keys.press("Enter")
    expect(page.locator("#restored-about")).to_contain_text("Answered by small")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("profile", ["prompt", "document"])
def test_it_is_accessible(visit, opened, scheme, profile):
    page = visit(opened.url, color_scheme=scheme, reduced_motion="reduce")
    expect(page.locator("#profile option").first).to_be_attached()
    page.locator("#profile").select_option(profile)
    page.locator("#example").click()
    expect(page.locator(".mark").first).to_be_visible()
    page.locator("#answer").fill("Dear <PERSON_1>, to <EMAIL_1>")
    expect(page.locator("#restored-about")).to_contain_text("restored")
    if profile == "document":
        page.locator("#assess").click()
        expect(page.locator("#risk .legend")).to_be_visible()
    page.locator("#full summary").click()
    audited(page)


@pytest.mark.parametrize("profile", ["prompt", "document"])
def test_it_fits_a_narrow_screen(visit, opened, profile):
    page = visit(opened.url, width=390)
    expect(page.locator("#profile option").first).to_be_attached()
    assert narrow(page)
    page.locator("#profile").select_option(profile)
    typed(page, "Donaudampfschifffahrtsgesellschaftskapitän" * 4 + f" {PROMPT} {'1234567890' * 12}")
    expect(page.locator(".mark").first).to_be_visible()
    page.locator("#full summary").click()
    page.locator("#answer").fill("<EMAIL_1>" * 12)
    expect(page.locator("#restored-about")).not_to_be_empty()
    assert narrow(page)
    audited(page)


def test_all_columns_of_the_last_requests_are_seen_on_a_narrow_screen(visit, opened):
    page = visit(opened.url, width=390)
    typed(page)
    expect(page.locator(".mark").first).to_be_visible()
    page.locator("#model").fill("small")
    for i in range(1, 4):
        page.locator("#ask").click()
        expect(page.locator("#requests tbody tr").nth(i - 1)).to_be_visible()
        expect(page.locator("#restored-about")).to_contain_text("Answered by small")
        expect(page.locator("#restored")).to_contain_text(f"Dear Anna {CANARY}, I write to")
        expect(page.locator("#ask")).to_be_enabled()
    cells = page.locator("#requests tbody tr").first.locator("td")
    assert cells.count() == 5
    for i in range(5):
        box = cells.nth(i).bounding_box()
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= 390
    names = [cells.nth(i).get_attribute("data-name") for i in range(5)]
    assert names == ["Time", "Route", "Hidden", "Status", "ms added"]
    assert (
        page.locator("#requests").evaluate("table => table.parentElement.clientHeight") <= 24 * 17
    )
    assert narrow(page)
    audited(page)


def test_tables_do_not_grow_without_end(visit, opened):
    def answer(route):
        row = {"time": 1, "operation": "openai.chat", "hidden": "", "status": 200, "reason": ""}
        content = {"requests": [{**row, "milliseconds": i} for i in range(500)], "budgets": None}
        route.fulfill(json=content)

    page = visit("about:blank")
    page.route("**/playground/activity", answer)
    page.goto(opened.url)
    expect(page.locator("#requests tbody tr")).to_have_count(200)
    assert (
        page.locator("#requests").evaluate("table => table.parentElement.clientHeight") <= 24 * 17
    )


# ---- keys of the gateway, and other sites ----------------------------------------------------------------------------


def test_a_gateway_with_keys_wants_one(chromium, tmp_path):
    file = str(tmp_path / "gateway.keys")
    secret = GatewayKeys(file, new=True).create("anna")
    with playing(policy=Policy(keys=file)) as opened:
        page = chromium.new_page()
        page.set_default_timeout(PATIENCE)
        page.goto(opened.url)
        expect(page.locator("#own")).to_be_focused()
        expect(page.locator("#prompt")).to_be_hidden()
        audited(page)
        page.locator("#own").fill("tv-wrong")
        page.locator("#own").press("Enter")
        expect(page.locator("#failure")).to_contain_text("does not know the key of this request")
        page.locator("#own").fill(secret)
        page.locator("#own").press("Enter")
        expect(page.locator("#locked")).to_be_hidden()
        expect(page.locator("#needs")).to_be_hidden()
        typed(page)
        expect(page.locator(".mark")).to_have_count(2)
        page.locator("#model").fill("small")
        page.locator("#ask").click()
        expect(page.locator("#restored-about")).to_contain_text("Answered by small")
        assert secret not in opened.upstream.seen
        assert all(secret not in json.dumps(each.headers) for each in opened.upstream.asked)
        page.close()


def test_another_site_can_neither_read_nor_drive_it(chromium, opened):
    page = chromium.new_page()
    page.route(
        "http://evil.example/**",
        lambda route: route.fulfill(body="<p>evil", content_type="text/html"),
    )
    page.goto("http://evil.example/")
    tried = """async ([url, kind, mode]) => {
        try {
            const answer = await fetch(url, {method: "POST", mode, headers: {"Content-Type": kind}, body: "{}"});
            return answer.type === "opaque" ? "opaque" : await answer.text();
        } catch { return "refused"; }
    }"""
    paths = ("open", "activity", "ask")
    for path in paths:
        where = f"{opened.url}/playground/{path}"
        assert page.evaluate(tried, [where, "application/json", "cors"]) == "refused"
        assert page.evaluate(tried, [where, "text/plain", "cors"]) == "refused"
        assert page.evaluate(tried, [where, "text/plain", "no-cors"]) in ("opaque", "refused")
    embedded = """(url) => new Promise((done) => {
        const frame = document.createElement("iframe");
        frame.onload = () => { try { done(frame.contentDocument ? "blank" : "closed"); } catch { done("closed"); } };
        frame.src = url;
        document.body.append(frame);
    })"""
    page.evaluate(embedded, opened.url)
    time.sleep(0.2)
    frames = [each for each in page.frames if each.url.startswith(opened.url)]
    assert all(each.locator("#prompt").count() == 0 for each in frames)
    loaded = """(url) => new Promise((done) => {
        const script = document.createElement("script");
        script.type = "module"; script.src = url;
        script.onload = () => done("loaded"); script.onerror = () => done("refused");
        document.head.append(script);
    })"""
    assert page.evaluate(loaded, f"{opened.url}/playground/page.js") == "refused"
    page.close()
