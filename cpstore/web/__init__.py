"""A page to look with: threads, trees, states, differences, on this machine and only to read.

It needs the extra `web`. State is untrusted text: it is escaped wherever it is shown, and a strict policy
lets no script run at all.
"""

from __future__ import annotations

from cpstore.web.app import application
from cpstore.web.export import pages_of
from cpstore.web.server import serve

__all__ = ["application", "pages_of", "serve"]
