#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Room and door rules (tests/checks/rooms.table) against every include of the tree; also: a folder with C files that no
room names, quoted includes that do not start at the root, and top-level entries that the layout does not know."""
import os
import re
import sys

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')
TOP = {
    "CMakeLists.txt", "CMakePresets.json", "LICENSE", "README.md",
    "dataplane", "controlplane", "common", "shm-ring", "tests", "perf", "deploy", "docs", "build",
}


def read_table(path):
    rooms, doors = {}, {}
    for line in open(path, encoding="utf-8"):
        line = line.split("#", 1)[0].strip()
        if not line:
            continue
        kind, rest = line.split(None, 1)
        name, allowed = rest.split(":", 1)
        (rooms if kind == "room" else doors)[name.strip()] = allowed.split()
    return rooms, doors


def sources(root):
    for top in sorted(os.listdir(root)):
        if top.startswith(".") or top == "build" or not os.path.isdir(os.path.join(root, top)):
            continue
        for folder, _, files in os.walk(os.path.join(root, top)):
            for f in sorted(files):
                if f.endswith((".c", ".h")):
                    yield os.path.relpath(os.path.join(folder, f), root)


def room_of(path, rooms):
    fitting = [r for r in rooms if path.startswith(r + "/")]
    return max(fitting, key=len) if fitting else None


def check_include(path, room, rooms, doors, root, quoted, header):
    if quoted:
        generated = header == "common/version.h"
        if not generated and not os.path.exists(os.path.join(root, header)):
            return f'"{header}" does not start at the repository root'
        target = room_of(header, rooms)
        allowed = rooms[room]
        if "*" in allowed or target == room:
            return None
        if not any(header == a or (target is not None and target == a) for a in allowed):
            return f'{room} may not include "{header}"'
        return None
    for door, users in doors.items():
        if header.startswith(door) and not any(path.startswith(u) for u in users):
            return f"<{header}> may only be included by {', '.join(users)}"
    return None


def main():
    root = sys.argv[1]
    rooms, doors = read_table(os.path.join(root, "tests/checks/rooms.table"))
    errors = []
    for entry in sorted(os.listdir(root)):
        if not entry.startswith(".") and entry not in TOP:
            errors.append(f"{entry}: the layout knows no such top-level entry")
    count = 0
    for path in sources(root):
        room = room_of(path, rooms)
        if room is None:
            errors.append(f"{path}: no room in tests/checks/rooms.table names this folder")
            continue
        for number, line in enumerate(open(os.path.join(root, path), encoding="utf-8"), 1):
            m = INCLUDE.match(line)
            if not m:
                continue
            count += 1
            error = check_include(path, room, rooms, doors, root, m.group(1) == '"', m.group(2))
            if error:
                errors.append(f"{path}:{number}: {error}")
    for e in errors:
        print(e)
    print(f"{count} includes checked, {len(errors)} errors")
    return 1 if errors or count == 0 else 0


sys.exit(main())
