#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Reads ctest's JUnit file, checks skips against the allow-list and prints the closing line."""
import re
import sys
import xml.etree.ElementTree as ET


def main() -> int:
    junit, allow_list = sys.argv[1:3]
    allowed = {}
    for line in open(allow_list, encoding="utf-8"):
        line = line.split("#", 1)[0].strip()
        if line:
            pattern, reason = line.split(None, 1)
            allowed[re.compile(pattern + r"\Z")] = reason
    passed = failed = skipped = 0
    unexpected = []
    for case in ET.parse(junit).getroot().iter("testcase"):
        name = case.get("name", "")
        if case.find("skipped") is not None or case.get("status") in ("notrun", "disabled"):
            skipped += 1
            reasons = [r for p, r in allowed.items() if p.match(name)]
            if reasons:
                print(f"skipped (allowed): {name}: {reasons[0]}")
            else:
                unexpected.append(name)
        elif case.find("failure") is not None or case.get("status") == "fail":
            failed += 1
            print(f"FAILED: {name}")
        else:
            passed += 1
    for name in unexpected:
        print(f"SKIPPED WITHOUT PERMISSION: {name} (tests/skips.txt lists what may be skipped, and why)")
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    return 1 if failed or unexpected or passed == 0 else 0


sys.exit(main())
