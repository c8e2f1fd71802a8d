"""The two pictures of the example report that the documentation shows: ``python -m tests.browser.pictures``."""

from pathlib import Path

from tests.browser.chromium import Browser

ROOT = Path(__file__).parents[2]
REPORT = ROOT / "reports" / "example" / "report.html"
FOLDER = ROOT / "docs" / "manual"
#: File, whether dark, the element at the top, and the height of what is seen.
PICTURES = (("report.png", False, "header", 1000), ("report-dark.png", True, "#time", 900))
WIDTH = 1280


def main() -> None:
    with Browser() as browser:
        for name, dark, top, height in PICTURES:
            browser.open(REPORT, width=WIDTH, dark=dark)
            browser.run(
                "ready.then(() => document.querySelectorAll('details.layer').forEach((each) => { each.open = true; }))"
            )
            browser.run("new Promise((done) => setTimeout(done, 3000))")
            y = browser.run(f"document.querySelector('{top}').getBoundingClientRect().top + scrollY")
            browser.picture(FOLDER / name, clip={"x": 0, "y": max(y - 16, 0), "width": WIDTH, "height": height})
            print(FOLDER / name)


if __name__ == "__main__":
    main()
