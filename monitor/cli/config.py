"""`rankwatch config`: the settings in force."""

from typing import Final

from monitor.cli.shared.options import TableFormat, TableFormatOption

_HIDDEN: Final = "(set, not shown)"


def config(form: TableFormatOption = TableFormat.table) -> None:
    """Print every setting: its value, its source and its meaning.

    A flag overrides an environment variable RANKWATCH_*, which overrides the TOML file named by RANKWATCH_CONFIG. Secrets are never
    printed.

    Example: RANKWATCH_PORT=9000 rankwatch config
    """
    import json
    import os

    from pydantic import SecretStr

    from monitor.cli.shared.errors import USAGE, stop
    from monitor.cli.shared.settings import SettingsError, check_variables, parse_settings
    from monitor.settings import Settings
    from schemas.text import mask_url

    wrong = None
    try:
        check_variables()
    except SettingsError as error:
        wrong = str(error)  # after the list, which has the right names
    try:
        settings = parse_settings()
    except SettingsError as error:
        stop(str(error), USAGE)
    rows: list[dict[str, str | None]] = []
    for name, field in Settings.model_fields.items():
        value = getattr(settings, name)
        variable = f"RANKWATCH_{name.upper()}"
        source = "environment" if variable in os.environ else "file" if name in settings.model_fields_set else "default"
        # An address may hold a user and a password, although they have settings of their own.
        text = (
            _HIDDEN if isinstance(value, SecretStr) else mask_url(str(value)) if name.endswith("_url") else str(value)
        )
        rows.append(
            {
                "setting": name,
                "value": None if value is None else text,
                "source": source,
                "variable": variable,
                "meaning": field.description,
            }
        )
    if form is TableFormat.json:
        print(json.dumps(rows))
    else:
        _print_table(rows)
    if wrong is not None:
        stop(wrong, USAGE)


def _print_table(rows: list[dict[str, str | None]]) -> None:
    from rich.table import Table

    from monitor.render.terminal.layout import output_console

    table = Table(box=None, pad_edge=False)
    for heading in ("setting", "value", "source", "meaning"):
        table.add_column(heading, overflow="fold")
    for row in rows:
        table.add_row(row["setting"], row["value"] or "-", row["source"], row["meaning"])
    output_console().print(table)
