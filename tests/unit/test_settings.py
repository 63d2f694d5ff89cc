"""Settings come from calve.toml and the environment, and nothing unknown passes."""

import os
import subprocess
import sys
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest

from calve import settings
from calve.errors import SettingsInvalid
from calve.settings import Settings

Load = Callable[..., Settings]


@pytest.fixture
def load(tmp_path: Path) -> Load:
    """Return a way to load settings from text and variables."""

    def load(toml: str = "", **environ: str) -> Settings:
        (tmp_path / "calve.toml").write_text(toml)
        return settings.load(tmp_path, environ)

    return load


def test_defaults_need_no_file(tmp_path: Path) -> None:
    """An empty folder has an embedded lake and store under .calve."""
    found = settings.load(tmp_path, {"XDG_CACHE_HOME": "/caches"})
    home = tmp_path / ".calve"
    assert found.project == tmp_path
    assert found.home == home
    assert found.store.url == f"sqlite:///{home}/state.db"
    assert found.catalogs["lake"].properties == {
        "type": "sql",
        "uri": f"sqlite:///{home}/lake/catalog.db",
        "warehouse": f"{home}/lake/warehouse",
    }
    assert found.default_catalog == "lake"
    assert found.spark.master == "local[*]"
    assert found.spark.jars_cache == Path("/caches/calve/jars")
    assert found.spark.java_home is None
    assert (found.capture.namespace, found.capture.location) == ("icdc", None)
    assert found.capture.lease_max_age == timedelta(days=7)


def test_the_file_is_found_upward(tmp_path: Path) -> None:
    """The folder that holds calve.toml is the project, from whichever folder below."""
    (tmp_path / "calve.toml").write_text('home = "state"')
    below = tmp_path / "a" / "b"
    below.mkdir(parents=True)
    found = settings.load(below, {})
    assert (found.project, found.home) == (tmp_path, tmp_path / "state")


def test_paths_are_made_absolute(load: Load, tmp_path: Path) -> None:
    """Relative paths count from the project, not from where calve is run; names and addresses stay."""
    found = load(
        """
        home = "/elsewhere"
        [store]
        url = "sqlite:///state.db"
        [catalogs.local]
        uri = "sqlite:///cat.db?timeout=5"
        warehouse = "wh"
        [catalogs.rest]
        uri = "https://example.test"
        warehouse = "production"
        [catalogs.cloud]
        uri = "postgresql+psycopg://u:p@h/d"
        warehouse = "s3://bucket/wh"
        [capture]
        location = "changes"
        """
    )
    assert found.home == Path("/elsewhere")
    assert found.store.url == f"sqlite:///{tmp_path}/state.db"
    assert found.catalogs["local"].properties["uri"] == f"sqlite:///{tmp_path}/cat.db?timeout=5"
    assert found.catalogs["local"].properties["warehouse"] == f"{tmp_path}/wh"
    assert found.catalogs["rest"].properties["warehouse"] == "production"
    assert found.catalogs["cloud"].properties["warehouse"] == "s3://bucket/wh"
    assert found.capture.location == f"{tmp_path}/changes"
    assert found.default_catalog == "local"
    assert [catalog.kind for catalog in found.catalogs.values()] == ["sql", "rest", "sql"]


def test_free_tables_are_flattened_to_text(load: Load) -> None:
    """Dotted keys, numbers and booleans become properties as PyIceberg and Spark want them."""
    found = load(
        """
        [catalogs.lake]
        uri = "sqlite:////c.db"
        s3.region = "eu-west-1"
        echo = false
        [catalogs.lake.spark]
        cache-enabled = true
        [spark.conf]
        spark.sql.shuffle.partitions = 8
        "spark.x" = "y"
        """
    )
    lake = found.catalogs["lake"]
    assert lake.properties == {"uri": "sqlite:////c.db", "s3.region": "eu-west-1", "echo": "false"}
    assert lake.spark == {"cache-enabled": "true"}
    assert found.spark.conf == {"spark.sql.shuffle.partitions": "8", "spark.x": "y"}


