"""Hidden SSDs of all kinds from 2008 to 2025, drawn from wide ranges around usual values."""

from __future__ import annotations

import numpy as np

from headstack.catalogue.system import parse_system
from headstack.twin.device import SimulatedDevice
from headstack.twin.learnt import System

RAW_LEAST, RAW_MOST = 2 << 30, 24 << 30
"""Range of the flash in bytes. Real drives hold more; fewer blocks per die do not change their behaviour, and they
reach steady state in minutes of virtual time and seconds of real time."""
BLOCKS = (70, 260)
"""Range of blocks per plane."""
ERAS = (
    # generation, interface, years
    ("slc", "sata"),
    ("mlc", "sata"),
    ("mlc-64", "nvme"),
    ("tlc-32", "sata"),
    ("tlc-64", "sata"),
    ("tlc-64", "nvme"),
    ("tlc-96", "nvme"),
    ("tlc-128", "sata"),
    ("tlc-128", "nvme"),
    ("tlc-176", "nvme"),
    ("tlc-232", "nvme"),
    ("qlc-64", "nvme"),
    ("qlc-96", "sata"),
    ("qlc-144", "nvme"),
    ("qlc-232", "nvme"),
)
PCIE = {"mlc-64": (3,), "tlc-64": (3,), "tlc-96": (3,), "qlc-64": (3,), "tlc-128": (3, 4), "qlc-144": (3, 4)}


def draw(random: np.random.Generator) -> System:
    """Draws a drive. Equal generator states give equal drives."""
    while True:
        try:
            return _draw(random)
        except ValueError:
            # The draw leaves no spare or no blocks: draw again.
            continue


def loaded(text: str) -> System:
    """Returns the resolved system of a file's text. An SSD programs single pages: calibration does not fit programs
    of all bits of the cells."""
    return dict(parse_system(text.replace("[flash]\n", "[flash]\npages_per_program = 1\n", 1)).system)


def _draw(random: np.random.Generator) -> System:
    generation, interface = ERAS[random.integers(len(ERAS))]
    sata = interface == "sata"
    link = 'kind = "sata"' if sata else f'kind = "nvme"\ngeneration = {random.choice(PCIE.get(generation, (4, 5)))}'
    system = loaded(f'name = "hidden"\n[capacity]\nsize = "8GB"\n[flash]\ngeneration = "{generation}"\n'
                    f'cells = "{generation[:3]}"\nchannels = 4\ndies_per_channel = 4\nover_provisioning = 0.2\n'
                    f"pages_per_block = 64\n[interface]\n{link}\n")  # fmt: skip
    drive = system["drive"]["ssd"]

    def around(value: float, factor: float) -> int:
        return round(value * float(np.exp(random.uniform(-np.log(factor), np.log(factor)))))

    flash, timing, controller = drive["flash"], drive["timing"], drive["controller"]
    flash["channels"] = int(random.choice((2, 4, 8, 10) if sata else (4, 8, 12, 16)))
    flash["dies_per_channel"] = int(random.choice((1, 2, 4, 8) if sata else (1, 2, 4, 8, 16, 32)))
    dies = flash["channels"] * flash["dies_per_channel"]
    row = flash["planes_per_die"] * flash["page_bytes"]
    raw = float(np.exp(random.uniform(np.log(RAW_LEAST), np.log(RAW_MOST))))
    blocks = int(random.integers(*BLOCKS))
    flash["pages_per_block"] = max(32, round(raw / dies / row / blocks / 8) * 8)
    blocks = max(BLOCKS[0], min(blocks, int(RAW_MOST / dies / row / flash["pages_per_block"])))
    flash["blocks_per_plane"] = blocks
    timing["read_ns"] = around(timing["read_ns"], 1.3)
    timing["program_ns"] = around(timing["program_ns"], 1.4)
    timing["erase_ns"] = around(timing["erase_ns"], 1.4)
    timing["channel_ns_per_byte"] *= float(np.exp(random.uniform(-0.4, 0.4)))
    if timing["suspend_ns"] is not None:
        timing["suspend_ns"] = None if random.random() < 0.3 else around(timing["suspend_ns"], 2.0)
        timing["suspend_spread_ns"] = around(timing["suspend_spread_ns"], 1.3) if timing["suspend_ns"] else 0
    controller["command_ns"] = around(controller["command_ns"], 2.0)
    controller["write_command_ns"] = around(controller["write_command_ns"], 2.0)
    controller["command_interval_ns"] = around(controller["command_interval_ns"], 1.8)
    controller["write_interval_ns"] = around(controller["command_interval_ns"], 1.3)
    for way in ("read_ns_per_byte", "write_ns_per_byte"):
        controller[way] *= float(np.exp(random.uniform(0.0, 0.8)))
    if interface == "nvme":
        drive["interface"]["queue_depth"] = int(random.choice((128, 256, 1024)))
    flash_bytes = dies * row * flash["pages_per_block"] * blocks
    drive["buffer"]["bytes"] = int(random.choice((2, 4, 8))) * dies * row
    drive["buffer"]["power_loss_protected"] = bool(random.random() < 0.4)
    if generation[:3] in ("tlc", "qlc") and not drive["buffer"]["power_loss_protected"] and random.random() < 0.7:
        bits = 3 if generation.startswith("tlc") else 4
        kind = random.choice(("static", "dynamic", "both"))
        fixed = 0.0 if kind == "dynamic" else random.uniform(0.01, 0.04)
        grows = 0.0 if kind == "static" else random.uniform(0.02, 0.8 / bits)
        drive["slc_cache"] = {
            "static_bytes": int(fixed * flash_bytes),
            "dynamic_bytes": int(grows * flash_bytes),
            "bits_per_cell": bits,
            "read_ns": around(25_000, 1.3),
            "program_ns": around(160_000, 1.5),
            "idle_ns": None if random.random() < 0.3 else int(random.choice((1, 2, 5))) * 1_000_000_000,
        }
        fixed_share = fixed * bits
        drive["state"] = "filled" if random.random() < 0.5 else "fresh"
    else:
        fixed_share = 0.0
        drive["state"] = "steady" if random.random() < 0.3 else "filled"
    if not sata and not drive["buffer"]["power_loss_protected"] and random.random() < 0.2:
        controller["map_cache_bytes"] = int(random.choice((256, 512, 1024))) * 1024
    if generation.startswith("qlc") and random.random() < 0.4:
        drive["capacity"]["mapping_unit_bytes"] = 16384
    spare = float(random.uniform(0.07, 0.35)) + 8 / blocks + fixed_share
    unit = drive["capacity"]["mapping_unit_bytes"]
    drive["capacity"]["logical_bytes"] = int(flash_bytes / (1 + spare)) // unit // 256 * 256 * unit
    # Rejects systems that the model rejects.
    SimulatedDevice(system)
    return system
