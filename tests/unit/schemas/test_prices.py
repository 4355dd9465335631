"""Prices of models, as a setting."""

import pytest

from monitor.cli.shared.settings import SettingsError, parse_settings


def test_the_setting_is_a_line_or_a_table(monkeypatch, tmp_path):
    monkeypatch.setenv("RANKWATCH_PRICES", "gpt = 0.004; a=b=1 ; 0.001;")
    assert parse_settings().prices == {"gpt": 0.004, "a=b": 1.0, "": 0.001}
    monkeypatch.delenv("RANKWATCH_PRICES")
    file = tmp_path / "rankwatch.toml"
    file.write_text('[prices]\ngpt = 0.004\n"" = 0\n')
    monkeypatch.setenv("RANKWATCH_CONFIG", str(file))
    assert parse_settings().prices == {"gpt": 0.004, "": 0.0}


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("gpt=", "gpt=: give a price of 0 or more, as MODEL=PRICE, or PRICE for all models"),
        ("gpt=-1", "gpt=-1: give a price"),
        ("nan", "=nan: give a price"),
        ("a=1;a=2", "a: two prices, 1 and 2; give one"),
    ],
)
def test_a_wrong_setting_says_where_and_what(monkeypatch, value, message):
    monkeypatch.setenv("RANKWATCH_PRICES", value)
    with pytest.raises(SettingsError, match=rf"^RANKWATCH_PRICES: {message}"):
        parse_settings()
