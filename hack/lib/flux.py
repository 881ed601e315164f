"""Flux's source-controller and notification-controller, run outside of the cluster against a local control plane."""

import json
import os
import shutil
import urllib.request
from pathlib import Path

from control_plane import ControlPlane
from processes import free_ports

CHECKOUT = Path(__file__).resolve().parent.parent.parent


class Flux:
    """Installs the CRDs and runs both controllers as children of the control plane's processes."""

    def __init__(self, control_plane: ControlPlane):
        self.control_plane = control_plane
        storage, source_health, events, receiver, notification_health = free_ports(5)
        self.storage_address = f"127.0.0.1:{storage}"
        self.events_address = f"127.0.0.1:{events}"
        self.events_url = f"http://{self.events_address}/"
        self.receiver_address = f"127.0.0.1:{receiver}"
        self.receiver_url = f"http://{self.receiver_address}"
        self.source_health = f"127.0.0.1:{source_health}"
        self.notification_health = f"127.0.0.1:{notification_health}"
        self.namespace = "flux-system"

    def start(self) -> None:
        """Returns when both controllers report that they are ready."""
        self._install_crds()
        common = [
            "--metrics-addr=0",
            "--watch-all-namespaces",
            "--log-level=info",
        ]
        environment = {"KUBECONFIG": str(self.control_plane.kubeconfig), "RUNTIME_NAMESPACE": self.namespace}
        storage = self.control_plane.state / "artifacts"
        storage.mkdir(exist_ok=True)
        start = self.control_plane.processes.start
        start("notification-controller", [
            self.control_plane.programs / "notification-controller",
            f"--events-addr={self.events_address}",
            f"--receiverAddr={self.receiver_address}",
            f"--health-addr={self.notification_health}",
            *common,
        ], environment)
        start("source-controller", [
            self.control_plane.programs / "source-controller",
            f"--storage-path={storage}",
            f"--storage-addr={self.storage_address}",
            f"--storage-adv-addr={self.storage_address}",
            f"--events-addr={self.events_url}",
            f"--health-addr={self.source_health}",
            *common,
        ], environment)
        for name, address in (("source", self.source_health), ("notification", self.notification_health)):
            self.control_plane.processes.wait_until(
                f"{name}-controller ready", lambda address=address: responds(f"http://{address}/readyz"), timeout=60
            )

    def _install_crds(self) -> None:
        """Flux's CRDs, with our component on top, as a user would combine them."""
        kubectl = self.control_plane.kubectl
        overlay = self.control_plane.state / "flux"
        crds = []
        for source in sorted((self.control_plane.programs.parent / "crds" / "flux").glob("*/*.yaml")):
            overlay.mkdir(exist_ok=True)
            shutil.copy(source, overlay)  # kustomize reads no files outside of the kustomization's directory
            crds.append(source.name)
        component = CHECKOUT / "config" / "flux" / "components" / "notification"
        kustomization = {"resources": crds, "components": [os.path.relpath(component, overlay.resolve())]}
        (overlay / "kustomization.yaml").write_text(json.dumps(kustomization))
        kubectl("create", "namespace", self.namespace)
        kubectl("apply", "--server-side", f"--kustomize={overlay}")
        kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=30s")


def responds(url: str) -> bool:
    """Whether a GET succeeds."""
    try:
        with urllib.request.urlopen(url, timeout=5):
            return True
    except OSError:
        return False
