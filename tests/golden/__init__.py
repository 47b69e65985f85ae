"""Databases as each released revision left them: `0001.sqlite`, `0001.postgresql.sql`, and so on.

`python -m tests.golden` adds those of the newest revision; one that is there is never made again.
"""
