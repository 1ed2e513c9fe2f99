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

BROWSER, URL, VIEWER, PICTURES, OVOS_TOOLS, CONSOLE_PID = sys.argv[1:]
PAGE = URL.split("#")[0]
VIEWS = {
    "health": "Toolboxes",
    "machines": "Robots",
    "tools": "Tools",
    "live": "Live",
    "approvals": "Approvals",
    "history": "History",
}

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
    """By clicking, as a person does."""
    view, *tool = view.split("/")
    page.get_by_role("navigation").get_by_role("link", name=re.compile(f"^{VIEWS[view]}")).click()
    if tool:
        toolbox, name = tool
        section = page.locator("section").filter(has=page.get_by_role("heading", name=toolbox, exact=True))
        section.get_by_role("link", name=name, exact=True).click()
        expect(page.get_by_role("heading", name=re.compile(f"^{name} "))).to_be_visible()
    else:
        expect(page.get_by_role("heading", name=VIEWS[view], exact=True)).to_be_visible()


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


# What the tools of a drone, a robot and a camera say, as they were recorded from the simulators that come with the service.
RECORDED = {
    "vehicle_state": {
        "ok": True,
        "simulated": True,
        "state": {"vehicle": "drone", "alt_m": 4.0, "mode": "HOLD", "armed": True, "in_air": True},
        "safety": {"battery_pct": 87, "gps_ok": True, "link_ok": True, "pilot_override": None},
        "limits": {"max_alt_m": 30.0},
        "goal": "find red cup",
        "home": {"north_m": 0.0, "east_m": 0.0},
        "fence": {"centre_m": [0.0, 0.0], "radius_m": 40.0, "corners_m": None},
    },
    "motor_status": {
        "success": True,
        "data": {
            "simulated": True,
            "odometry": {"x_m": 1.5, "y_m": 0.5, "heading_degrees": 30.0, "moving": False},
            "motors": [
                {"bus": "left", "id": 2, "name": "shoulder", "answers": True, "position": -45.0, "temperature_c": 28.0, "voltage_v": 7.4, "torque": True, "moving": True},
                {"bus": "left", "id": 7, "name": "front", "answers": True, "position": None, "temperature_c": 28.0, "voltage_v": 7.4, "torque": False, "moving": False},
                {"bus": "left", "id": 10, "name": "lift", "answers": True, "position": 150.0, "temperature_c": 28.0, "voltage_v": 7.4, "torque": False, "moving": False},
                {"bus": "right", "id": 1, "name": "pan", "answers": False, "position": None},
            ],
        },
    },
    "get_running_instances": {"instances": [{"instance_id": "i1", "name": "door camera"}], "ended": []},
    "list_video_devices": {"devices": []},
    "take_snapshot": {"path": "/tmp/a.png"},
}
# One red point.
PICTURE = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGP4z8DwHwAFAAH/iZk9HQAAAABJRU5ErkJggg=="


def sees_machines(browser):
    page = open_page(browser, URL)
    expect(stop_button(page)).to_be_visible()
    asked = []

    def tools(route):
        answer = route.fetch()
        found = answer.json()
        for name in RECORDED:
            effect = "write" if name == "take_snapshot" else "read"
            properties = {"subsystem": {"type": "string"}} if name == "motor_status" else {}
            found["tools"].append({"name": name, "toolbox_id": "machine", "description": "", "meta": {"effect": effect}, "argument_schema": {"type": "object", "properties": properties}})
        route.fulfill(response=answer, json=found)

    def run(route):
        wanted = route.request.post_data_json
        asked.append(wanted)
        result = dict(RECORDED[wanted["name"]])
        if wanted["name"] == "vehicle_state":
            flown = sum(1 for one in asked if one["name"] == "vehicle_state")
            result["position"] = {"north_m": 6.0 * flown, "east_m": 3.0 * flown, "alt_m": 4.0, "speed_mps": 1.2, "heading_deg": 27.0}
        content = [{"type": "image", "mime_type": "image/png", "data": PICTURE}] if wanted["name"] == "take_snapshot" else []
        route.fulfill(json={"result": result, "content": content})

    page.route("**/api/tools", tools)
    page.route("**/api/run", run)
    go(page, "machines")
    # A joint has its value, a wheel has none, and a servo that is silent is named.
    row = page.get_by_role("row")
    expect(row.filter(has_text="shoulder")).to_contain_text(re.compile("-45.0°.*moves.*28 °C · 7.4 V · powered", re.S))
    expect(row.filter(has_text="lift")).to_contain_text("150.0 mm")
    expect(row.filter(has_text="front").locator(".dial")).to_have_count(0)
    expect(row.filter(has_text="pan")).to_contain_text("does not answer")
    expect(page.get_by_role("img", name="machine is -0.5 m to the right and 1.5 m ahead of its start")).to_be_visible()
    # The drone leaves a track in its fence.
    expect(page.get_by_text(re.compile("^(12|18|24).0 m north"))).to_be_visible()
    expect(page.locator(".map .way")).to_have_count(1)
    expect(page.locator(".map .fence")).to_have_count(1)
    expect(page.get_by_text("find red cup")).to_be_visible()
    # A picture is taken only when it is asked for.
    assert not [one for one in asked if one["name"] == "take_snapshot"]
    page.get_by_role("button", name="Picture of door camera").click()
    expect(page.get_by_role("img", name="door camera")).to_be_visible()
    [taken] = [one for one in asked if one["name"] == "take_snapshot"]
    assert taken["args"] == {"instance_id": "i1", "inline": True} and "call_id" not in taken, taken
    looks = [one for one in asked if one["name"] != "take_snapshot"]
    assert all(one["call_id"].startswith("console-look-") for one in looks), looks
    for theme in ["light", "dark"]:
        page.emulate_media(color_scheme=theme)
        page.evaluate("scrollTo(0, 0)")
        page.screenshot(path=pictures / f"robots-{theme}.png", full_page=True)
    page.set_viewport_size({"width": 360, "height": 740})
    page.screenshot(path=pictures / "robots-phone.png", full_page=True)
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    # Nothing is asked for while another view is shown.
    go(page, "health")
    before = len(asked)
    expect(page.get_by_role("heading", name="testbed ready", exact=True)).to_be_visible()
    page.get_by_role("navigation").get_by_role("link", name="History").click()
    expect(page.locator("tbody tr").first).to_be_visible()
    assert len(asked) <= before + 2, asked[before:]
    no_errors("the machines")
    page.context.close()


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
    expect(page.get_by_text("The stream of events is gone")).to_be_visible()
    expect(page.get_by_text("The stream of events is gone")).to_have_count(0)
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
        sees_machines(browser)
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
