"""Settings: ``calve.toml``, overridden by the environment. The only module that reads the environment.

A variable's name is the key's path, joined by two underscores: ``CALVE_STORE__URL`` is ``[store] url``. In
the free-form tables (a catalog's properties, ``[spark.conf]``) two underscores stand for a dot and one for a
hyphen, as PyIceberg has it: ``CALVE_CATALOGS__LAKE__S3__ACCESS_KEY_ID`` is ``s3.access-key-id``. An empty
variable counts as unset.
"""

import json
import os
import re
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from difflib import get_close_matches
from ipaddress import ip_network
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, field_validator, model_validator

from calve.errors import SettingsInvalid

FILE = "calve.toml"
PREFIX = "CALVE_"
_FOREIGN = (  # read by others: the client, the tests, the programs of steps
    "CALVE_URL",
    "CALVE_TOKEN",
    "CALVE_TEST_",
    "CALVE_OUTPUT",
    "CALVE_WORKFLOW_ID",
    "CALVE_INSTANCE_ID",
    "CALVE_RUN_ID",
    "CALVE_STEP_ID",
    "CALVE_ATTEMPT_",
)
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_HOST = re.compile(r"\*|(?:\*\.)?[\w-]+(?:\.[\w-]+)*\.?")
_KINDS = {"http": "rest", "thrift": "hive", "sqlite": "sql", "postgresql": "sql"}

Key = tuple[str, ...]


def parse_duration(text: str) -> timedelta:
    """Read ``7d``, ``12h``, ``30m``, ``90s`` or ``2w``.

    Raises:
        ValueError: it is none of these.
    """
    match = re.fullmatch(r"\s*(\d+)\s*([smhdw])\s*", text)
    if match is None:
        raise ValueError(f"{text!r} is not a duration like 90s, 30m, 12h, 7d or 2w")
    return timedelta(**{_UNITS[match[2]]: int(match[1])})


def _duration(value: object) -> object:
    duration = parse_duration(value) if isinstance(value, str) else value
    if duration == timedelta():
        raise ValueError("must be longer than nothing")
    return duration


def _strings(table: object, prefix: str = "") -> dict[str, str]:
    """Flatten a free-form table: TOML reads ``s3.region = "x"`` as a table in a table."""
    if not isinstance(table, Mapping):
        raise ValueError("is not a table of keys and values")  # noqa: TRY004 - pydantic reports only ValueError
    flat: dict[str, str] = {}
    for key, value in table.items():
        if isinstance(value, Mapping):
            flat |= _strings(value, f"{prefix}{key}.")
        elif isinstance(value, bool):
            flat[prefix + key] = str(value).lower()
        elif isinstance(value, str | int | float):
            flat[prefix + key] = str(value)
        else:
            raise ValueError(f"{prefix}{key} is neither text, a number nor true or false")  # noqa: TRY004 - as above
    return flat


def _is_range(text: str) -> bool:
    try:
        ip_network(text, strict=False)
    except ValueError:
        return False
    return True


def _words(value: object) -> object:
    """Split what the environment gives for a list."""
    return tuple(value.replace(",", " ").split()) if isinstance(value, str) else value


Strings = Annotated[dict[str, str], BeforeValidator(_strings)]
Words = Annotated[tuple[str, ...], BeforeValidator(_words)]
Duration = Annotated[timedelta, BeforeValidator(_duration)]


class _Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class StoreSettings(_Section):
    """The database that holds checkpoints."""

    url: str
    """An SQLAlchemy address: ``sqlite:///…`` or ``postgresql+psycopg://…``."""


class CatalogSettings(_Section):
    """One Iceberg catalog, in PyIceberg's property names."""

    properties: Strings
    spark: Strings = {}
    """Properties that only Spark gets; they win over the derived ones."""

    @model_validator(mode="before")
    @classmethod
    def _split(cls, table: Any) -> Any:
        if not isinstance(table, Mapping):
            raise ValueError("is not a table of keys and values")  # noqa: TRY004 - pydantic reports only ValueError
        spark = table.get("spark", {})
        return {"properties": {key: table[key] for key in table if key != "spark"}, "spark": spark}

    @property
    def kind(self) -> str:
        """The type of the catalog: as given, or as its address tells; empty where neither says."""
        uri = self.properties.get("uri", "")
        inferred = next((kind for start, kind in _KINDS.items() if uri.startswith(start)), "")
        return self.properties.get("type", inferred).lower()


