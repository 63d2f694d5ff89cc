"""The custom elements, in a browser and under the policy of the pages: what they do, and that they do nothing else."""

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect
from tests.browser.element_gallery import HOSTILE, STATIC, Gallery, serve_gallery

_ELEMENTS = ("flow-graph", "grid-map", "log-tail", "metric-chart", "command-palette", "since-time")


@pytest.fixture(scope="module")
def gallery() -> Iterator[Gallery]:
    """Serve a page with all elements."""
    with serve_gallery() as served:
        yield served


@pytest.fixture
def page(browser: Browser, gallery: Gallery) -> Iterator[Page]:
    """Open the page, and fail if anything on it breaks or would break its policy."""
    opened = browser.new_page(viewport={"width": 1200, "height": 800})
    faults: list[str] = []
    opened.on("pageerror", lambda error: faults.append(str(error)))
    opened.on("console", lambda message: faults.append(message.text) if "Content Security" in message.text else None)
    opened.on("dialog", lambda dialog: faults.append(f"a script ran: {dialog.message}"))
    opened.goto(f"{gallery.address}/")
    yield opened
    opened.close()
    assert faults == []


def _transform(page: Page) -> str:
    return str(page.evaluate("document.querySelector('#graph').shadowRoot.querySelector('.stage').style.transform"))


def test_every_element_is_small_checked_and_defined(page: Page) -> None:
    """Each script has less than 150 lines, asks for type checks, and uses neither eval nor inline styles."""
    for path in sorted((STATIC / "elements").glob("*.js")):
        text = path.read_text()
        assert text.startswith("// @ts-check"), path
        assert text.count("\n") < 150, path
        assert not any(
            word in text for word in ("eval(", "new Function", 'setAttribute("style"', "http://", "https://")
        )
    for name in _ELEMENTS:
        assert page.evaluate("name => customElements.get(name) !== undefined", name), name


def test_a_graph_is_zoomed_and_walked_by_keys(page: Page) -> None:
    """Keys zoom and fit, and arrows lead along the edges; Enter follows the node's link."""
    before = _transform(page)
    page.locator("#step-capture").focus()
    page.keyboard.press("+")
    assert _transform(page) != before
    page.keyboard.press("0")
    assert _transform(page) == before
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    assert page.evaluate("document.activeElement.dataset.id") in {"merge", "audit rows", "by country"}
    page.locator("#step-merge").focus()
    page.keyboard.press("ArrowUp")
    page.keyboard.press("Enter")
    page.wait_for_url("**/?step=clean")


def test_a_graph_keeps_its_place_when_the_server_draws_it_again(page: Page) -> None:
    """Other colours, or a new element of the same id, leave the graph where it was moved to."""
    page.locator("#step-capture").focus()
    page.keyboard.press("+")
    moved = _transform(page)
    page.evaluate("document.querySelector('#graph').innerHTML = document.querySelector('#graph').innerHTML")
    assert _transform(page) == moved
    page.evaluate("(old => old.replaceWith(old.cloneNode(true)))(document.querySelector('#graph'))")
    page.wait_for_function(
        "kept => document.querySelector('#graph').shadowRoot.querySelector('.stage').style.transform === kept",
        arg=moved,
    )


def test_forty_thousand_cells_are_drawn_at_once(page: Page) -> None:
    """A grid of 40,000 letters is drawn without rows in the DOM, and its cells have links and names."""
    took = page.evaluate(
        "(() => { const grid = document.querySelector('#iterations'); grid.draw();"
        " const began = performance.now(); grid.draw(); return performance.now() - began })()"
    )
    print(f"40,000 cells in {took:.0f} ms")
    assert page.evaluate("document.querySelectorAll('#iterations *').length") == 2
    grid = page.locator("#iterations .scroll")
    grid.focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    expect(page.locator("#iterations .tip")).to_have_text("2: succeeded")
    page.keyboard.press("Enter")
    page.wait_for_url("**/?iteration=2")


def test_a_heat_map_names_its_cells_and_has_the_colours_of_the_theme(page: Page) -> None:
    """The tooltip says partition, commit and state; the other theme draws other colours."""
    canvas = "document.querySelector('#changes').shadowRoot.querySelector('canvas').toDataURL()"
    light = page.evaluate(canvas)
    page.locator("#changes .scroll").focus()
    page.keyboard.press("ArrowDown")
    expect(page.locator("#changes .tip")).to_have_text("2026-03-26 · commit 0: not touched")
    tip, grid = (page.locator(f"#changes {one}").bounding_box() for one in (".tip", ".scroll"))
    assert tip is not None
    assert grid is not None
    assert grid["x"] <= tip["x"] < tip["x"] + tip["width"] <= grid["x"] + grid["width"] + 1
    page.locator("#changes .scroll").blur()
    page.emulate_media(color_scheme="dark")
    page.wait_for_function(f"light => {canvas} !== light", arg=light)


