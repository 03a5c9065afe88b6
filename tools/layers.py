#!/usr/bin/env python3
"""Dependencies between the folders of src/ run one way; every #include is checked.

    os <- base <- proto <- session <- {core, engine}; api -> core; transport and backend know only base;
    every folder may use os, which knows nothing but the status codes;
    config (options and variables) knows only base: core, loop, sandbox and the programs read it,
    engine and backend the options;
    discovery finds servers for the core: it knows base, config and the keys and addresses of transport;
    loop joins sessions and transports; programs (daemon, cli) may use everything;
    nano, the client for bare metal, knows base, proto and session, and four headers of the C standard.

Folders reach the operating system through os alone: they include no header of POSIX. Those in SYSTEMS may, because they
hold what only one system has, and a port replaces them. LIBRARIES of others are used by a folder each, whose code
includes their headers.
A folder has at most FOLDER_MAX .c files.
A struct has at most FIELDS_MAX fields; a nested struct counts as one.
Transports have capabilities, not identities: outside src/transport no code names one (`transport_tcp`), compares
`ops`, or has a string that begins with a scheme ("tcp:"). Only the configuration's grammar has schemes, too.
Each header also compiles alone."""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src"

ALLOWED = {
    "os": {"os"},
    "base": {"base"},
    "config": {"base", "config"},
    "trace": {"base", "trace"},
    "proto": {"base", "proto"},
    "session": {"base", "proto", "session"},
    "transport": {"base", "transport"},
    "tls": {"base"},
    "media": {"base", "media"},
    "lttng": {"lttng"},
    "backend": {"base", "backend"},
    "loop": {"base", "config", "proto", "session", "transport", "loop"},
    "engine": {"base", "proto", "session", "engine"},
    "discovery": {"base", "config", "discovery"},
    "core": {"base", "config", "proto", "session", "discovery", "core"},
    "api": {"base", "core", "api"},
    "sandbox": {"base", "config", "sandbox"},
    "discover": {"base", "config", "discover"},
}
# Single headers that more may see: contracts and value types.
HEADERS = {
    "os": {"base/status.h"},
    "tls": {"transport/crypto.h"},
    "media": {"backend/media/codec.h"},
    "transport": {"config/variables.h"},
    "sandbox": {"transport/fabric.h"},
    "backend": {"config/options.h", "proto/args.h", "proto/image.h", "proto/info.h"},
    "engine": {"backend/backend.h", "backend/bounds.h", "config/options.h"},
    "discovery": {"proto/wire.h", "transport/address.h", "transport/tls.h"},
    "core": {"loop/link.h", "loop/dial.h", "transport/transport.h", "transport/address.h"},
    # The loop drives an engine on one side; on the other it implements what the core asks for.
    "loop": {"engine/engine.h", "backend/backend.h", "core/link/io.h"},
    "api": {"proto/args.h", "proto/info.h", "proto/object_id.h", "proto/option.h",
            "proto/wire.h", "session/session.h"},
}
# Folders that depend on the system: its wrapper, the walls around a worker, how spancld runs on Linux, and the
# program that stands in for an accelerator in tests.
WINDOWS = tuple(f"os/windows{part}" for part in
                ("", "/include/os", "/include/os/net", "/include/os/process", "/library", "/net", "/posix",
                 "/posix/arpa", "/posix/netinet", "/posix/sys", "/process", "/program"))
MACOS = tuple(f"os/macos{part}" for part in ("", "/include/os", "/include/os/process", "/library", "/net", "/process"))
SYSTEMS = ("os", "os/absent", "os/absent/include", "os/absent/net", "os/absent/process", "os/android", "os/linux",
           "os/linux/net", "os/linux/process", "os/net", "os/process", *MACOS, *WINDOWS, "sandbox", "sandbox/attacks",
           "sandbox/windows", "daemon/system", "daemon/linux", "daemon/windows", "emulator")
