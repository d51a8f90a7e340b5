"""Chromium without a window, for tests of pages and for their pictures."""

import importlib.util
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

_OPTIONS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
)


def missing() -> str | None:
    """Why there can be no browser here; None if there can."""
    for program in ("chromium", "chromedriver"):
        if shutil.which(program) is None:
            return f"{program} is not installed"
    return None if importlib.util.find_spec("selenium") else "selenium is not installed"


@contextmanager
def browser(profile: Path) -> Iterator[Any]:
    """Selenium's driver of a browser that keeps its files in the folder `profile`.

    Its logs have what pages write to the console, and which addresses they ask.
    """
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    for option in (*_OPTIONS, f"--user-data-dir={profile}"):
        options.add_argument(option)
    options.binary_location = shutil.which("chromium")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    # With the path of the driver, selenium looks for none in the network.
    service = webdriver.ChromeService(shutil.which("chromedriver"))
    driver = webdriver.Chrome(options, service)
    try:
        yield driver
    finally:
        driver.quit()


def look_like(driver: Any, width: int, height: int = 900, scheme: str = "light") -> None:
    """Gives the window a size and a colour scheme."""
    size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    feature = {"name": "prefers-color-scheme", "value": scheme}
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [feature]})
