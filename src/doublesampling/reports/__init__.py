"""Reports of an experiment: a protocol before it, a report after it, as one HTML page or as Markdown."""

from doublesampling.reports.final import report
from doublesampling.reports.page import Report
from doublesampling.reports.planned import protocol

__all__ = ["Report", "protocol", "report"]
