"""`rankwatch config`: the settings in force."""

import json

from rich.table import Table

from monitor.cli.shared.errors import USAGE, stop
from monitor.cli.shared.options import TableFormat, TableFormatOption
from monitor.cli.shared.settings import SettingsError, check_variables, parse_settings, settings_rows
from monitor.render.terminal.layout import output_console


def config(form: TableFormatOption = TableFormat.table) -> None:
    """Print every setting: its value, its source and its meaning.

    A flag overrides an environment variable RANKWATCH_*, which overrides the TOML file named by RANKWATCH_CONFIG. Secrets are never
    printed.

    Example: RANKWATCH_PORT=9000 rankwatch config
    """
    wrong = None
    try:
        check_variables()
    except SettingsError as error:
        wrong = str(error)  # after the list, which has the right names
    try:
        settings = parse_settings()
    except SettingsError as error:
        stop(str(error), USAGE)
    rows = settings_rows(settings)
    if form is TableFormat.json:
        print(json.dumps(rows))
    else:
        table = Table(box=None, pad_edge=False)
        for heading in ("setting", "value", "source", "meaning"):
            table.add_column(heading, overflow="fold")
        for row in rows:
            table.add_row(row["setting"], row["value"] or "-", row["source"], row["meaning"])
        output_console().print(table)
    if wrong is not None:
        stop(wrong, USAGE)
