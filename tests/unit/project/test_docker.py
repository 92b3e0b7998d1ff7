"""The container parts, read strictly: without an engine, everything that a file alone can get
wrong."""

import json
import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from support.files.compose import COMPOSE, DOCKER, SERVICES, resolved
from support.running.programs import run_program

ROOT = Path(__file__).parents[3]
DOCKERFILE = (DOCKER / "Dockerfile").read_text()
CUDA: dict[str, Any] = yaml.safe_load((DOCKER / "compose.cuda.yaml").read_text())

# The keys of the Compose specification that these files may use, with the types it gives them.
TOP_LEVEL = {"name": str, "services": dict, "volumes": dict}
TYPES: dict[type | tuple[type, ...], str] = {
    str: "image stop_grace_period restart",
    dict: "build environment healthcheck depends_on deploy",
    list: "cap_drop security_opt volumes ports",
    bool: "init",
    (str, int): "shm_size",
    (str, list): "entrypoint command",
}
SERVICE_KEYS = {key: type_ for type_, keys in TYPES.items() for key in keys.split()}
HEALTHCHECK_KEYS = {"test", "interval", "timeout", "retries", "start_period"}
CONDITIONS = {"service_started", "service_healthy", "service_completed_successfully"}
DURATION = re.compile(r"(?:\d+(?:us|ms|s|m|h))+")


def instructions() -> list[tuple[str, str]]:
    """The Dockerfile's instructions, continued lines joined, comments left out."""
    text = re.sub(r"^\s*#.*\n", "", DOCKERFILE, flags=re.MULTILINE).replace("\\\n", " ")
    return [
        (line.split(None, 1)[0], line.split(None, 1)[1])
        for line in text.splitlines()
        if line.strip()
    ]


def context() -> list[str]:
    """The files of the build context."""
    lines = (DOCKER / "Dockerfile.dockerignore").read_text().splitlines()
    return [line[1:] for line in lines if line[:1] == "!"]


def copied() -> list[str]:
    """Files that the Dockerfile copies from the repository, in order."""
    copies = [shlex.split(value) for name, value in instructions() if name == "COPY"]
    return [
        source for words in copies if not words[0].startswith("--from") for source in words[:-1]
    ]


def variables_in(text: str) -> set[str]:
    return set(re.findall(r"(?<!\$)\$\{(\w+)", text))


# -------------------------------------------------------------------------------------------------
# compose


@pytest.mark.parametrize("document", [COMPOSE, CUDA], ids=["compose.yaml", "compose.cuda.yaml"])
def test_the_compose_files_use_known_keys_with_the_right_types(document):
    for key, value in document.items():
        assert key.startswith("x-") or isinstance(value, TOP_LEVEL[key]), key
    for name, service in document["services"].items():
        for key, value in service.items():
            assert key in SERVICE_KEYS, f"services.{name}.{key} is no key these files use"
            assert isinstance(value, SERVICE_KEYS[key]), f"services.{name}.{key}: {value!r}"
        for key, value in service.get("environment", {}).items():
            assert isinstance(value, str | int | float), (
                f"services.{name}.environment.{key}: {value!r}"
            )
        assert service.get("restart", "no") in {"no", "always", "unless-stopped"} or service[
            "restart"
        ].startswith("on-failure")


def test_every_service_has_an_image_or_a_build_and_a_health_check():
    assert set(SERVICES) == {"database", "ray-head", "ray-worker", "driver"}
    for name, service in SERVICES.items():
        assert "image" in service, name
        check = service["healthcheck"]
        assert set(check) == HEALTHCHECK_KEYS, name
        assert check["test"][0] in {"CMD", "CMD-SHELL"}, name
        assert all(
            DURATION.fullmatch(check[key]) for key in ("interval", "timeout", "start_period")
        ), name
        assert isinstance(check["retries"], int), name


def test_services_wait_for_services_that_are_there_and_can_become_healthy():
    for name, service in SERVICES.items():
        for other, wait in service.get("depends_on", {}).items():
            assert other in SERVICES, f"{name} waits for {other}"
            assert wait["condition"] in CONDITIONS, f"{name} waits for {other}"


