"""Every plot of the report as plain data for plotly.js, by section: testable without a pixel."""

from checkrein.report.figures.certificate import certificate_figures
from checkrein.report.figures.costs import cost_figures
from checkrein.report.figures.differences import difference_figures
from checkrein.report.figures.figure import Figure
from checkrein.report.figures.members import member_figures
from checkrein.report.figures.traces import trace_figures
from checkrein.report.figures.trade_offs import trade_off_figures
from checkrein.report.model import Summary

__all__ = ["Figure", "figures"]


def figures(summary: Summary) -> dict[str, list[Figure]]:
    """Return the plots of each section, in the order to show them."""
    return {
        "costs": cost_figures(summary),
        "certificate": certificate_figures(summary),
        "trade_offs": trade_off_figures(summary),
        "traces": trace_figures(summary),
        "members": member_figures(summary),
        "differences": difference_figures(summary.differences),
    }
