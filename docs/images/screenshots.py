"""Pictures of the page of `bert-tf serve`: every model's answer to its example.

    bert-tf serve MODEL… --port 8501
    python -m docs.images.screenshots http://127.0.0.1:8501/ --out FOLDER

There is a picture for a desktop and one for a telephone, each in light and in dark colours.
"""

import argparse
import base64
import json
import tempfile
from pathlib import Path
from urllib.request import urlopen

from selenium.webdriver.common.by import By
from selenium.webdriver.support.wait import WebDriverWait

from tests.browser import browser, look_like

_WIDTHS = {"desktop": 1200, "telephone": 390}
_SCHEMES = ("light", "dark")


def main() -> None:
    """Makes the pictures."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("url", help="where the server listens")
    parser.add_argument("--out", type=Path, required=True, help="the folder of the pictures")
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    with urlopen(f"{arguments.url.rstrip('/')}/models") as response:
        models = json.load(response)["models"]
    with tempfile.TemporaryDirectory() as profile, browser(Path(profile)) as driver:
        for model in models:
            driver.get("about:blank")
            driver.get(f"{arguments.url}#{model['name']}")
            wait = WebDriverWait(driver, 20)
            wait.until(lambda _: driver.find_element(By.CSS_SELECTOR, "#programs:not([hidden])"))
            if examples := driver.find_elements(By.CSS_SELECTOR, "#examples button"):
                examples[0].click()
                wait.until(lambda _: driver.find_element(By.CSS_SELECTOR, "#answer > :first-child"))
            for device, width in _WIDTHS.items():
                for scheme in _SCHEMES:
                    look_like(driver, width, scheme=scheme)
                    beyond = {"captureBeyondViewport": True}
                    picture = driver.execute_cdp_cmd("Page.captureScreenshot", beyond)
                    out = arguments.out / f"{model['name']}-{device}-{scheme}.png"
                    out.write_bytes(base64.b64decode(picture["data"]))


if __name__ == "__main__":
    main()
