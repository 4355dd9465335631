"""The settings of a command."""

import os
from collections.abc import Mapping
from typing import Any, Final

from pydantic import SecretStr, ValidationError

from monitor.cli.shared.errors import USAGE, stop
from monitor.settings import PREFIX, ConfigFileError, Settings, allowed_values, nearest_setting, unknown_variables
from schemas.records.text import mask_url, shorten

_FLAGS: Final = {"broker_url": "--broker"}  # the flag of a setting whose flag has another name

_HIDDEN: Final = "(set, not shown)"


class SettingsError(Exception):
    """A setting is wrong; the message has where it was set and the values it takes."""


def read_settings(**flags: Any) -> Settings:  # noqa: ANN401 - the values of flags, None where one is not given
    """Return the settings; a wrong one ends the command with where it was set and the values it takes."""
    try:
        check_variables()
        return parse_settings(**flags)
    except SettingsError as error:
        stop(str(error), USAGE)


def check_variables() -> None:
    """Raise `SettingsError` if the environment has variables that look like settings but are none."""
    problems = []
    for variable in unknown_variables(os.environ):
        near = nearest_setting(variable[len(PREFIX) :])
        problems.append(_unknown(variable, "unset", near and PREFIX + near.upper()))
    if problems:
        raise SettingsError("; ".join(problems))


def _unknown(name: str, remove: str, near: str | None) -> str:
    fix = f"use {near}, or {remove} it" if near else f"{remove} it; `rankwatch config` lists all settings"
    return f"{shorten(name)} is not a setting: {fix}"


def parse_settings(**flags: Any) -> Settings:  # noqa: ANN401 - as above
    """Return the settings, without a check for variables that are no settings; raise `SettingsError` if one is wrong."""
    given = {name: value for name, value in flags.items() if value is not None}
    try:
        return Settings(**given)
    except ConfigFileError as error:
        raise SettingsError(str(error)) from error
    except ValidationError as error:
        raise SettingsError(_describe(error.errors(include_url=False)[0], given)) from error


def _describe(error: Mapping[str, Any], flags: Mapping[str, Any]) -> str:
    """Describe an entry of `ValidationError.errors()` without pydantic's text and without the value of a secret."""
    if not error["loc"]:
        return str(error["ctx"]["error"])  # a rule of `Settings` for several settings
    name = str(error["loc"][0])
    file = os.environ.get("RANKWATCH_CONFIG")
    if error["type"] == "extra_forbidden":
        return f"{file}: {_unknown(name, 'remove', nearest_setting(name))}"
    variable = f"RANKWATCH_{name.upper()}"
    if name in flags:
        place = _FLAGS.get(name, f"--{name.replace('_', '-')}")
    elif file is None or variable in os.environ:
        place = variable
    else:
        place = f"{file}: {name}"
    if error["type"] == "value_error":
        return f"{place}: {error['ctx']['error']}"  # a rule of `Settings` for this one
    annotation = Settings.model_fields[name].annotation
    secret = SecretStr in (annotation, *getattr(annotation, "__args__", ()))
    value = error["input"]
    shown = "" if secret else f" {shorten(mask_url(value) if isinstance(value, str) else value)}"
    return f"{place}{shown}: use {allowed_values(name)}"


def settings_rows(settings: Settings) -> list[dict[str, str | None]]:
    """Return every setting with its value, unless it is a secret, its source and its meaning."""
    rows: list[dict[str, str | None]] = []
    for name, field in Settings.model_fields.items():
        value = getattr(settings, name)
        variable = f"{PREFIX}{name.upper()}"
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
    return rows
