"""Certificates: the proof, shipped with each id, of how much of it needs a memory.

`certify` makes one, `load_certificate` reads that of an id, `hash_episodes` is the hash of its episodes, and
`find_test_set` names the trials that everyone plays.
"""

from __future__ import annotations

from memenvs.certificate import Certificate, PolicyRow, Training, read_certificate, write_certificate
from memenvs.registry import find_environment

__all__ = [
    "Certificate",
    "PolicyRow",
    "Training",
    "load_certificate",
    "read_certificate",
    "write_certificate",
]


def load_certificate(id: str) -> Certificate:
    """Read the certificate that is shipped with an id.

    Args:
        id: The id; the namespace may be left out.

    Raises:
        ValueError: There is no such id, it has no certificate, or its file is broken.
    """
    spec = find_environment(id)
    certificate = spec.load_certificate()
    if certificate is None:
        raise ValueError(f"{spec.id} has no certificate; `memenvs certify {spec.id} --out FILE` makes one")
    return certificate
