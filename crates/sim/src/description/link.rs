//! [`LinkDescription`]: a bus, loop, expander or network that several devices share. Times are in nanoseconds.

use serde::{Deserialize, Serialize};

/// A link.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LinkDescription {
    /// Name in results, such as `scsi bus`.
    pub name: String,
    /// Kind of link.
    pub kind: LinkKind,
    /// Transfer time per byte of payload, including framing and encoding.
    pub ns_per_byte: f64,
    /// Time to deliver a command without its data (arbitration, selection, command and status phases).
    pub command_ns: u64,
    /// Overhead of a data transfer to the host, in addition to its bytes (arbitration, reselection, messages).
    pub read_ns: u64,
    /// Overhead of a data transfer from the host, in addition to its bytes; includes another round trip to request the
    /// data (XFER_RDY).
    pub write_ns: u64,
    /// Latency that does not occupy the link: cables, switches, protocol stacks.
    pub latency_ns: u64,
    /// Whether reads and writes use separate lanes and do not share the bandwidth of the link.
    pub full_duplex: bool,
    /// Whether a command holds the link from delivery to completion: parallel ATA without overlapped commands.
    pub held_by_command: bool,
}

/// Kind of link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum LinkKind {
    /// Parallel SCSI bus.
    Scsi,
    /// Parallel ATA cable with up to two devices.
    Ata,
    /// Serial ATA link, or the bridge from a parallel ATA cable to serial ATA.
    Sata,
    /// SAS lane or wide port.
    Sas,
    /// Fibre Channel arbitrated loop.
    FcLoop,
    /// PCI or PCI Express bus.
    Pci,
    /// Client network.
    Ethernet,
    /// Path between two controllers.
    Mirror,
}

impl LinkKind {
    /// All variants.
    pub const ALL: [LinkKind; 8] = [
        LinkKind::Scsi,
        LinkKind::Ata,
        LinkKind::Sata,
        LinkKind::Sas,
        LinkKind::FcLoop,
        LinkKind::Pci,
        LinkKind::Ethernet,
        LinkKind::Mirror,
    ];

    /// Whether the devices of the link share one wire, which each device holds at its own speed; switches and bridges
    /// forward whole frames at the speed of the link.
    pub fn shares_wire(self) -> bool {
        match self {
            LinkKind::Scsi | LinkKind::Ata | LinkKind::FcLoop => true,
            LinkKind::Sata | LinkKind::Sas | LinkKind::Pci | LinkKind::Ethernet | LinkKind::Mirror => false,
        }
    }
}