@pytest.mark.parametrize(("column", "side"), [(2, "right"), (8, "left"), (16, "left")])
def test_the_label_of_the_checkpoint_stands_where_there_is_room(page: Page, column: int, side: str) -> None:
    """Right of its line if it fits there, else left of it, however narrow the cells are."""
    left, right = page.evaluate(
        """async (column) => {
          const element = document.querySelector("script[src*=grid-map]").src;
          const { draw } = await import(element.replace("grid-map", "grid"));
          const context = document.createElement("canvas").getContext("2d"), found = [];
          context.fillText = (text, x) => {
            const width = context.measureText(text).width;
            if (text === "checkpoint") found.push(context.textAlign === "right" ? x - width : x, width);
          };
          const place = { head: 100, notes: 0, foot: 18, left: 0, top: 0, cursor: -1, wide: 16, cell: 6 };
          const shown = { rows: [["a", "c".repeat(16)]], dates: [], legend: {}, axis: "", colour: () => "black" };
          draw(context, 200, 50, { ...place, ...shown, checkpoint: column });
          return [found[0], found[0] + found[1]];
        }""",
        column,
    )
    line = 100 + column * 6 - 1
    assert right <= 200
    assert (left >= line) is (side == "right")


def test_a_log_is_read_in_pages_from_its_end(page: Page, gallery: Gallery) -> None:
    """The last page comes first, in colours; earlier pages on demand; what is written later by itself."""
    pages = page.locator("#log .pages")
    expect(pages).to_contain_text("line 3999 of the log")
    assert "line 10 of" not in (pages.text_content() or "")
    expect(page.locator("#log .ansi-1.bold")).to_have_text("line 3990")
    page.locator("#log .earlier").click()
    expect(page.locator("#log .earlier")).to_have_text("Earlier: 32 kB")
    page.locator("#log .earlier").click()
    expect(pages).to_contain_text("line 10 of the log")
    gallery.log += f"and {HOSTILE}\n"
    expect(pages).to_contain_text(f"and {HOSTILE}")


def test_a_log_is_searched_on_the_server(page: Page) -> None:
    """A text in a page that is not loaded is found, listed, and shown where it stands."""
    page.locator("#log input").fill("LINE 77 of")
    page.locator("#log input").press("Enter")
    page.get_by_role("button", name="line 77 of the log").click()
    expect(page.locator("#log mark")).to_have_text("line 77 of")
    expect(page.locator("#log mark")).to_be_in_viewport()


def test_a_match_in_colours_is_marked_where_it_stands(page: Page) -> None:
    """Its line is listed without codes; the same words further up stay as they are."""
    page.locator("#log input").fill("LINE 3990")
    page.locator("#log input").press("Enter")
    found = page.locator("#log .found button")
    expect(found).to_have_count(1)
    expect(found).to_have_text(re.compile(r"^3991: 2026-03-26 [0-9:]+ line 3990 of the log$"))
    found.click()
    expect(page.locator("#log mark")).to_have_text("line 3990")
    expect(page.locator("#log mark")).to_be_in_viewport()


def test_a_log_shows_the_attempt_that_the_page_is_about(page: Page, gallery: Gallery) -> None:
    """After a retry, the stream morphs attributes before children: nothing of the attempt before stays."""
    gallery.logs["2"] = "attempt 2 begins\n"
    page.evaluate(
        """() => {
          const log = document.querySelector("#log"), written = (text) => {
            const pre = document.createElement("pre"), bytes = new TextEncoder().encode(text).length;
            Object.assign(pre.dataset, { offset: 0, nextOffset: bytes, size: bytes });
            pre.textContent = text;
            return pre;
          };
          log.replaceChildren(written("attempt 1 fails\\n"));
          log.setAttribute("src", "/logs?attempt=2");
          log.replaceChildren(written("attempt 2 begins\\n"));
        }"""
    )
    pages = page.locator("#log .pages")
    expect(pages).to_contain_text("attempt 2 begins")
    gallery.logs["2"] += "and goes on\n"
    expect(pages).to_contain_text("attempt 2 begins\nand goes on")
    expect(pages).not_to_contain_text("attempt 1")


