"""What a person does with the console's page in a browser. Any error that the browser reports is kept in `errors`."""

import re

from playwright.sync_api import expect

VIEWS = {
    "health": "Toolboxes",
    "machines": "Robots",
    "tools": "Tools",
    "live": "Live",
    "approvals": "Approvals",
    "history": "History",
}

expect.set_options(timeout=20_000)
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


def fill(page, **texts):
    """Fills in the form of a tool; a list has its choice by number."""
    for name, text in texts.items():
        field = page.get_by_label(re.compile(f"^{name}( |$)"))
        if isinstance(text, int):
            field.select_option(index=text)
        else:
            field.fill(text)
