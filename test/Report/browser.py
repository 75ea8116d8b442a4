"""Opens the page in a headless Chromium: it is drawn without an error, at two widths, in both colour schemes.

    browser.py FOLDER
"""

import pathlib
import sys

import generated
import page_testing as p
from chromium import Chromium

SECTIONS = ["summary", "loss", "metrics", "model", "heat", "histograms", "memory", "profile", "recipe", "source"]
# For each canvas: how many pixels have a colour, and how many colours there are.
INK = """[...document.querySelectorAll('canvas')].map(canvas => {
  // Reads a copy, because Chromium warns if the canvas itself is read back.
  const copy = Object.assign(document.createElement('canvas'), {width: canvas.width, height: canvas.height});
  const context = copy.getContext('2d', {willReadFrequently: true});
  context.drawImage(canvas, 0, 0);
  const pixels = new Uint32Array(context.getImageData(0, 0, copy.width, copy.height).data.buffer);
  return [canvas.getAttribute('aria-label'), pixels.filter(p => p).length, new Set(pixels).size, canvas.closest('section').id, canvas.getBoundingClientRect().right <= innerWidth];
})"""


def text_of(browser, selector):
    return browser.evaluate(f"document.querySelector({selector!r}).innerText")


def check_page(browser, path, width, scheme, sections=SECTIONS):
    """Checks what every page must have; returns the sections with a drawing."""
    browser.open(path, width, scheme)
    assert not browser.problems(), f"{width} {scheme}: expected a silent console but got {browser.problems()}"
    got = browser.evaluate("[...document.querySelectorAll('main > section')].map(s => s.id)")
    assert got == sections, f"expected {sections} but got {got}"
    page, window = browser.evaluate("[document.documentElement.scrollWidth, innerWidth]")
    assert page <= window, f"{width} {scheme}: expected no horizontal scrolling but the page is {page} wide"
    drawn = set()
    for label, ink, colors, section, inside in browser.evaluate(INK):
        assert ink > 500 and colors > 3 and inside, f"{width} {scheme}: expected '{label}' to be drawn inside but got {ink} pixels of {colors} colours"
        drawn.add(section)
    assert not browser.evaluate("window.harmed"), "expected text but a path ran as a script"
    for word in ("undefined", "NaN", "[object", "Infinity"):
        assert word not in text_of(browser, "main"), f"expected no '{word}' on the page"
    return drawn


