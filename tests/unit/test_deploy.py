"""What lies in ``deploy/`` fits the calve beside it: its commands, settings, ports and paths."""

import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import click
import pytest
import yaml

from calve.api.access import rules
from calve.cli.entry import COMMANDS, calve as cli
from calve.settings import FILE, load

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
UNITS = sorted((DEPLOY / "systemd").glob("*.service"))
POSTGRES = "postgresql+psycopg://calve:x@postgres:5432/calve"


def _is_command(words: Sequence[str]) -> bool:
    """Tell whether the command line of calve takes these words; usage errors are raised."""
    parser = cli.make_context("calve", list(words), resilient_parsing=False)
    name, command, rest = cli.resolve_command(parser, parser._protected_args + parser.args)
    assert name in COMMANDS
    assert command is not None
    command.make_parser(click.Context(command)).parse_args(list(rest))
    return True


def _settings(folder: Path, variables: dict[str, str], toml: str = "") -> Any:
    """Return the settings of these variables, which must all be known."""
    (folder / FILE).write_text(toml)
    return load(folder, variables)


def _unit(path: Path) -> dict[str, list[str]]:
    """Return the assignments of a unit by name."""
    found: dict[str, list[str]] = {}
    for line in path.read_text().splitlines():
        name, sign, value = line.partition("=")
        if sign and not line.startswith("#"):
            found.setdefault(name, []).append(value)
    return found


def _compose() -> dict[str, Any]:
    return dict(yaml.safe_load((DEPLOY / "compose.yaml").read_text()))


def _manifests() -> list[dict[str, Any]]:
    return list(yaml.safe_load_all((DEPLOY / "kubernetes" / "calve.yaml").read_text()))


def _pods() -> Iterator[tuple[str, dict[str, Any], dict[str, Any]]]:
    """Yield the name of each deployment, its pod and its container."""
    for manifest in _manifests():
        if manifest["kind"] == "Deployment":
            pod = manifest["spec"]["template"]["spec"]
            yield manifest["metadata"]["name"], pod, pod["containers"][0]


def test_each_part_of_a_server_has_a_unit() -> None:
    """And no other."""
    assert [path.stem for path in UNITS] == ["calve-scheduler", "calve-server", "calve-worker"]


@pytest.mark.parametrize("path", UNITS, ids=lambda path: path.stem)
def test_a_unit_runs_a_command_with_known_settings(path: Path, tmp_path: Path) -> None:
    """As someone who is not root, with the environment's file."""
    unit = _unit(path)
    (command,) = unit["ExecStart"]
    assert _is_command(shlex.split(command)[1:])
    (given,) = unit["EnvironmentFile"]
    lines = (DEPLOY / "systemd" / Path(given).name).read_text().splitlines()
    pairs = [line for line in (*unit["Environment"], *lines) if "=" in line and not line.startswith("#")]
    _settings(tmp_path, dict(pair.split("=", 1) for pair in pairs))
    assert unit["User"] == ["calve"]
    assert unit["NoNewPrivileges"] == ["true"]


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not installed")
@pytest.mark.parametrize("path", UNITS, ids=lambda path: path.stem)
def test_systemd_takes_the_units(path: Path, tmp_path: Path) -> None:
    """With a program that is there."""
    copy = tmp_path / path.name
    copy.write_text(path.read_text().replace("/opt/calve/bin/calve", sys.executable).replace("User=calve", "User=root"))
    found = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", str(copy)], capture_output=True, text=True, check=False
    )
    assert (found.returncode, _about(found.stderr, path.name)) == (0, [])


def _about(text: str, name: str) -> list[str]:
    """Return the lines that are about a unit; this machine may have others."""
    return [line for line in text.splitlines() if name in line]


def test_a_worker_has_time_to_end(tmp_path: Path) -> None:
    """Longer than steps may go on after it was told to, wherever it runs."""
    drain = _settings(tmp_path, {}, (DEPLOY / "calve.toml").read_text()).worker.drain.total_seconds()
    (unit,) = _unit(DEPLOY / "systemd" / "calve-worker.service")["TimeoutStopSec"]
    compose = _compose()["services"]["worker"]["stop_grace_period"]
    kubernetes = next(pod["terminationGracePeriodSeconds"] for name, pod, _ in _pods() if name == "calve-worker")
    assert min(int(unit), int(compose.removesuffix("s")), kubernetes) > drain


