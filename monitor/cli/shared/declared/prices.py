"""Prices of models from the command line."""

import csv
from collections.abc import Iterable, Sequence
from pathlib import Path

from monitor.cli.shared.declared.values import name_hint
from monitor.cli.shared.errors import USAGE, file_error, stop
from monitor.files.streams.paths import show
from schemas.records.prices import FORM, Prices, parse_price, split_prices
from schemas.records.text import shorten
from schemas.results.report import BenchmarkReport


def parse_prices(entries: Sequence[str], file: Path | None, *, of_all: bool = False) -> dict[str, float] | None:
    """Parse `MODEL=PRICE` and a table of model and price; None without either."""
    # With `of_all`, PRICE without a model holds for all other models; its name is empty. In a table with a column `tokens`, a price is
    # for one token, and each item takes so many.
    given = [("--price", name, price, "1") for name, price in split_prices(entries)]
    prices: dict[str, float] = {}
    for where, name, text, tokens in [*given, *([] if file is None else _price_rows(file))]:
        try:
            price = parse_price(text, tokens)
        except ValueError:
            price = -1.0
        if price < 0 or not (name or (of_all and where == "--price")):
            form = FORM if of_all else "MODEL=PRICE"
            stop(f"{where} {shorten(name)}={shorten(text)}: give a model and a price of 0 or more, as {form}", USAGE)
        if prices.setdefault(name, price) != price:
            whose = shorten(name) or "all"
            stop(f"{where}: {whose} has two prices, {prices[name]:g} and {price:g}; give one", USAGE)
    return prices or None


def named_prices(entries: Sequence[str] | None) -> list[str]:
    """Return the models that have a price on the command line."""
    return [name for name, _ in split_prices(entries or ())]


def prices_of(models: Sequence[str], prices: Prices) -> list[float]:
    """Return the price of each model; one without a price, and a price without a model, end the command."""
    fault = _fault(models, prices)
    if fault is not None:
        stop(fault, USAGE)
    return [prices.get(model, prices.get("", 0.0)) for model in models]


def _fault(models: Sequence[str], prices: Prices, given: str = "--price") -> str | None:
    """Return what is wrong with prices for some models; None if nothing is."""
    lacking = [model for model in models if model not in prices and "" not in prices]
    if lacking:
        return f"{given}: {show(lacking[0])} has no price; give {show(lacking[0])}=PRICE, or PRICE for all models"
    unknown = sorted(prices.keys() - {"", *models})
    if unknown:
        return f"{given}: there is no model {show(unknown[0])}; {name_hint(unknown[:1], models, 'the models are')}"
    return None


def prices_fault(reports: Iterable[BenchmarkReport], prices: Prices, given: str = "--price") -> str | None:
    """Return what is wrong with prices for the goals of reports; None if nothing is. `given` is where they come from."""
    goals = [report.goal for report in reports if report.goal is not None]
    if not goals:
        return f"{given}: no benchmark has a goal, so there is nothing to price; give --goal best, or another goal"
    return _fault(sorted({run.model for goal in goals for run in goal.by_model}), prices, given)


def _price_rows(file: Path) -> list[tuple[str, str, str, str]]:
    """Read a table: where each row is, its model, its price and its tokens."""
    try:
        lines = list(csv.reader(file.read_text(encoding="utf-8-sig").splitlines()))
    except OSError as error:
        stop(file_error(error, file))
    except (UnicodeDecodeError, csv.Error):
        stop(f"{show(file)} is no table in UTF-8; write lines of model and price between commas")
    header = [cell.strip().lower() for cell in lines[0]] if lines else []
    if not {"model", "price"} <= set(header):
        stop(f"{show(file)}: the first line has to name the columns model and price")
    places = [header.index(name) for name in ("model", "price", "tokens") if name in header]
    for number, line in enumerate(lines[1:], 2):
        if line and len(line) <= max(places):
            stop(f"{show(file)}:{number}: the line is too short; give {', '.join(header[k] for k in sorted(places))}")
    cells = [(number, [line[k].strip() for k in places]) for number, line in enumerate(lines[1:], 2) if line]
    return [(f"{show(file)}:{number}", row[0], row[1], row[2] if len(row) > 2 else "1") for number, row in cells]