def test_the_environment_wins(load: Load, tmp_path: Path) -> None:
    """Every key has a variable; an empty one counts as unset."""
    found = load(
        '[store]\nurl = "sqlite:////a.db"\n[catalogs.my-lake]\nuri = "sqlite:////b.db"\nsome_key = "old"\n',
        CALVE_STORE__URL="sqlite:////b.db",
        CALVE_HOME="there",
        CALVE_DEFAULT_CATALOG="my-lake",
        CALVE_FAILPOINTS="x:1:error",
        CALVE_DEBUG="1",
        CALVE_SPARK__MASTER="",
        CALVE_SPARK__REMOTE="sc://h:15002",
        CALVE_SPARK__PACKAGES="a:b:1, c:d:2",
        CALVE_SPARK__CONF__SPARK__SQL__ANSI__ENABLED="false",
        CALVE_CAPTURE__LEASE_MAX_AGE="12h",
        CALVE_CATALOGS__MY_LAKE__SOME_KEY="new",
        CALVE_CATALOGS__MY_LAKE__S3__ACCESS_KEY_ID="id",
        CALVE_CATALOGS__MY_LAKE__SPARK__CACHE_ENABLED="true",
        CALVE_CATALOGS__SECOND__URI="https://example.test",
        JAVA_HOME="/java",
        CALVE_TEST_ANYTHING="not ours",
    )
    assert found.store.url == "sqlite:////b.db"
    assert found.home == tmp_path / "there"
    assert (found.default_catalog, found.failpoints, found.debug) == ("my-lake", "x:1:error", True)
    assert (found.spark.master, found.spark.remote) == ("local[*]", "sc://h:15002")
    assert found.spark.packages == ("a:b:1", "c:d:2")
    assert found.spark.conf == {"spark.sql.ansi.enabled": "false"}
    assert found.spark.java_home == Path("/java")
    assert found.capture.lease_max_age == timedelta(hours=12)
    assert found.catalogs["my-lake"].properties == {
        "uri": "sqlite:////b.db",
        "some_key": "new",
        "s3.access-key-id": "id",
    }
    assert found.catalogs["my-lake"].spark == {"cache-enabled": "true"}
    assert found.catalogs["second"].kind == "rest"


def test_a_variable_sets_a_property_of_the_object_store_of_logs(load: Load) -> None:
    """As one of a catalog, by the name that PyIceberg gives it."""
    found = load("[logs]\nproperties = {'s3.region' = 'a'}", CALVE_LOGS__PROPERTIES__S3__ACCESS_KEY_ID="id")
    assert found.logs.properties == {"s3.region": "a", "s3.access-key-id": "id"}


def test_the_server_of_the_client_is_set(load: Load) -> None:
    """By a file, or by the two variables with short names; the token is never shown."""
    assert load().client.url is None
    assert load('[client]\nurl = "http://a"').client.url == "http://a"
    found = load('[client]\nurl = "http://a"\ntoken = "x"', CALVE_URL="http://b", CALVE_TOKEN="calve_secret")
    assert (found.client.url, found.client.token) == ("http://b", "calve_secret")
    assert "calve_secret" not in repr(found) + found.model_dump_json()
    assert load("", CALVE_CLIENT__URL="http://c").client.url == "http://c"


@pytest.mark.parametrize(
    ("toml", "served", "public"),
    [
        ("", "http://127.0.0.1:8765", "http://127.0.0.1:8765"),
        ("", "", ""),
        ('server.url = "https://calve.example.com/"', "http://127.0.0.1:1", "https://calve.example.com"),
        ('access.hosts = ["calve.example.com"]', "http://127.0.0.1:8765", ""),
        ('access.oidc.redirect_url = "https://c.example.com/api/v3/access/oidc/callback"', "", "https://c.example.com"),
    ],
)
def test_links_lead_to_where_people_reach_the_server(load: Load, toml: str, served: str, public: str) -> None:
    """As the settings say; else where it is served, if that is enough for everybody."""
    assert load(toml).public_url(served) == public


