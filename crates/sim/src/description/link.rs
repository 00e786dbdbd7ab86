//! [`LinkDescription`]: a bus, loop, expander or network that several devices share. Times are nanoseconds.

use serde::{Deserialize, Serialize};

/// A link, fully resolved.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LinkDescription {
    /// Its name in results, such as `scsi bus`.
    pub name: String,
    /// Kind of link.
    pub kind: LinkKind,
    /// Time of one byte of payload: framing and encoding are in it.
    pub ns_per_byte: f64,
    /// Time to deliver one command (arbitration, selection, command and status phases), without its data.
    pub command_ns: u64,
    /// Time taken a data transfer, besides its bytes, towards the host (arbitration, reselection, messages).
    pub read_ns: u64,
    /// Time of a transfer away from the host, where requesting the data takes another round (XFER_RDY).
    pub write_ns: u64,
    /// Delay that occupies nothing: cables, switches, protocol stacks.
    pub latency_ns: u64,
    /// Data of reads and of writes do not share its time.
    pub full_duplex: bool,
    /// A command holds the link from its delivery to its completion: parallel ATA without overlapped commands.
    pub held_by_command: bool,
}

/// Kind of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum LinkKind {
    /// Parallel SCSI bus.
    Scsi,
    /// Parallel ATA cable with up to two devices.
    Ata,
    /// Serial ATA link, or the bridge from a parallel cable to it.
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
    /// Every kind.
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

    /// Whether its devices hang on one wire, which each of them holds at its own pace; switches and bridges take whole frames
    /// at theirs.
    pub fn shares_wire(self) -> bool {
        match self {
            LinkKind::Scsi | LinkKind::Ata | LinkKind::FcLoop => true,
            LinkKind::Sata | LinkKind::Sas | LinkKind::Pci | LinkKind::Ethernet | LinkKind::Mirror => false,
        }
    }
}