def test_nothing_is_published_beyond_loopback():
    published = [port for service in SERVICES.values() for port in service.get("ports", [])]
    assert published, "the database answers on this machine"
    for port in published:
        address = resolved(port, {})
        assert re.fullmatch(r"127\.0\.0\.1:\d+:\d+", address), port
    for service in [*SERVICES.values(), *CUDA["services"].values()]:
        assert "network_mode" not in service
        assert not service.get("privileged", False)
    assert "EXPOSE" not in {name for name, _ in instructions()}


def test_named_volumes_are_declared_and_the_study_folder_is_read_only():
    for name, service in SERVICES.items():
        for volume in service.get("volumes", []):
            source, target, *mode = resolved(volume, {"STUDY_DIR": "/srv/study"}).split(":")
            assert target.startswith("/"), f"{name}: {volume}"
            if source.startswith("/"):
                assert mode == ["ro"], f"{name} may write to the host's {source}"
            else:
                assert source in COMPOSE["volumes"], f"{name}: {source} is not declared"


def test_driver_and_workers_share_the_checkpoints_and_workers_can_be_scaled():
    checkpoints = [
        name
        for name, service in SERVICES.items()
        if "checkpoints:/checkpoints" in service["volumes"]
    ]
    assert {"driver", "ray-worker"} <= set(checkpoints)
    assert SERVICES["driver"]["command"][-2:] == ["--checkpoints", "/checkpoints"]
    assert SERVICES["database"]["volumes"] == ["database:/var/lib/postgresql/data"]
    worker = SERVICES["ray-worker"]
    assert "container_name" not in worker
    assert "ports" not in worker


def test_the_password_comes_from_the_environment_file_and_reaches_only_who_needs_it():
    text = (DOCKER / "compose.yaml").read_text()
    holders = {name for name, service in SERVICES.items() if "POSTGRES_PASSWORD" in str(service)}
    assert holders == {"database", "driver"}
    assert text.count("${POSTGRES_PASSWORD:?") == text.count("${POSTGRES_PASSWORD")
    assert "PASSWORD" not in DOCKERFILE
    assert "PASSWORD" not in SERVICES["driver"]["environment"]["HPSEARCH_STORAGE"]
    example = (DOCKER / ".env.example").read_text()
    assert re.search(r"^POSTGRES_PASSWORD=$", example, flags=re.MULTILINE)


def test_the_driver_is_told_its_database_and_its_cluster_which_asks_for_the_token():
    for name in ("ray-head", "ray-worker", "driver"):
        environment = SERVICES[name]["environment"]
        assert environment["RAY_AUTH_MODE"] == "token", name
        assert environment["RAY_AUTH_TOKEN"].startswith("${RAY_AUTH_TOKEN:?"), name
    environment = SERVICES["driver"]["environment"]
    assert environment["HPSEARCH_STORAGE"] == "postgresql://hpsearch@database:5432/hpsearch"
    assert environment["RAY_ADDRESS"] == "ray-head:6379"
    assert "--port=6379" in SERVICES["ray-head"]["entrypoint"]


def test_the_example_environment_names_every_variable_and_no_other():
    used = variables_in((DOCKER / "compose.yaml").read_text()) | variables_in(
        (DOCKER / "compose.cuda.yaml").read_text()
    )
    example = set(re.findall(r"^(\w+)=", (DOCKER / ".env.example").read_text(), flags=re.MULTILINE))
    assert used == example


def test_the_drivers_script_runs_the_study_file_by_default_and_any_other_command_instead(tmp_path):
    shell, flag, script, name = SERVICES["driver"]["entrypoint"]
    assert (shell, flag) == ("sh", "-c")
    for program in ("ray", "hpsearch"):
        fake = tmp_path / program
        fake.write_text(f'#!/bin/sh\necho "{program} $*"\n')
        fake.chmod(0o755)
    default = [resolved(part, {}) for part in SERVICES["driver"]["command"]]
    for command in (default, ["resume", "a-study"]):
        done = run_program(
            [shell, flag, script.replace("$$", "$"), name, *command],
            env={"PATH": f"{tmp_path}:{os.environ['PATH']}", "RAY_ADDRESS": "head:1"},
            check=True,
        )
        assert done.stderr.splitlines() == ["ray start --address=head:1 --num-cpus=0 --num-gpus=0"]
        assert done.stdout.splitlines() == [
            f"hpsearch {' '.join(command)}"
        ]  # stdout is for JSON alone
    assert default == ["run", "/study/study.yaml", "--checkpoints", "/checkpoints"]