LIBRARIES = {"base": ("lz4.h",), "discover": ("avahi-", "ares.h", "opendht/"), "transport": ("rdma/",), "backend": ("xrt/",),
             "tls": ("openssl/", "intel-ipsec-mb.h"), "media": ("dav1d/", "wels/", "libde265/"),
             "trace": ("sys/sdt.h",), "lttng": ("lttng/",),
             "av": ("libavcodec/", "libavdevice/", "libavformat/", "libavutil/", "libswscale/")}
STANDARD = {f"{name}.h" for name in
            "assert complex ctype errno fenv float inttypes iso646 limits locale math setjmp stdalign"
            " stdarg stdatomic stdbool stddef stdint stdio stdlib stdnoreturn string tgmath uchar wchar"
            " wctype".split()}  # without those of clocks, signals and threads
NANO_STANDARD = {"stdbool.h", "stddef.h", "stdint.h", "string.h"}
NANO_LIBRARIES = {"lwip": "lwip/", "tls": "mbedtls/"}
OTHERS = ("CL/", "spancl/", "sanitizer/")  # other headers in angle brackets
FOLDER_MAX = 25
FIELDS_MAX = 30
# The files that know how an address is written: the transports, and the configuration's grammar.
SCHEMES_IN = ("src/transport/", "src/config/", "src/base/loopback.c")
PROGRAMS = {"daemon", "cli", "emulator", "discover", "av"}


def includes():
    bad = 0
    for path in sorted(SOURCE.rglob("*")):
        if path.suffix not in (".c", ".h", ".def"):
            continue
        folder = path.relative_to(SOURCE).parts[0]
        portable = str(path.parent.relative_to(SOURCE)) not in SYSTEMS
        for number, line in enumerate(path.read_text().splitlines(), 1):
            where = f"{path.relative_to(ROOT)}:{number}"
            match = re.match(r'\s*#\s*include\s+<([^>]+)>', line)
            if (match and portable and match.group(1) not in STANDARD and
                    not match.group(1).startswith(OTHERS + LIBRARIES.get(folder, ()))):
                print(f"{where}: <{match.group(1)}> is not of the C standard; src/os wraps POSIX")
                bad += 1
            match = re.match(r'\s*#\s*include\s+"([^"]+)"', line)
            if not match:
                continue
            target = match.group(1)
            other = target.split("/")[0]
            if "/" not in target:
                if not (path.parent / target).exists() and not target.startswith("CL"):
                    print(f"{where}: \"{target}\" is named without its folder")
                    bad += 1
                continue
            if folder in PROGRAMS or other == "CL":
                continue
            if other == "os" or other in ALLOWED.get(folder, set()):
                continue
            if other == "trace" and folder not in ("os", "base"):
                continue
            if target in HEADERS.get(folder, set()):
                continue
            print(f"{where}: {folder} must not include {target}")
            bad += 1
    return bad


def bare_metal():
    """nano/ needs no system; its parts over others (posix, lwip, mbedTLS) have headers of these."""
    bad = 0
    for path in sorted((ROOT / "nano").rglob("*.[ch]")):
        folder = path.parent.name
        for number, line in enumerate(path.read_text().splitlines(), 1):
            match = re.match(r'\s*#\s*include\s+([<"])([^>"]+)[>"]', line)
            if not match or folder == "posix":
                continue
            kind, target = match.groups()
            known = (target.startswith(NANO_LIBRARIES.get(folder, "-")) or
                     (target in NANO_STANDARD if kind == "<" else (ROOT / "nano" / target).exists() or
                      target.startswith(("base/", "proto/", "session/"))))
            if not known:
                print(f"{path.relative_to(ROOT)}:{number}: nano must not include {target}")
                bad += 1
    return bad


