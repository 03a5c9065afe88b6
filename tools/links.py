#!/usr/bin/env python3
"""links.py FILE: what SPANCL_STATS wrote, as a table."""

import json
import sys


def size(count):
    for unit in ("B", "KiB", "MiB", "GiB"):
        if count < 1024 or unit == "GiB":
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1024
    return ""


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        links = json.load(file)["links"]
    width = max([len(str(link[k])) for link in links for k in ("from", "to")] + [10])
    print(f"{'from':<{width}}  {'to':<{width}}  {'messages':>10}  {'all bytes':>12}  {'bulk data':>12}")
    for link in links:
        print(f"{link['from']:<{width}}  {link['to']:<{width}}  {link['messages']:>10}  "
              f"{size(link['bytes']):>12}  {size(link['bulk_bytes']):>12}")


if __name__ == "__main__":
    main()