def test_what_steps_reach_is_set(load: Load, tmp_path: Path) -> None:
    """Hosts, databases, a daemon and a cluster; by default no host and no database."""
    nothing = load()
    assert (nothing.http.allow, nothing.connections) == ((), {})
    assert nothing.docker.host == "unix:///var/run/docker.sock"
    assert (nothing.kubernetes.namespace, nothing.kubernetes.config) == ("default", None)
    found = load(
        """
        [http]
        allow = ["api.example.com", "*.example.com", "*", "10.0.0.0/8", "::1"]
        [connections]
        Ware-House = "sqlite:///house.db"
        other = "postgresql://h/d"
        [kubernetes]
        config = "kube.yaml"
        context = "prod"
        """,
        CALVE_CONNECTIONS__OTHER="postgresql://u:p@h/d",
        CALVE_CONNECTIONS__NEW_ONE="sqlite:///new.db",
        CALVE_KUBERNETES__NAMESPACE="jobs",
        DOCKER_HOST="tcp://127.0.0.1:2375",
    )
    assert found.http.allow == ("api.example.com", "*.example.com", "*", "10.0.0.0/8", "::1")
    assert found.connections == {
        "Ware-House": f"sqlite:///{tmp_path}/house.db",
        "other": "postgresql://u:p@h/d",
        "new_one": f"sqlite:///{tmp_path}/new.db",
    }
    assert found.docker.host == "tcp://127.0.0.1:2375"
    assert (found.kubernetes.config, found.kubernetes.context) == (tmp_path / "kube.yaml", "prod")
    assert found.kubernetes.namespace == "jobs"
    assert load("", CALVE_HTTP__ALLOW="a.test, b.test").http.allow == ("a.test", "b.test")
    assert load("", DOCKER_HOST="tcp://a:1", CALVE_DOCKER__HOST="tcp://b:1").docker.host == "tcp://b:1"


@pytest.mark.parametrize(
    ("table", "problem"),
    [
        ("type = 'hadoop'\nwarehouse = '/w'", "swapped atomically"),
        ("type = 'in-memory'", "in-memory is not a type of catalog: use one of sql, rest, hive, glue"),
        ("uri = 'mongodb://h'", "needs a type: use one of sql, rest, hive, glue"),
    ],
)
def test_a_type_of_catalog_that_is_not_supported_is_refused(load: Load, table: str, problem: str) -> None:
    """The settings are where it is noticed, so that no command goes half the way."""
    with pytest.raises(SettingsInvalid, match=problem) as error:
        load(f"[catalogs.odd]\n{table}")
    assert error.value.message.startswith("catalogs.odd: ")
    assert "line 1" in error.value.message


@pytest.mark.parametrize(
    ("toml", "named", "near"),
    [
        ('[store]\nulr = "x"', "store.ulr", "store.url"),
        ('[sprak]\nmaster = "x"', "sprak", "spark?"),
        ('[alerts.channels.ops]\ntype = "slack"\nurl_secrt = "x"', "ops.url_secrt", "alerts.channels.ops.url_secret"),
        (
            '[alerts.channels.ops]\ntype = "email"\nhost = "h"\nsender = "s"\nsecurty = "none"',
            "alerts.channels.ops.securty",
            "alerts.channels.ops.security",
        ),
        ('default_catalogue = "x"', "default_catalogue", "default_catalog"),
        ('project = "x"', "project", ""),
        ("[capture]\nlease_maxage = '7d'", "capture.lease_maxage", "capture.lease_max_age"),
        ("[http]\nallowed = ['x']", "http.allowed", "http.allow"),
    ],
)
def test_an_unknown_key_is_named_with_the_nearest(load: Load, tmp_path: Path, toml: str, named: str, near: str) -> None:
    """A typo is refused; the error names the key, the file and what may have been meant."""
    with pytest.raises(SettingsInvalid, match=named) as error:
        load(toml)
    assert str(tmp_path / "calve.toml") in error.value.message
    assert near in error.value.remedy


@pytest.mark.parametrize(
    ("variable", "near"),
    [
        ("CALVE_STORE_URL", "CALVE_STORE__URL"),
        ("CALVE_HOEM", "CALVE_HOME"),
        ("CALVE_URI", "CALVE_URL"),
        ("CALVE_SPARK__MASTR", "CALVE_SPARK__MASTER"),
        ("CALVE_CATALOGS__LAKE", "CALVE_CATALOGS__NAME__KEY"),
        ("CALVE_CONNECTION__A", "CALVE_CONNECTIONS__NAME"),
        ("CALVE_PROJECT", ""),
    ],
)
def test_an_unknown_variable_is_named_with_the_nearest(load: Load, variable: str, near: str) -> None:
    """A typo in the environment is refused as well."""
    with pytest.raises(SettingsInvalid, match=variable) as error:
        load("", **{variable: "x"})
    assert near in error.value.remedy


