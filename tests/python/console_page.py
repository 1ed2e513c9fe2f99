"""A person in front of the console's page: console_page.py BROWSER URL VIEWER_URL PICTURES.

URL and VIEWER_URL have the tokens of an operator and a viewer. Calls are under way, and one waits to be approved. Takes a picture of
each view in both themes, and fails on any error that the browser reports.
"""

import pathlib
import re
import sys

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect, sync_playwright

BROWSER, URL, VIEWER, PICTURES = sys.argv[1:]
PAGE = URL.split("#")[0]
VIEWS = ["health", "tools", "live", "approvals", "history"]

expect.set_options(timeout=20_000)
pictures = pathlib.Path(PICTURES)
pictures.mkdir(parents=True, exist_ok=True)
errors = []


def open_page(browser, url, **options):
    context = browser.new_context(**options)
    page = context.new_page()
    page.on("console", lambda said: errors.append(said.text) if said.type == "error" else None)
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.goto(url)
    return page


def no_errors(when):
    assert not errors, f"{when}: {errors}"


def go(page, view):
    page.goto(f"{PAGE}#/{view}")


def stop_button(page):
    return page.get_by_role("button", name="STOP", exact=True)


def signs_in(browser):
    # Without a token there is a form, and a wrong one opens nothing.
    page = open_page(browser, PAGE)
    expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
    page.get_by_label("Token").fill("not the token")
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("alert")).to_contain_text("this is not the token")
    # The browser itself reports the answer 401.
    errors.clear()
    page.context.close()
    page = open_page(browser, URL)
    expect(stop_button(page)).to_be_visible()
    assert "token" not in page.url, page.url
    no_errors("signing in")
    return page


def sees_toolboxes(page):
    go(page, "health")
    expect(page.get_by_role("heading", name="testbed ready", exact=True)).to_be_visible()
    expect(page.get_by_text("simulator").first).to_be_visible()


def plans_and_runs(page):
    go(page, "tools")
    page.get_by_label("Search tools").fill("adds two")
    expect(page.get_by_role("status").filter(has_text="1 tools")).to_be_visible()
    page.get_by_role("link", name="add", exact=True).click()
    page.get_by_label(re.compile("^a ")).fill("20")
    page.get_by_label(re.compile("^b ")).fill("22")
    page.get_by_role("button", name="Plan", exact=True).click()
    expect(page.get_by_role("img", name=re.compile("Wave 1: add"))).to_be_visible()
    page.get_by_role("button", name="Run", exact=True).click()
    expect(page.get_by_text('"result": 42')).to_be_visible()
    # What is wrong is said in the words of the service.
    page.get_by_label(re.compile("^b ")).fill("two")
    page.get_by_role("button", name="Run", exact=True).click()
    expect(page.locator("pre.bad")).to_contain_text("b")
    go(page, "tools/testbed/assemble")
    page.get_by_role("button", name="Plan", exact=True).click()
    expect(page.get_by_role("img", name=re.compile("Wave 4"))).to_be_visible()


def sees_what_runs(page):
    go(page, "live")
    expect(page.get_by_role("heading", name=re.compile("assemble testbed running"))).to_be_visible()
    expect(page.locator(".bar.running").first).to_be_visible()


def approves_from_a_phone(browser):
    page = open_page(browser, URL, viewport={"width": 360, "height": 740}, has_touch=True, is_mobile=True)
    expect(stop_button(page)).to_be_visible()
    go(page, "approvals")
    page.screenshot(path=pictures / "approvals-phone.png")
    wide = page.evaluate("document.documentElement.scrollWidth")
    assert wide <= 360, f"the page is {wide} points wide on a phone"
    page.get_by_role("button", name="Approve").tap()
    # Its caller asks again, it runs, and waits no longer.
    expect(page.get_by_text("Nothing waits to be approved.")).to_be_visible()
    page.context.close()


def takes_pictures(page):
    for theme in ["light", "dark"]:
        page.emulate_media(color_scheme=theme)
        for view in VIEWS + ["tools/testbed/assemble"]:
            go(page, view)
            expect(page.get_by_role("main")).to_be_visible()
            if view.endswith("assemble"):
                page.get_by_role("button", name="Plan", exact=True).click()
                expect(page.get_by_role("img", name=re.compile("Wave 4"))).to_be_visible()
            page.screenshot(path=pictures / f"{view.replace('/', '-')}-{theme}.png")
    page.emulate_media(color_scheme="light")


def resumes(page):
    for toolbox in ["testbed", "testbed_dup"]:
        button = page.get_by_role("button", name=f"Hold to resume {toolbox}", exact=True)
        expect(button).to_be_enabled()
        # A click is too short.
        button.click()
        expect(button).to_be_visible()
        button.hover()
        page.mouse.down()
        expect(page.get_by_text(f"Emergency stop holds: {toolbox}", exact=True)).to_have_count(0)
        page.mouse.up()


