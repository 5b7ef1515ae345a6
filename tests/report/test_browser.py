"""The page in a real browser: it sorts, hides lines, fits a phone and asks nobody for anything."""

import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rollin.analysis.collect import collect
from rollin.cli import main
from rollin.cli.watch import Server, Watched
from rollin.paper.four_rooms import STEPS, condition
from rollin.paper.tables import find_table
from rollin.report.charts import line_id
from rollin.report.page import make_report
from rollin.runs import driver
from rollin.runs.directory import RunDirectory
from rollin.runs.engines.sac import SACRunConfig
from rollin.runs.engines.tabular import TabularConfig
from rollin.runs.records import MetricAt
from rollin.runs.spec import RunSpec
from rollin.sweeps.condition import Condition, Published
from rollin.sweeps.study import Study
from tests.killing import stop_at
from tests.made_runs import STUDIES, deep_run, sac_run, tabular_run, with_names

sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
pytestmark = [
    pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium on this machine"),
    pytest.mark.xdist_group("browser"),  # which is started once
]


def some_gamma(gamma: float, mean: str | None) -> Condition:
    known = {} if mean is None else {MetricAt("kappa"): Published.parse(f"{mean} ± 0.010")}
    return Condition({"gamma": f"{gamma:g}"}, "four-rooms", {"gamma": gamma, "steps": 1000}, known)


MIXED = Study(
    "mixed",
    (some_gamma(0.8, None), some_gamma(0.75, "0.300"), some_gamma(0.9, "0.200"),
     some_gamma(0.7, None)),
    title="Some of it is published",
)  # fmt: skip


@pytest.fixture(scope="module")
def page_file(tmp_path_factory) -> Path:
    """Four rooms, two robots and an ant's maze, all made up."""
    out = tmp_path_factory.mktemp("page")
    for i, one in enumerate(find_table("four-rooms").conditions):
        for seed in range(3):
            place = out / "rooms" / one.name / str(seed)
            tabular_run(place, one.spec(seed), (i * 5 + seed * 3) % 17, i / 7)
    for i, one in enumerate(find_table("velocity-summary").conditions[:6]):
        deep_run(out / "robots" / one.name, one.spec(0, 0.01), [] if i % 3 == 0 else [500 * i])
    for one in MIXED.conditions:
        tabular_run(out / "mixed" / one.name, one.spec(0), int(10 * one.options["gamma"]))
    config = TabularConfig(gamma=0.6, steps=1000)
    tabular_run(out / "mine", RunSpec("four-rooms", config), 5)
    sac_run(out / "sac", RunSpec("Hopper-v5", SACRunConfig(steps=20_000)), 12.5)
    studies = [*STUDIES, MIXED]
    make_report(collect([out], studies), out / "report.html", studies)
    return out / "report.html"


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with sync_api.sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield launched
        launched.close()


@pytest.fixture(scope="module")
def tab(browser) -> Iterator[Any]:
    """A tab that tests use one after the other: each new one starts a process."""
    context = browser.new_context()
    yield context.new_page()
    context.close()


@pytest.fixture
def opened(browser, tab, page_file, request) -> Iterator[Any]:
    """The page, open; whatever it complains of or asks for is a failure."""
    complaints: list[str] = []
    own = browser.new_context(**request.param) if hasattr(request, "param") else None
    page = tab if own is None else own.new_page()
    heard_of = {
        "console": lambda message: complaints.append(f"console: {message.text}"),
        "pageerror": lambda error: complaints.append(f"error: {error}"),
        "requestfailed": lambda asked: complaints.append(f"failed: {asked.url}"),
        "request": lambda asked: complaints.append(f"asked for {asked.url}"),
    }
    page.goto("about:blank")  # nothing is left of what the test before has put
    for event, listener in heard_of.items():
        page.on(event, listener)
    page.goto(page_file.as_uri())
    assert complaints == [f"asked for {page_file.as_uri()}"]
    yield page
    for event, listener in heard_of.items():
        page.remove_listener(event, listener)
    assert len(complaints) == 1
    if own is not None:
        own.close()


def column(table: Any, name: str) -> tuple[Any, list[str]]:
    """A heading, and what stands below it."""
    headings = table.locator("thead th").all_inner_texts()
    at = [text.strip("↕↑↓ \n") for text in headings].index(name)
    return table.locator("thead th").nth(at), table.locator(
        f"tbody tr > :nth-child({at + 1})"
    ).all_inner_texts()


