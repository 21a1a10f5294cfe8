"""The page as a reader drives it, in headless Chromium."""

import os
import shutil

import pytest

from lmms_eval_tasks.reporting.report import report

from .conftest import HOSTILE, write_log
from .stand_ins import dialogues

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on the path")

FLAGS = ["--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
         "--disable-component-update", "--disable-sync"]  # fmt: skip
ROWS = ".row"


@pytest.fixture(scope="module")
def browser():
    # Chromium's sandbox refuses to run as root, as it is in containers.
    sandbox = ["--no-sandbox"] if os.getuid() == 0 else []
    with playwright.sync_playwright() as driver:
        started = driver.chromium.launch(executable_path=CHROMIUM, args=FLAGS + sandbox)
        yield started
        started.close()


@pytest.fixture
def visit(browser):
    """Opens a report; afterwards no error may have been logged, and nothing asked for that lies elsewhere."""
    pages, requests, errors = [], [], []

    def to(folder, **options):
        page = browser.new_page(**options)
        page.set_default_timeout(15_000)
        pages.append(page)
        page.on("request", lambda request: requests.append(request.url))
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.on("console", lambda message: errors.append(message.text) if message.type == "error" else None)
        page.goto((folder / "report.html").as_uri())
        page.wait_for_selector(ROWS)
        return page

    yield to
    for page in pages:
        page.close()
    assert not errors
    assert all(url.startswith(("file://", "data:")) for url in requests)


@pytest.fixture
def page(visit, sample_report):
    return visit(sample_report[0])


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    """As many turns as the benchmark has, of one model."""
    folder = tmp_path_factory.mktemp("large")
    items = dialogues(1, videos=135, of_video=15)
    assert len(items) > 5_500
    write_log(folder / "logs" / "m", "m", items)
    report([str(folder / "logs")], folder / "out")
    return folder / "out", items


def shown(page):
    """What the live region says, when it has settled."""
    page.wait_for_timeout(200)
    page.wait_for_selector("#list[aria-busy=false]")
    return page.locator("#count").inner_text()


def test_all_answers_are_counted_and_listed(page):
    assert shown(page) == "48 answers"
    first = page.locator(ROWS).first
    assert "What does he have on his head?" in first.inner_text() and "object reference · turn 2" in first.inner_text()


FILTERS = {
    "Run": ("org/<b>model, golden context", "24 of 48 answers"),
    "Ability or category": ("memory recall", "8 of 48 answers"),
    "Status": ("no answer", "1 of 48 answers"),
}


@pytest.mark.parametrize("label", FILTERS)
def test_choices_filter(page, label):
    option, expected = FILTERS[label]
    page.get_by_label(label, exact=True).select_option(label=option)
    assert shown(page) == expected
    page.get_by_role("button", name="Clear filters").click()
    assert shown(page) == "48 answers"


def test_scores_turns_and_texts_filter_together(page):
    page.get_by_label("Score to").fill("99")
    weak = shown(page)
    assert 0 < int(weak.split()[0]) < 24
    page.get_by_label("Score from").fill("99.5")
    assert shown(page) == "0 of 48 answers" and page.locator(ROWS).count() == 0
    page.get_by_role("button", name="Clear filters").click()
    page.get_by_label("Text in question or answer").fill("BICYCLE helmet")
    assert shown(page) == "2 of 48 answers"
    page.get_by_label("Turn", exact=True).select_option("5")
    assert shown(page) == "0 of 48 answers"


def test_the_lowest_scores_can_come_first(page):
    page.get_by_label("Order").select_option(label="lowest score first")
    shown(page)
    scores = [float(text) for text in page.locator(f"{ROWS} .score").all_inner_texts()[:10]]
    assert scores == sorted(scores) and scores[0] < 100


def test_the_list_is_driven_by_keys(page):
    page.locator("#list").focus()
    assert page.locator("#list").get_attribute("aria-activedescendant") is None
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    active = page.locator("#list").get_attribute("aria-activedescendant")
    row = page.locator(f"#{active}")
    assert (row.get_attribute("aria-selected"), row.get_attribute("aria-posinset")) == ("true", "2")
    assert row.get_attribute("aria-setsize") == "48" and row.get_attribute("role") == "option"
    page.get_by_role("heading", name="object_reference/street_bikes/1/3").wait_for()
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "sample"
    page.keyboard.press("Escape")
    assert page.evaluate("document.activeElement.id") == "list"
    page.keyboard.press("End")
    assert page.locator("[aria-selected=true]").get_attribute("aria-posinset") == "48"
    page.keyboard.press("Home")
    assert page.locator("[aria-selected=true]").get_attribute("aria-posinset") == "1"


