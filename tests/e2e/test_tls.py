"""slurmrestd behind a proxy that speaks TLS, with a CA that the values of a chart name: tokens go to nobody but the holder of its certificate."""

from __future__ import annotations

import asyncio
import ssl
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from bridge import Site
from exporter_release import Exporter
from replica import free_port
from slincdev import pki
from slincdev.cluster import Cluster
from slincdev.components import NODE as REAL
from slincdev.slurm import Slurm
from test_bridge_chart import MANAGED, captured, installed
from waits import wait_for

TOKEN = b"X-SLURM-USER-TOKEN: "


class Proxy:
    """Takes TLS at one address of the host and passes on to slurmrestd what it hears. Its certificates are those of the authority that it has now."""

    def __init__(self, folder: Path, host: str, slurm: Slurm) -> None:
        self.folder, self.host, self.port, self.slurm = folder, host, free_port(), slurm
        self.heard = bytearray()  # through the certificates of now
        self.writers: set[asyncio.StreamWriter] = set()
        self.server: asyncio.Server | None = None
        self.loop = asyncio.new_event_loop()
        threading.Thread(target=self.loop.run_forever, daemon=True).start()
        self.authorities = 0

    @property
    def url(self) -> str:
        return f"https://{self.host}:{self.port}"

    def change_authority(self) -> str:
        """Returns the CA. Whoever is connected must connect again."""
        self.authorities += 1
        folder = self.folder / str(self.authorities)
        folder.mkdir()
        pki.make_ca(folder, "ca")
        pki.make_cert(folder, "tls", "/CN=slurmrestd", names=[self.host])
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(folder / "tls.crt", folder / "tls.key")
        asyncio.run_coroutine_threadsafe(self._serve(context), self.loop).result(10)
        return (folder / "ca.crt").read_text().strip()

    async def _serve(self, context: ssl.SSLContext) -> None:
        await self._close()
        self.heard = bytearray()
        self.server = await asyncio.start_server(self._pass_on, self.host, self.port, ssl=context)

    async def _close(self) -> None:
        if self.server:
            self.server.close()
        for writer in [*self.writers]:
            writer.transport.abort()

    async def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        theirs, ours = await asyncio.open_connection(self.slurm.host, self.slurm.port)
        self.writers |= {writer, ours}
        try:
            await asyncio.gather(self._pump(reader, ours, self.heard), self._pump(theirs, writer, bytearray()))
        except OSError:
            pass
        finally:
            self.writers -= {writer, ours}

    async def _pump(self, source: asyncio.StreamReader, to: asyncio.StreamWriter, heard: bytearray) -> None:
        try:
            while piece := await source.read(1 << 16):
                heard += piece
                to.write(piece)
                await to.drain()
        finally:
            to.close()

    def stop(self) -> None:
        asyncio.run_coroutine_threadsafe(self._close(), self.loop).result(10)
        self.loop.call_soon_threadsafe(self.loop.stop)


@pytest.fixture
def proxy(cluster: Cluster, slurm: Slurm, tmp_path: Path) -> Iterator[Proxy]:
    found = Proxy(tmp_path, cluster.host_ip, slurm)
    yield found
    found.stop()


def test_the_bridge_works_through_tls_and_tells_no_stranger_its_token(cluster: Cluster, slurm: Slurm, proxy: Proxy, eventually: Callable) -> None:
    site = Site(cluster, slurm, MANAGED)
    where = f"sharedConfig.slurmRestApi={proxy.url}"
    with installed(site, where, f"sharedConfig.slurmRestCa={proxy.change_authority()}") as release:
        wait_for("the node is in Slurm", 120, lambda: site.is_registered(REAL))
        captured(site, "through-tls", "true")
        eventually("the pod has run", lambda: site.see("through-tls")["status"]["phase"] == "Succeeded")
        assert TOKEN in proxy.heard and b"POST /slurm/" in proxy.heard
        ca = proxy.change_authority()  # as somebody would who answers in its place
        wait_for("the bridge says why", 60, lambda: any("certificate" in release.log(pod) for pod in release.pods()))
        assert proxy.heard == b""
        release.apply("upgrade", where, f"sharedConfig.slurmRestCa={ca}")
        captured(site, "again", "true")
        eventually("a pod has run", lambda: site.see("again")["status"]["phase"] == "Succeeded")
        assert TOKEN in proxy.heard


def up(exporter: Exporter) -> set[str]:
    """Of each kind whether it is read."""
    return {line.split()[-1] for line in exporter.get("/metrics").splitlines() if line.startswith("slinc_slurm_up{")}


def test_the_exporter_reads_through_tls_and_tells_no_stranger_its_token(cluster: Cluster, proxy: Proxy) -> None:
    exporter = Exporter(cluster, "slurm", "exporter.jwtKey.name=slurm-auth", f"exporter.server={proxy.url}", f"exporter.serverCa={proxy.change_authority()}")
    exporter.install()
    try:
        wait_for("Slurm is read", 60, lambda: up(exporter) == {"1"})
        assert TOKEN in proxy.heard
        proxy.change_authority()
        wait_for("Slurm is away", 90, lambda: "0" in up(exporter))
        assert proxy.heard == b""
    finally:
        exporter.uninstall()
