"""The chart of an application's instances, rendered by Helm, and held to Kubernetes' own schemas."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import jsonschema
import pytest
import yaml

from tests.deploy import helm
from tests.deploy.promql import DEPLOY
from tests.interop.java.build import MAVEN_S
from tests.interop.toolchains import python_packages

CHART: Final = DEPLOY / "helm" / "kohort-application"
VALIDATE: Final = "kubernetes-validate==1.37.0"
KUBERNETES: Final = ("1.30", "1.33")
LEAST: Final = {"image": {"repository": "example.com/flights", "tag": "1"}, "bootstrapServers": "a:9092,b:9092"}
MUCH: Final = {
    "image": {"repository": "example.com/flights", "digest": f"sha256:{'0' * 64}"},
    "bootstrapServers": "kafka.example.com:9093",
    "imagePullSecrets": [{"name": "registry"}],
    "nameOverride": "flights-of-all-carriers",
    "replicas": 3,
    "command": ["python"],
    "args": ["/app/main.py"],
    "env": [{"name": "LEVEL", "value": "info"}],
    "envFrom": [{"secretRef": {"name": "passwords"}}],
    "state": {"enabled": False},
    "http": {"port": 8443, "scheme": "HTTPS"},
    "service": {"type": "LoadBalancer"},
    "serviceMonitor": {"enabled": True, "labels": {"release": "x"}, "tokenSecret": {"name": "token", "key": "token"}},
    "serviceAccount": {"annotations": {"example.com/role": "reader"}},
    "podAnnotations": {"a": "b"},
    "podLabels": {"team": "air"},
    "nodeSelector": {"disk": "ssd"},
    "tolerations": [{"key": "spark", "operator": "Exists"}],
    "affinity": {"nodeAffinity": {}},
    "priorityClassName": "high",
    "volumes": [{"name": "certs", "secret": {"secretName": "certs"}}],
    "volumeMounts": [{"name": "certs", "mountPath": "/certs"}],
}
OFF: Final = LEAST | {
    "service": {"enabled": False},
    "podDisruptionBudget": {"enabled": False},
    "serviceAccount": {"create": False},
    "topologySpread": False,
}

long = pytest.mark.long
pytestmark = pytest.mark.timeout(MAVEN_S)
"""The first test that needs Helm fetches it, or waits for who does."""


def written(values: dict[str, Any], directory: Path) -> Path:
    file = directory / "values.yaml"
    file.write_text(yaml.safe_dump(values))
    return file


def chart_with(values: dict[str, Any], directory: Path) -> Path:
    """A copy of the chart that has these values for its own."""
    copy = shutil.copytree(CHART, directory / CHART.name)
    whole = merged(yaml.safe_load((CHART / "values.yaml").read_text()), values)
    (copy / "values.yaml").write_text(yaml.safe_dump(whole))
    return copy


def rendered(values: dict[str, Any], directory: Path) -> list[dict[str, Any]]:
    """The manifests of a release `flights` in a namespace `air`."""
    answer = helm.template(CHART, written(values, directory), "flights", "air", KUBERNETES[0])
    assert not answer.error
    return [manifest for manifest in yaml.safe_load_all(answer.output) if manifest]


def only(manifests: list[dict[str, Any]], kind: str) -> dict[str, Any]:
    (found,) = (manifest for manifest in manifests if manifest["kind"] == kind)
    return found


def merged(values: dict[str, Any], over: dict[str, Any]) -> dict[str, Any]:
    """Values over others, as Helm lays them."""
    return values | {
        key: merged(values[key], value) if isinstance(value, dict) and isinstance(values.get(key), dict) else value
        for key, value in over.items()
    }


def problem(values: dict[str, Any]) -> str | None:
    """What the chart's schema has against values; None if nothing."""
    schema = json.loads((CHART / "values.schema.json").read_text())
    whole = merged(yaml.safe_load((CHART / "values.yaml").read_text()), values)
    found = jsonschema.Draft7Validator(schema).iter_errors(whole)
    return next((f"{'.'.join(map(str, each.absolute_path))}: {each.message}" for each in found), None)


