"""Flux's source-controller and notification-controller, run outside of the cluster against a local control plane."""

import urllib.request

from control_plane import ControlPlane
from processes import free_ports

# notification-controller looks only at kind, namespace and name, yet its CRDs list the kinds that they allow.
KIND = "KluctlDeployment"
KIND_ENUMS = {
    "alerts.notification.toolkit.fluxcd.io": "spec/properties/eventSources/items/properties/kind/enum",
    "receivers.notification.toolkit.fluxcd.io": "spec/properties/resources/items/properties/kind/enum",
}


class Flux:
    """Installs the CRDs and runs both controllers as children of the control plane's processes."""

    def __init__(self, control_plane: ControlPlane):
        self.control_plane = control_plane
        storage, source_health, events, receiver, notification_health = free_ports(5)
        self.storage_address = f"127.0.0.1:{storage}"
        self.events_address = f"127.0.0.1:{events}"
        self.events_url = f"http://{self.events_address}/"
        self.receiver_address = f"127.0.0.1:{receiver}"
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
        kubectl = self.control_plane.kubectl
        crds = self.control_plane.programs.parent / "crds" / "flux"
        kubectl("apply", "--server-side", f"--filename={crds / 'source-controller'}", f"--filename={crds / 'notification-controller'}")
        kubectl("create", "namespace", self.namespace)
        kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=30s")


def responds(url: str) -> bool:
    """Whether a GET succeeds."""
    try:
        with urllib.request.urlopen(url, timeout=5):
            return True
    except OSError:
        return False
