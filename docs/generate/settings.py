"""Write the reference of the settings from the class that reads them."""

from pydantic import SecretStr
from pydantic.fields import FieldInfo

from monitor.settings import RELOADED, Settings, allowed_values


def render() -> str:
    """Return a table of every setting: its variable, values, default and meaning."""
    rows = (
        f"| `{name}` | `RANKWATCH_{name.upper()}` | {allowed_values(name)} | {_default(field)} | {_meaning(name, field)} |"
        for name, field in Settings.model_fields.items()
    )
    return "\n".join(("| setting | variable | values | default | meaning |", "|---|---|---|---|---|", *rows))


def _default(field: FieldInfo) -> str:
    if isinstance(field.default, bool):
        return str(field.default).lower()
    if isinstance(field.default, (int, float)):
        return f"{field.default:,}" if isinstance(field.default, int) and field.default >= 1e6 else f"{field.default:g}"
    return "none" if field.default is None or field.default == {} else f"`{field.default}`"


def _meaning(name: str, field: FieldInfo) -> str:
    secret = "; a secret, never shown" if SecretStr in getattr(field.annotation, "__args__", ()) else ""
    reloaded = "; SIGHUP reloads it" if name in RELOADED else ""
    return (field.description or "").replace("|", "\\|") + secret + reloaded