def check_hover(browser, data):
    """The tip over a cell of the heat map has the cell's value; a click selects its tensor."""
    trace = data["runs"][0]["trace"]
    browser.evaluate("document.getElementById('heat').scrollIntoView()")
    x, y, width, height = browser.evaluate(
        "(() => { const canvas = document.querySelector('#heat canvas'), box = canvas.getBoundingClientRect(), area = Chart.getChart(canvas).chartArea;"
        "return [box.left + area.left, box.top + area.top, area.width, area.height]; })()"
    )
    rows = browser.evaluate("Chart.getChart(document.querySelector('#heat canvas')).scales.y.getLabels()")
    assert len(rows) == sum("snr" in t[4] and t[1] == "activation" for t in trace["tensors"]), rows
    row, columns = rows.index("1 wk"), len(trace["first"])
    for column in (0, columns // 2, columns - 1):
        browser.move(x + (column + 0.5) / columns * width, y + (row + 0.5) / len(rows) * height)
        expected = p.values(next(t for t in trace["tensors"] if t[0] == "params['layers'][1]['wk'].activation")[4]["snr"], columns)[column]
        tip = text_of(browser, "#tip").split("\n")
        assert tip[0] == "params['layers'][1]['wk'].activation" and str(trace["last"][column]) in tip[1], tip
        p.same(float(tip[2].partition(": ")[2]), expected, "number of the tip")
    browser.move(x + width / 2, y + (row + 0.5) / len(rows) * height, click=True)
    assert "params['layers'][1]['wk'].activation" in text_of(browser, "#heat h3")
    browser.move(1, 1)
    assert browser.evaluate("document.getElementById('tip').hidden")
    # Draws every metric and every kind of tensor.
    browser.evaluate("""(() => { for (const i of [0, 1]) for (let k = 0; ; k++) {
      const box = document.querySelectorAll('#heat select')[i]; if (k >= box.options.length) break; box.selectedIndex = k; box.dispatchEvent(new Event('change')); } })()""")


def check_dots(browser, data):
    """The picture has every dot; a click shows the dot's op and links to its line of source and its
    tensors."""
    verdicts = data["runs"][0]["verdicts"]
    assert browser.evaluate("document.querySelectorAll('#picture .dot').length") == verdicts["total"]
    for verdict in ("fp8", "high_precision", "fallback"):
        assert browser.evaluate(f"document.querySelectorAll('#picture .dot.{verdict}').length") == verdicts[verdict]
    browser.evaluate("document.querySelector('#picture .fallback').click()")
    details = text_of(browser, "#model .details")
    for text in ("params['layers'][1]['wo'], wgrad", "fallback: no type for it", "op dot_general", "llama/export.py:77:16", "a note"):
        assert text in details, f"expected '{text}' in {details}"
    target = browser.evaluate("document.querySelector('#model .details a').getAttribute('href').slice(1)")
    line = browser.evaluate(f"document.getElementById({target!r}).innerText")
    assert line.startswith("77") and (p.ROOT / "examples" / "llama" / "export.py").read_text().splitlines()[76].strip() in line, line
    browser.evaluate("[...document.querySelectorAll('#model .details a')].find(a => a.textContent === 'gradient').click()")
    assert "params['layers'][1]['wo'].gradient" in text_of(browser, "#heat h3")


def main(folder):
    first = generated.write(folder / "first", 60, nasty=True)
    second = generated.write(folder / "second", 40, seed=1)
    p.make_page(first)
    p.make_page(first, second, "--out", folder / "both.html")
    bare = folder / "bare"
    bare.mkdir()
    (bare / "log.jsonl").write_text('{"step": 1, "loss": null}\n')
    p.make_page(bare)
    data = p.page_data(first / "report.html")
    drawn = {"loss", "metrics", "heat", "histograms", "memory", "profile"}
    with Chromium() as browser:
        backgrounds = {}
        for width in (1200, 380):
            for scheme in ("light", "dark"):
                got = check_page(browser, first / "report.html", width, scheme)
                assert got == drawn, f"expected drawings in {drawn} but got {got}"
                backgrounds[scheme] = browser.evaluate("getComputedStyle(document.body).backgroundColor")
                browser.screenshot(folder / f"{scheme}-{width}.png")
                check_page(browser, folder / "both.html", width, scheme)
                check_page(browser, bare / "report.html", width, scheme)
        assert backgrounds["light"] != backgrounds["dark"], backgrounds
        check_page(browser, first / "report.html", 1200, "light")
        assert "1 alarm" in text_of(browser, "#loss .alarms")
        check_hover(browser, data)
        check_dots(browser, data)
        # The colour scheme changes while the page is open.
        browser.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark"}])
        browser.evaluate("new Promise(done => setTimeout(done, 200))")
        assert browser.evaluate("getComputedStyle(document.body).backgroundColor") == backgrounds["dark"]
        assert all(ink > 500 for _, ink, *_ in browser.evaluate(INK))
        assert not browser.problems(), browser.problems()
        # With several runs the page shows one at a time, and the losses of all.
        check_page(browser, folder / "both.html", 1200, "light")
        labels = browser.evaluate("Chart.getChart(document.querySelector('#loss canvas')).data.datasets.map(d => d.label)")
        assert {"first, train", "second, train", "first, held out", "second, held out"} <= set(labels), labels
        browser.evaluate("(() => { const box = document.querySelector('nav select'); box.value = 1; box.dispatchEvent(new Event('change')); })()")
        browser.evaluate("new Promise(done => setTimeout(done, 200))")
        dots = browser.evaluate("document.querySelectorAll('#picture .dot').length")
        assert dots == p.page_data(folder / "both.html")["runs"][1]["verdicts"]["total"], dots
        assert "f8E5M3FN" in text_of(browser, "#recipe") and not browser.problems(), browser.problems()


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]).resolve())