def _instructions() -> list[tuple[str, str]]:
    """Return the instructions of the Dockerfile with their arguments."""
    text = re.sub(r"^#.*\n", "", (DEPLOY / "Dockerfile").read_text(), flags=re.MULTILINE).replace("\\\n", " ")
    return [
        (word, " ".join(rest.split())) for word, _, rest in (line.partition(" ") for line in text.splitlines()) if word
    ]


def test_the_dockerfile_is_made_of_known_instructions() -> None:
    """It ends as someone who is not root, in calve, and copies only what is there and not left out."""
    found = _instructions()
    known = {"FROM", "WORKDIR", "COPY", "RUN", "ENV", "USER", "VOLUME", "EXPOSE", "ENTRYPOINT", "CMD"}
    assert {word for word, _ in found} <= known
    last = dict(found)
    assert last["USER"] == "10001:10001"
    entry, command = yaml.safe_load(last["ENTRYPOINT"]), yaml.safe_load(last["CMD"])
    assert entry[-1] == "calve"
    assert _is_command(command)
    copied = [name for word, rest in found if word == "COPY" and "--from" not in rest for name in rest.split()[:-1]]
    kept = {line[1:] for line in (DEPLOY / "Dockerfile.dockerignore").read_text().splitlines() if line[:1] == "!"}
    assert set(copied) == kept
    assert all((ROOT / name).exists() for name in copied)


def test_the_image_has_known_settings_and_extras(tmp_path: Path) -> None:
    """And a Java that Spark takes."""
    found = dict(_instructions())
    pairs = dict(pair.split("=", 1) for pair in shlex.split(found["ENV"]))
    _settings(tmp_path, {name: value for name, value in pairs.items() if name.startswith("CALVE_")})
    known = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    lock = (DEPLOY / "requirements.lock").read_text()
    assert {"kubernetes", "postgres"} <= known.keys()
    assert "\nkubernetes==" in lock
    assert "\npsycopg-binary==" in lock
    assert "openjdk-17-jre-headless" in found["RUN"]


def test_the_image_installs_nothing_without_its_hash() -> None:
    """Neither what calve needs, nor what builds it; calve itself comes from here, without a registry."""
    commands = [words for word, rest in _instructions() if word == "RUN" for words in rest.split("&&")]
    installs = [words for words in commands if re.search(r"\b(pip install|pip wheel|uv)\b", words)]
    assert len(installs) == 4
    for words in installs:
        assert ("--require-hashes" in words) != ("--no-index" in words and "--no-deps" in words), words
    assert any("--no-build-isolation" in words for words in installs)


def test_compose_runs_known_commands_with_known_settings(tmp_path: Path) -> None:
    """A server that only this machine reaches, a scheduler, and two workers, beside PostgreSQL."""
    services = _compose()["services"]
    assert services.keys() == {"postgres", "server", "scheduler", "worker"}
    toml = (DEPLOY / "calve.toml").read_text()
    for name in ("server", "scheduler", "worker"):
        assert _is_command(services[name]["command"])
        variables = {
            key: re.sub(r"\$\{\w+:\?[^}]*\}", "x", value) for key, value in services[name]["environment"].items()
        }
        settings = _settings(tmp_path, variables, toml)
        assert settings.store.url == POSTGRES
    assert services["worker"]["deploy"]["replicas"] == 2
    assert services["server"]["ports"] == ["127.0.0.1:8765:8765"]


