"""A support bundle has everything but secrets: they are planted wherever one can be, in each form that programs write."""

import asyncio
import base64
import html
import json
import stat
import time
import zipfile
from datetime import UTC, datetime
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import settings as examples
from hypothesis import strategies as st
from pydantic import SecretStr

from monitor.cli.shared.settings import settings_rows
from monitor.serve.access.access_file import new_token
from monitor.service.doctor.bundle import collect, write
from monitor.service.doctor.finding import fault, ok
from monitor.service.doctor.redact import HIDDEN, Redactor
from monitor.settings import Settings
from tests.commands import PATIENCE, rankwatch
from tests.served import Served

TOKEN = "to\"ken\\/ü+é %41&<'"
URL = "https://hooks.example/services/T0PLANTED/B0PLANTED/kEyPlantedInPath?sig=planted-signature"
SETTINGS = {
    "token": TOKEN,
    "kafka_username": "user",
    "kafka_password": "planted-kafka-password",
    "webhook_secret": "planted-webhook-secret",
    "webhook_url": URL,
    "notify_slack_url": "https://hooks.slack.example/services/PLANTEDSLACKKEY",
    "notify_email_url": "smtps://mailer:planted%2Fmail@mail.example/?from=a@example.org&to=b@example.org",
    "broker_url": "kafka://someone:planted-in-broker@broker:9092",
    "public_url": "https://someone:planted-in-public@rankwatch.example",
}
PLANTED = (
    TOKEN, "planted-kafka-password", "planted-webhook-secret", "planted-signature", "kEyPlantedInPath", "PLANTEDSLACKKEY",
    "planted%2Fmail", "planted/mail", "planted-in-broker", "planted-in-public", "planted-in-redis", "planted-in-file",
)  # fmt: skip
BY_FORM = (
    "Authorization: Bearer abc.planted.def",
    "redis://me:planted@elsewhere:6379/0",
    'password="planted"',
    '{"api_key": "planted"}',
    "client_secret=planted&x=1",
    "redis://:planted/12@34@elsewhere:6379",
    "X-Api-Key: planted1234",
    "Cookie: session=planted; a=planted",
    "rankwatch serve --token planted",
    'said {\\"password\\": \\"planted\\"}',
    "GET https://bucket.example/x?X-Amz-Signature=planted",
    "posted to https://hooks.slack.com/services/T0/B0/planted",
    "posted to https://discord.com/api/webhooks/123/planted",
    "token of the proxy: eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJwbGFudGVkIn0.planted",
    "the key sk-planted1234567890abcdef, and AKIAPLANTED123456789",
    "-----BEGIN RSA PRIVATE KEY----- planted planted -----END RSA PRIVATE KEY-----",
    "AUTH planted",
    "AUTH me planted",
    "HELLO 3 AUTH me planted SETNAME worker",
    '1700 [0 10.0.0.1:5] "auth" "me" "planted"',
    '{"event": "sent \\"AUTH\\" \\"me\\" \\"planted\\"", "level": "info"}',
    "arguments (b'AUTH', b'me', b'planted')",
    "*3\r\n$4\r\nAUTH\r\n$2\r\nme\r\n$7\r\nplanted\r\n",
    r"wrote b'*3\r\n$4\r\nAUTH\r\n$2\r\nme\r\n$7\r\nplanted\r\n'",
    "10.0.0.1:6379> auth me planted",
    'AUTH me "planted twice planted"',
    "CONFIG SET requirepass planted",
    "masterauth planted",
    "sentinel auth-pass mymaster planted",
    "redis-cli -h redis -a planted ping",
    "ACL SETUSER me on >planted ~* +@all",
    '"ACL" "SETUSER" "me" "on" ">planted"',
    r"""{"password": "pl\"planted", "next": 1}""",
    r"""{"event": "{\"token\": \"pl\\\"planted\"}", "level": 1}""",
    r"""password='a\'planted'""",
    r"""api_key=a\planted""",
    "password=SecretStr('planted')",
    "kafka_password=b'planted'",
    'AUTH me "pl\\"planted"',
    'requirepass "a\\"planted"',
    "redis-cli -h redis -a 'planted with planted' ping",
    'rankwatch serve --token "planted planted"',
    "a bot: xoxb-17653672481-19874698323-pdFZKVeTuE8sPLANTED",
    "one line\\nxoxb-17653672481-plantedplanted and xoxe.xoxp-1-Mi0yLTPLANTED",
    "for the registry: npm_plantedplantedplanted, pypi-AgEIcGxhbnRlZAplanted, glpat-planted1234567890",
    f"made for ci: {new_token('ci', ['read:*'], datetime.now(UTC), None)[0].replace('rankwatch_', 'rankwatch_Planted')[:53]}",
)
"""Secrets that no setting names, in a log."""