@pytest.mark.parametrize(
    ("toml", "said"),
    [
        ("[store", "not valid TOML"),
        ('server.url = "calve.example.com"', "server.url"),
        ('server.url = "https://calve.example.com/path"', "server.url"),
        ("store = 1", "store is a table"),
        ("[store]\nurl = 1", "store.url"),
        ("catalogs = 1", "catalogs"),
        ("[catalogs]\nlake = 1", "catalogs.lake"),
        ("[catalogs.lake]\nuri = []", "must be a string"),
        ("[catalogs.a]\nuri = 'sqlite:////x'\n[capture]\nlease_max_age = '7 days'", "not a duration"),
        ("[capture]\nlease_max_age = '0d'", "greater than zero"),
        ("default_catalog = 'x'", "default_catalog names 'x', but the catalogs are: lake"),
        ("[spark]\npackages = 1", "spark.packages"),
        ("connections = 1", "connections is a table"),
        ("[connections]\na = 1", "connections.a"),
        ("[http]\nallow = ['https://a.test']", "http.allow: 'https://a.test' is not a host"),
        ("[http]\nallow = ['a.test:443']", "not a host name"),
        ("[http]\nallow = ['10.0.0.0/33']", "or an address range"),
    ],
)
def test_a_senseless_value_is_refused(load: Load, toml: str, said: str) -> None:
    """The error says which key is wrong, and why."""
    with pytest.raises(SettingsInvalid, match=said.replace("(", r"\(")):
        load(toml)


@pytest.mark.parametrize(
    ("toml", "said"),
    [
        ('\n# port\n[server]\nport = "many"', "server.port: must be a whole number, not 'many' ({}, line 4)."),
        ("[spark]\nmaster = 3", "spark.master: must be a quoted string, not 3 ({}, line 2)."),
        ("[worker]\nslots = 0", "worker.slots: must be at least 1, not 0 ({}, line 2)."),
        ("debug = 'perhaps'", "debug: must be true or false, not 'perhaps' ({}, line 1)."),
        ("[[server]]\nport = 1", "server: must be a table: write [server], not a list ({}, line 1)."),
        ("server.port = []", "server.port: must be a whole number, not a list ({}, line 1)."),
        ("[secrets]\nhush = 12345", "secrets.hush: must be a quoted string, not this ({}, line 2)."),
        ('[alerts.channels."o.p"]\nurl_secret = "x"', "alerts.channels.o.p: needs a type ({}, line 1)."),
        ("[spark]\n\n\nmastr = 'x'", "spark.mastr is not a setting ({}, line 4)."),
    ],
)
def test_a_wrong_setting_is_reported_with_its_line(load: Load, tmp_path: Path, toml: str, said: str) -> None:
    """What is expected, in words, what was found, and where; a value that may be secret is not shown."""
    with pytest.raises(SettingsInvalid) as error:
        load(toml)
    assert error.value.message == said.format(tmp_path / "calve.toml")


def test_a_wrong_value_from_the_environment_names_the_variable(load: Load) -> None:
    """One need not guess where a value came from."""
    with pytest.raises(SettingsInvalid, match=r"not a duration.*CALVE_CAPTURE__LEASE_MAX_AGE"):
        load("", CALVE_CAPTURE__LEASE_MAX_AGE="soon")


def test_a_variable_cannot_go_below_a_value(load: Load) -> None:
    """A variable for a table that the file gives as a value is refused."""
    with pytest.raises(SettingsInvalid, match="CALVE_CATALOGS__A__URI"):
        load("catalogs = 1", CALVE_CATALOGS__A__URI="x")
    with pytest.raises(SettingsInvalid, match="CALVE_STORE__URL"):
        load("store = 1", CALVE_STORE__URL="x")


def test_a_variable_overrides_a_dotted_key(load: Load) -> None:
    """However the file writes it."""
    found = load("[catalogs.a]\nuri = 'sqlite:////x'\ns3.region = 'old'", CALVE_CATALOGS__A__S3__REGION="new")
    assert found.catalogs["a"].properties["s3.region"] == "new"


def test_a_missing_folder_is_refused(tmp_path: Path) -> None:
    """Settings of a folder that is not there are a mistake."""
    with pytest.raises(SettingsInvalid, match="not a folder"):
        settings.load(tmp_path / "nowhere", {})


def test_settings_do_not_change(load: Load) -> None:
    """Settings are read once."""
    with pytest.raises(ValueError, match="frozen"):
        load().home = Path("/")  # type: ignore[misc]


def test_exported_variables_are_put_back() -> None:
    """Programs started meanwhile see the variable; later ones do not."""
    with settings.exported(CALVE_TEST_X="1"):
        with settings.exported(CALVE_TEST_X="2"):
            assert os.environ["CALVE_TEST_X"] == "2"  # noqa: TID251 - what is tested
        assert os.environ["CALVE_TEST_X"] == "1"  # noqa: TID251 - what is tested
    assert "CALVE_TEST_X" not in os.environ  # noqa: TID251 - what is tested


