"""A person in front of the console's page: console_page.py BROWSER URL VIEWER_URL PICTURES OVOS_TOOLS CONSOLE_PID.

URL and VIEWER_URL have the tokens of an operator and a viewer. Calls are under way, and one waits to be approved. A console that ends
is started again. Takes pictures of each view in both themes, and fails on any error that the browser reports.
"""

import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import time

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect, sync_playwright

from console_person import VIEWS, errors, go, no_errors, open_page, stop_button

BROWSER, URL, VIEWER, PICTURES, OVOS_TOOLS, CONSOLE_PID = sys.argv[1:]
PAGE = URL.split("#")[0]
pictures = pathlib.Path(PICTURES)
pictures.mkdir(parents=True, exist_ok=True)


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
    for view in [*VIEWS, "tools/testbed/assemble", "approvals"]:
        go(page, view)
        page.screenshot(path=pictures / f"{view.replace('/', '-')}-phone.png")
        wide = page.evaluate("document.documentElement.scrollWidth")
        assert wide <= 360, f"{view} is {wide} points wide on a phone"
    page.get_by_role("button", name="Approve").tap()
    # Its caller asks again, it runs, and waits no longer.
    expect(page.get_by_text("Nothing waits to be approved.")).to_be_visible()
    page.context.close()


def takes_pictures(page):
    for theme in ["light", "dark"]:
        page.emulate_media(color_scheme=theme)
        for view in [*VIEWS, "tools/testbed/assemble"]:
            go(page, view)
            if view.endswith("assemble"):
                page.get_by_role("button", name="Plan", exact=True).click()
                expect(page.get_by_role("img", name=re.compile("Wave 4"))).to_be_visible()
            page.screenshot(path=pictures / f"{view.replace('/', '-')}-{theme}.png")
    page.emulate_media(color_scheme="light")
    page.set_viewport_size({"width": 2560, "height": 1300})
    for view in VIEWS:
        go(page, view)
        page.screenshot(path=pictures / f"{view}-wide.png")
    page.set_viewport_size({"width": 1280, "height": 720})


def tools_change_while_they_are_looked_at(page):
    file = pathlib.Path(os.environ["XDG_CONFIG_HOME"], "mycroft", "mycroft.conf")

    def switch(enabled):
        config = json.loads(file.read_text())
        config["PHAL"]["ovos-phal-plugin-tools"]["testbed_dup"] = {"enabled": enabled}
        file.write_text(json.dumps(config))
        subprocess.run([OVOS_TOOLS, "reload"], check=True, capture_output=True)

    go(page, "tools")
    heading = page.get_by_role("heading", name="testbed_dup", exact=True)
    expect(heading).to_be_visible()
    switch(False)
    expect(heading).to_have_count(0)
    switch(True)
    expect(heading).to_be_visible()
    no_errors("a reload")


def a_console_that_dies_comes_back(page):
    go(page, "live")
    running = page.get_by_role("heading", name=re.compile("assemble testbed running"))
    expect(running).to_be_visible()
    os.kill(int(CONSOLE_PID), signal.SIGKILL)
    expect(page.get_by_text("The live view is disconnected")).to_be_visible()
    expect(page.get_by_text("The live view is disconnected")).to_have_count(0)
    # Still signed in, and what runs is there again.
    expect(running).to_be_visible()
    expect(page.get_by_text("Operator")).to_be_visible()
    wrong = [error for error in errors if not re.search("ERR_(CONNECTION_REFUSED|CONNECTION_RESET|EMPTY_RESPONSE|INCOMPLETE_CHUNKED)", error)]
    assert not wrong, wrong
    errors.clear()


def resumes(page):
    for toolbox in ["testbed", "testbed_dup"]:
        button = page.get_by_role("button", name=f"Hold to resume {toolbox}", exact=True)
        expect(button).to_be_enabled()
        # A click is too short.
        button.click()
        expect(button).to_be_visible()
        button.hover()
        page.mouse.down()
        expect(page.get_by_text(f"Stopped by emergency stop: {toolbox}", exact=True)).to_have_count(0)
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
    expect(page.get_by_text("The live view is disconnected")).to_be_visible()
    stop_button(page).click()
    expect(page.get_by_text("Everything is stopped.")).to_be_visible()
    page.unroute("**/api/facts")
    expect(page.get_by_text("The live view is disconnected")).to_have_count(0)
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
    page.get_by_text("Copy as", exact=True).click()
    expect(page.locator("details pre").first).to_contain_text("ovos-tools invoke testbed__assemble '{\"hang_at\":\"join\"")
    back = page.url
    # Its arguments are in the form again, with today's plan, and nothing ran.
    page.get_by_role("button", name="Plan again").click()
    expect(page.get_by_label(re.compile("^hang_at"))).to_have_value("join")
    expect(page.get_by_role("img", name=re.compile("Wave 4"))).to_be_visible()
    page.goto(back)
    page.get_by_role("button", name="Run again").click()
    expect(page.get_by_label(re.compile("^hang_at"))).to_have_value("join")
    expect(page.get_by_text("Nothing has run yet")).to_be_visible()
    expect(page.get_by_role("img", name=re.compile("Wave 4"))).to_have_count(0)
    go(page, "live")
    expect(page.get_by_text("Nothing runs at the moment.")).to_be_visible()
    go(page, "history")
    page.get_by_label("Tool", exact=True).fill("add")
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
        for view in [*VIEWS, "tools/testbed/assemble"]:
            go(page, view)
            # The theme changes colours and nothing else.
            found = Axe().run(page, options=None if theme == "light" else {"runOnly": ["color-contrast"]})
            assert found.violations_count == 0, f"{view}, {theme}: {found.generate_report()}"
    page.context.close()


with sync_playwright() as playwright:
    browser = playwright.chromium.launch(executable_path=BROWSER, args=["--no-sandbox", "--disable-dev-shm-usage"])
    page = signs_in(browser)
    began = time.monotonic()
    try:
        sees_toolboxes(page)
        plans_and_runs(page)
        sees_what_runs(page)
        tools_change_while_they_are_looked_at(page)
        a_console_that_dies_comes_back(page)
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
print(f"done after {time.monotonic() - began:.0f} s")