def number(text: str) -> float:
    return float(text.split(" ")[0].replace("−", "-"))


def test_tables_sort_by_click_and_by_key(opened) -> None:
    table = opened.locator("table.sortable").first
    heading, before = column(table, "measured")
    assert heading.get_attribute("aria-sort") == "none"
    heading.get_by_role("button").click()
    _, rising = column(table, "measured")
    assert [number(t) for t in rising] == sorted(map(number, before))
    assert rising != before
    assert heading.get_attribute("aria-sort") == "ascending"
    heading.get_by_role("button").focus()
    opened.keyboard.press("Enter")
    _, falling = column(table, "measured")
    assert [number(t) for t in falling] == sorted(map(number, before), reverse=True)
    assert heading.get_attribute("aria-sort") == "descending"
    other, _ = column(table, "difference")
    other.get_by_role("button").focus()
    opened.keyboard.press("Space")
    _, differences = column(table, "difference")
    assert [number(t) for t in differences] == sorted(map(number, differences))
    assert heading.get_attribute("aria-sort") == "none"
    method, _ = column(table, "method")
    method.get_by_role("button").click()
    methods = list(dict.fromkeys(column(table, "method")[1]))
    betas = [f"ROLLIN β = {beta}" for beta in ("0.1", "0.2", "0.3", "0.5", "0.75", "0.9")]
    assert methods == ["baseline", *betas]


def test_what_is_empty_comes_last_whichever_way_a_table_is_sorted(opened) -> None:
    """Of some conditions nothing was published. Words sort as the study has them."""
    block = opened.locator("section", has=opened.locator("#table-mixed"))
    table = block.locator("table.sortable")
    heading, before = column(table, "published")
    assert 0 < before.count("–") < len(before)
    for reverse in (False, True):
        heading.get_by_role("button").click()
        _, found = column(table, "published")
        known = [text for text in found if text != "–"]
        assert found[len(known) :] == ["–"] * before.count("–")
        assert [number(t) for t in known] == sorted(map(number, known), reverse=reverse)
    heading, _ = column(table, "condition")
    heading.get_by_role("button").click()
    _, names = column(table, "condition")
    assert names == [f"gamma = {gamma}" for gamma in ("0.8", "0.75", "0.9", "0.7")]
    readings = opened.locator("table.sortable").nth(1)
    heading, before = column(readings, "quantity")
    heading.get_by_role("button").click()
    _, quantities = column(readings, "quantity")
    assert list(dict.fromkeys(quantities)) == list(dict.fromkeys(before))
    assert "κ at 5k steps" in quantities[0]


def test_headings_are_large_enough_to_hit(opened) -> None:
    for button in opened.locator("th button").all():
        assert button.bounding_box()["height"] >= 24


def test_a_key_that_is_off_stays_legible(opened) -> None:
    key = opened.locator(".key").first
    key.click()
    assert key.evaluate("e => getComputedStyle(e).opacity") == "1"
    assert "line-through" in key.evaluate("e => getComputedStyle(e).textDecoration")


def shown(block: Any, label: str) -> list[int]:
    """How many parts of a line each panel shows."""
    return block.locator("figure").evaluate_all(
        """(figures, label) => figures.map((figure) =>
            [...figure.querySelectorAll("svg [data-line]")]
                .filter((part) => part.dataset.line === label)
                .filter((part) => getComputedStyle(part).display !== "none").length)""",
        line_id(label),
    )


def test_a_key_of_the_legend_hides_its_line_in_every_panel(opened) -> None:
    block = opened.locator("[data-curves]").first
    before, others = shown(block, "baseline"), shown(block, "ROLLIN β = 0.1")
    assert len(before) == 8  # two quantities in four settings
    assert all(before)
    key = block.get_by_role("button", name="baseline")
    assert key.get_attribute("aria-pressed") == "true"
    key.click()
    assert key.get_attribute("aria-pressed") == "false"
    assert not any(shown(block, "baseline"))
    assert shown(block, "ROLLIN β = 0.1") == others
    # another table's curves are not touched
    assert all(shown(opened.locator("[data-curves]").nth(1), "baseline"))
    opened.keyboard.press("Space")
    assert shown(block, "baseline") == before


