"""Writes a bill of materials (CycloneDX 1.6) for a wheel: what it needs, and the models and lists that it brings.

In: a built wheel, and the packages that it needs, installed as constraints.txt pins them. Out: a JSON file for each
wheel, the same for the same wheel and packages.
Not here: where what a wheel brings comes from (the table in it, by `licences`).

Packages of the core are required; those of the extra `all` are optional.
"""

import argparse
import hashlib
import re
import uuid
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from email.message import Message
from email.parser import HeaderParser
from importlib.metadata import distribution
from pathlib import Path
from zipfile import ZipFile

from cyclonedx.model import (
    ExternalReference,
    ExternalReferenceType,
    HashAlgorithm,
    HashType,
    Property,
    XsUri,
)
from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentScope, ComponentType
from cyclonedx.model.license import DisjunctiveLicense, LicenseExpression
from cyclonedx.output.json import JsonV1Dot6
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from packageurl import PackageURL
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from release.licences import Table, join_licences, read_wheel

MADE = datetime(2020, 2, 2, tzinfo=UTC)
"""The time in the bill, which is that of the files in the wheel, so that it can be made again."""

LONGEST = 100
"""Characters of a licence; what is longer is a text and no name."""


def read_metadata(wheel: Path) -> Message:
    """Reads the metadata of a wheel."""
    with ZipFile(wheel) as opened:
        (name,) = (name for name in opened.namelist() if name.endswith(".dist-info/METADATA"))
        return HeaderParser().parsestr(opened.read(name).decode())


def list_needed(about: Message, extras: Iterable[str] = ()) -> dict[str, str]:
    """Lists the packages that a package needs, and those that these need.

    Args:
        about: its metadata.
        extras: of it, that are asked for.

    Returns:
        versions by normalized name.

    Raises:
        importlib.metadata.PackageNotFoundError: one of them is not installed.
    """
    found: dict[str, str] = {}
    seen: set[tuple[str, str]] = set()
    rest = [(about, extra) for extra in ("", *extras)]
    while rest:
        metadata, extra = rest.pop()
        key = (canonicalize_name(metadata["Name"]), extra)
        if key in seen:
            continue
        seen.add(key)
        for line in metadata.get_all("Requires-Dist") or ():
            need = Requirement(line)
            if need.marker and not need.marker.evaluate({"extra": extra}):
                continue
            name = canonicalize_name(need.name)
            other = about if name == key[0] else HeaderParser().parsestr(_read_installed(name))
            if name != canonicalize_name(about["Name"]):
                found[name] = other["Version"]
            rest += [(other, each) for each in ("", *need.extras)]
    return found


def _read_installed(name: str) -> str:
    text = distribution(name).read_text("METADATA")
    assert text is not None, "what pip installs has metadata"
    return text


def describe_package(name: str, version: str, scope: ComponentScope) -> Component:
    """Describes an installed package as a component."""
    about = HeaderParser().parsestr(_read_installed(name))
    said = about["License-Expression"] or ""
    others = [about["License"] or ""] + [
        each.rpartition(" :: ")[2]
        for each in about.get_all("Classifier") or ()
        if each.startswith("License ::")
    ]
    short = [each for each in others if 0 < len(each) <= LONGEST and "\n" not in each]
    licences = (
        [LicenseExpression(said)] if said else [DisjunctiveLicense(name=each) for each in short[:1]]
    )
    purl = PackageURL("pypi", name=name, version=version)
    return Component(
        name=name,
        version=version,
        bom_ref=str(purl),
        purl=purl,
        scope=scope,
        licenses=licences,
    )


def describe_sources(table: Table) -> Iterator[Component]:
    """Describes the models and lists that a wheel brings."""
    for name, source in table["sources"].items():
        if "address" not in source:
            continue  # our own
        files = [file for line in table["files"] if name in line["from"] for file in line["files"]]
        yield Component(
            name=source["title"],
            version=source.get("version"),
            type=ComponentType(source.get("kind", "data")),
            bom_ref=f"bundled:{name}",
            licenses=[LicenseExpression(join_licences([source["licence"]]))],
            external_references=[
                ExternalReference(type=ExternalReferenceType.WEBSITE, url=XsUri(source["address"]))
            ],
            properties=[Property(name="textveil:file", value=file) for file in files],
        )


def make_bill(wheel: Path) -> str:
    """Makes the bill of a wheel, as JSON.

    Raises:
        ValueError: it does not fit the schema of CycloneDX.
    """
    about, held = read_metadata(wheel), read_wheel(wheel)
    digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
    purl = PackageURL("pypi", name=canonicalize_name(about["Name"]), version=about["Version"])
    root = Component(
        name=about["Name"],
        version=about["Version"],
        type=ComponentType.APPLICATION,
        bom_ref=str(purl),
        purl=purl,
        licenses=[LicenseExpression(held.expression)],
        hashes=[HashType(alg=HashAlgorithm.SHA_256, content=digest)],
        properties=[
            Property(
                name="textveil:learned", value=f"{', '.join(line['files'])}: {line['learned']}"
            )
            for line in held.table["files"]
            if "learned" in line
        ],
    )
    required = list_needed(about)
    everything = "all" in (about.get_all("Provides-Extra") or ())
    optional = list_needed(about, ["all"]) if everything else {}
    parts = [*describe_sources(held.table)]
    parts += [describe_package(*each, ComponentScope.REQUIRED) for each in required.items()]
    parts += [
        describe_package(name, version, ComponentScope.OPTIONAL)
        for name, version in optional.items()
        if name not in required
    ]
    bill = Bom(components=parts, serial_number=uuid.uuid5(uuid.NAMESPACE_URL, digest))
    bill.metadata.component, bill.metadata.timestamp = root, MADE
    bill.register_dependency(root, parts)
    text: str = JsonV1Dot6(bill).output_as_string(indent=2)
    check_bill(text)
    return text


def check_bill(text: str) -> None:
    """Checks a bill against the schema.

    Raises:
        ValueError: it does not fit.
    """
    if fault := JsonStrictValidator(SchemaVersion.V1_6).validate_str(text):
        raise ValueError(f"the bill must fit the schema of CycloneDX 1.6: {fault.data.message}")


def main() -> None:
    """Writes the bills of the wheels of a folder."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("wheels", type=Path, help="a folder with wheels")
    parser.add_argument("out", type=Path, help="a folder for the bills")
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    for wheel in sorted(given.wheels.glob("*.whl")):
        place = given.out / f"{re.sub('-py3.*', '', wheel.name)}.cdx.json"
        place.write_text(make_bill(wheel), "utf-8")
        print(place)


if __name__ == "__main__":
    main()
