"""What docker-compose.yml says of its services."""

from dataclasses import dataclass, field
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[2]
FILE = ROOT / "docker-compose.yml"


@dataclass(frozen=True)
class Service:
    """One service, as far as a process needs it."""

    name: str
    image: str
    words: list
    """Entrypoint and command."""
    environment: dict
    mounts: list
    """Pairs of a source, which is a path or the name of a volume, and the path at which the service finds it."""
    needs: dict
    """What has to hold of other services before this one starts."""
    published: dict
    """Ports on the host, by the service's own port."""
    health: list
    """Words of the health check; empty without one."""
    restart: str
    scale: int = field(default=1)

    @property
    def instances(self):
        """Their names, as compose numbers them."""
        return [f"{self.name}-{number}" for number in range(1, self.scale + 1)]


def services(path=FILE):
    """Return the services of a compose file by name."""
    return {name: _service(name, each) for name, each in yaml.safe_load(path.read_text())["services"].items()}


def _service(name, each):
    health = each.get("healthcheck", {})
    return Service(
        name=name,
        image=each["image"].partition(":")[0],
        words=[*each.get("entrypoint", ()), *each.get("command", ())],
        environment={key: str(value) for key, value in each.get("environment", {}).items()},
        mounts=[_mount(volume) for volume in each.get("volumes", ())],
        needs={other: need["condition"] for other, need in each.get("depends_on", {}).items()},
        published={int(inside): int(host) for _, host, inside in (port.split(":") for port in each.get("ports", ()))},
        health=health.get("test", []),
        restart=each["restart"],
        scale=each.get("scale", 1),
    )


def _mount(volume):
    """Return the source of a mount, which may be a folder of a volume, and its target."""
    if isinstance(volume, str):
        return tuple(volume.split(":")[:2])
    return f"{volume['source']}/{volume['volume']['subpath']}", volume["target"]
