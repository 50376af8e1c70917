"""side_by_side_page: several runs as one HTML file that needs neither network nor script."""

from checkrein.report.page import templates
from checkrein.report.side_by_side_model import SideBySide


def side_by_side_page(found: SideBySide) -> str:
    """Return the page of several runs."""
    return templates().get_template("side_by_side.html.j2").render(found=found)