def test_the_pods_run_known_commands_with_known_settings(tmp_path: Path) -> None:
    """All of them without root, without a token of the cluster, and without variables that are no settings."""
    manifests = _manifests()
    toml = next(each["data"][FILE] for each in manifests if each["kind"] == "ConfigMap")
    for name, pod, container in _pods():
        assert _is_command(container["args"]), name
        variables = {each["name"]: each.get("value", POSTGRES) for each in container["env"]}
        _settings(tmp_path, variables, toml)
        assert pod["enableServiceLinks"] is False
        assert pod["automountServiceAccountToken"] is False
        assert pod["securityContext"]["runAsNonRoot"] is True
        own = container["securityContext"]
        assert (own["allowPrivilegeEscalation"], own["readOnlyRootFilesystem"]) == (False, True)
        assert own["capabilities"] == {"drop": ["ALL"]}
        assert {each["name"] for each in pod["volumes"]} == {each["name"] for each in container["volumeMounts"]}


def test_the_pods_trust_no_proxy_that_nobody_has_named(tmp_path: Path) -> None:
    """A range of the cluster's addresses would let every pod say where requests come from."""
    toml = next(each["data"][FILE] for each in _manifests() if each["kind"] == "ConfigMap")
    access = _settings(tmp_path, {}, toml).access
    assert access.trusted_proxies == ()
    assert rules(access, "0.0.0.0").proxies == ()  # noqa: S104 - as the pods listen


def _check_fields(value: Any, kind: str, place: str) -> None:
    """Fail if a manifest has a field that Kubernetes does not know there."""
    from kubernetes import client

    inner = re.fullmatch(r"(?:list\[|dict[\[(]str, )(\w+)[\])]", kind, flags=re.IGNORECASE)
    if inner is not None:
        for key, each in value.items() if isinstance(value, dict) else enumerate(value):
            _check_fields(each, inner[1], f"{place}[{key}]")
        return
    model = getattr(client, kind, None)
    if model is None or not hasattr(model, "openapi_types"):
        return
    known = {written: model.openapi_types[name] for name, written in model.attribute_map.items()}
    assert value.keys() <= known.keys(), place
    for key, each in value.items():
        _check_fields(each, known[key], f"{place}.{key}")


@pytest.mark.parametrize("manifest", _manifests(), ids=lambda manifest: manifest["kind"])
def test_kubernetes_knows_every_field(manifest: dict[str, Any]) -> None:
    """As its own client does, down to the last one."""
    _check_fields(manifest, f"V1{manifest['kind']}", manifest["kind"])


def test_a_field_that_kubernetes_does_not_know_is_found() -> None:
    """However deep it lies."""
    deployment = next(each for each in _manifests() if each["kind"] == "Deployment")
    deployment["spec"]["template"]["spec"]["containers"][0]["livenesProbe"] = {}
    with pytest.raises(AssertionError, match=r"spec\.containers\[0\]"):
        _check_fields(deployment, "V1Deployment", "Deployment")


def test_secrets_are_referred_to_and_not_written() -> None:
    """Whoever deploys makes them."""
    assert all(manifest["kind"] != "Secret" for manifest in _manifests())
    for _, _, container in _pods():
        given = {each["name"]: each for each in container["env"]}
        assert given["CALVE_STORE__URL"]["valueFrom"]["secretKeyRef"]["name"] == "calve"


def test_the_service_and_the_probes_lead_to_the_server() -> None:
    """To a port that it listens on, under a name that it answers to, at paths that it has."""
    from calve.api.status import health_routes as routes

    manifests = _manifests()
    (service,) = (each["spec"] for each in manifests if each["kind"] == "Service")
    deployments = {each["metadata"]["name"]: each for each in manifests if each["kind"] == "Deployment"}
    server = deployments["calve-server"]["spec"]["template"]
    assert service["selector"] == server["metadata"]["labels"]
    (container,) = server["spec"]["containers"]
    (port,) = container["ports"]
    assert service["ports"][0]["targetPort"] == port["name"]
    assert str(port["containerPort"]) == container["args"][container["args"].index("--port") + 1]
    toml = tomllib.loads(next(each["data"][FILE] for each in manifests if each["kind"] == "ConfigMap"))
    paths = {route.path for route in routes.router.routes if hasattr(route, "path")}
    for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
        asked = container[probe]["httpGet"]
        assert asked["path"] in paths
        assert [each["value"] for each in asked["httpHeaders"]] == toml["access"]["hosts"]