@pytest.mark.parametrize("values", [LEAST, MUCH, OFF], ids=["least", "much", "off"])
def test_good_values_are_taken(values: dict[str, Any]) -> None:
    assert problem(values) is None


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"bootstrapServers": "a"}, "bootstrapServers: 'a' does not match"),
        ({"bootstrapServers": ""}, "bootstrapServers: '' does not match"),
        ({"image": {"repository": ""}}, "image.repository: '' "),
        ({"image": {"digest": "1"}}, "image.digest: '1' does not match"),
        ({"replica": 3}, "'replica' was unexpected"),
        ({"state": {"size": "much"}}, "state.size: 'much' does not match"),
        ({"http": {"port": 80}}, "http.port: 80 is less than"),
        ({"sparkConf": {"spark.ui.enabled": False}}, "sparkConf.spark.ui.enabled: False is not of type 'string'"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_wrong_values_are_refused(values: dict[str, Any], said: str) -> None:
    assert said in str(problem(merged(LEAST, values)))


def test_the_schema_knows_every_value() -> None:
    """What isn't in it would be refused, were it set."""
    schema = json.loads((CHART / "values.schema.json").read_text())
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    assert values.keys() <= schema["properties"].keys()
    assert schema["properties"].keys() - values.keys() == {"global", "nameOverride"}


def test_the_chart_is_of_this_version() -> None:
    from kohort import __version__

    assert yaml.safe_load((CHART / "Chart.yaml").read_text())["appVersion"] == __version__


@long
@pytest.mark.parametrize("values", [LEAST, MUCH, OFF], ids=["least", "much", "off"])
def test_helm_has_nothing_against_it(values: dict[str, Any], tmp_path: Path) -> None:
    """The library lints a chart with its own values alone, so these become a copy's."""
    answer = helm.lint(chart_with(values, tmp_path))
    assert not answer.error
    assert answer.output.endswith("Failed: false"), answer.output


@long
def test_helm_would_have_something_against_wrong_values_and_old_interfaces(tmp_path: Path) -> None:
    """So a copy's values are linted, and a warning is enough."""
    said = helm.lint(chart_with(merged(LEAST, {"bootstrapServers": ""}), tmp_path / "values")).output
    assert "[ERROR] values.yaml: - at '/bootstrapServers'" in said
    assert said.endswith("Failed: true")
    chart = chart_with(LEAST, tmp_path / "old")
    (chart / "templates" / "old.yaml").write_text(
        "{apiVersion: extensions/v1beta1, kind: Ingress, metadata: {name: a}}"
    )
    said = helm.lint(chart).output
    assert ("[WARNING] templates/old.yaml" in said, "[ERROR]" in said) == (True, False)
    assert said.endswith("Failed: true")


@long
def test_helm_refuses_what_the_schema_refuses(tmp_path: Path) -> None:
    answer = helm.template(CHART, written(LEAST | {"replica": 3}, tmp_path))
    assert answer.output == ""
    assert "replica" in answer.error


@long
@pytest.mark.parametrize("version", KUBERNETES)
@pytest.mark.parametrize("values", [LEAST, MUCH, OFF], ids=["least", "much", "off"])
def test_kubernetes_takes_it(values: dict[str, Any], version: str, tmp_path: Path) -> None:
    manifests = [each for each in rendered(values, tmp_path) if each["kind"] != "ServiceMonitor"]  # it isn't its own
    assert len(manifests) >= 3
    file = tmp_path / "manifests.yaml"
    file.write_text(yaml.safe_dump_all(manifests))
    environment = {**os.environ, "PYTHONPATH": str(python_packages(VALIDATE))}
    command = [sys.executable, "-m", "kubernetes_validate", "--strict", "-k", version, file]
    ran = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr


@long
def test_an_instance_is_the_same_member_after_a_restart_and_has_time_to_stop(tmp_path: Path) -> None:
    manifests = rendered(LEAST, tmp_path)
    spec = only(manifests, "StatefulSet")["spec"]
    pod = spec["template"]["spec"]
    (container,) = pod["containers"]
    variables = {each["name"]: each.get("value") for each in container["env"]}
    assert variables["GROUP_INSTANCE_ID"] == "$(POD_NAME)"
    assert variables["APPLICATION_SERVER"] == "$(POD_NAME).flights-instances.air.svc:8080"
    assert variables["BOOTSTRAP_SERVERS"] == "a:9092,b:9092"
    assert pod["terminationGracePeriodSeconds"] >= 120
    (claim,) = spec["volumeClaimTemplates"]
    mounts = {each["name"]: each["mountPath"] for each in container["volumeMounts"]}
    assert mounts[claim["metadata"]["name"]] == variables["STATE_DIR"]


@long
def test_probes_ask_what_restarts_help_and_what_is_ready(tmp_path: Path) -> None:
    spec = only(rendered(LEAST, tmp_path), "StatefulSet")["spec"]
    (container,) = spec["template"]["spec"]["containers"]
    paths = {name: container[f"{name}Probe"]["httpGet"]["path"] for name in ("startup", "liveness", "readiness")}
    assert paths == {"startup": "/healthz", "liveness": "/healthz", "readiness": "/readyz"}


@long
def test_pods_are_found_by_their_services_and_may_do_little(tmp_path: Path) -> None:
    manifests = rendered(MUCH, tmp_path)
    stateful = only(manifests, "StatefulSet")
    pod = stateful["spec"]["template"]
    services = {each["metadata"]["name"]: each["spec"] for each in manifests if each["kind"] == "Service"}
    headless = services[stateful["spec"]["serviceName"]]
    assert (headless["clusterIP"], headless["publishNotReadyAddresses"]) == ("None", True)
    chosen = [
        *(spec["selector"] for spec in services.values()),
        only(manifests, "PodDisruptionBudget")["spec"]["selector"]["matchLabels"],
        stateful["spec"]["selector"]["matchLabels"],
    ]
    assert len(chosen) == 4
    assert all(labels.items() <= pod["metadata"]["labels"].items() for labels in chosen)
    (container,) = pod["spec"]["containers"]
    assert pod["spec"]["securityContext"]["runAsNonRoot"] is True
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }


@long
def test_prometheus_gives_instances_the_job_of_the_alerts(tmp_path: Path) -> None:
    manifests = rendered(MUCH, tmp_path)
    monitor = only(manifests, "ServiceMonitor")["spec"]
    wanted = monitor["selector"]["matchLabels"].items()
    services = [each for each in manifests if each["kind"] == "Service"]
    assert len([each for each in services if wanted <= each["metadata"]["labels"].items()]) == 1
    (endpoint,) = monitor["endpoints"]
    assert endpoint["relabelings"] == [{"targetLabel": "job", "replacement": "kohort-application"}]
    assert (endpoint["scheme"], endpoint["authorization"]["credentials"]["name"]) == ("https", "token")


TLS: Final = {"ca": {"secret": {"name": "certs", "key": "ca.crt"}}, "serverName": "flights"}


@pytest.mark.parametrize("servers", ["[::1]:9092", "a:1,[2001:DB8::1]:9093,10.0.0.1:2"])
def test_brokers_may_have_addresses_of_ipv6(servers: str) -> None:
    assert problem(LEAST | {"bootstrapServers": servers}) is None


@pytest.mark.parametrize("servers", ["::1:9092", "[::1]", "[]:9092", "[::1]:9092,", "[::1]:9092 [::2]:9092"])
def test_addresses_of_ipv6_without_brackets_or_port_are_refused(servers: str) -> None:
    assert "does not match" in str(problem(LEAST | {"bootstrapServers": servers}))


def test_the_monitor_may_be_told_of_certificates() -> None:
    assert problem(merged(LEAST, {"serviceMonitor": {"tlsConfig": TLS}})) is None
    assert "is not of type 'object'" in str(problem(merged(LEAST, {"serviceMonitor": {"tlsConfig": "ca.crt"}})))


@long
def test_prometheus_knows_the_certificate_of_instances(tmp_path: Path) -> None:
    values = merged(MUCH, {"serviceMonitor": {"tlsConfig": TLS}})
    (endpoint,) = only(rendered(values, tmp_path), "ServiceMonitor")["spec"]["endpoints"]
    assert (endpoint["tlsConfig"], endpoint["scheme"]) == (TLS, "https")


@long
def test_pods_that_are_not_ready_do_not_keep_a_node(tmp_path: Path) -> None:
    budget = only(rendered(LEAST, tmp_path), "PodDisruptionBudget")["spec"]
    assert budget["unhealthyPodEvictionPolicy"] == "AlwaysAllow"