def test_everything_can_be_reached_by_keyboard(opened) -> None:
    opened.keyboard.press("Tab")
    assert opened.evaluate("document.activeElement.textContent") == "Skip to the results"
    box = opened.locator(".skip").bounding_box()
    assert box["x"] >= 0
    opened.keyboard.press("Enter")
    assert opened.evaluate("document.activeElement.id") == "main"
    wanted = opened.locator("main button, main .scroll").count()
    reached = set()
    for _ in range(3 * wanted):
        opened.keyboard.press("Tab")
        reached.add(
            opened.evaluate(
                """[...document.querySelectorAll("main button, main .scroll")]
                    .indexOf(document.activeElement)"""
            )
        )
        if len(reached - {-1}) == wanted:
            break
    hidden = opened.locator("details:not([open]) .scroll").count()
    assert len(reached - {-1}) == wanted - hidden
    outline = opened.evaluate("getComputedStyle(document.activeElement).outlineStyle")
    assert outline == "solid"


@pytest.mark.parametrize(
    "opened", [{"viewport": {"width": 390, "height": 844}, "has_touch": True}], indirect=True
)
def test_a_phone_scrolls_tables_not_the_page(opened) -> None:
    wide = opened.evaluate("document.documentElement.scrollWidth")
    assert wide <= 390
    card = opened.locator(".scroll", has=opened.locator("table.sortable")).first
    assert card.evaluate("e => e.scrollWidth > e.clientWidth")
    for any_card in opened.locator("main .scroll:visible").all():
        cue, wide = any_card.evaluate(
            "e => [getComputedStyle(e, '::before').content, e.scrollWidth > e.clientWidth]"
        )
        assert ("Scroll sideways" in cue) == wide
    first = card.locator("tbody th").first
    before = first.bounding_box()["x"]
    card.evaluate("e => { e.scrollLeft = 200; }")
    assert first.bounding_box()["x"] == before  # it sticks
    tall = opened.locator(".tall").first
    assert tall.evaluate("e => e.scrollHeight <= e.clientHeight + 1")  # no trap for a thumb
    for svg in opened.locator(".panel svg").all():
        box = svg.bounding_box()
        assert box["x"] + box["width"] <= 390


def luminance(page: Any, selector: str, name: str) -> float:
    """From 0 for black to 255."""
    text = page.locator(selector).first.evaluate(
        "(e, name) => getComputedStyle(e).getPropertyValue(name)", name
    )
    red, green, blue = (float(part) for part in text[text.index("(") + 1 : -1].split(",")[:3])
    return 0.299 * red + 0.587 * green + 0.114 * blue


@pytest.mark.parametrize(
    ("opened", "dark"),
    [({"color_scheme": "light"}, False), ({"color_scheme": "dark"}, True)],
    indirect=["opened"],
)
def test_dark_rooms_get_a_dark_page_with_legible_plots(opened, dark) -> None:
    page, ink = luminance(opened, "body", "background-color"), luminance(opened, "body", "color")
    label = luminance(opened, ".panel svg text", "fill")
    assert (page < 60) == dark
    assert (ink > 150) == dark
    assert (label > 150) == dark
    plate = luminance(opened, ".plate", "background-color")
    assert plate == 255  # maps stay on white


@pytest.mark.parametrize(
    "opened", [{"viewport": {"width": 718, "height": 1000}, "color_scheme": "dark"}], indirect=True
)
def test_print_shows_whole_tables_in_black_on_white(opened) -> None:
    opened.emulate_media(media="print")  # 718 px: A4 without its margins
    card = opened.locator(".tall").first
    assert card.evaluate("e => e.scrollHeight <= e.clientHeight + 1")
    assert card.evaluate("e => e.getBoundingClientRect().top + e.scrollHeight > 1000")
    assert not opened.locator("nav").is_visible()
    for table in opened.locator("table:visible").all():
        box = table.bounding_box()
        assert box["x"] + box["width"] <= 718
    assert luminance(opened, "body", "background-color") == 255
    assert luminance(opened, "body", "color") == 0
    assert luminance(opened, ".panel svg text", "fill") < 100
    assert opened.evaluate("getComputedStyle(document.documentElement).colorScheme") == "light"


