"""Helm as a shared library, which Maven Central has: its program would have to be built, which takes minutes.

The library is called in a process of its own, this module as a program: Go's runtime and the signals that Helm listens
for have no place in one that runs tests.

    python -m tests.deploy.helm FOLDER Lint '{"path": "deploy/helm/kohort-application", "strict": 1}'
"""

from __future__ import annotations

import ctypes
import functools
import json
import re
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Final, NamedTuple

from tests.interop.built_once import built_once
from tests.interop.java.build import HERE, maven
from tests.interop.toolchains import FOLDER
from tests.tools import MAVEN

POM: Final = HERE / "helm" / "pom.xml"
ROOT: Final = Path(__file__).parents[2]
TYPES: Final = {"char*": ctypes.c_char_p, "int": ctypes.c_int}


class Answer(NamedTuple):
    """Of Helm: its output, and an error's message, which is empty after success."""

    output: str
    error: str


def lint(chart: Path) -> Answer:
    """What Helm has against a chart with its own values, strictly; `Failed: true` or `Failed: false` comes last."""
    return _helm("Lint", path=str(chart), strict=1)


def template(chart: Path, values: Path, name: str = "", namespace: str = "", kubernetes: str = "") -> Answer:
    """The manifests of a release, with values of a file, for a version of Kubernetes."""
    return _helm(
        "Template", chart=str(chart), valuesFiles=str(values), name=name, namespace=namespace, kubeVersion=kubernetes
    )


@functools.cache
def library() -> Path:
    """A folder with the library and its header, which the first process that asks has Maven fetch."""

    def build(target: Path) -> None:
        maven(POM, target)
        (jar,) = (target / "dependency").glob("*.jar")
        with zipfile.ZipFile(jar) as packed:
            for name in packed.namelist():
                if re.fullmatch(r"helm-.*\.(so|h)", name):
                    packed.extract(name, target)
        jar.unlink()

    MAVEN.require()
    return built_once(FOLDER, "helm", [POM.read_bytes()], build)


def _helm(function: str, **options: str | int) -> Answer:
    command = [sys.executable, "-m", "tests.deploy.helm", library(), function, json.dumps(options)]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if ran.returncode:
        raise RuntimeError(f"Helm's library ended with {ran.returncode}:\n{ran.stdout}{ran.stderr}")
    return Answer(*json.loads(ran.stdout))


def called(folder: Path, function: str, options: dict[str, str | int]) -> Answer:
    """What a function of the library returns; never in a process that does other things."""
    (header,), (shared,) = folder.glob("helm-*.h"), folder.glob("helm-*.so")
    answer_type, options_type = _structure(header, "Result"), _structure(header, f"{function}Options")
    if unknown := options.keys() - dict(options_type._fields_).keys():
        raise ValueError(f"{function} has no {', '.join(sorted(unknown))}")
    wanted = options_type(
        **{key: value.encode() if isinstance(value, str) else value for key, value in options.items()}
    )
    call = getattr(ctypes.CDLL(str(shared)), function)
    call.restype = answer_type
    answer = call(ctypes.byref(wanted))
    return Answer((answer.out or b"").decode(), (answer.err or b"").decode())


def _structure(header: Path, name: str) -> type[ctypes.Structure]:
    """A structure of the header, which differs from version to version."""
    text = header.read_text()
    found = re.search(rf"struct {name}\s*{{(.*?)}}|typedef struct {{([^}}]*)}} {name};", text, re.DOTALL)
    if not found:
        raise ValueError(f"{header} has no {name}")
    fields = [(field, TYPES[kind]) for kind, field in re.findall(r"(\S+)\s+(\w+);", found[1] or found[2])]
    return type(name, (ctypes.Structure,), {"_fields_": fields})


if __name__ == "__main__":
    _, where, what, how = sys.argv
    sys.stdout.write(json.dumps(called(Path(where), what, json.loads(how))))
