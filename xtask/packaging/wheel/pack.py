"""Packs a directory as a wheel: `pack.py DIRECTORY WHEEL`.

The record of the files and their hashes, which every wheel has, is added. The same files give the
same bytes, wherever and whenever they are packed.
"""

import base64
import hashlib
import os
import pathlib
import sys
import zipfile


def main():
    root, wheel = pathlib.Path(sys.argv[1]), sys.argv[2]
    files = sorted(path for path in root.rglob("*") if path.is_file())
    (info,) = root.glob("*.dist-info")
    record = f"{info.name}/RECORD"
    lines = []
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for path in files:
            name, data = path.relative_to(root).as_posix(), path.read_bytes()
            add(archive, name, data, 0o755 if os.access(path, os.X_OK) else 0o644)
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=")
            lines.append(f"{name},sha256={digest.decode()},{len(data)}\n")
        lines.append(f"{record},,\n")
        add(archive, record, "".join(lines).encode(), 0o644)


def add(archive, name, data, mode):
    # The earliest date that the format knows.
    entry = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
    entry.compress_type = zipfile.ZIP_DEFLATED
    entry.create_system = 3
    entry.external_attr = (0o100000 | mode) << 16
    archive.writestr(entry, data)


main()
