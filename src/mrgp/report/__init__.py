"""A fit as one page: an HTML file with maps, tables and checks that opens without a network."""

from mrgp.report.page import Report, write_report

__all__ = ["Report", "write_report"]
