"""A real Neo4j server for tests, benchmarks and developers: fetched as ordinary artifacts, started on free loopback ports.

`python tools/neo4j_server.py fetch` brings the jars (and, where that is allowed, Java and Maven); `... run` starts a
server, prints its address and stays until it is interrupted. Nothing outside the given folder is written to.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).parent.parent
HOME = ROOT / "build" / "neo4j"
LIBRARY = HOME / "lib"
START_SECONDS_MAX = 180
STOP_SECONDS_MAX = 30
PASSWORD = "a-password-for-tests"  # noqa: S105  the server listens on loopback, for the length of a test run

_CONFIGURATION = """
server.default_listen_address=127.0.0.1
server.bolt.listen_address=127.0.0.1:{port}
server.http.enabled=false
server.https.enabled=false
server.memory.heap.initial_size={heap}
server.memory.heap.max_size={heap}
server.memory.pagecache.size=128m
server.directories.transaction.logs.root={home}/logs-of-transactions
db.tx_log.rotation.retention_policy=keep_none
dbms.security.auth_enabled={auth}
dbms.usage_report.enabled=false
"""


def missing() -> str | None:
    """Return one sentence that says what to install, or None when a server can be started."""
    if shutil.which("java") is None:
        return "the Neo4j tests need Java 17 or newer: install it (Debian: apt-get install openjdk-17-jre-headless maven)"
    if not any(LIBRARY.glob("neo4j-server-*.jar")):
        return "the Neo4j tests need the server's jars: run `make neo4j-jars`, which uses Maven (Debian: apt-get install maven)"
    return None


def fetch() -> str | None:
    """Bring what a server needs; returns one sentence when it cannot be had."""
    if missing() is None:
        return None
    if shutil.which("java") is None or shutil.which("mvn") is None:
        _install(["openjdk-17-jre-headless", "maven"])
    if shutil.which("mvn") is None:
        return missing()
    pom = ROOT / "tools" / "neo4j" / "pom.xml"
    command = ["mvn", "-q", "-B", "-f", str(pom), "dependency:copy-dependencies", f"-DoutputDirectory={LIBRARY}"]
    for _ in range(3):  # a download that breaks off is taken up again
        if subprocess.run(command, check=False, stdout=sys.stderr).returncode == 0:  # noqa: S603
            break
    return missing()


def _install(packages: list[str]) -> None:
    """Install Debian packages, if this is Debian or Ubuntu and we may."""
    apt = shutil.which("apt-get")
    if apt is None or os.geteuid() != 0:
        return
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    for arguments in (["update"], ["install", "-y", "--no-install-recommends", *packages]):
        subprocess.run([apt, "-qq", *arguments], check=False, env=environment, stdout=sys.stderr)  # noqa: S603


def free_port() -> int:
    """Return a port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Server:
    """One server in one folder; it can be killed and started again, and finds its data."""

    def __init__(self, folder: Path, *, auth: bool = False, port: int | None = None, heap: str = "512m") -> None:
        self.folder = folder
        self.port = port or free_port()
        self.url = f"neo4j://127.0.0.1:{self.port}"
        self._process: subprocess.Popen[bytes] | None = None
        self._heap = heap
        (folder / "conf").mkdir(parents=True, exist_ok=True)
        text = _CONFIGURATION.format(port=self.port, home=folder, auth=str(auth).lower(), heap=heap)
        (folder / "conf" / "neo4j.conf").write_text(text, encoding="utf-8")
        if auth:
            self._set_password()

    def _set_password(self) -> None:
        """Set the first password, as the administration command does."""
        command = _java_command(self._heap, "org.neo4j.cli.AdminTool", "dbms", "set-initial-password", PASSWORD)
        environment = {**os.environ, "NEO4J_HOME": str(self.folder), "NEO4J_CONF": str(self.folder / "conf")}
        subprocess.run(command, check=True, env=environment, stdout=subprocess.DEVNULL)  # noqa: S603

    @property
    def log(self) -> Path:
        """Where the server writes what it prints."""
        return self.folder / "server.log"

    def start(self) -> None:
        """Start the process; `wait` tells when it answers."""
        main = "org.neo4j.server.CommunityEntryPoint"
        command = _java_command(self._heap, main, f"--home-dir={self.folder}", f"--config-dir={self.folder / 'conf'}", "--console-mode")
        with self.log.open("ab") as output:
            self._process = subprocess.Popen(  # noqa: S603
                command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, start_new_session=True
            )

    def wait(self) -> None:
        """Wait until the server answers on its port; raises RuntimeError with the end of its log when it does not."""
        try:
            wait(self.port, self.is_running)
        except RuntimeError as error:
            msg = f"{error}:\n{self.log.read_text(errors='replace')[-2000:]}"
            raise RuntimeError(msg) from error

    def is_running(self) -> bool:
        """Tell whether the process is alive."""
        return self._process is not None and self._process.poll() is None

    def kill(self) -> None:
        """End the process at once, as a power cut would."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        """End the process in order."""
        self._end(signal.SIGTERM)

    def _end(self, how: signal.Signals) -> None:
        if self._process is not None:
            if self._process.poll() is None:
                self._process.send_signal(how)
            try:
                self._process.wait(STOP_SECONDS_MAX)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
            self._process = None


def _java_command(heap: str, *arguments: str) -> list[str]:
    java = shutil.which("java") or "java"
    return [java, f"-Xmx{heap}", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=4", "-cp", f"{LIBRARY}/*", *arguments]


def wait(port: int, is_running: Callable[[], bool] = lambda: True) -> None:
    """Wait until a server answers on a port; RuntimeError when none does."""
    deadline = time.monotonic() + START_SECONDS_MAX
    while not answers(port):
        if time.monotonic() > deadline or not is_running():
            msg = f"no Neo4j server answers on port {port} after {START_SECONDS_MAX} s"
            raise RuntimeError(msg)
        time.sleep(0.1)


def answers(port: int) -> bool:
    """Tell whether a Bolt server shakes hands on a port."""
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=2) as connection:
            connection.sendall(bytes.fromhex("6060b017" + "00000405" + "00" * 12))
            return len(connection.recv(4)) == 4  # noqa: PLR2004  the version it chose
    except OSError:
        return False


def _run() -> int:
    trouble = fetch()
    if trouble is not None:
        print(trouble, file=sys.stderr)
        return 1
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # ends in order, as Ctrl-C does
    with tempfile.TemporaryDirectory(prefix="recollect-neo4j-") as folder:
        server = Server(Path(folder))
        server.start()
        try:
            server.wait()
            print(f"Neo4j listens at {server.url} without a password; its data goes when it is stopped (Ctrl-C)", flush=True)
            print(f"try: recollect --store {server.url} stats", flush=True)
            while server.is_running():
                time.sleep(1)
        except KeyboardInterrupt:
            pass
        finally:
            server.stop()
    return 0


def main() -> int:
    """Do what the command line says."""
    if sys.argv[1:] == ["fetch"]:
        trouble = fetch()
        if trouble is not None:
            print(trouble, file=sys.stderr)
        return 1 if trouble is not None and os.environ.get("CI") == "true" else 0
    if sys.argv[1:] == ["run"]:
        return _run()
    print("usage: python tools/neo4j_server.py fetch | run", file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main())