class SparkSettings(_Section):
    """How Spark is started or reached."""

    master: str = "local[*]"
    remote: str | None = None
    """``sc://…`` of a running Spark Connect server; nothing is started then."""
    driver_memory: str = "2g"
    conf: Strings = {}
    packages: Words = ()
    """More Maven coordinates for Spark."""
    jars_cache: Path
    java_home: Path | None = None


class CaptureSettings(_Section):
    """What captures leave in the lake."""

    namespace: str = "icdc"
    location: str | None = None
    """The folder for their tables; by default the catalog's warehouse."""
    lease_max_age: Duration = timedelta(days=7)
    """How long a forgotten capture keeps its source's files from being expired."""


class HttpSettings(_Section):
    """What Http steps may do."""

    allow: Words = ()
    """The hosts that they may ask: names, ``*.`` with a domain, addresses and ranges; none, if it is empty."""

    @field_validator("allow")
    @classmethod
    def _are_hosts(cls, entries: tuple[str, ...]) -> tuple[str, ...]:
        for entry in entries:
            if not _HOST.fullmatch(entry) and not _is_range(entry):
                raise ValueError(f"{entry!r} is neither the name of a host, *. with a domain, nor a range of addresses")
        return entries


class DockerSettings(_Section):
    """Where Docker steps run."""

    host: str = "unix:///var/run/docker.sock"
    """The daemon: ``unix:///PATH``, ``tcp://HOST:PORT`` or ``https://HOST:PORT``."""


class KubernetesSettings(_Section):
    """Where Kubernetes steps run."""

    config: Path | None = None
    """The kubeconfig; by default ``KUBECONFIG``, ``~/.kube/config``, or the cluster that calve runs in."""
    context: str | None = None
    """The context of the kubeconfig; by default its current one."""
    namespace: str = "default"


class WorkerSettings(_Section):
    """How workers behave."""

    slots: Annotated[int, Field(ge=1, le=1_000)] = 8
    """How many steps a worker carries out at once."""
    lease: Duration = timedelta(seconds=10)
    """After how long a silent worker counts as dead, and others take over."""
    drain: Duration = timedelta(seconds=30)
    """How long steps may go on after a worker was told to end."""
    keep_files: Duration = timedelta(days=7)
    """How long the folder of an attempt is kept."""


class ServerSettings(_Section):
    """Where the server listens."""

    host: str = "127.0.0.1"
    """The address; one that others can reach needs what ``[access]`` says."""
    port: Annotated[int, Field(ge=0, le=65_535)] = 8765
    """0 takes a free one."""
    processes: Annotated[int, Field(ge=1, le=64)] = 1
    """How many processes ``calve server`` answers with."""
    max_body: Annotated[int, Field(ge=1_024)] = 1_048_576
    """How many bytes a request may bring."""
    min_free: Annotated[int, Field(ge=0)] = 67_108_864
    """Below how many free bytes in ``home`` the server says that it is degraded."""


class TriggerSettings(_Section):
    """How workflows are started by themselves."""

    catch_up_limit: Annotated[int, Field(ge=1, le=100_000)] = 1_000
    """How many missed firings of a time trigger are made up for at most: the latest ones."""
    table_interval: Duration = timedelta(seconds=15)
    """How often catalogs are asked whether watched tables have changed."""


class EmailChannel(_Section):
    """Alerts by e-mail."""

    type: Literal["email"]
    host: str
    port: Annotated[int, Field(ge=1, le=65_535)] = 587
    security: Literal["starttls", "tls", "none"] = "starttls"
    user: str | None = None
    password_secret: str | None = None
    """The name of the secret that holds the password."""
    sender: str
    to: Words = ()
    """Who gets what the rules send here; definitions name their own addresses."""


class SlackChannel(_Section):
    """Alerts to a webhook that takes Slack's messages."""

    type: Literal["slack"]
    url_secret: str
    """The name of the secret that holds the webhook's address, which is a key in itself."""


