from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ratings.reports import report_html
from tests.ratings.report_world import EVIL, NAMES, reported

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


def test_a_report_opens_from_disk_without_network_and_scripts(browser: Any, tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    path.write_text(report_html(reported(games=6).tournament), encoding="utf-8")
    pictures = {}
    for scheme in ("light", "dark"):
        for width in (1440, 390):
            context = browser.new_context(
                offline=True, java_script_enabled=False, color_scheme=scheme, viewport={"width": width, "height": 900}
            )
            page = context.new_page()
            asked: list[str] = []
            complaints: list[str] = []
            page.on("request", lambda request, asked=asked: asked.append(request.url))
            page.on("console", lambda message, complaints=complaints: complaints.append(message.text))
            page.goto(path.as_uri())
            assert asked == [path.as_uri()]
            # Its own policy lets its styles through, and found nothing to forbid.
            assert complaints == []
            assert page.locator("h1").inner_text() == "Autumn <b>run</b>"
            # Rows of candidates; between them stand the headings of tiers.
            assert page.locator("#board tbody th[scope=row]").count() == len(NAMES)
            page.locator(".report-contents a").nth(1).click()
            assert page.url.endswith("#confidence")
            assert page.locator(f"[href*='{EVIL}'], [src]").count() == 0
            pictures[scheme, width] = page.screenshot(full_page=True)
            # Nothing is wider than the window.
            box = page.locator("html").bounding_box()
            assert box is not None
            assert box["width"] <= width
            context.close()
    assert len(set(pictures.values())) == len(pictures)


def test_a_report_prints(browser: Any, tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    path.write_text(report_html(reported(games=6).tournament), encoding="utf-8")
    page = browser.new_page(java_script_enabled=False, offline=True)
    page.goto(path.as_uri())
    assert page.pdf(format="A4").startswith(b"%PDF")
    page.emulate_media(media="print")
    assert not page.locator(".report-contents").is_visible()
    assert page.locator("#method").is_visible()
    page.close()
