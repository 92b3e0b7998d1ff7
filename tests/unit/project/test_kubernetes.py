"""The manifests for Kubernetes: the fields that Kubernetes and KubeRay know, and names that belong
together.

Pods and claims are held against the schemas that Kubernetes publishes, from kubernetes-validate.
KubeRay publishes its own in no package, only in its repository, with those of Kubernetes in them:
2.3 MB. So `KUBERAY` says its part, of the fields that the manifests use, as KubeRay 1.7 has it.
"""

from importlib.metadata import version
from pathlib import Path
from typing import Any

import jsonschema
import kubernetes_validate
import pytest
import yaml

DOCKER = Path(__file__).parents[3] / "docker"
FOLDER = DOCKER / "kubernetes"
MANIFESTS = {"RayCluster": "cluster.yaml", "RayJob": "job.yaml"}
KUBERNETES = ["1.28", "1.37"]


def fields(required: str = "", **types: Any) -> dict[str, Any]:
    """The schema of an object that has these fields and no others."""
    return {
        "type": "object",
        "properties": types,
        "required": required.split(),
        "additionalProperties": False,
    }


TEXT, NUMBER, YES_OR_NO = {"type": "string"}, {"type": "integer"}, {"type": "boolean"}
TEXTS = {"type": "object", "additionalProperties": TEXT}
POD = fields("spec", spec={"type": "object"})  # what is in it is Kubernetes' own
CLUSTER = fields(
    "headGroupSpec",
    rayVersion=TEXT,
    enableInTreeAutoscaling=YES_OR_NO,
    autoscalerOptions=fields(version={"enum": ["v1", "v2"]}, idleTimeoutSeconds=NUMBER),
    authOptions=fields(mode={"enum": ["disabled", "token"]}, secretName=TEXT),
    headGroupSpec=fields("template", rayStartParams=TEXTS, template=POD),
    workerGroupSpecs={
        "type": "array",
        "items": fields(
            "groupName maxReplicas minReplicas template",
            groupName=TEXT,
            replicas=NUMBER,
            minReplicas=NUMBER,
            maxReplicas=NUMBER,
            rayStartParams=TEXTS,
            template=POD,
        ),
    },
)
JOB = fields(
    entrypoint=TEXT,
    backoffLimit=NUMBER,
    shutdownAfterJobFinishes=YES_OR_NO,
    ttlSecondsAfterFinished=NUMBER,
    rayClusterSpec=CLUSTER,
)
KUBERAY = {
    kind: fields(
        "apiVersion kind metadata spec",
        apiVersion={"const": "ray.io/v1"},
        kind={"const": kind},
        metadata=fields("name", name=TEXT),
        spec=spec,
    )
    for kind, spec in {"RayCluster": CLUSTER, "RayJob": JOB}.items()
}


def manifest(name: str) -> Any:
    return yaml.safe_load((FOLDER / name).read_text())


def cluster_of(kind: str) -> Any:
    spec = manifest(MANIFESTS[kind])["spec"]
    return spec["rayClusterSpec"] if kind == "RayJob" else spec


def pods_of(kind: str) -> list[Any]:
    spec = cluster_of(kind)
    return [each["template"]["spec"] for each in (spec["headGroupSpec"], *spec["workerGroupSpecs"])]


@pytest.mark.parametrize("kind", MANIFESTS)
def test_manifests_have_the_fields_that_kuberay_knows(kind):
    found = manifest(MANIFESTS[kind])
    jsonschema.validate(found, KUBERAY[kind])
    found["spec"]["nonsense"] = 1
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(found, KUBERAY[kind])


@pytest.mark.parametrize("release", KUBERNETES)
def test_pods_and_claims_hold_to_the_schemas_of_kubernetes(release):
    kubernetes_validate.validate(manifest("checkpoints.yaml"), release, strict=True)
    for spec in pods_of("RayCluster") + pods_of("RayJob"):
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "pod"}, "spec": spec}
        kubernetes_validate.validate(pod, release, strict=True)
        spec["containers"][0]["ports"] = "6379"
        with pytest.raises(jsonschema.ValidationError):
            kubernetes_validate.validate(pod, release, strict=True)


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
    for pod in pods_of(kind):
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
