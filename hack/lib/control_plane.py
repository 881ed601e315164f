"""A Kubernetes control plane on loopback, with a fake node. Every flag is explained in hack/control-plane/README.md."""

from __future__ import annotations

import base64
import json
import ssl
import subprocess
import urllib.request
from pathlib import Path

from processes import Processes, free_ports

SERVICE_RANGE = "10.96.0.0/16"
CERTIFICATES = """
[req]
distinguished_name = subject_is_given
[subject_is_given]
[ca]
basicConstraints = critical, CA:TRUE
keyUsage = critical, keyCertSign
[server]
basicConstraints = critical, CA:FALSE
extendedKeyUsage = serverAuth
subjectAltName = IP:127.0.0.1, IP:10.96.0.1, DNS:localhost, DNS:kubernetes, DNS:kubernetes.default, DNS:kubernetes.default.svc
[client]
basicConstraints = critical, CA:FALSE
extendedKeyUsage = clientAuth
"""
# kwok completes it.
NODE = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {
        "name": "fake-node",
        "labels": {"kubernetes.io/hostname": "fake-node", "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64"},
    },
}


class ControlPlane:
    """etcd, kube-apiserver, kube-controller-manager, kube-scheduler and kwok, as children of `processes`.

    `programs` is the directory that `hack/control-plane/build` prints. Everything written goes below `state`.
    After `start`, `kubeconfig` names the file of an administrator.
    """

    def __init__(self, programs: Path, state: Path, processes: Processes):
        self.programs = programs
        self.state = state
        self.processes = processes
        self.pki = state / "pki"
        self.kubeconfig = state / "kubeconfig"
        etcd, peer, server = free_ports(3)
        self.etcd_url = f"http://127.0.0.1:{etcd}"
        self.peer_url = f"http://127.0.0.1:{peer}"
        self.port = server
        self.url = f"https://127.0.0.1:{server}"

    def start(self) -> None:
        """Returns when the API server is ready and the fake node is registered; controllers may lag by a second."""
        self.pki.mkdir(parents=True, exist_ok=True)
        self._start_etcd()
        self._create_certificates()
        self._start_api_server()
        self._write_kubeconfig("admin", self.kubeconfig)
        self.processes.wait_until("kube-apiserver ready", self._ready, timeout=60, interval=0.05)
        self._start_controllers()
        self.kubectl("apply", "--server-side", "--filename=-", stdin=json.dumps(NODE))

    def kubectl(self, *arguments: str, stdin: str | None = None) -> str:
        """What kubectl, as administrator, prints on stdout; `subprocess.CalledProcessError` with its stderr otherwise."""
        command = [self.programs / "kubectl", f"--kubeconfig={self.kubeconfig}", *arguments]
        return subprocess.run(command, input=stdin, check=True, capture_output=True, text=True).stdout

    def restart_api_server(self) -> None:
        """Kills the API server, starts it again with the same data and port, and returns when it is ready."""
        self.processes.kill("kube-apiserver")
        self._start_api_server()
        self.processes.wait_until("kube-apiserver ready", self._ready, timeout=60, interval=0.05)

    def _start_etcd(self) -> None:
        self.processes.start("etcd", [
            self.programs / "etcd",
            f"--data-dir={self.state / 'etcd'}",
            f"--listen-client-urls={self.etcd_url}",
            f"--advertise-client-urls={self.etcd_url}",
            f"--listen-peer-urls={self.peer_url}",
            f"--initial-advertise-peer-urls={self.peer_url}",
            f"--initial-cluster=default={self.peer_url}",
            "--unsafe-no-fsync",
            "--log-level=warn",
        ])

    def _start_api_server(self) -> None:
        self.processes.start("kube-apiserver", [
            self.programs / "kube-apiserver",
            "--bind-address=127.0.0.1",
            "--advertise-address=127.0.0.1",
            f"--secure-port={self.port}",
            f"--tls-cert-file={self.pki / 'kube-apiserver.crt'}",
            f"--tls-private-key-file={self.pki / 'kube-apiserver.key'}",
            f"--etcd-servers={self.etcd_url}",
            f"--client-ca-file={self.pki / 'ca.crt'}",
            "--authorization-mode=RBAC",
            "--service-account-issuer=https://kubernetes.default.svc.cluster.local",
            f"--service-account-key-file={self.pki / 'service-account.pub'}",
            f"--service-account-signing-key-file={self.pki / 'service-account.key'}",
            f"--service-cluster-ip-range={SERVICE_RANGE}",
            "--allow-privileged",
            "--endpoint-reconciler-type=none",
            "--shutdown-delay-duration=0",
        ])

    def _start_controllers(self) -> None:
        stages = self.programs.parent / "kwok" / "stages"
        for name in ("kube-controller-manager", "kube-scheduler"):
            self._write_kubeconfig(name, self.state / f"{name}.kubeconfig")
        self.processes.start("kube-controller-manager", [
            self.programs / "kube-controller-manager",
            f"--kubeconfig={self.state / 'kube-controller-manager.kubeconfig'}",
            "--leader-elect=false",
            "--secure-port=0",
            f"--root-ca-file={self.pki / 'ca.crt'}",
            f"--service-account-private-key-file={self.pki / 'service-account.key'}",
            "--use-service-account-credentials",
            "--kube-api-qps=200",
            "--kube-api-burst=400",
        ])
        self.processes.start("kube-scheduler", [
            self.programs / "kube-scheduler",
            f"--kubeconfig={self.state / 'kube-scheduler.kubeconfig'}",
            "--leader-elect=false",
            "--secure-port=0",
        ])
        self.processes.start("kwok", [
            self.programs / "kwok",
            f"--kubeconfig={self.kubeconfig}",
            "--manage-all-nodes",
            "--node-lease-duration-seconds=40",
            *(f"--config={stages / file}" for file in (
                "node/fast/node-initialize.yaml",
                "node/heartbeat-with-lease/node-heartbeat-with-lease.yaml",
                "pod/fast/pod-ready.yaml",
                "pod/fast/pod-complete.yaml",
                "pod/fast/pod-delete.yaml",
            )),
        ])

    def _create_certificates(self) -> None:
        """A certificate authority, what it signs, and the key for service account tokens."""
        self._openssl("genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256", "-out", "service-account.key")
        self._openssl("pkey", "-in", "service-account.key", "-pubout", "-out", "service-account.pub")
        (self.pki / "openssl.cnf").write_text(CERTIFICATES)
        self._certificate("ca", "/CN=kubernetes-ca", "ca")
        signed = ("-CA", "ca.crt", "-CAkey", "ca.key")
        self._certificate("kube-apiserver", "/CN=kube-apiserver", "server", *signed)
        self._certificate("admin", "/O=system:masters/CN=admin", "client", *signed)
        self._certificate("kube-controller-manager", "/CN=system:kube-controller-manager", "client", *signed)
        self._certificate("kube-scheduler", "/CN=system:kube-scheduler", "client", *signed)

    def _certificate(self, name: str, subject: str, section: str, *more: str) -> None:
        key = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", f"{name}.key")
        self._openssl(
            "req", "-x509", "-config", "openssl.cnf", "-extensions", section, "-subj", subject, "-days", "365",
            *key, "-out", f"{name}.crt", *more,
        )

    def _openssl(self, *arguments: str) -> None:
        done = subprocess.run(["openssl", *arguments], cwd=self.pki, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise RuntimeError(f"openssl {arguments[0]}: {done.stderr.strip()}")

    def _write_kubeconfig(self, user: str, file: Path) -> None:
        def data(name: str) -> str:
            return base64.b64encode((self.pki / name).read_bytes()).decode()

        cluster = {"server": self.url, "certificate-authority-data": data("ca.crt")}
        credentials = {"client-certificate-data": data(f"{user}.crt"), "client-key-data": data(f"{user}.key")}
        # JSON is YAML: every client reads it.
        content = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "local",
            "contexts": [{"name": "local", "context": {"cluster": "local", "user": user}}],
            "clusters": [{"name": "local", "cluster": cluster}],
            "users": [{"name": user, "user": credentials}],
        }
        file.touch(mode=0o600)
        file.write_text(json.dumps(content, indent=2))

    def _ready(self) -> bool:
        try:
            context = ssl.create_default_context(cafile=str(self.pki / "ca.crt"))
            with urllib.request.urlopen(f"{self.url}/readyz", context=context, timeout=5) as response:
                return response.status == 200
        except OSError:
            return False
