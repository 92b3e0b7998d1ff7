"""The manifests for Kubernetes: names that belong together, and the schemas that KubeRay publishes.

HPSEARCH_TESTS_KUBERAY_CRDS names a folder with those schemas, `helm-chart/kuberay-operator/crds` of
KubeRay's repository. They are large and not ours, so they are not kept here.
"""

import os
from importlib.metadata import version
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

DOCKER = Path(__file__).parents[3] / "docker"
FOLDER = DOCKER / "kubernetes"
MANIFESTS = {"RayCluster": "cluster.yaml", "RayJob": "job.yaml"}


def manifest(name: str) -> Any:
    return yaml.safe_load((FOLDER / name).read_text())


def cluster_of(kind: str) -> Any:
    spec = manifest(MANIFESTS[kind])["spec"]
    return spec["rayClusterSpec"] if kind == "RayJob" else spec


def strict(schema: Any) -> Any:
    """A schema that refuses fields it does not know, as `kubectl apply --validate=strict` does."""
    if isinstance(schema, list):
        return [strict(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    found = {key: strict(value) for key, value in schema.items()}
    is_open = found.get("x-kubernetes-preserve-unknown-fields")
    if isinstance(found.get("properties"), dict) and "type" in found and not is_open:
        found.setdefault("additionalProperties", False)
    if found.pop("x-kubernetes-int-or-string", False):
        found.pop("type", None)
    return found


@pytest.mark.parametrize("kind", MANIFESTS)
def test_manifests_hold_to_the_schemas_of_kuberay(kind):
    folder = os.environ.get("HPSEARCH_TESTS_KUBERAY_CRDS")
    if folder is None:
        pytest.skip("HPSEARCH_TESTS_KUBERAY_CRDS does not name the folder of KubeRay's schemas")
    definition = yaml.load(
        (Path(folder) / f"ray.io_{kind.lower()}s.yaml").read_text(), yaml.CSafeLoader
    )
    found = manifest(MANIFESTS[kind])
    assert found["kind"] == definition["spec"]["names"]["kind"] == kind
    name = found["apiVersion"].partition("/")[2]
    served = {each["name"]: each for each in definition["spec"]["versions"] if each["served"]}
    schema = strict(served[name]["schema"]["openAPIV3Schema"])
    schema["properties"].pop("metadata")
    del found["metadata"]
    jsonschema.Draft7Validator(schema).validate(found)
    found["spec"]["nonsense"] = 1
    assert list(jsonschema.Draft7Validator(schema).iter_errors(found)), "nothing is refused"


@pytest.mark.parametrize("kind", MANIFESTS)
def test_the_head_has_the_database_and_no_trials_and_workers_begin_at_none(kind):
    spec = cluster_of(kind)
    head = spec["headGroupSpec"]
    assert head["rayStartParams"]["num-cpus"] == "0"
    names = [each["name"] for each in head["template"]["spec"]["containers"][0]["env"]]
    assert "HPSEARCH_STORAGE" in names
    (group,) = spec["workerGroupSpecs"]
    assert group["minReplicas"] == group["replicas"] == 0
    (worker,) = group["template"]["spec"]["containers"]
    assert worker["resources"]["limits"]["nvidia.com/gpu"] == "1"
    assert "HPSEARCH_STORAGE" not in [each["name"] for each in worker["env"]]


@pytest.mark.parametrize("kind", MANIFESTS)
def test_names_in_the_manifests_belong_together(kind):
    spec = cluster_of(kind)
    claim = manifest("checkpoints.yaml")["metadata"]["name"]
    said = (FOLDER / "README.md").read_text()
    pods = [spec["headGroupSpec"], *spec["workerGroupSpecs"]]
    for pod in [each["template"]["spec"] for each in pods]:
        volumes = {each["name"]: each for each in pod["volumes"]}
        mounts = {each["name"] for each in pod["containers"][0]["volumeMounts"]}
        assert mounts == set(volumes)
        assert volumes["checkpoints"]["persistentVolumeClaim"]["claimName"] == claim
        if "study" in volumes:
            assert f"create configmap {volumes['study']['configMap']['name']} " in said
        for variable in pod["containers"][0].get("env", []):
            secret = variable.get("valueFrom", {}).get("secretKeyRef")
            if secret is not None:
                made = f"create secret generic {secret['name']} --from-literal={secret['key']}="
                assert made in said
    assert f"create secret generic {spec['authOptions']['secretName']} " in said
    assert spec["rayVersion"] == version("ray")


def test_the_recipe_for_skypilot_keeps_the_database_from_workers():
    recipe = yaml.safe_load((DOCKER / "skypilot.yaml").read_text())
    assert recipe["secrets"] == {"HPSEARCH_STORAGE": None}
    script = recipe["run"]
    assert "unset HPSEARCH_STORAGE" in script.partition("exec ray start")[0]
    assert "env -u HPSEARCH_STORAGE ray start --head" in script