class WebhookChannel(_Section):
    """Alerts as JSON to an address of your own."""

    type: Literal["webhook"]
    url: str | None = None
    url_secret: str | None = None
    """The name of the secret that holds the address, if it is one."""
    key_secret: str | None = None
    """The name of the secret that messages are signed with."""

    @model_validator(mode="after")
    def _has_one_address(self) -> Self:
        if (self.url is None) == (self.url_secret is None):
            raise ValueError("a webhook has either url or url_secret")
        return self


Channel = Annotated[EmailChannel | SlackChannel | WebhookChannel, Field(discriminator="type")]


class AlertRule(_Section):
    """What is told, of which workflows, and where."""

    on: Annotated[tuple[Literal["failure", "success", "long_running", "late"], ...], BeforeValidator(_words)]
    channels: Annotated[Words, Field(min_length=1)]
    workflows: Words = ("*",)
    """Patterns of their ids, such as ``sales.*``."""
    after: Duration | None = None
    """long_running: how long a run may take; late: how long after its scheduled time it has to be over."""

    @model_validator(mode="after")
    def _knows_how_long(self) -> Self:
        if self.after is None and {"long_running", "late"} & set(self.on):
            raise ValueError("long_running and late need `after`, such as 2h")
        return self


def _json_text(value: object) -> object:
    return json.loads(value) if isinstance(value, str) else value


class AlertSettings(_Section):
    """Who is told when something happens."""

    channels: dict[str, Channel] = {}
    rules: Annotated[tuple[AlertRule, ...], BeforeValidator(_json_text)] = ()
    tries: Annotated[int, Field(ge=1, le=100)] = 10
    """How often a message is sent at most until it is given up."""

    @model_validator(mode="after")
    def _channels_exist(self) -> Self:
        for rule in self.rules:
            for name in rule.channels:
                if name not in self.channels:
                    raise ValueError(f"a rule names the channel {name!r}, but the channels are: {list(self.channels)}")
        return self


class LogSettings(_Section):
    """What processes write to standard error."""

    format: Literal["text", "json"] = "text"
    level: Literal["debug", "info", "warning", "error"] = "warning"


class TelemetrySettings(_Section):
    """Where traces go."""

    otlp_url: str | None = None
    """The address that takes spans by OTLP over HTTP, such as ``http://localhost:4318/v1/traces``; none: no spans."""
    service: str = "calve"


class LineageSettings(_Section):
    """Where OpenLineage events go; nowhere, if neither address nor file is given."""

    url: str | None = None
    """The address of a receiver, such as ``http://marquez:5000``."""
    endpoint: str = "api/v1/lineage"
    file: Path | None = None
    """A file that gets one event a line."""
    key_secret: str | None = None
    """The name of the secret that the receiver wants as a bearer token."""
    namespace: str = "calve"
    """The namespace of jobs."""


class OidcSettings(_Section):
    """Where people sign in, if not here: a provider of OpenID Connect."""

    issuer: str | None = None
    """Its address, as it names itself."""
    client_id: str = "calve"
    client_secret: str | None = None
    """The name of the secret that the provider gave to calve, if it did."""
    redirect_url: str | None = None
    """Where the provider sends people back to: ``https://HOST/api/v3/access/oidc/callback``."""
    scopes: Words = ("openid", "profile", "email", "groups")
    name_claim: str = "preferred_username"
    """What the name is taken from that people see."""
    groups_claim: str = "groups"
    roles: Annotated[dict[str, str], BeforeValidator(_json_text)] = {}
    """What each group may do: ``runner``, or ``editor@sales`` for one namespace."""


class AccessSettings(_Section):
    """Who may use the server, and under which names."""

    required: bool = False
    """Whether somebody at this machine has to sign in too; others have to in any case."""
    hosts: Words = ()
    """The names under which the server is reached; besides those of this machine, if it listens there only."""
    trusted_proxies: Words = ()
    """The addresses of proxies that say from where a request has come."""
    user_header: str | None = None
    """The header in which those proxies say who it is; without it, they cannot."""
    plain_http: bool = False
    """Whether others may come without TLS."""
    session: Duration = timedelta(hours=12)
    """How long somebody stays signed in."""
    requests_per_second: Annotated[int, Field(ge=1)] = 1_000
    """How often one address may ask."""
    oidc: OidcSettings = OidcSettings()

    @field_validator("trusted_proxies")
    @classmethod
    def _are_ranges(cls, entries: tuple[str, ...]) -> tuple[str, ...]:
        for entry in entries:
            if not _is_range(entry):
                raise ValueError(f"{entry!r} is neither an address nor a range of addresses")
        return entries


