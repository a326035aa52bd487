"""What a fresh root takes from the machine that it is made on, to reach the same mirrors: no address stands here."""

from __future__ import annotations

import ast
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

RELEASES: Final = ("oldstable", "stable", "testing", "bullseye", "bookworm", "trixie", "forky", "sid")
KEYRING: Final = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
CERTIFICATES: Final = Path("/usr/local/share/ca-certificates")
MAVEN: Final = Path(".m2", "settings.xml")  # in a user's home
TAKEN: Final = re.compile(
    r"PIP_.*|MAVEN_.*|SSL_CERT_.*|.*_CA_BUNDLE|GIT_SSL_CAINFO|(HTTPS?|FTP|ALL|NO)_PROXY", re.IGNORECASE
)
"""Variables of the environment that say how to reach others."""
LEFT: Final = ("PIP_CACHE_DIR",)
"""Of these, what would hide a download that a fresh machine has to make."""
APT_LEFT: Final = ("Acquire::IndexTargets", "Acquire::Changelogs", "Acquire::cdrom")


class MirrorError(Exception):
    """The machine has no package source of Debian's, or not what its files are signed with."""


@dataclass(frozen=True)
class Machine:
    """How this machine reaches others.

    Attributes:
        mirror: of Debian.
        updates: whether its sources have what was updated since the release.
        security: the mirror of security updates, if there is one among its sources.
        keyring: that the mirror's release files are signed with.
        apt: settings of apt, as in apt.conf: proxies, timeouts and the like.
        pip: settings of pip, as in pip.conf.
        environment: variables.
        files: that variables and settings of apt and pip name.
    """

    mirror: str
    updates: bool
    security: str | None
    keyring: Path
    apt: str
    pip: str
    environment: dict[str, str]
    files: tuple[Path, ...]

    def give(self, root: Path, codename: str, homes: Iterable[Path]) -> None:
        """Write all of it into a fresh root; certificates are made known there by `update-ca-certificates`."""
        (root / "etc/apt/sources.list").write_text(self.sources(codename))
        copy(self.keyring, root / self.keyring.relative_to("/"))
        (root / "etc/apt/apt.conf.d/99machine").write_text(self.apt)
        if self.pip:
            (root / "etc/pip.conf").write_text(self.pip)
        for file in (Path("/etc/resolv.conf"), Path("/etc/hosts")):
            shutil.copyfile(file, root / file.relative_to("/"))
        if CERTIFICATES.is_dir():
            shutil.copytree(CERTIFICATES, root / CERTIFICATES.relative_to("/"), dirs_exist_ok=True)
        for file in self.files:
            copy(file, root / file.relative_to("/"))
        for home in homes:
            copy(Path.home() / MAVEN, root / home.relative_to("/") / MAVEN)

    def sources(self, codename: str) -> str:
        """A sources.list for a release."""
        suites = [f"{self.mirror} {codename}"]
        if self.updates:
            suites.append(f"{self.mirror} {codename}-updates")
        if self.security:
            suites.append(f"{self.security} {codename}-security")
        return "".join(f"deb [signed-by={self.keyring}] {suite} main\n" for suite in suites)


def copy(source: Path, target: Path) -> None:
    """Copy a file or a directory, if it is there and the target isn't."""
    if source.exists() and not target.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        (shutil.copytree if source.is_dir() else shutil.copyfile)(source, target)


def this_machine() -> Machine:
    """What apt, pip and the environment say.

    Raises:
        MirrorError: no source of apt's is Debian's, or its keyring is missing.
    """
    printed("apt-get", "update", "-qq")  # apt doesn't know whose a source is before it has read it
    sites = sites_of(printed("apt-get", "indextargets", "--format", "$(SITE) $(RELEASE) $(ORIGIN)"))
    mirror = mirror_of(sites)
    keyring = keyring_of(mirror, source_files())
    if not keyring.exists():
        raise MirrorError(f"{keyring} is missing: run 'apt-get install debian-archive-keyring' as root")
    pip = pip_settings(printed(sys.executable, "-m", "pip", "config", "list"))
    environment = {name: value for name, value in os.environ.items() if TAKEN.fullmatch(name) and name not in LEFT}
    apt = apt_settings(printed("apt-config", "dump", "Acquire"))
    said = [*environment.values(), *(value for section in pip.values() for value in section.values()), apt]
    return Machine(
        mirror=mirror,
        updates=any(f"{release}-updates" in sites for release in RELEASES),
        security=next((sites[f"{release}-security"] for release in RELEASES if f"{release}-security" in sites), None),
        keyring=keyring,
        apt=apt,
        pip=as_ini(pip),
        environment=environment,
        files=tuple(paths(said)),
    )


def printed(*command: str) -> str:
    """What a command prints; nothing if it isn't there or fails."""
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return ""


def sites_of(told: str) -> dict[str, str]:
    """Debian's own among sources, by release: others name their releases "stable" and "bookworm", too.

    Args:
        told: a line an index: its site, its release, and whose it is.
    """
    lines = (line.split(maxsplit=2) for line in told.splitlines())
    return {line[1]: line[0] for line in lines if line[2:] == ["Debian"]}


def mirror_of(sites: Mapping[str, str]) -> str:
    """The site of Debian's releases."""
    for release in RELEASES:
        if release in sites:
            return sites[release]
    raise MirrorError("apt knows no mirror of Debian: its sources need a line such as 'deb MIRROR bookworm main'")


def source_files(directory: Path = Path("/etc/apt")) -> list[str]:
    """The texts of apt's sources."""
    files = [directory / "sources.list", *sorted((directory / "sources.list.d").glob("*"))]
    return [file.read_text() for file in files if file.is_file() and file.suffix in (".list", ".sources")]


def keyring_of(mirror: str, texts: Iterable[str]) -> Path:
    """What a mirror's files are signed with: what its source names, a paragraph or a line, or else Debian's keys."""
    for text in texts:
        for source in re.split(r"\n\s*\n|\n(?=\s*deb\b)", text):
            if mirror in source and (named := re.search(r"signed-by\s*[:=]\s*(/[^\s\]]+)", source, re.IGNORECASE)):
                return Path(named[1])
    return KEYRING


def apt_settings(dump: str) -> str:
    """Those of `apt-config dump` that say how to fetch."""
    return "".join(f"{line}\n" for line in dump.splitlines() if not line.startswith(APT_LEFT))


def pip_settings(listed: str) -> dict[str, dict[str, str]]:
    """Those of `pip config list`, by section, without what comes from the environment."""
    found: dict[str, dict[str, str]] = {}
    for line in listed.splitlines():
        name, equals, value = line.partition("=")
        section, _, key = name.rpartition(".")
        if equals and section != ":env:":
            found.setdefault(section, {})[key] = ast.literal_eval(value)
    return found


def as_ini(sections: Mapping[str, Mapping[str, str]]) -> str:
    """As pip.conf has them; further lines of a value are indented."""
    lines = []
    for section, settings in sections.items():
        lines.append(f"[{section}]")
        lines += [f"{key} = " + value.replace("\n", "\n    ") for key, value in settings.items()]
    return "".join(f"{line}\n" for line in lines)


def paths(values: Iterable[str]) -> Iterable[Path]:
    """Files and directories that are named in values: alone, in a list, or as what an option in it is set to."""
    for value in values:
        for word in shlex.split(value):
            path = Path(word.rpartition("=")[2].rstrip(";"))
            if path.is_absolute() and path.exists():
                yield path