def test_settings_and_lake_import_nothing_heavy() -> None:
    """A capture pays only for what it uses."""
    script = (
        "import sys, calve.settings, calve.lake; "
        "print([m for m in ('pyspark', 'pyarrow', 'pyiceberg', 'sqlalchemy') if m in sys.modules])"
    )
    said = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert said.stdout == "[]\n"


def test_a_secret_comes_from_the_environment(load: Load) -> None:
    """Under its name in small letters, two underscores for a dot; it is never shown."""
    found = load(
        "",
        CALVE_SECRETS__DB_PASSWORD="canary",
        CALVE_SECRETS__SALES__EU__DB="canary-eu",
        CALVE_SECRET_STORE__KEY="canary-key",
    )
    assert found.secrets == {"db_password": "canary", "sales.eu.db": "canary-eu"}
    assert "canary" not in repr(found) + found.model_dump_json()


def test_the_settings_tell_which_secrets_are_calves_own(load: Load) -> None:
    """Wherever they name one."""
    found = load(
        """
[alerts.channels.mail]
type = "email"
host = "localhost"
sender = "calve@example.com"
to = ["ops@example.com"]
password_secret = "smtp"

[alerts.channels.chat]
type = "slack"
url_secret = "slack_url"

[alerts.channels.pager]
type = "webhook"
url = "https://pager.example.com"
key_secret = "pager_key"

[lineage]
url = "https://lineage.example.com"
key_secret = "marquez"

[access.oidc]
issuer = "https://id.example.com"
client_id = "calve"
client_secret = "oidc"
"""
    )
    assert found.own_secrets == {"smtp", "slack_url", "pager_key", "marquez", "oidc"}
    assert load("").own_secrets == frozenset()


def test_paths_of_secrets_start_at_the_project(load: Load) -> None:
    """The key lies in the folder for state, if nothing else is said."""
    usual, given = load(""), load('[secret_store]\nkey_file = "keys/a"\nfolder = "keys"')
    assert usual.secret_store.key_file == usual.home / "secret.key"
    assert given.secret_store.key_file == given.project / "keys" / "a"
    assert given.secret_store.folder == given.project / "keys"


def test_a_proxy_is_trusted_by_its_address(load: Load) -> None:
    """A name could lead elsewhere tomorrow."""
    assert load('[access]\ntrusted_proxies = ["10.0.0.0/8", "::1"]').access.trusted_proxies == ("10.0.0.0/8", "::1")
    with pytest.raises(SettingsInvalid, match="not an address or an address range"):
        load('[access]\ntrusted_proxies = ["proxy.example.com"]')


def test_roles_of_groups_come_from_the_environment_as_json(load: Load) -> None:
    """A table in the file is shorter."""
    found = load("", CALVE_ACCESS__OIDC__ROLES='{"data": "editor@sales"}')
    assert found == load('[access.oidc.roles]\ndata = "editor@sales"')


def test_tables_are_granted_to_namespaces(load: Load) -> None:
    """By lists of patterns, or by texts of several; from the environment as JSON."""
    found = load('[access.tables]\nread = { sales = ["shop.*", "lake.a.b"], "*" = "**" }\npolicy = "closed"').access
    assert found.tables.read == {"sales": ("shop.*", "lake.a.b"), "*": ("**",)}
    given = load("", CALVE_ACCESS__TABLES__WRITE='{"sales.eu": ["shop.out_*"]}').access
    assert given.tables.write == {"sales.eu": ("shop.out_*",)}
    assert (found.tables.policy, given.tables.policy) == ("closed", "auto")


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ('read = { "sales." = ["a.b"] }', "is not a namespace"),
        ('write = { "" = ["a.b"] }', "is not a namespace"),
        ('capture = { sales = ["orders"] }', "is not a pattern of tables"),
        ('capture = { sales = [""] }', "is not a pattern of tables"),
        ('policy = "ajar"', "access.tables.policy"),
        ("wirte = {}", "did you mean access.tables.write"),
    ],
)
def test_a_grant_of_tables_that_means_nothing_is_refused(load: Load, given: str, why: str) -> None:
    """A typing mistake must not leave a table open or shut."""
    with pytest.raises(SettingsInvalid) as refused:
        load(f"[access.tables]\n{given}")
    assert why.lower() in f"{refused.value.message} {refused.value.remedy}".lower()
