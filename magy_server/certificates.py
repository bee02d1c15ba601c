"""This module chooses which certificates a TLS client of Magy's trusts."""

from __future__ import annotations

import os
import re
import ssl
import sys
from functools import lru_cache
from pathlib import Path

_BUNDLES = (
    "/etc/ssl/cert.pem",
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
    "/etc/pki/tls/cert.pem",
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/ssl/ca-bundle.pem",
)
"""Where Linux systems and BSDs keep them, if not where OpenSSL was built to look."""
_HASHED = re.compile(r"[0-9a-fA-F]{8}\.\d+")
"""OpenSSL finds a certificate in a folder by a name of this kind."""


def trusted() -> ssl.SSLContext:
    """Returns the context of a client that speaks HTTP/1.1 and trusts what `SSL_CERT_FILE` or
    `SSL_CERT_DIR` names, or else the system's certificates. It is the same one as long as the
    environment says the same: reading certificates takes longer than a request. Thread-safe; not
    for the event loop. Raises OSError."""
    return _trusted(os.environ.get("SSL_CERT_FILE", ""), os.environ.get("SSL_CERT_DIR", ""))


@lru_cache(maxsize=1)
def _trusted(file: str, folder: str) -> ssl.SSLContext:
    if not (file or folder) and sys.platform in ("darwin", "win32"):
        import truststore

        context: ssl.SSLContext = truststore.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    else:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        named = (file, "" if file else folder) if file or folder else _of_the_system()
        if any(named):
            context.load_verify_locations(named[0] or None, named[1] or None)
    context.set_alpn_protocols(["http/1.1"])
    return context


def _of_the_system() -> tuple[str, str]:
    """Returns a file and a folder, each "" if there is none. A Python that was built for many
    systems looks where this one may have nothing."""
    paths = ssl.get_default_verify_paths()
    file, folder = paths.openssl_cafile, paths.openssl_capath
    file = file if Path(file).is_file() else ""
    if not Path(folder).is_dir() or not (file or any(map(_HASHED.fullmatch, os.listdir(folder)))):
        folder = ""
    if not file and not folder:
        file = next(filter(os.path.isfile, _BUNDLES), "")
    return file, folder
