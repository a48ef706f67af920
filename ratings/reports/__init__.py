"""The report of a tournament: one HTML file that needs nothing beside it.

It is made of what was recorded and pinned, never of live settings, so that it comes out byte for byte the same when
models, prices, providers or the team have changed since.
"""

from ratings.reports.document import file_name, report_html
from ratings.reports.provenance import Given

__all__ = ["Given", "file_name", "report_html"]