def forms(secret):
    """A secret as programs write it."""
    yield from (secret, quote(secret), quote(secret, safe=""), json.dumps(secret)[1:-1], repr(secret)[1:-1])
    yield base64.b64encode(f"user:{secret}".encode()).decode() if secret == "planted-kafka-password" else secret
    yield from (
        json.dumps(json.dumps(secret)[1:-1])[1:-1],
        json.dumps(secret)[1:-1].replace("/", "\\/"),
        html.escape(secret),
        html.escape(secret, quote=False),
        html.escape(secret).replace("&#x27;", "&#39;").replace("&quot;", "&#34;"),
        json.dumps(secret, ensure_ascii=False)[1:-1].replace("&", "\\u0026").replace("<", "\\u003c"),
    )
    yield from (quote(secret, safe="").replace("%2F", "%2f"), quote(quote(secret, safe="")), secret.encode().hex())
    for ahead in range(3):
        around = b"{" * ahead + secret.encode() + b"}" * ahead
        yield from (base64.b64encode(around).decode(), base64.urlsafe_b64encode(around).decode().rstrip("="))


@pytest.fixture
def settings(tmp_path):
    (tmp_path / "oauth").write_text("planted-in-file\n")
    return Settings(
        **SETTINGS,
        kafka_token_file=tmp_path / "oauth",
        redis_url="redis://:planted-in-redis@127.0.0.1:1/0",
        data_dir=tmp_path / "data",
    )


@pytest.fixture(autouse=True)
def impatient(monkeypatch):
    monkeypatch.setattr("monitor.service.doctor.bundle._SECONDS", 0.5)


def bundle(settings, *findings, log=None):
    return asyncio.run(collect(settings, settings_rows(settings), findings, log))


def test_no_secret_is_in_a_bundle_wherever_it_was(settings, tmp_path, monkeypatch):
    monkeypatch.setattr("monitor.service.doctor.bundle._SECONDS", PATIENCE)  # a server answers here
    log = tmp_path / "service.log"
    written = [form for secret in PLANTED for form in forms(secret)]
    log.write_text(
        "\n".join([f"2026-11-23 [error] it failed: <{form}>." for form in written] + list(BY_FORM) + ["the last line"])
    )
    findings = [fault("Redis", f"cannot log in with {form}", f"change {form}") for form in written]
    with Served() as server:
        settings = settings.model_copy(update={"port": int(server.url.rpartition(":")[2])})
        server.post([{"benchmark": f"b {TOKEN} {PLANTED[1]}", "item_id": "1", "model": "m", "score": 1}])
        texts = bundle(settings, *findings, log=log)
        write(tmp_path / "bundle.zip", texts)
    with zipfile.ZipFile(tmp_path / "bundle.zip") as archive:
        held = {name: archive.read(name).decode() for name in archive.namelist()}
    assert set(held) == {
        "findings.txt",
        "settings.json",
        "versions.json",
        "metrics.txt",
        "ready.txt",
        "boards.json",
        "state.json",
        "log.txt",
    }
    for name, text in held.items():
        for form in written:
            assert form not in text, (name, form)
        assert "planted" not in text.lower(), name
    assert held["log.txt"].endswith("the last line")
    assert held["log.txt"].count(HIDDEN) >= len(written) + len(BY_FORM)
    assert '"b (removed) (removed)"' in held["boards.json"]


def test_a_bundle_has_what_helps(settings, tmp_path):
    texts = bundle(settings, ok("clock", "within 1 s"), fault("log", "damaged", "send it again"))
    assert texts["findings.txt"] == "ok | clock | within 1 s\nfault | log | damaged | send it again"
    rows = {row["setting"]: row["value"] for row in json.loads(texts["settings.json"])}
    assert (rows["group"], rows["token"]) == ("rankwatch", "(set, not shown)")
    versions = json.loads(texts["versions.json"])
    assert {"rankwatch", "python", "platform", "state_version"} <= versions.keys()
    assert "numpy" in versions["packages"]
    assert "error" in json.loads(texts["state.json"])
    assert "did not answer" in texts["metrics.txt"]
    assert "log.txt" not in texts


