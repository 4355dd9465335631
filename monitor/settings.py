"""Define every setting. Flags override environment variables RANKWATCH_*, which override the file that RANKWATCH_CONFIG names."""

import os
import re
from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path
from types import NoneType
from typing import Annotated, Any, Final, Literal, get_args, get_origin

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, SecretStr, model_validator

from schemas.records.prices import FORM as PRICE_FORM
from schemas.records.prices import parse_price, split_prices
from schemas.records.suites import FORM as SUITE_FORM
from schemas.records.suites import parse_suites, split_suites
from schemas.records.text import shorten

LOW_COVERAGE = 0.9
LOG_NAME = "log.jsonl"  # the log of `watch`, in its data directory

RELOADED: Final = (  # settings that a running process takes from the file again at SIGHUP
    "client_events_per_second",
    "client_bytes_per_second",
    "snapshot_seconds",
    "linger_seconds",
    "stall_seconds",
    "max_stale_seconds",
    "suites",
    "suite_missing",
    "distinct_items",
    "prices",
    "metrics_series",
    "metrics_first",
    "notify_wait_seconds",
    "notify_per_minute",
    "notify_held_seconds",
    "notify_stalled_seconds",
)

LOOPBACK = ("127.0.0.1", "localhost", "::1")


PREFIX: Final = "RANKWATCH_"  # of the environment variable of a setting

NAME_PATTERN: Final = r"^[A-Za-z0-9._-]{1,200}$"
Name = Annotated[str, Field(pattern=NAME_PATTERN)]

_NAME: Final = "1 to 200 characters of A-Z a-z 0-9 . _ -"
_TYPES: Final[dict[Any, str]] = {  # the values of a type, as messages and the documentation name them
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    Path: "a path",
    str: "text",
    SecretStr: "text",
}


_OTHER_VARIABLES: Final = frozenset(
    {"RANKWATCH_CONFIG", "RANKWATCH_URL", "RANKWATCH_SEED", "RANKWATCH_LOOPS", "RANKWATCH_CRASH_AT"}
)
"""Variables with the prefix of settings: the file of settings, address and seed of `rankwatch-client`, how loops run
(`monitor.engine.loop.compiled`), and the crash points of tests."""

_LINK: Final = re.compile(r"_SERVICE_HOST$|_SERVICE_PORT(_\w+)?$|_PORT_\d+_(TCP|UDP|SCTP)(_\w+)?$")
_LINK_ADDRESS: Final = re.compile(r"(tcp|udp|sctp)://")


Suites = dict[str, list[str]]  # the members of each suite, as `schemas.records.suites.parse_suites` takes them


def _split_suites(value: Any) -> Any:  # noqa: ANN401 - any input
    """Split suites in one line, as a variable has them; return a table unchanged. Both are checked."""
    if not isinstance(value, str) and not _is_table(value):
        raise ValueError("suites: use a table with a list of benchmarks for each suite")
    suites = (
        split_suites([each for each in map(str.strip, value.split(";")) if each]) if isinstance(value, str) else value
    )
    parse_suites(suites)
    return suites


def _is_table(value: Any) -> bool:  # noqa: ANN401 - any input
    lists = value.values() if isinstance(value, dict) else (None,)
    return all(isinstance(each, list) and all(isinstance(text, str) for text in each) for each in lists)


def _read_prices(value: Any) -> Any:  # noqa: ANN401 - any input
    """Read prices in one line, as a variable has them, or a table."""
    if isinstance(value, str):
        entries = split_prices(each for each in map(str.strip, value.split(";")) if each)
    elif isinstance(value, dict):
        entries = [(name, str(price)) for name, price in value.items()]
    else:
        raise ValueError("prices: use a table with a price for each model")  # noqa: TRY004 - pydantic reports it
    prices: dict[str, float] = {}
    for name, text in entries:
        try:
            price = parse_price(text)
        except ValueError:
            raise ValueError(f"{shorten(name)}={shorten(text)}: give a price of 0 or more, as {PRICE_FORM}") from None
        if prices.setdefault(name, price) != price:
            raise ValueError(f"{shorten(name) or 'all models'}: two prices, {prices[name]:g} and {price:g}; give one")
    return prices