class SecretStoreSettings(_Section):
    """Where the texts of secrets are looked for."""

    backends: Annotated[tuple[Literal["env", "file", "table"], ...], BeforeValidator(_words)] = ("env", "table")
    """In this order: the settings and the environment, a folder of files, the encrypted table."""
    folder: Path | None = None
    """The folder that holds a file for each secret."""
    key_file: Path
    """The file that holds the key of the encrypted table."""
    key: str | None = Field(default=None, exclude=True, repr=False)
    """The key itself, instead of the file; given by the environment."""


class ClientSettings(_Section):
    """The server that commands ask, instead of this project's own state."""

    url: str | None = None
    """Its address; ``CALVE_URL`` wins over it."""
    token: str | None = Field(default=None, exclude=True, repr=False)
    """An API token of it; rather given by ``CALVE_TOKEN``."""


class Settings(_Section):
    """Everything that can be set."""

    project: Path = Field(exclude=True)
    """The folder that holds ``calve.toml``."""
    home: Path
    """The folder for state; also that of the embedded lake."""
    store: StoreSettings
    catalogs: Annotated[dict[str, CatalogSettings], Field(min_length=1)]
    default_catalog: str
    default_namespace: Annotated[str, Field(min_length=1)] = "default"
    """The namespace of names that give none, here and in Spark."""
    spark: SparkSettings
    capture: CaptureSettings = CaptureSettings()
    connections: dict[str, str] = {}
    """The databases of SQL steps: SQLAlchemy addresses by name."""
    http: HttpSettings = HttpSettings()
    docker: DockerSettings = DockerSettings()
    kubernetes: KubernetesSettings = KubernetesSettings()
    worker: WorkerSettings = WorkerSettings()
    server: ServerSettings = ServerSettings()
    client: ClientSettings = ClientSettings()
    triggers: TriggerSettings = TriggerSettings()
    alerts: AlertSettings = AlertSettings()
    log: LogSettings = LogSettings()
    telemetry: TelemetrySettings = TelemetrySettings()
    lineage: LineageSettings = LineageSettings()
    access: AccessSettings = AccessSettings()
    secret_store: SecretStoreSettings
    secrets: dict[str, str] = Field(default={}, exclude=True, repr=False)
    """The texts of SECRET params by name; given by the environment rather than by a file."""
    failpoints: str | None = None
    debug: bool = False

    @model_validator(mode="after")
    def _default_catalog_exists(self) -> Self:
        if self.default_catalog not in self.catalogs:
            known = ", ".join(self.catalogs)
            raise ValueError(f"default_catalog names {self.default_catalog!r}, but the catalogs are: {known}")
        return self


def load(folder: Path | None = None, environ: Mapping[str, str] | None = None) -> Settings:
    """Return the settings of the project that ``folder`` (the current one by default) lies in.

    Raises:
        SettingsInvalid: a key or a variable is unknown, or its value makes no sense.
    """
    environ = os.environ if environ is None else environ  # noqa: TID251 - the one place
    folder = (folder or Path.cwd()).absolute()
    if not folder.is_dir():
        raise SettingsInvalid(f"{folder} is not a folder.")
    file = next((at / FILE for at in (folder, *folder.parents) if (at / FILE).is_file()), None)
    project = file.parent if file else folder
    raw = _read(file) if file else {}
    origins = _override(raw, environ)
    try:
        return Settings.model_validate({**_with_defaults(raw, project, environ), "project": project})
    except ValidationError as error:
        raise _explained(error, origins, file) from error


def embedded(home: Path, like: Settings) -> Settings:
    """Return settings for a lake of its own in ``home``, on a local Spark, with Java and jars found as in ``like``."""
    fetching = {name: value for name, value in like.spark.conf.items() if name.startswith("spark.jars.")}
    spark = SparkSettings(
        conf=fetching,
        driver_memory=like.spark.driver_memory,
        jars_cache=like.spark.jars_cache,
        java_home=like.spark.java_home,
    )
    raw = _with_defaults({"home": str(home)}, home, {})
    return Settings.model_validate({**raw, "spark": spark, "project": home})


