"""Packs the wheel: wheel.py TREE TAG VERSION DESTINATION, where TREE is what scripts/install.sh lays out below a prefix.

Programs and toolboxes keep that layout in a virtual environment, because pip puts `*.data/scripts` into its `bin` and
`*.data/data` into its root. The modules and their entry points come from the packages in TREE/share/ovos-tools.
"""
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

tree, tag, version, destination = Path(sys.argv[1]), sys.argv[2], sys.argv[3], Path(sys.argv[4])
folder = destination / ".wheel"
shutil.rmtree(folder, ignore_errors=True)
info = folder / f"ovos_tools-{version}.dist-info"
data = folder / f"ovos_tools-{version}.data"
(info / "licenses").mkdir(parents=True)

shutil.copytree(tree / "bin", data / "scripts")
# The toolbox of GStreamer needs libraries that no manylinux system promises.
left_out = shutil.ignore_patterns("gstreamer.so", "__pycache__")
shutil.copytree(tree / "lib" / "ovos-tools", data / "data" / "lib" / "ovos-tools", ignore=left_out)
for pages in ("doc", "man"):
    shutil.copytree(tree / "share" / pages, data / "data" / "share" / pages)
shutil.copy(tree / "share" / "doc" / "ovos-tools" / "LICENSE", info / "licenses")

entry_points, needs, own = {}, set(), set()
for package in sorted((tree / "share" / "ovos-tools").iterdir()):
    project = tomllib.loads((package / "pyproject.toml").read_text())["project"]
    module = project["name"].replace("-", "_")
    shutil.copytree(package / module, folder / module, ignore=left_out)
    needs.update(project["dependencies"])
    own.add(f"{project['name']}=={project['version']}")
    for group, entries in project.get("entry-points", {}).items():
        entry_points.setdefault(group, {}).update(entries)

# The modules are imported by OVOS, which brings what they need; without OVOS the service works alone.
(info / "METADATA").write_text("\n".join([
    "Metadata-Version: 2.1",
    "Name: ovos-tools",
    f"Version: {version}",
    "Summary: Tools for a voice assistant: a service for the OVOS messagebus, with its toolboxes",
    "License: Apache-2.0",
    "License-File: LICENSE",
    "Project-URL: Source, https://github.com/OpenVoiceOS/ovos-tools",
    "Requires-Python: >=3.10",
    "Provides-Extra: ovos",
    *(f'Requires-Dist: {need}; extra == "ovos"' for need in sorted(needs - own)),
    "Description-Content-Type: text/markdown",
    "",
    "`ovos-tools install-service` starts the service now and with every login; `ovos-tools --help` says the rest.",
    "Remove the service before the package: `ovos-tools install-service --remove`.",
    "",
]))
(info / "WHEEL").write_text(f"Wheel-Version: 1.0\nGenerator: ovos-tools\nRoot-Is-Purelib: false\nTag: {tag}\n")
lines = []
for group, entries in sorted(entry_points.items()):
    lines += [f"[{group}]", *(f"{name} = {target}" for name, target in sorted(entries.items())), ""]
(info / "entry_points.txt").write_text("\n".join(lines))

subprocess.run([sys.executable, "-m", "wheel", "pack", folder, "--dest-dir", destination], check=True,
               stdout=subprocess.DEVNULL)
shutil.rmtree(folder)