def stops(page):
    go(page, "live")
    stop_button(page).click()
    expect(page.get_by_text("Everything is stopped.")).to_be_visible()
    page.screenshot(path=pictures / "stopped-light.png")
    expect(page.get_by_text("Nothing runs at the moment.")).to_be_visible()
    page.get_by_role("button", name="Close").click()
    resumes(page)
    page.keyboard.press("Escape")
    page.keyboard.press("Escape")
    expect(page.get_by_text("Everything is stopped.")).to_be_visible()
    page.get_by_role("button", name="Close").click()
    resumes(page)
    no_errors("stopping")


def stops_without_the_stream(page):
    page.route("**/api/facts", lambda route: route.abort())
    page.reload()
    expect(page.get_by_text("The stream of events is gone")).to_be_visible()
    stop_button(page).click()
    expect(page.get_by_text("Everything is stopped.")).to_be_visible()
    page.unroute("**/api/facts")
    expect(page.get_by_text("The stream of events is gone")).to_have_count(0)
    # Nothing but the stream failed.
    wrong = [error for error in errors if "ERR_FAILED" not in error]
    assert not wrong, wrong
    errors.clear()
    # A stop that cannot be confirmed says what to do.
    held = []
    page.route("**/api/stop", lambda route: held.append(route))
    stop_button(page).click()
    expect(page.get_by_text("NOT CONFIRMED. Use the machine's own switch.")).to_be_visible(timeout=3_000)
    # It never arrives.
    for route in held:
        route.abort()
    page.unroute("**/api/stop")
    page.get_by_role("button", name="Close").click()
    resumes(page)
    errors.clear()


def looks_back(page):
    go(page, "history")
    page.get_by_label("Tool", exact=True).fill("assemble")
    expect(page.locator("tbody tr")).to_have_count(1)
    page.get_by_role("link", name="assemble").click()
    expect(page.locator(".timeline .bar").first).to_be_visible()
    page.screenshot(path=pictures / "history-call-light.png")
    page.get_by_role("tab", name="Table").click()
    expect(page.get_by_role("cell", name="received")).to_be_visible()
    page.get_by_role("tab", name="JSON").click()
    expect(page.locator("#past pre")).to_contain_text('"call_id"')
    # Its arguments are in the form again, and nothing ran.
    page.get_by_role("button", name="Plan again").click()
    expect(page.get_by_label(re.compile("^hang_at"))).to_have_value("join")
    go(page, "history")
    page.get_by_label("Failed only").check()
    expect(page.get_by_role("link", name="add", exact=True)).to_have_count(1)


def a_viewer_looks_and_stops(browser):
    page = open_page(browser, VIEWER)
    expect(page.get_by_text("Viewer")).to_be_visible()
    go(page, "tools/testbed/assemble")
    expect(page.get_by_role("button", name="Run", exact=True)).to_be_disabled()
    go(page, "tools/testbed/ping")
    page.get_by_role("button", name="Run", exact=True).click()
    expect(page.get_by_text('"pong": true')).to_be_visible()
    # The page's buttons are not what holds a viewer back.
    said = page.evaluate(
        """async () => {
            const headers = {"Content-Type": "application/json", "x-ovos-tools": "1"};
            const body = (of) => ({method: "POST", headers, body: JSON.stringify(of)});
            const run = await fetch("/api/run", body({toolbox_id: "testbed", name: "assemble", args: {}}));
            const approve = await fetch("/api/approve", body({id: "x"}));
            const resume = await fetch("/api/resume", body({toolbox_id: "testbed", stop_id: "x"}));
            return [run.status, approve.status, resume.status];
        }"""
    )
    assert said == [403, 403, 403], said
    errors.clear()
    stop_button(page).click()
    expect(page.get_by_text("Everything is stopped.")).to_be_visible()
    expect(page.get_by_role("button", name="Hold to resume testbed", exact=True)).to_be_disabled()
    no_errors("a viewer")
    page.context.close()


def is_read_aloud(browser):
    # The rules of the page's content keep axe out, too.
    page = open_page(browser, URL, bypass_csp=True)
    expect(stop_button(page)).to_be_visible()
    for theme in ["light", "dark"]:
        page.emulate_media(color_scheme=theme)
        for view in VIEWS + ["tools/testbed/assemble"]:
            go(page, view)
            expect(page.get_by_role("main")).to_be_visible()
            found = Axe().run(page)
            assert found.violations_count == 0, f"{view}, {theme}: {found.generate_report()}"
    page.context.close()


with sync_playwright() as playwright:
    browser = playwright.chromium.launch(executable_path=BROWSER, args=["--no-sandbox", "--disable-dev-shm-usage"])
    page = signs_in(browser)
    try:
        sees_toolboxes(page)
        plans_and_runs(page)
        sees_what_runs(page)
        takes_pictures(page)
        is_read_aloud(browser)
        approves_from_a_phone(browser)
        stops(page)
        looks_back(page)
        no_errors("looking back")
        stops_without_the_stream(page)
        a_viewer_looks_and_stops(browser)
        resumes(page)
        no_errors("the end")
    except BaseException:
        page.screenshot(path=pictures / "failed.png")
        print(errors)
        raise
    browser.close()
print("done")
