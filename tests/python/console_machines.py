"""A person in front of the page with machines that move: console_machines.py BROWSER URL PICTURES GSTREAMER.

The service has the toolboxes robot and drone with their simulators and, if GSTREAMER is `yes`, gstreamer. Everything is done by
clicking, and what is seen is what the machines report.
"""

import pathlib
import re
import sys

from playwright.sync_api import expect, sync_playwright

from console_person import fill, go, no_errors, open_page, stop_button

BROWSER, URL, PICTURES, GSTREAMER = sys.argv[1:]
expect.set_options(timeout=30_000)
pictures = pathlib.Path(PICTURES)
pictures.mkdir(parents=True, exist_ok=True)


def run(page, tool, **texts):
    """Runs a tool from its form, and waits for nothing."""
    go(page, f"tools/{tool}")
    fill(page, **texts)
    page.get_by_role("button", name="Run", exact=True).click()


def sees_the_robot_move(page):
    go(page, "machines")
    # A joint has its value and its health, and a wheel the angle of its turn.
    row = page.get_by_role("row")
    expect(row.filter(has_text="shoulder").first).to_contain_text(re.compile(r"-?\d+\.\d°.*\d+ °C · \d+\.\d V · (no power|powered)", re.S))
    expect(row.filter(has_text="lift")).to_contain_text(re.compile(r"\d+\.\d mm"))
    expect(row.filter(has_text="front").locator(".value")).to_have_text(re.compile(r"^([0-2]?\d?\d|3[0-5]\d)\.\d°$"))
    run(page, "robot/walk", duration="20")
    go(page, "machines")
    expect(page.get_by_text("moves", exact=True).first).to_be_visible()
    expect(page.get_by_role("img", name=re.compile("^robot is 0.0 m to the right and [1-9].[0-9] m ahead of its start"))).to_be_visible()


def flies(page):
    """Up and ahead, with a track within the fence."""
    run(page, "drone/takeoff", alt_m="5", arm=1)
    expect(page.locator("pre").filter(has_text='"ok": true').first).to_be_visible()
    run(page, "drone/move_forward", cm="300")
    go(page, "machines")
    drone = page.locator("section").filter(has=page.get_by_role("heading", name=re.compile("^drone")))
    expect(drone.get_by_text(re.compile(r"^[1-3]\.\d m north"))).to_be_visible()
    expect(drone.locator(".map .way")).to_have_count(1)
    expect(drone.locator(".map .fence")).to_have_count(1)
    expect(drone.locator("dl")).to_contain_text(re.compile(r"Armedyes.*Height[45]\.\d m", re.S))


def takes_a_picture(page, asked):
    source = "videotestsrc is-live=true ! video/x-raw,width=320,height=240 ! fakesink"
    run(page, "gstreamer/start_pipeline", pipeline=source, name="door camera")
    # It writes on this machine, so the person says so twice.
    page.get_by_role("button", name="Confirm and run").click()
    expect(page.locator("pre").filter(has_text="instance_id").first).to_be_visible()
    go(page, "machines")
    button = page.get_by_role("button", name="Picture of door camera")
    expect(button).to_be_visible()
    # It is taken only when it is asked for.
    assert not [one for one in asked if one["name"] == "take_snapshot"]
    button.click()
    picture = page.get_by_role("img", name="door camera")
    expect(picture).to_be_visible()
    assert picture.evaluate("image => image.naturalWidth") == 320
    taken = [one for one in asked if one["name"] == "take_snapshot"]
    assert all(one["args"]["inline"] is True and "call_id" not in one for one in taken), taken


def takes_pictures(page):
    for theme in ["light", "dark"]:
        page.emulate_media(color_scheme=theme)
        page.evaluate("scrollTo(0, 0)")
        page.screenshot(path=pictures / f"robots-{theme}.png", full_page=True)
    page.set_viewport_size({"width": 360, "height": 740})
    page.screenshot(path=pictures / "robots-phone.png", full_page=True)
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    page.set_viewport_size({"width": 1280, "height": 720})


def stops_them(page):
    stop_button(page).click()
    expect(page.get_by_text("Everything is stopped.")).to_be_visible()
    page.get_by_role("button", name="Close").click()
    go(page, "machines")
    expect(page.get_by_role("row").filter(has_text="shoulder").first).to_be_visible()
    expect(page.get_by_text("moves", exact=True)).to_have_count(0)
    # In the air it holds.
    expect(page.locator("dl")).to_contain_text("ModeHOLD")


def looks_at_nothing_from_another_view(page, asked):
    go(page, "history")
    expect(page.locator("tbody tr").first).to_be_visible()
    before = len(asked)
    go(page, "health")
    go(page, "history")
    expect(page.locator("tbody tr").first).to_be_visible()
    # A look that was on its way may have ended after the view did.
    assert len(asked) <= before + 2, asked[before:]
    looks = [one for one in asked if one["name"] in ("motor_status", "vehicle_state", "get_running_instances", "list_video_devices")]
    assert looks and all(one["call_id"].startswith("console-look-") for one in looks), looks


with sync_playwright() as playwright:
    browser = playwright.chromium.launch(executable_path=BROWSER, args=["--no-sandbox", "--disable-dev-shm-usage"])
    page = open_page(browser, URL)
    asked = []
    page.on("request", lambda request: asked.append(request.post_data_json) if request.url.endswith("/api/run") else None)
    try:
        sees_the_robot_move(page)
        flies(page)
        if GSTREAMER == "yes":
            takes_a_picture(page, asked)
        takes_pictures(page)
        looks_at_nothing_from_another_view(page, asked)
        stops_them(page)
        no_errors("the end")
    except BaseException:
        page.screenshot(path=pictures / "failed-machines.png", full_page=True)
        raise
    browser.close()
print("done")