# ----------------------------------------------------------------------------------------------
# Dockerfile


def test_images_are_pinned_to_a_version_and_a_digest():
    arguments = dict(value.split("=", 1) for name, value in instructions() if name == "ARG")
    bases = [value.split()[0] for name, value in instructions() if name == "FROM"]
    images = [
        arguments[re.sub(r"[${}]", "", base)] if base.startswith("$") else base for base in bases
    ]
    images.append(SERVICES["database"]["image"])
    for image in images:
        assert re.fullmatch(r"\w+:\d+\.\d+[\w.-]*@sha256:[0-9a-f]{64}", image), image
    for name, service in SERVICES.items():
        if name != "database":  # the image that is built here
            assert re.fullmatch(r"hpsearch:\d+\.\d+[\w.-]*", resolved(service["image"], {})), name


def test_dependencies_are_in_a_layer_that_a_change_of_the_code_leaves_alone():
    assert copied() == ["pyproject.toml", "constraints.txt", "docker/install.sh", "docker/user.sh"]
    steps = [value for name, value in instructions() if name in {"RUN", "COPY"}]
    at = {action: next(i for i, step in enumerate(steps) if f"install.sh {action}" in step)
          for action in ("dependencies", "project")}  # fmt: skip
    own = steps.index("--from=dependencies /opt/hpsearch /opt/hpsearch")
    assert at["dependencies"] < own < at["project"]
    assert "target=/source" not in steps[at["dependencies"]], "it would see the code"


def test_the_image_runs_as_an_unprivileged_user():
    users = [value for name, value in instructions() if name == "USER"]
    assert users == ["hpsearch"]
    assert "useradd --uid 10001 " in (DOCKER / "user.sh").read_text()
    names = [name for name, _ in instructions()]
    assert names.index("USER") > max(
        i for i, name in enumerate(names) if name in {"RUN", "COPY", "FROM"}
    )
    for name, service in SERVICES.items():
        assert "user" not in service, name
        if name != "database":
            assert service["cap_drop"] == ["ALL"], name
            assert "no-new-privileges:true" in service["security_opt"], name


def test_the_build_context_has_what_is_copied_and_installed_and_nothing_else():
    assert set(copied()) <= set(context())
    for source in context():
        assert (ROOT / source).exists(), f"{source}: no such file"
    assert {"hpsearch", "trials"} <= set(context())


def test_the_variant_reaches_the_install_script():
    assert SERVICES["driver"]["build"]["args"]["VARIANT"] == "${VARIANT:-cpu}"
    assert (ROOT / "docker" / SERVICES["driver"]["build"]["context"]).resolve() == ROOT
    assert (ROOT / SERVICES["driver"]["build"]["dockerfile"]).exists()
    run = next(value for name, value in instructions() if name == "RUN" and "install.sh" in value)
    assert 'VARIANT="${VARIANT}"' in run


# -------------------------------------------------------------------------------------------
# install script


@pytest.mark.parametrize("script", sorted(path.name for path in DOCKER.glob("*.sh")))
def test_the_scripts_are_plain_shell_that_stops_at_the_first_error(script):
    path = DOCKER / script
    text = path.read_text()
    assert text.startswith("#!/bin/sh\n")
    assert re.search(r"^set -eu$", text, flags=re.MULTILINE)
    assert os.access(path, os.X_OK)
    commands = re.sub(r"^\s*#.*$", "", text, flags=re.MULTILINE)
    assert not re.search(r"\[\[|\bfunction\b|\blocal\b|<<<|\bsource \S", commands), (
        "only what POSIX shells know"
    )
    subprocess.run(["sh", "-n", str(path)], check=True)
    if shutil.which("shellcheck"):
        subprocess.run(["shellcheck", str(path)], check=True)