def test_a_sample_shows_dialogue_answer_reference_and_checks(page):
    page.locator(ROWS).nth(1).click()
    sample = page.locator("#sample")
    sample.get_by_role("heading", name="object_reference/street_bikes/1/3").wait_for()
    sample.get_by_text("Dialogue before this turn").click()
    text = sample.inner_text()
    for part in ("And what is he holding on to?", "He wears a grey and black bicycle helmet.", "Reference answer",
                 "He keeps his balance with one hand", "score 100 %", 'Does the answer say that he uses "one hand"?',
                 "no ✓", "yes ✓"):  # fmt: skip
        assert part in text
    other = sample.get_by_role("button", name="org/<b>model, golden context: no answer")
    other.click()
    sample.get_by_text("[LMMS_EVAL_REQUEST_FAILED after 3 retries]").wait_for()
    assert page.locator("[aria-selected=true]").get_attribute("aria-posinset") == "26"


def test_frames_are_shown_where_they_are(page):
    page.get_by_label("Text in question or answer").fill("car_talk")
    shown(page)
    page.locator(ROWS).first.click()
    picture = page.locator("#sample img")
    picture.wait_for()
    assert picture.evaluate("node => node.decode().then(() => node.naturalWidth)") > 0
    assert "frames that the model was shown" in picture.get_attribute("alt")


def test_what_a_model_says_is_text(page):
    page.get_by_label("Text in question or answer").fill("<script>")
    assert shown(page) == "1 of 48 answers"
    page.locator(ROWS).first.click()
    said = page.locator("#sample .answer")
    said.wait_for()
    assert said.evaluate("node => node.textContent") == HOSTILE
    assert page.locator("#sample script, #sample img[src=x], #list script").count() == 0
    assert page.evaluate("window.hacked") is None


def test_controls_have_names_and_landmarks_are_there(page):
    for role in ("banner", "navigation", "main", "contentinfo"):
        assert page.get_by_role(role).count() == 1
    for role in ("combobox", "spinbutton", "searchbox", "listbox"):
        for control in page.get_by_role(role).all():
            assert control.evaluate("node => (node.labels?.[0]?.innerText || node.ariaLabel || '').length") > 0
    assert page.get_by_role("status").count() == 1
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the content"
    for picture in page.locator("figure img").all():
        assert picture.get_attribute("alt")


def test_the_network_is_forbidden(browser, sample_report):
    page = browser.new_page()
    page.goto((sample_report[0] / "report.html").as_uri())
    blocked = page.evaluate("""async () => {
        const blocked = [];
        document.addEventListener("securitypolicyviolation", (event) => blocked.push(event.effectiveDirective));
        await fetch("http://127.0.0.1:9/").catch(() => {});
        const image = document.createElement("img");
        image.src = "http://127.0.0.1:9/x.png";
        const script = document.createElement("script");
        script.textContent = "window.inline = 1";
        document.body.append(image, script);
        await new Promise((resolve) => setTimeout(resolve, 200));
        return [...blocked, window.inline === undefined];
    }""")
    assert set(blocked) == {"connect-src", "img-src", "script-src-elem", True}
    page.close()


def test_only_visible_rows_are_in_the_page(visit, large):
    folder, items = large
    page = visit(folder)
    assert shown(page) == f"{len(items):,} answers"
    assert page.locator(ROWS).count() < 40
    page.locator("#list").focus()
    page.keyboard.press("End")
    last = page.locator("[aria-selected=true]")
    assert last.get_attribute("aria-posinset") == str(len(items))
    page.get_by_role("heading", name=items[-1]["id"]).wait_for()
    assert page.locator(ROWS).count() < 40
    page.get_by_label("Text in question or answer").fill(items[3000]["answers"][0])
    assert shown(page).startswith("1 of ")
    page.get_by_role("heading", name=items[-1]["id"]).wait_for()


def test_a_missing_folder_is_said(browser, sample_report, tmp_path):
    shutil.copy(sample_report[0] / "report.html", tmp_path)
    page = browser.new_page()
    page.goto((tmp_path / "report.html").as_uri())
    page.get_by_text("samples/index.js cannot be read").wait_for()
    page.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_both_colour_schemes_are_legible(visit, sample_report, scheme):
    page = visit(sample_report[0], color_scheme=scheme)
    ink, ground = (page.evaluate(f"getComputedStyle(document.body).{of}") for of in ("color", "backgroundColor"))
    assert contrast(ink, ground) > 7


def test_a_narrow_window_does_not_scroll_sideways(visit, sample_report):
    page = visit(sample_report[0], viewport={"width": 400, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth") <= 400


def contrast(one, other):
    """Of two CSS colours, as WCAG 2 has it."""

    def luminance(colour):
        parts = [int(part) / 255 for part in colour.removeprefix("rgb(").removesuffix(")").split(",")]
        linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))

    dark, light = sorted(map(luminance, (one, other)))
    return (light + 0.05) / (dark + 0.05)
