"""Choices that several commands offer."""

from enum import StrEnum


class Listing(StrEnum):
    """How what is no report is written."""

    table = "table"
    json = "json"
