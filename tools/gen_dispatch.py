#!/usr/bin/env python3
"""Print src/api/dispatch.def: every entry point of OpenCL's dispatch table.

usage: gen_dispatch.py cl.xml >src/api/dispatch.def

cl.xml is the registry of OpenCL (KhronosGroup/OpenCL-Docs, xml/cl.xml). Taken from it: the commands of
each version of the core up to 3.0, and the commands of those extensions that have slots in the
table of cl_khr_icd. The order here means nothing: slots are filled in by name.
"""

import sys
import xml.etree.ElementTree as ElementTree

# The last version that the table serves.
LAST = (3, 0)

# Extensions with slots in struct _cl_icd_dispatch; the table only grows by core versions since.
WITH_SLOTS = (
    "cl_khr_gl_sharing",
    "cl_khr_gl_event",
    "cl_khr_egl_image",
    "cl_khr_egl_event",
    "cl_ext_device_fission",
    "cl_khr_subgroups",
)

# The same, but declared by the headers on Windows alone.
WINDOWS = (
    "cl_khr_d3d10_sharing",
    "cl_khr_d3d11_sharing",
    "cl_khr_dx9_media_sharing",
)


def commands(node):
    """Names of the commands that a <feature> or <extension> requires, each once."""
    names = []
    for require in node.findall("require"):
        for command in require.findall("command"):
            if command.get("name") not in names:
                names.append(command.get("name"))
    return names


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    registry = ElementTree.parse(sys.argv[1]).getroot()

    print("/* Every entry point of the dispatch table. Made by tools/gen_dispatch.py from OpenCL's")
    print(" * registry; do not edit.")
    print(" *   CORE(major, minor, name)    of a core version")
    print(" *   EXT(extension, name)        of an extension that has slots in the table")
    print(" *   WINDOWS(extension, name)    the same, on Windows alone */")

    seen = set()
    features = []
    for feature in registry.iter("feature"):
        version = tuple(int(n) for n in feature.get("number").split("."))
        if feature.get("api") == "opencl" and version <= LAST:
            features.append((version, feature))
    for version, feature in sorted(features, key=lambda f: f[0]):
        print("\n/* OpenCL %d.%d */" % version)
        for name in commands(feature):
            if name in seen:
                continue
            seen.add(name)
            print("CORE(%d, %d, %s)" % (version[0], version[1], name))

    extensions = {e.get("name"): e for e in registry.iter("extension")}
    for kind, wanted in (("EXT", WITH_SLOTS), ("WINDOWS", WINDOWS)):
        for extension in wanted:
            if extension not in extensions:
                sys.exit("%s: no extension %s" % (sys.argv[1], extension))
            names = [n for n in commands(extensions[extension]) if n not in seen]
            if names:
                print("\n/* %s */" % extension)
            for name in names:
                seen.add(name)
                print("%s(%s, %s)" % (kind, extension, name))

    print()
    for macro in ("CORE", "EXT", "WINDOWS"):
        print("#undef %s" % macro)


if __name__ == "__main__":
    main()