@pytest.mark.usefixtures("jobs_here")
def test_the_report_of_a_sweep_of_ones_own_compares_with_its_baseline(tab, tmp_path) -> None:
    arguments = ["--steps", "300", "--warmup", "100", "--batch", "16", "--hidden", "8", "8"]
    arguments += ["--log-every", "150", "--eval-episodes", "1", "--threshold", "-1"]
    grid = ["--grid", "beta=0,0.4", "--seeds", "2", "--against", "beta=0"]
    assert main(["sweep", "tests.toys:Line", "--out", str(tmp_path), *grid, *arguments]) == 0
    tab.goto((tmp_path / "report.html").as_uri())
    shown = tab.locator("table.grid")  # κ, and success on the final context
    assert shown.locator("thead th").all_inner_texts() == 2 * ["β = 0", "β = 0.4"]
    assert tab.locator("h3", has_text="Better than the baseline?").count() == 1
    better = tab.locator("[aria-label='Probability of improvement'] tbody tr")
    assert better.all_inner_texts()[0].split("\t")[:3] == ["κ at the end", "β = 0.4", "1"]
    assert tab.locator("button.key").all_inner_texts() == ["β = 0", "β = 0.4"]
    assert "published" not in tab.locator("main").inner_text().lower()


HOSTILE = {
    "quote": '"><img src=x onerror="document.title=1">',
    "markup": "'><svg onload='document.title=1'></script></title></style></pre>--><script>"
    "document.title=1</script><iframe srcdoc='<script>parent.document.title=1</script>'>"
    "javascript:document.title=1",
    "escapes": "a\\q \\1 \\g<0> $\\frac$ $x^$ {{ 7 * 7 }} {% raw %} {0} \x1b]0;title\x07 \u202e \\",
    "long": "x" * 3000,
}


def heard(context: Any) -> tuple[Any, list[str]]:
    """A new page, and all that it asks for or complains of."""
    page = context.new_page()
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.on("pageerror", lambda error: asked.append(str(error)))
    page.on("dialog", lambda dialog: asked.append(dialog.message))
    return page, asked


@pytest.mark.parametrize("name", HOSTILE.values(), ids=HOSTILE)
def test_names_from_files_are_text_wherever_they_stand(browser, tmp_path, name, capsys) -> None:
    with_names(tmp_path / "runs", name)
    assert main(["report", str(tmp_path / "runs"), "--images"]) == 0
    out = capsys.readouterr()
    assert out.err == ""
    assert "\x1b" not in out.out
    context = browser.new_context()
    page, asked = heard(context)
    file = tmp_path / "runs" / "report.html"
    page.goto(file.as_uri())
    page.wait_for_timeout(100)
    assert asked == [file.as_uri()]
    assert page.title() != "1"
    assert page.locator("img, iframe, svg[onload], [onerror], [onload]").count() == 0
    assert page.locator("script").count() == 1
    assert page.locator(".key").count() == 4  # of this study and of a table of the paper
    page.locator(".key").first.click()  # the page's own script runs under its policy
    assert page.locator(".key").first.get_attribute("aria-pressed") == "false"
    context.close()


def test_a_script_that_is_not_the_pages_own_is_not_run(tab, page_file, tmp_path) -> None:
    text = page_file.read_text(encoding="utf-8")
    for number, more in enumerate(("<script>document.title=1</script>",
                                   '<img src="data:," onerror="document.title=1">')):  # fmt: skip
        file = tmp_path / f"{number}.html"
        file.write_text(text.replace("</main>", f"{more}</main>"), encoding="utf-8")
        tab.goto(file.as_uri())
        tab.wait_for_timeout(100)
        assert tab.title() != "1"


# ------------------------------------------------------------------ the live page


@contextmanager
def live(directory: Path) -> Iterator[str]:
    """The address of a live page, which looks at its runs several times a second."""
    watched = Watched([directory], STUDIES, every=0.1, clock=lambda: 0.0)
    with Server(lambda: watched.page) as server:
        threads = [
            threading.Thread(target=watched.follow),
            threading.Thread(target=server.serve_forever, args=(0.01,)),
        ]
        for thread in threads:
            thread.start()
        try:
            yield server.address
        finally:
            watched.stop()
            server.shutdown()
            for thread in threads:
                thread.join()