def test_a_host_that_no_request_can_name_is_a_page_that_did_not_answer():
    assert "did not answer" in asyncio.run(collect(Settings(host="a b", token="t"), [], [], None))["ready.txt"]


@pytest.mark.full
def test_the_command_writes_a_file_for_its_owner_alone_and_never_over_another(tmp_path):
    file = tmp_path / "support.zip"
    ended = rankwatch(
        "doctor", "--bundle", file, "--data-dir", tmp_path / "data", RANKWATCH_TOKEN="planted-token", RANKWATCH_PORT="1"
    )
    assert "secrets are removed" in ended.stdout
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    with zipfile.ZipFile(file) as archive:
        assert all("planted" not in archive.read(name).decode() for name in archive.namelist())
    again = rankwatch("doctor", "--bundle", file, "--data-dir", tmp_path / "data", code=1)
    assert "exists" in again.stderr
    rankwatch("doctor", "--log", file, code=2)


@examples(deadline=None)  # a first example waits for imports
@given(st.text(min_size=4).filter(str.strip), st.text(), st.text())
def test_a_known_secret_is_removed_from_every_text(secret, before, after):
    redactor = Redactor(Settings(token=SecretStr(secret)))
    assert secret not in redactor.text(before + secret + after).replace(HIDDEN, "") or secret in before + after


def _base64(text):
    return base64.b64encode(f"user:{text}".encode()).decode()


def _every_html(secret):
    return "".join(character if character.isalnum() else f"&#{ord(character)};" for character in secret)


@pytest.mark.parametrize(
    "write",
    [
        lambda secret: "".join(f"\\u{ord(character):04x}" for character in secret),
        lambda secret: "".join(f"\\x{byte:02x}" for byte in secret.encode()),
        lambda secret: "".join(f"%{byte:02x}" for byte in secret.encode()),
        lambda secret: quote(_every_html(secret), safe=""),
        lambda secret: json.dumps(_every_html(secret)),
        _every_html,
        lambda secret: secret.encode().hex(":"),
        lambda secret: secret.encode().hex(" ").upper(),
        lambda secret: ",".join(f"0x{byte:02X}" for byte in secret.encode()).removeprefix("0x"),
        lambda secret: ",\n  ".join(f"{byte:02x}" for byte in secret.encode()),
        lambda secret: "".join(f"\\{byte:03o}" for byte in secret.encode()),
        lambda secret: _base64(_base64(secret)),
        lambda secret: _base64(secret.encode().hex()),
        lambda secret: _base64(secret.encode().hex(":").upper()),
        lambda secret: f"{secret[:9]}\n    {secret[9:]}",
        lambda secret: f"{secret.encode().hex()[:20]}\r\n{secret.encode().hex()[20:]}",
        lambda secret: base64.encodebytes(b"." * 40 + secret.encode()).decode().strip(),
    ],
)
def test_a_secret_is_removed_however_its_characters_are_escaped(write):
    """Other programs escape more characters than they have to."""
    written = write(TOKEN)
    text = Redactor(Settings(token=SecretStr(TOKEN))).text(f"first\nsaid {written} there\nlast")
    assert written not in text
    assert (text.startswith("first\n"), text.endswith("\nlast")) == (True, True)
    assert HIDDEN in text
    assert len(text) <= len("first\nsaid %3B there\nlast") + len(HIDDEN), "the end of the last escape may be left"


def test_a_short_secret_is_removed_as_a_word_and_other_words_stay():
    redactor = Redactor(Settings(token=SecretStr("a")))
    assert redactor.text("a data row: a") == f"{HIDDEN} data row: {HIDDEN}"


@pytest.mark.parametrize(
    "piece",
    [
        "a.",
        "token",
        "x://",
        "password=",
        "Bearer ",
        "rankwatch_",
        "eyJ-",
        "--token ",
        "x://:",
        "-----BEGIN PRIVATE KEY-----",
    ],
)
def test_a_hostile_log_takes_no_longer_than_another(piece):
    started = time.process_time()
    Redactor(Settings()).text(piece * (500_000 // len(piece)))
    assert time.process_time() - started < 5, "the time grows with the square of the length"