def install(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return run_program(
        ["sh", str(DOCKER / "install.sh"), *arguments],
        env={"PATH": os.environ["PATH"], **environment},
    )


def test_the_install_script_refuses_what_it_cannot_install_and_touches_nothing(tmp_path):
    (tmp_path / "precious").write_text("kept")
    usage = "usage: docker/install.sh dependencies|project PREFIX"
    for told, done in [
        (usage, install()),
        (usage, install("dependencies")),
        (usage, install("wheel", f"{tmp_path}/prefix")),
        ("VARIANT is 'tpu'; it must be", install("dependencies", f"{tmp_path}/p", VARIANT="tpu")),
        ("is not empty", install("dependencies", str(tmp_path))),
    ]:
        assert done.returncode == 2
        assert told in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["precious"]


@pytest.fixture
def installed(tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Installs by an interpreter whose `-m venv` makes an environment of programs that write down
    what they are asked."""
    interpreter = tmp_path / "python"
    interpreter.write_text(
        "#!/bin/sh\n"
        'mkdir -p "$3/bin"\n'
        'printf \'#!/bin/sh\\necho "$@" >> "%s"\\n[ "$1" != -c ] || echo "$BUILT_FOR"\\n\' '
        '"$LOG" > "$3/bin/python"\n'
        'cp "$3/bin/python" "$3/bin/hpsearch"\n'
        'chmod +x "$3/bin/python" "$3/bin/hpsearch"\n'
    )
    interpreter.chmod(0o755)
    programs = {"PYTHON": str(interpreter), "LOG": f"{tmp_path}/log"}
    prefix = f"{tmp_path}/prefix"
    return lambda **environment: install("dependencies", prefix, **programs, **environment)


def test_the_install_script_installs_pinned_versions_and_pytorch_from_the_index_named(
    tmp_path, installed
):
    done = installed(BUILT_FOR="cpu", TORCH_INDEX="file:///wheels")
    assert done.returncode == 0, done.stderr
    assert "(PyTorch for cpu)" in done.stdout
    installs = [
        line for line in (tmp_path / "log").read_text().splitlines() if "pip install" in line
    ]
    assert len(installs) == 2
    for line in installs:
        assert f"--constraint {ROOT / 'constraints.txt'}" in line
        assert "--extra-index-url file:///wheels" in line
    done = install("project", f"{tmp_path}/prefix", LOG=f"{tmp_path}/log")
    assert done.returncode == 0, done.stderr
    assert f"pip install --no-deps {ROOT}" in (tmp_path / "log").read_text()


def test_a_cuda_image_without_cuda_is_an_error(installed):
    done = installed(BUILT_FOR="cpu", VARIANT="cuda")
    assert done.returncode == 1
    assert "a PyTorch without CUDA" in done.stderr


def test_a_cpu_image_with_cuda_works_and_says_how_to_make_it_smaller(installed):
    done = installed(BUILT_FOR="cuda", VARIANT="cpu")
    assert done.returncode == 0
    assert "set TORCH_INDEX for a CPU build" in done.stdout


def test_every_step_of_the_image_is_a_script_that_the_full_check_runs():
    commands = [value.split() for name, value in instructions() if name == "RUN"]
    steps = [next(word for word in words if word.endswith(".sh")) for words in commands]
    assert len(steps) == 3
    check = (DOCKER / "check.sh").read_text()
    for step, words in zip(steps, commands, strict=True):
        assert not {"&&", ";", "|"} & set(words), f"more than {step}"
        run = " ".join(words[words.index(step) :]).removeprefix("/").removeprefix("source/")
        assert f"/source/{run}" in check


def test_the_full_check_tries_the_image_as_it_starts():
    values = dict(instructions())
    entry, command = json.loads(values["ENTRYPOINT"]), json.loads(values["CMD"])
    tried = (DOCKER / "try.sh").read_text()
    assert f"\n{' '.join(entry + command)} >/dev/null\n" in tried
    assert f"cd {values['WORKDIR']}\n" in (DOCKER / "check.sh").read_text()


def test_the_full_check_brings_what_the_dockerfile_copies_and_then_the_context():
    lines = (DOCKER / "check.sh").read_text().splitlines()
    for name, files in (("copied", copied()), ("context", context())):
        assignment = next(line for line in lines if line.startswith(f"{name}="))
        script = f'root={ROOT}; {assignment}; echo "${name}"'
        assert run_program(["sh", "-euc", script], check=True).stdout.split() == files