def test_a_browser_holds_no_more_of_a_log_than_it_bears(page: Page, gallery: Gallery) -> None:
    """What was written while nobody looked is not loaded page by page; earlier and later ones come on demand."""
    pages, state = page.locator("#log .pages > span"), page.locator("#log .state")
    gallery.logs["3"] = "x" * 99 + "\n"
    page.evaluate("document.querySelector('#log').setAttribute('src', '/logs?attempt=3')")
    expect(state).to_have_text("1 kB of 1 kB")
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    gallery.logs["3"] *= 40_000
    expect(state).to_have_text("66 kB of 4,000 kB")
    assert len(asked) < 5
    for number in range(2, 20):
        page.locator("#log .earlier").click()
        expect(state).to_have_text(f"{-(-min(number, 16) * 65_536 // 1_000):,} kB of 4,000 kB")
    expect(pages).to_have_count(16)
    expect(page.locator("#log .later")).to_have_text("Later: 197 kB")
    expect(page.locator("#log .whole")).to_have_attribute("href", "/logs?attempt=3")
    page.locator("#log .later").click()
    expect(page.locator("#log .later")).to_have_text("Later: 132 kB")
    expect(pages).to_have_count(16)
    page.locator("#log [data-do=follow]").click()
    expect(pages).to_have_count(1)


def test_the_palette_finds_and_opens(page: Page, gallery: Gallery) -> None:
    """A slash opens it, typing asks the server, arrows choose, and Enter goes there; texts stay texts."""
    page.keyboard.press("/")
    page.locator("dialog.palette input").fill("ord")
    expect(page.locator("dialog.palette [role=option]")).to_have_count(2)
    expect(page.locator("dialog.palette b").first).to_have_text(HOSTILE)
    expect(page.locator("dialog.palette small").first).to_have_text("owner <b>")
    assert gallery.searches[-1] == "ord"
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.wait_for_url("**/?found=table")
    page.keyboard.press("Control+k")
    page.locator("dialog.palette input").fill("nope")
    expect(page.locator("dialog.palette li")).to_have_text("Nothing is called nope")
    page.keyboard.press("Escape")
    expect(page.locator("dialog.palette")).to_have_count(0)


def test_keys_walk_lists_and_pages(page: Page) -> None:
    """J and K walk a list, Enter opens, a question mark lists the keys, and G with a letter goes to a page."""
    page.keyboard.press("j")
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    page.wait_for_url("**/?row=2")
    page.keyboard.press("?")
    expect(page.locator("dialog.keys")).to_contain_text("Workflows")
    page.keyboard.press("Escape")
    page.keyboard.press("g")
    page.keyboard.press("w")
    page.wait_for_url("**/workflows")


def test_times_are_relative(page: Page) -> None:
    """A time says how long ago it was, and moves on."""
    text = page.locator("#past").text_content() or ""
    assert text.endswith(" d ago")
    page.evaluate(
        "document.querySelector('#past').setAttribute('datetime', new Date(Date.now() - 65000).toISOString())"
    )
    expect(page.locator("#past")).to_have_text("1 min ago")


@pytest.mark.parametrize(
    ("zone", "own"), [("America/New_York", "2019-12-31 19:00 GMT−5"), ("Etc/UTC", "2020-01-01 00:00 UTC")]
)
def test_times_are_those_of_the_reader(browser: Browser, gallery: Gallery, zone: str, own: str) -> None:
    """The whole of a time is in their zone; when pointed at, in UTC too. A live update changes nothing of that."""
    page = browser.new_page(timezone_id=zone)
    page.goto(gallery.address)
    utc = "2020-01-01 00:00 UTC"
    past, clock = page.locator("#past"), page.locator("#clock")
    expect(clock).to_have_text(own)
    expect(clock).to_have_attribute("title", utc)
    expect(past).to_have_attribute("title", utc if own == utc else f"{own} · {utc}")
    page.evaluate(f"document.querySelector('#clock').textContent = '{utc}'")
    expect(clock).to_have_text(own)
    page.close()


def test_a_chart_is_drawn_or_stays_a_table(page: Page) -> None:
    """A chart that comes into view is drawn with uPlot; where that is not to be had, its table is shown."""
    page.locator("#chart").scroll_into_view_if_needed()
    expect(page.locator("#chart .u-over")).to_be_visible()
    page.route("**/vendor/**", lambda route: route.abort())
    page.reload()
    page.locator("#chart").scroll_into_view_if_needed()
    expect(page.locator("#chart caption")).to_be_visible()


def test_everything_can_be_read_without_javascript(browser: Browser, gallery: Gallery) -> None:
    """Graph, letters, log link and table are on the page before any script has run."""
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(f"{gallery.address}/")
    expect(page.locator("#step-clean .detail")).to_have_text("2.06 M rows · 19 s")
    for text in ("2026-03-26", "The whole log", "Lag"):
        expect(page.get_by_text(text).first).to_be_visible()
    context.close()