def identities():
    """No code outside src/transport depends on a particular transport."""
    bad = 0
    tables = "".join(p.read_text() for p in sorted((SOURCE / "transport").glob("*.c")))
    names = re.findall(r"^const struct transport_ops transport_(\w+) = {", tables, re.MULTILINE)
    schemes = re.findall(r"&transport_(\w+)", (SOURCE / "transport/address.c").read_text().split("};")[0])
    if not names or not schemes:
        print("tools/layers.py finds no transport in src/transport")
        return 1
    named = re.compile(r"\btransport_(?:" + "|".join(names) + r")\b|\bops\s*[!=]=")
    scheme = re.compile(r'"(?:' + "|".join(schemes) + r"):")
    comment = re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL)
    for path in sorted(SOURCE.rglob("*")):
        where = str(path.relative_to(ROOT))
        # A backend has a table of operations, too, and cannot include src/transport.
        if path.suffix not in (".c", ".h", ".def") or where.startswith(("src/transport/", "src/backend/")):
            continue
        code = comment.sub(lambda m: "\n" * m.group().count("\n"), path.read_text())
        for number, line in enumerate(code.splitlines(), 1):
            if named.search(line):
                print(f"{where}:{number}: names or compares a transport: ask for a capability (transport/transport.h)")
                bad += 1
            if scheme.search(line) and not where.startswith(SCHEMES_IN):
                print(f"{where}:{number}: writes an address: use transport/address.h")
                bad += 1
    return bad


def headers_alone(compiler="cc"):
    bad = 0
    for path in sorted(SOURCE.rglob("*.h")):
        if str(path.parent.relative_to(SOURCE)) in MACOS + WINDOWS:
            continue  # they need the headers of that system
        done = subprocess.run(
            [compiler, "-std=gnu17", "-D_GNU_SOURCE", "-DCL_TARGET_OPENCL_VERSION=300",
             "-DSPANCL_VERSION=\"0\"", "-fsyntax-only", "-x", "c", f"-I{SOURCE}",
             f"-I{ROOT / 'include'}", "-include", "stddef.h", str(path)],
            capture_output=True, text=True, check=False)
        if done.returncode != 0:
            print(f"{path.relative_to(ROOT)} does not compile alone:\n{done.stderr}")
            bad += 1
    return bad


def rooms():
    """No folder is so full that nobody sees its parts, and each layer that stands here exists."""
    bad = 0
    for folder in sorted(p for p in SOURCE.rglob("*") if p.is_dir()):
        count = len(list(folder.glob("*.c")))
        if count > FOLDER_MAX:
            print(f"{folder.relative_to(ROOT)}: {count} .c files, {FOLDER_MAX} are allowed")
            bad += 1
    for name in {*ALLOWED, *HEADERS, *PROGRAMS, *SYSTEMS, *LIBRARIES}:
        if not (SOURCE / name).is_dir():
            print(f"tools/layers.py names src/{name}, which does not exist")
            bad += 1
    return bad


# Text that holds no fields: comments, literals and directives; brackets, innermost first.
NO_CODE = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\])*"|' r"'(?:\\.|[^'\\])*'"
                     r"|^[ \t]*#(?:\\\n|[^\n])*", re.DOTALL | re.MULTILINE)
BRACKETS = re.compile(r"\([^()]*\)|\[[^\[\]]*\]")
BRACES = re.compile(r"(\b(?:struct|union)\s+(?:__attribute__\s+)?(\w*)\s*)?\{([^{}]*)\}")


def structs(text):
    """The name and the number of fields of each struct and union that `text` defines."""
    found = []

    def close(match):
        if match[1]:
            found.append((match[2], match[3].count(";") + match[3].count(",")))
        return match[1] or ""

    text = NO_CODE.sub(" ", text)
    for inner, replacement in (BRACKETS, ""), (BRACES, close):
        count = 1
        while count:
            text, count = inner.subn(replacement, text)
    return found


def fields():
    bad = 0
    for path in sorted(SOURCE.rglob("*.[ch]")):
        for name, count in structs(path.read_text()):
            if count > FIELDS_MAX:
                print(f"{path.relative_to(ROOT)}: struct {name} has {count} fields, "
                      f"{FIELDS_MAX} are allowed: group them")
                bad += 1
    return bad


def main():
    bad = includes() + bare_metal() + identities() + rooms() + fields()
    bad += headers_alone()
    print(f"{bad} violations")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