def plain(rate: float, seed: int) -> RunSpec[Any]:
    config = SACRunConfig(steps=20_000, seed=seed)
    sac = replace(config.sac, learning_rate=rate)
    return RunSpec("Hopper-v5", replace(config, sac=sac))


def test_a_live_page_follows_its_runs_and_stays_as_the_reader_has_put_it(
    browser, tmp_path, monkeypatch
) -> None:
    monkeypatch.setattr(driver, "STATUS_SECONDS", 0.0)
    grows = condition("easy", 0.001, 0.75).spec(0, 60 / STEPS, log_every=10)
    stop_at(grows, tmp_path / "grows", 20)
    for rate in (1e-4, 3e-4, 1e-3):
        sac_run(tmp_path / f"{rate:g}-0", plain(rate, 0), 1e4 * rate)
    context = browser.new_context(viewport={"width": 1000, "height": 600})
    page = context.new_page()
    said: list[str] = []
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("console", lambda message: said.append(message.text))
    with live(tmp_path) as address:
        page.goto(address)
        table = page.locator("table.sortable")
        table.wait_for()
        page.evaluate("window.mark = 1")  # which a reload would lose
        heading, before = column(table, "mean")
        assert before == ["1.000", "3.000", "10.000"]
        for _ in range(2):
            heading.get_by_role("button").click()
        assert column(table, "mean")[1] == before[::-1]
        key = page.locator("[data-curves]", has_text="learning_rate").locator(".key").nth(1)
        key.click()
        hidden = page.locator("svg .off").count()
        assert hidden > 0
        target = page.locator("h3", has_text="Learning curves").last
        target.evaluate("e => window.scrollTo({top: e.offsetTop - 100, behavior: 'instant'})")
        place = target.bounding_box()["y"]
        drawn = page.locator("section", has_text="easy").locator(".panel svg").first.inner_html()
        step = page.locator("#progress tbody td").nth(1)
        assert step.inner_text() == "20/60"

        stop_at(grows, tmp_path / "grows", 40)
        for seed in (1, 2):
            sac_run(tmp_path / f"more-{seed}", plain(1e-3, seed), 20.0 * seed)
            RunDirectory.claim(tmp_path / f"new-{seed}", plain(1e-3, seed + 2), None, "")
            RunDirectory(tmp_path / f"new-{seed}").write_status("failed", error="it broke")
        page.locator("#progress tbody tr").nth(2).wait_for()
        page.locator("table.sortable", has_text="23.333").wait_for()
        assert step.inner_text() == "40/60"
        assert page.evaluate("window.mark") == 1
        assert column(table, "mean")[1] == ["23.333 ± 8.819", "3.000", "1.000"]
        assert heading.get_attribute("aria-sort") == "descending"
        assert key.get_attribute("aria-pressed") == "false"
        assert page.locator("svg .off").count() == hidden
        assert abs(target.bounding_box()["y"] - place) < 2  # though rows came above it
        grown = page.locator("section", has_text="easy").locator(".panel svg").first.inner_html()
        assert grown != drawn
        table.locator("th button").first.click()  # what is new obeys, too
        assert page.locator("#live").inner_text().startswith("Live, last changed ")
        assert said == []
    page.locator(".live.gone").wait_for()
    assert "No answer from rollin watch" in page.locator("#live").inner_text()
    assert page.locator("table.sortable").count() == 1
    context.close()


def test_names_from_files_are_text_on_a_live_page(browser, tmp_path) -> None:
    name = " ".join(HOSTILE[kind] for kind in ("quote", "markup", "escapes"))
    sac_run(tmp_path / "a", plain(1e-3, 0), 1.0)
    place = tmp_path / name.replace("/", "")[:200]
    context = browser.new_context()
    page, asked = heard(context)
    with live(tmp_path) as address:
        page.goto(address)
        page.locator("table.sortable").wait_for()
        with_names(place, name)  # these come by a change of the page, not by its first reading
        RunDirectory.claim(place / "b", plain(1e-3, 1), None, name).write_status(
            "running", step=1, steps=2, shown={name: name}
        )
        page.locator("#progress td", has_text="running").wait_for()
        page.locator(".key").nth(4).wait_for()
        assert all(url.startswith(address) for url in asked)
        assert page.title() != "1"
        assert page.locator("img, iframe, svg[onload], [onerror], [onload]").count() == 0
        assert page.locator("script").count() == 1
    context.close()
