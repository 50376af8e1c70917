import os
from pathlib import Path

import pytest

CHROMIUM = Path("/usr/bin/chromium")
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"]
FLAGS += ["--disable-component-update", "--disable-sync"]


def missing_browser():
    try:
        import playwright  # noqa: F401, PLC0415
    except ImportError:
        return "playwright is not installed: pip install playwright"
    return None if CHROMIUM.exists() else f"{CHROMIUM} is missing: apt-get install chromium"


@pytest.fixture(scope="session")
def chromium():
    reason = missing_browser()
    if reason and os.environ.get("CHECKREIN_REQUIRE_BROWSER") == "1":
        pytest.fail(f"CHECKREIN_REQUIRE_BROWSER=1, but {reason}")
    if reason:
        pytest.skip(reason)
    from playwright.sync_api import sync_playwright  # noqa: PLC0415

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture
def opened(chromium):
    """Open a page; afterwards nothing was complained of, and nothing but the file was asked for."""
    complaints, requests, contexts = [], [], []

    def opened(width, height, scheme, path):
        context = chromium.new_context(viewport={"width": width, "height": height}, color_scheme=scheme)
        contexts.append(context)
        tab = context.new_page()
        tab.on(
            "console", lambda message: complaints.append(message.text) if message.type in {"error", "warning"} else None
        )
        tab.on("pageerror", lambda error: complaints.append(str(error)))
        tab.on("request", lambda request: requests.append(request.url))
        tab.goto(path.as_uri())
        tab.wait_for_selector("html[data-drawn]")
        return tab

    yield opened
    for context in contexts:
        context.close()
    assert complaints == []
    assert all(url.startswith("file://") and url.endswith("report.html") for url in requests)