class ConfigFileError(Exception):
    """The file of settings is missing or is not TOML."""


class Settings(BaseModel):
    """Configures how the monitor runs. Declarations of benchmarks are in the log."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    def __init__(self, **flags: Any) -> None:  # noqa: ANN401 - checked by the fields
        super().__init__(**_read_file() | _read_environment(os.environ) | flags)

    data_dir: Path = Field(
        Path("rankwatch-data"), description="directory of the log, state, dead letters and feed of `watch`"
    )
    topic: Name = Field("rankwatch.events", description="topic that events are read from")
    redis_url: SecretStr | None = Field(
        None, description="Redis or Valkey that keeps the state; without it, an embedded Valkey"
    )
    host: str = Field(
        "127.0.0.1",
        description="address to serve on; beyond loopback it needs access rules, such as `token` or `access_file`",
    )
    port: Annotated[int, Field(ge=0, le=65535)] = Field(8642, description="port to serve on; 0 picks a free one")
    token: Annotated[SecretStr | None, Field(min_length=1)] = Field(
        None, description="bearer token that may do everything"
    )
    access_file: Path | None = Field(
        None, description="file of tokens with scopes, made by `rankwatch token`; read again when it changes"
    )
    anonymous_read: str | None = Field(
        None, description="benchmarks that may be read without a token: names separated by commas, * for any characters"
    )
    trusted_proxies: str | None = Field(
        None,
        description="addresses or networks, separated by commas, of the proxies that sign users in and name them in headers",
    )
    proxy_user_header: Name = Field("X-Forwarded-User", description="header in which a trusted proxy names the user")
    proxy_groups_header: Name = Field(
        "X-Forwarded-Groups", description="header in which a trusted proxy names the user's groups, separated by commas"
    )
    client_events_per_second: Annotated[float | None, Field(gt=0, le=1_000_000_000)] = Field(
        None, description="events that a token, or an address without one, may send over HTTP; without it, no limit"
    )
    client_bytes_per_second: Annotated[float | None, Field(gt=0, le=1_000_000_000_000)] = Field(
        None, description="the same for bytes of bodies, after decompression"
    )
    connections: Annotated[int, Field(ge=10, le=100_000)] = Field(
        1_000, description="open connections of all clients; fewer where the process may open few files"
    )
    client_connections: Annotated[int, Field(ge=1, le=100_000)] = Field(
        250,
        description="open connections of one client, an IPv4 address or an IPv6 /64 network; a load balancer is one client, with a "
        "connection for each open page",
    )
    audit_file: Path | None = Field(
        None, description="file that gets a line for each request that writes, declares or is refused; without it, none"
    )
    audit_bytes: Annotated[int, Field(ge=10_000, le=1_000_000_000_000)] = Field(
        50_000_000,
        description="size at which the audit file is moved to its name with .1, which replaces the one before",
    )
    cache_seconds: Annotated[int, Field(ge=0, le=86_400)] = Field(
        0,
        description="for how long a cache in front may give an answer of the API to callers without credentials, with `public, max-age`; "
        "0: it asks each time",
    )
    max_body_bytes: Annotated[int, Field(ge=1_000, le=4_000_000_000)] = Field(
        16_000_000, description="largest request body, after decompression"
    )
    otel_map: Path | None = Field(
        None,
        description="TOML file of tables [[map]] that name the benchmark, item and model of OpenTelemetry evaluation results; without it, "
        "/v1/logs and /v1/traces accept none",
    )
    poll_seconds: Annotated[float, Field(ge=0.01, le=3_600)] = Field(
        0.5, description="how often watched files are checked"
    )
    snapshot_seconds: Annotated[float, Field(ge=0.01, le=3_600)] = Field(
        5.0, description="how often pair sums are saved, for a quick restart"
    )
    max_rejected: Annotated[float, Field(ge=0, le=1)] = Field(
        0.1, description="largest share of the lines of files that may be unreadable"
    )
    low_coverage: Annotated[float, Field(ge=0, le=1)] = Field(
        LOW_COVERAGE, description="mark a model in the ranking if it has scores for less than this share of the items"
    )
    broker_url: str | None = Field(None, description="brokers of the events, kafka://host:port[,host:port]")
    group: Name = Field("rankwatch", description="consumer group of the workers")
    verdict_topic: Name = Field("rankwatch.verdicts", description="topic that verdict changes are published to")
    kafka_tls: bool = Field(False, description="whether the brokers use TLS")
    kafka_ca_file: Path | None = Field(None, description="certificates to trust (PEM) instead of the system's")
    kafka_certificate_file: Path | None = Field(None, description="the client's own certificate (PEM)")
    kafka_key_file: Path | None = Field(None, description="the key of the client's certificate (PEM)")
    kafka_mechanism: Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER"] | None = Field(
        None, description="SASL mechanism; without it, no SASL"
    )
    kafka_username: str | None = Field(None, description="user for PLAIN and SCRAM")
    kafka_password: SecretStr | None = Field(None, description="password for PLAIN and SCRAM")
    kafka_token_file: Path | None = Field(
        None, description="token file for OAUTHBEARER, which another program keeps fresh"
    )
    kafka_session_seconds: Annotated[float, Field(ge=1, le=1_800)] = Field(
        10.0, description="how long a worker may be silent before its partitions go to other workers"
    )
    instance: Annotated[str | None, Field(pattern=NAME_PATTERN)] = Field(
        None,
        description="permanent name of this worker in its group, one for each: after a restart within `kafka_session_seconds` it gets its "
        "partitions back, and no other worker is interrupted",
    )
    kafka_compression: Literal["none", "gzip", "snappy", "lz4", "zstd"] = Field(
        "none", description="compression of messages to Kafka"
    )
    create_topics: Literal["none", "outputs", "all"] = Field(
        "outputs",
        description="which missing topics the service creates: none, the ones it writes, or also the topic of the events",
    )
    topic_partitions: Annotated[int, Field(ge=1, le=10_000)] = Field(
        8, description="partition count of the topic of the events if the service creates it; permanent"
    )
    topic_replicas: Annotated[int | None, Field(ge=1, le=1_000)] = Field(
        None,
        description="replicas of the topic of the events if the service creates it; by default 3, or the number of brokers if lower",
    )
    topic_retention_seconds: Annotated[float | None, Field(ge=60, le=10_000_000_000)] = Field(
        None, description="retention of the topics that the service creates; by default, that of the brokers"
    )
    webhook_url: SecretStr | None = Field(None, description="web address to post every verdict change to")
    webhook_format: Literal["json", "cloudevents", "cloudevents-batch", "cloudevents-binary"] = Field(
        "json",
        description="format of the posts: plain JSON, or CloudEvents (one a post, batches, or one a post in binary mode)",
    )
    webhook_secret: SecretStr | None = Field(
        None, description="key that signs the posts to `webhook_url` and `notify_webhook_url` (HMAC-SHA256)"
    )
    notify_alertmanager_url: SecretStr | None = Field(
        None, description="Alertmanager that gets notifications as alerts, http://host:9093"
    )
    notify_slack_url: SecretStr | None = Field(None, description="incoming webhook of a Slack channel")
    notify_discord_url: SecretStr | None = Field(None, description="webhook of a Discord channel")
    notify_teams_url: SecretStr | None = Field(None, description="webhook of a Microsoft Teams workflow")
    notify_email_url: SecretStr | None = Field(
        None,
        description="mail server, sender and recipients: smtps://user:password@host/?from=a@example.org&to=b@example.org; "
        "smtp:// uses STARTTLS",
    )
    notify_webhook_url: SecretStr | None = Field(
        None, description="web address that gets each notification as signed JSON"
    )
    notify_wait_seconds: Annotated[float, Field(ge=0, le=3_600)] = Field(
        10.0, description="how long verdict changes are collected before a notification"
    )
    notify_per_minute: Annotated[int, Field(ge=1, le=1_000)] = Field(
        3, description="notifications that a target gets in a minute at most; beyond it, one digest"
    )
    notify_held_seconds: Annotated[float, Field(ge=0, le=2_592_000)] = Field(
        900.0, description="how long verdicts are held while results arrive, before a notification; 0: no notification"
    )
    notify_stalled_seconds: Annotated[float, Field(ge=0, le=2_592_000)] = Field(
        1_800.0,
        description="how long an incomplete benchmark gets no result, before a notification; 0: no notification",
    )
    outbox_changes: Annotated[int, Field(ge=1_000, le=100_000_000)] = Field(
        250_000,
        description="verdict changes of a partition that may wait in Redis for a publisher that does not accept them, about 75 bytes each; "
        "beyond it that partition is not folded, because none may be dropped",
    )
    private_addresses: str | None = Field(
        None,
        description="private addresses that webhooks and notifications may reach: host names, addresses or networks, separated by commas; "
        "* allows all",
    )
    public_url: str | None = Field(None, description="address of the page, for links in notifications")
    runbooks_url: str = Field(
        "https://github.com/rankwatch/rankwatch/blob/main/docs/how-to/runbooks.md",
        description="address of the runbooks, for links in notifications",
    )
    suites: Annotated[Suites, BeforeValidator(_split_suites)] = Field(
        {},
        description='benchmarks that `watch` and `serve` report together as one; in the file a table: overall = ["gsm8k", "arc:2~0.25"]',
    )
    prices: Annotated[dict[str, float], BeforeValidator(_read_prices)] = Field(
        {},
        description="price of an item by model: a goal has what was run and saved in money; in the file a table: gpt = 0.004; "
        'the price of all others is that of ""',
    )
    suite_missing: Literal["unranked", "worst"] = Field(
        "unranked",
        description="a model without a score in some member of a suite: unranked (listed), or worst (ranked, by 0 in that member)",
    )
    distinct_items: bool = Field(
        False,
        description="suites: items of the same id in two members are different items; else a suite with such items is held",
    )
    metrics_series: Annotated[int, Field(ge=0, le=10_000_000)] = Field(
        80_000,
        description="series of the metrics about boards, at most: aggregates of every board, then models and pairs while they fit",
    )
    metrics_first: str = Field(
        "",
        description="benchmarks whose models and pairs come first in the metrics: names separated by commas, * for any characters",
    )
    accept_gap: bool = Field(
        False,
        description="whether a worker continues where records were deleted before they were folded; benchmarks that may lack some are then "
        "reported as partial, permanently",
    )
    linger_seconds: Annotated[float, Field(ge=0, le=3_600)] = Field(
        20.0, description="how long a worker that refuses its log stays up, so that an alert can fire on its metrics"
    )
    stall_seconds: Annotated[float, Field(ge=1, le=86_400)] = Field(
        60.0, description="how long a lagging worker may make no progress before it ends"
    )
    max_stale_seconds: Annotated[float, Field(ge=0.1, le=86_400)] = Field(
        60.0, description="age of the state at which `serve` refuses to show it"
    )
    drain_seconds: Annotated[float, Field(ge=1, le=3_600)] = Field(
        20.0, description="how long an orderly stop may take"
    )
    start_seconds: Annotated[float, Field(ge=0.1, le=3_600)] = Field(
        30.0, description="how long to retry a store or broker that does not answer"
    )

    @model_validator(mode="after")
    def _token_beyond_loopback(self) -> "Settings":
        if self.host not in LOOPBACK and not (
            self.token or self.access_file or self.anonymous_read or self.trusted_proxies
        ):
            raise ValueError(
                f"host {self.host} accepts requests from other machines; set a token (RANKWATCH_TOKEN) or a file of tokens "
                "(RANKWATCH_ACCESS_FILE), or serve on 127.0.0.1"
            )
        return self

    @model_validator(mode="after")
    def _no_cache_of_users(self) -> "Settings":
        if self.cache_seconds and self.trusted_proxies:
            raise ValueError(
                "cache_seconds and trusted_proxies exclude each other: a cache in front cannot distinguish the users of a proxy, and would "
                "show them what anyone may read; leave one of them out"
            )
        return self


def allowed_values(name: str) -> str:
    """Return the values that a setting takes, as in "a whole number from 0 to 65535"."""
    field = Settings.model_fields[name]
    kind: Any = field.annotation
    if NoneType in get_args(kind):
        kind = get_args(kind)[0]
    if get_origin(kind) is dict:
        form, table = (PRICE_FORM, "prices") if name == "prices" else (SUITE_FORM, "lists")
        return f"{form}, several separated by semicolons, or a table of {table}"
    if get_origin(kind) is Literal:
        *others, last = get_args(kind)
        return f"{', '.join(others)} or {last}"
    keys = ("pattern", "min_length", "ge", "gt", "le")
    limits = {key: getattr(each, key) for each in field.metadata for key in keys if hasattr(each, key)}
    if "pattern" in limits:
        return _NAME
    rules = {
        ("min_length",): "that is not empty",
        ("ge", "le"): "from {ge} to {le}",
        ("gt", "le"): "above {gt}, up to {le}",
    }
    shown = {key: _number(limit) for key, limit in limits.items()}
    return f"{_TYPES[kind]} {rules.get(tuple(limits), '')}".format(**shown).strip()


def _number(value: float) -> str:
    return f"{value:g}" if value < 1e6 else f"{value:,.0f}"


def unknown_variables(environ: Mapping[str, str]) -> list[str]:
    """Return the variables that look like settings of this program but are none."""
    known = {PREFIX + name.upper() for name in Settings.model_fields} | _OTHER_VARIABLES
    return sorted(
        name
        for name, value in environ.items()
        if value and name.upper().startswith(PREFIX) and name.upper() not in known and not _is_link(name, value)
    )


def nearest_setting(name: str) -> str | None:
    """Return the setting that a name is a misspelling of, if one is near."""
    return next(iter(get_close_matches(name.lower(), Settings.model_fields, 1)), None)


def _is_link(name: str, value: str) -> bool:
    """Return whether Kubernetes has set a variable for a service whose name begins with rankwatch."""
    return bool(_LINK.search(name)) or bool(_LINK_ADDRESS.match(value))


def _read_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the values of variables, whose names may be in either case; an empty one counts as unset."""
    names = ((variable.upper().removeprefix(PREFIX).lower(), variable) for variable in environ)
    return {
        name: environ[variable]
        for name, variable in names
        if name in Settings.model_fields and variable.upper().startswith(PREFIX) and environ[variable]
    }


def _read_file() -> dict[str, Any]:
    path = os.environ.get("RANKWATCH_CONFIG")
    if not path:
        return {}
    import tomllib  # noqa: PLC0415 - loading it takes 10 ms, and few commands have such a file

    if not Path(path).is_file():
        raise ConfigFileError(f"RANKWATCH_CONFIG names {path!r}, which is not a file; correct the path, or unset it")
    try:
        return tomllib.loads(Path(path).read_bytes().decode("utf-8"))
    except (OSError, ValueError) as error:
        raise ConfigFileError(
            f"RANKWATCH_CONFIG names {path!r}, which cannot be read as TOML; correct the file"
        ) from error
