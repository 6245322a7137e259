"""Keys and certificates of a cluster, by the openssl command."""

from __future__ import annotations

from pathlib import Path

from .common import run

DAYS = "3650"


def _key(path: Path) -> Path:
    run(["openssl", "ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", path])
    path.chmod(0o600)
    return path


def make_ca(folder: Path, name: str) -> None:
    key = _key(folder / f"{name}.key")
    run(["openssl", "req", "-x509", "-new", "-key", key, "-days", DAYS, "-subj", f"/CN=slinc {name}", "-out", folder / f"{name}.crt",
         "-addext", "basicConstraints=critical,CA:TRUE", "-addext", "keyUsage=critical,keyCertSign,cRLSign,digitalSignature"])


def make_cert(folder: Path, name: str, subject: str, ca: str = "ca", names: list[str] | None = None) -> None:
    """A certificate for clients, and for servers too when host names or addresses are given."""
    key = _key(folder / f"{name}.key")
    request = run(["openssl", "req", "-new", "-key", key, "-subj", subject])
    usage = "serverAuth,clientAuth" if names else "clientAuth"
    extensions = f"basicConstraints=CA:FALSE\nextendedKeyUsage={usage}\n"
    if names:
        kinds = [("IP" if part.replace(".", "").isdigit() else "DNS") + f":{part}" for part in names]
        extensions += f"subjectAltName={','.join(kinds)}\n"
    (folder / f"{name}.ext").write_text(extensions)
    run(["openssl", "x509", "-req", "-days", DAYS, "-CA", folder / f"{ca}.crt", "-CAkey", folder / f"{ca}.key", "-CAcreateserial",
         "-extfile", folder / f"{name}.ext", "-out", folder / f"{name}.crt"], input=request)
    (folder / f"{name}.ext").unlink()


def make_all(folder: Path, api_names: list[str]) -> None:
    """Everything the API server, kubelet and controllers authenticate with."""
    folder.mkdir(mode=0o700, exist_ok=True)
    make_ca(folder, "ca")
    make_ca(folder, "front-proxy-ca")
    make_cert(folder, "apiserver", "/CN=kube-apiserver", names=api_names)
    make_cert(folder, "kubelet-client", "/O=system:masters/CN=kube-apiserver-kubelet-client")
    make_cert(folder, "front-proxy", "/CN=front-proxy-client", ca="front-proxy-ca")
    make_cert(folder, "admin", "/O=system:masters/CN=admin")
    _key(folder / "service-account.key")
    run(["openssl", "ec", "-in", folder / "service-account.key", "-pubout", "-out", folder / "service-account.pub"])