@contextmanager
def exported(**variables: str) -> Iterator[None]:
    """Set variables for programs started meanwhile, such as Spark's JVM."""
    before = {name: os.environ.get(name) for name in variables}  # noqa: TID251 - the one place
    os.environ.update(variables)  # noqa: TID251 - the one place
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]  # noqa: TID251 - the one place
            else:
                os.environ[name] = value  # noqa: TID251 - the one place


def _read(file: Path) -> dict[str, Any]:
    try:
        raw = tomllib.loads(file.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SettingsInvalid(f"{file} is not valid TOML: {error}", file=str(file)) from error
    if "project" in raw:  # a field of Settings, but the folder says it
        raise _unknown(("project",), str(file), "project", Settings)
    return raw


def _override(raw: dict[str, Any], environ: Mapping[str, str]) -> dict[Key, str]:
    """Put the environment's values into ``raw``; return which variable each one came from."""
    origins: dict[Key, str] = {}
    for variable, value in sorted(environ.items()):
        if not variable.startswith(PREFIX) or variable.startswith(_FOREIGN) or not value:
            continue
        path = _path_of(variable, raw)
        table = raw
        for key in path[:-1]:
            table = table.setdefault(key, {})
            if not isinstance(table, dict):
                raise SettingsInvalid(f"{variable}: {key} is a value, not a table, in {FILE}.", variable=variable)
        table[path[-1]] = value
        origins[path] = variable
    return origins


def _path_of(variable: str, raw: Mapping[str, Any]) -> Key:
    """Return the key that a variable overrides."""
    section, *rest = variable.removeprefix(PREFIX).lower().split("__")
    match section, rest:
        case "catalogs", [name, "spark", *key] if key:
            above: Key = ("catalogs", _same(name, raw, "catalogs"), "spark")
        case "catalogs", [name, *key] if key:
            above = ("catalogs", _same(name, raw, "catalogs"))
        case "spark", ["conf", *key] if key:
            above = ("spark", "conf")
        case "alerts", ["channels", name, key]:
            return ("alerts", "channels", _same(name, raw, "alerts", "channels", made=name), key)
        case (("connections" | "secrets"), [name]):
            return (section, _same(name, raw, section, made=name))
        case _:
            above, key = (), []
    if above:
        return (*above, _same(".".join(key), raw, *above))
    path = (section, *rest)
    if path not in set(_keys(Settings)):
        raise _unknown(path, variable, variable, Settings)
    return path


def _same(key: str, raw: Mapping[str, Any], *above: str, made: str | None = None) -> str:
    """Return the key of the table ``above`` that a variable means, or the one it makes: ``made``, else hyphened."""
    table: Any = raw
    for step in above:
        table = table.get(step, {}) if isinstance(table, Mapping) else {}
    plain = key.replace("-", "_")
    names = table if isinstance(table, Mapping) else ()
    found = (name for name in names if name.lower().replace("-", "_") == plain)
    return next(found, key.replace("_", "-") if made is None else made)


def _with_defaults(raw: dict[str, Any], project: Path, environ: Mapping[str, str]) -> dict[str, Any]:
    """Fill in what depends on where we are, and make every path absolute."""
    home = project / str(raw.get("home", ".calve"))
    embedded = {
        "type": "sql",
        "uri": f"sqlite:///{home}/lake/catalog.db",
        "warehouse": f"{home}/lake/warehouse",
    }
    catalogs = _table(raw, "catalogs") or {"lake": embedded}
    store = {"url": f"sqlite:///{home}/state.db"} | _table(raw, "store")
    caches = Path(environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    found = {"jars_cache": caches / "calve" / "jars", "java_home": environ.get("JAVA_HOME") or None}
    spark = found | _table(raw, "spark")
    spark["jars_cache"] = project / str(spark["jars_cache"])
    capture = _table(raw, "capture")
    if isinstance(capture.get("location"), str):
        capture["location"] = _absolute(capture["location"], project)
    connections = {name: _absolute_sqlite(url, project) for name, url in _table(raw, "connections").items()}
    docker = {"host": environ["DOCKER_HOST"]} if environ.get("DOCKER_HOST") else {}
    kubernetes = _table(raw, "kubernetes")
    if isinstance(kubernetes.get("config"), str):
        kubernetes["config"] = project / Path(kubernetes["config"]).expanduser()
    lineage = _table(raw, "lineage")
    if isinstance(lineage.get("file"), str):
        lineage["file"] = project / lineage["file"]
    secret_store = {"key_file": home / "secret.key"} | _table(raw, "secret_store")
    for key in ("key_file", "folder"):
        if isinstance(secret_store.get(key), str):
            secret_store[key] = project / Path(secret_store[key]).expanduser()
    default = "lake" if "lake" in catalogs else next(iter(catalogs))
    return raw | {
        "home": home,
        "store": store | {"url": _absolute_sqlite(store["url"], project)},
        "catalogs": {name: _catalog_paths(table, project) for name, table in catalogs.items()},
        "default_catalog": raw.get("default_catalog") or default,
        "spark": spark,
        "capture": capture,
        "connections": connections,
        "http": _table(raw, "http"),
        "docker": docker | _table(raw, "docker"),
        "kubernetes": kubernetes,
        "secret_store": secret_store,
        "lineage": lineage,
        "client": _table(raw, "client") | _named_server(environ),
    }


def _named_server(environ: Mapping[str, str]) -> dict[str, str]:
    """Return what the two variables say that have short names because people type them."""
    names = {"url": "CALVE_URL", "token": "CALVE_TOKEN"}
    return {key: environ[name] for key, name in names.items() if environ.get(name)}


def _table(raw: Mapping[str, Any], section: str) -> dict[str, Any]:
    table = raw.get(section, {})
    if not isinstance(table, dict):
        raise SettingsInvalid(f"{section} is a table: write [{section}].", key=section)
    return table


def _catalog_paths(table: Any, project: Path) -> Any:
    """Make the paths of a catalog absolute; a REST catalog's warehouse is a name."""
    if not isinstance(table, dict) or not isinstance(table.get("uri"), str):
        return table
    table = table | {"uri": _absolute_sqlite(table["uri"], project)}
    if isinstance(table.get("warehouse"), str) and table["uri"].startswith(("sqlite", "postgresql")):
        table["warehouse"] = _absolute(table["warehouse"], project)
    return table


def _absolute(location: str, project: Path) -> str:
    return location if _SCHEME.match(location) else str(project / location)


def _absolute_sqlite(url: Any, project: Path) -> Any:
    match = re.fullmatch(r"(sqlite(?:\+\w+)?):///(?!/)([^?:]+)(\?.*)?", url) if isinstance(url, str) else None
    return f"{match[1]}:///{project / match[2]}{match[3] or ''}" if match else url


def _keys(model: type[BaseModel], prefix: Key = ()) -> Iterator[Key]:
    """Yield the path of every key that has a fixed name."""
    for name, field in model.model_fields.items():
        if name == "project":
            continue
        kind = field.annotation
        if isinstance(kind, type) and issubclass(kind, _Section):
            yield from _keys(kind, (*prefix, name))
        else:
            yield (*prefix, name)


def _unknown(path: Key, origin: str, written: str, model: type[BaseModel]) -> SettingsInvalid:
    """Say that a key is unknown, and which one may have been meant."""
    is_variable = written.startswith(PREFIX)
    known = {
        PREFIX + "__".join(key).upper() if is_variable else ".".join(key): key
        for key in (*_keys(model), ("catalogs", "NAME", "KEY"), ("connections", "NAME"))
    }
    near = get_close_matches(written, known, n=1, cutoff=0.5)
    where = "environment" if is_variable else origin
    return SettingsInvalid(
        f"{written} is not a setting ({where}).",
        remedy=f"Did you mean {near[0]}?" if near else f"Known are: {', '.join(known)}.",
        key=".".join(path),
        origin=origin,
    )


def _explained(error: ValidationError, origins: Mapping[Key, str], file: Path | None) -> SettingsInvalid:
    """Name the key, where it stands, and what is wrong with it."""
    first = error.errors()[0]
    path = tuple(str(part) for part in first["loc"])
    origin = origins.get(path) or str(file or "the defaults")
    if first["type"] == "extra_forbidden":
        return _unknown(path, origin, ".".join(path), Settings)
    key = ".".join(path)
    problem = first["msg"].removeprefix("Value error, ")
    return SettingsInvalid(f"{key + ': ' if key else ''}{problem} ({origin}).", key=key, origin=origin)
