//! [`LinkStandard`]: the standards of links in arrays, and the figures of each with source and confidence (codes as in
//! the catalogue's files).
//!
//! Rates are payload rates. The times of commands and transfers are those that occupy the link, not the latency that a
//! requester sees: a drive's times, measured without other traffic on its link, already include them.

use headstack_sim::link::LinkKind;
use serde::{Deserialize, Serialize};

/// A link standard.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LinkStandard {
    /// Fast-Wide SCSI-2: 10 MT/s, 16 bits.
    FastWideScsi,
    /// Wide-Ultra SCSI-3: 20 MT/s, 16 bits.
    WideUltraScsi,
    /// Wide Ultra2, LVD.
    #[serde(rename = "ultra2-scsi")]
    Ultra2Scsi,
    /// Ultra160.
    #[serde(rename = "ultra160-scsi")]
    Ultra160Scsi,
    /// Ultra320, packets.
    #[serde(rename = "ultra320-scsi")]
    Ultra320Scsi,
    /// Ultra DMA 4.
    #[serde(rename = "ata-66")]
    Ata66,
    /// Ultra DMA 5.
    #[serde(rename = "ata-100")]
    Ata100,
    /// Ultra DMA 6.
    #[serde(rename = "ata-133")]
    Ata133,
    /// Bridge from a parallel cable to one serial drive.
    PataSataBridge,
    /// Serial ATA, 1.5 Gb/s.
    #[serde(rename = "sata-1.5")]
    Sata15,
    /// Serial ATA, 3 Gb/s.
    #[serde(rename = "sata-3")]
    Sata3,
    /// Serial ATA, 6 Gb/s.
    #[serde(rename = "sata-6")]
    Sata6,
    /// SAS, 3 Gb/s per lane.
    #[serde(rename = "sas-3")]
    Sas3,
    /// SAS, 6 Gb/s per lane.
    #[serde(rename = "sas-6")]
    Sas6,
    /// SAS, 12 Gb/s per lane.
    #[serde(rename = "sas-12")]
    Sas12,
    /// Fibre Channel arbitrated loop, 1.0625 Gbaud.
    #[serde(rename = "fc-al-1g")]
    FcAl1g,
    /// Fibre Channel arbitrated loop, 2.125 Gbaud.
    #[serde(rename = "fc-al-2g")]
    FcAl2g,
    /// Fibre Channel arbitrated loop, 4.25 Gbaud.
    #[serde(rename = "fc-al-4g")]
    FcAl4g,
    /// PCI, 32 bits, 33 MHz.
    #[serde(rename = "pci-32-33")]
    Pci3233,
    /// PCI, 64 bits, 66 MHz.
    #[serde(rename = "pci-64-66")]
    Pci6466,
    /// PCI Express with `generation` and `lanes`.
    Pcie,
    /// 1 Gb/s Ethernet.
    #[serde(rename = "ethernet-1g")]
    Ethernet1g,
    /// 10 Gb/s Ethernet.
    #[serde(rename = "ethernet-10g")]
    Ethernet10g,
    /// 25 Gb/s Ethernet.
    #[serde(rename = "ethernet-25g")]
    Ethernet25g,
    /// Path between two controllers; the file must state its rate.
    Mirror,
}

/// Timing of a link standard.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LinkFigures {
    /// Kind of link in the model.
    pub kind: LinkKind,
    /// Payload rate in bytes per second, per lane if the link has lanes. `None` if the file must state it.
    pub bytes_per_s: Option<f64>,
    /// Time of a command, in ns.
    pub command_ns: i64,
    /// Overhead of a transfer towards the host in ns, in addition to the time of its data.
    pub read_ns: i64,
    /// Overhead of a transfer away from the host in ns, in addition to the time of its data.
    pub write_ns: i64,
    /// Latency in ns that does not occupy the link.
    pub latency_ns: i64,
    /// Whether the link carries read and write data at the same time.
    pub full_duplex: bool,
    /// Whether the link may have several lanes.
    pub has_lanes: bool,
    /// Source of the figures.
    pub source: &'static str,
}

/// Wide-Ultra: 40 MB/s in the data phase; about 60 us for arbitration, selection and command, and about 60 us for
/// reselection and messages. General knowledge: 50 to 150 us per phase sequence, effective 36 to 38 MB/s (C). At 64
/// KiB, requests reach 37.3 MB/s.
const SCSI: LinkFigures = LinkFigures {
    kind: LinkKind::Scsi,
    bytes_per_s: Some(40e6),
    command_ns: 60_000,
    read_ns: 60_000,
    write_ns: 60_000,
    latency_ns: 0,
    full_duplex: false,
    has_lanes: false,
    source: "B rate of the data phase; C phases: 50 to 150 us a sequence",
};

/// A command occupies the cable exclusively, for eight task file registers at PIO speed and an interrupt.
const ATA: LinkFigures = LinkFigures {
    kind: LinkKind::Ata,
    bytes_per_s: Some(100e6),
    command_ns: 10_000,
    read_ns: 5_000,
    write_ns: 5_000,
    source: "B burst rate; D times of registers and interrupt",
    ..SCSI
};

/// Rate after 8b/10b encoding, frames of 8 KiB and primitives: the fastest drives reach 560 of 600 MB/s (B).
const SATA: LinkFigures = LinkFigures {
    kind: LinkKind::Sata,
    bytes_per_s: Some(0.93 * 600e6),
    command_ns: 1_000,
    read_ns: 1_000,
    write_ns: 1_000,
    source: "B 93 % of the line rate, reached by the fastest drives; D command times",
    ..SCSI
};

/// Rate after 8b/10b encoding (also at 12 Gb/s), frames of 1 KiB and connections: x4 ports reach 4.4 of 4.8 GB/s (C).
const SAS: LinkFigures = LinkFigures {
    kind: LinkKind::Sas,
    bytes_per_s: Some(0.92 * 1200e6),
    command_ns: 2_000,
    read_ns: 1_000,
    write_ns: 3_000,
    full_duplex: true,
    has_lanes: true,
    source: "C 92 % of the line rate, reached by wide ports; D times of connections and XFER_RDY",
    ..SCSI
};

/// The maximum is 101.3 MB/s: 106.25 MB/s after 8b/10b encoding, times 2,048 of 2,148 bytes per frame (B). Fill words,
/// arbitration and the round trip of XFER_RDY are fitted to the two peaks in HP's VA 7100 guide (S): 93.1 MB/s read and
/// 92.7 MB/s written at 128 KiB yield 10.59 ns per byte and 20 and 26 us per request. The guide's 12,400 reads of 1 KiB
/// per second leave no room for more.
const FC_AL: LinkFigures = LinkFigures {
    kind: LinkKind::FcLoop,
    bytes_per_s: Some(1e9 / 10.59),
    command_ns: 10_000,
    read_ns: 10_000,
    write_ns: 16_000,
    source: "S fitted to the VA 7100's peaks of 93.1 and 92.7 MB/s at 128 KiB (S0.132, S0.133); other speeds in proportion",
    ..SCSI
};

/// 133 and 533 MB/s in bursts; address phases, wait states and arbitration leave about 80 %.
const PCI: LinkFigures = LinkFigures {
    kind: LinkKind::Pci,
    bytes_per_s: Some(0.8 * 133.3e6),
    command_ns: 2_000,
    read_ns: 1_000,
    write_ns: 1_000,
    source: "B burst rate; C 80 % of it; D command times",
    ..SCSI
};

/// Payloads of 256 bytes, each with 24 bytes of overhead.
const PCIE: LinkFigures = LinkFigures {
    kind: LinkKind::Pci,
    bytes_per_s: None,
    command_ns: 500,
    read_ns: 500,
    write_ns: 500,
    latency_ns: 500,
    full_duplex: true,
    has_lanes: true,
    source: "B 256 of 280 bytes on the line; D command times",
};

/// 10 GbE carries 1.17 GB/s (B). The latency is caused by the switch and the protocol stacks.
const ETHERNET: LinkFigures = LinkFigures {
    kind: LinkKind::Ethernet,
    bytes_per_s: Some(1.17e9),
    command_ns: 1_000,
    read_ns: 1_000,
    write_ns: 1_000,
    latency_ns: 50_000,
    full_duplex: true,
    source: "B payload is 94 % of the line rate; D delay of switch and protocol stacks",
    ..SCSI
};

impl LinkStandard {
    /// All standards.
    pub const ALL: [LinkStandard; 25] = [
        LinkStandard::FastWideScsi,
        LinkStandard::WideUltraScsi,
        LinkStandard::Ultra2Scsi,
        LinkStandard::Ultra160Scsi,
        LinkStandard::Ultra320Scsi,
        LinkStandard::Ata66,
        LinkStandard::Ata100,
        LinkStandard::Ata133,
        LinkStandard::PataSataBridge,
        LinkStandard::Sata15,
        LinkStandard::Sata3,
        LinkStandard::Sata6,
        LinkStandard::Sas3,
        LinkStandard::Sas6,
        LinkStandard::Sas12,
        LinkStandard::FcAl1g,
        LinkStandard::FcAl2g,
        LinkStandard::FcAl4g,
        LinkStandard::Pci3233,
        LinkStandard::Pci6466,
        LinkStandard::Pcie,
        LinkStandard::Ethernet1g,
        LinkStandard::Ethernet10g,
        LinkStandard::Ethernet25g,
        LinkStandard::Mirror,
    ];

    /// Returns the figures of the standard.
    pub fn figures(self) -> LinkFigures {
        let paced = |figures: LinkFigures, bytes_per_s: f64| LinkFigures { bytes_per_s: Some(bytes_per_s), ..figures };
        // Later buses have faster phases. The last two arbitrate quickly, and packets have no phases.
        let scsi = |bytes_per_s: f64, phase_ns: i64| LinkFigures {
            command_ns: phase_ns,
            read_ns: phase_ns,
            write_ns: phase_ns,
            ..paced(SCSI, bytes_per_s)
        };
        let fc = |speed: i64| LinkFigures {
            command_ns: FC_AL.command_ns / speed,
            read_ns: FC_AL.read_ns / speed,
            write_ns: FC_AL.write_ns / speed,
            bytes_per_s: FC_AL.bytes_per_s.map(|rate| rate * speed as f64),
            ..FC_AL
        };
        match self {
            LinkStandard::FastWideScsi => scsi(20e6, 60_000),
            LinkStandard::WideUltraScsi => SCSI,
            LinkStandard::Ultra2Scsi => scsi(80e6, 40_000),
            LinkStandard::Ultra160Scsi => scsi(160e6, 25_000),
            LinkStandard::Ultra320Scsi => scsi(320e6, 8_000),
            LinkStandard::Ata66 => paced(ATA, 66.7e6),
            LinkStandard::Ata100 => ATA,
            LinkStandard::Ata133 => paced(ATA, 133.3e6),
            LinkStandard::PataSataBridge => LinkFigures { latency_ns: 10_000, ..paced(SATA, 0.93 * 150e6) },
            LinkStandard::Sata15 => paced(SATA, 0.93 * 150e6),
            LinkStandard::Sata3 => paced(SATA, 0.93 * 300e6),
            LinkStandard::Sata6 => SATA,
            LinkStandard::Sas3 => paced(SAS, 0.92 * 300e6),
            LinkStandard::Sas6 => paced(SAS, 0.92 * 600e6),
            LinkStandard::Sas12 => SAS,
            LinkStandard::FcAl1g => FC_AL,
            LinkStandard::FcAl2g => fc(2),
            LinkStandard::FcAl4g => fc(4),
            LinkStandard::Pci3233 => PCI,
            LinkStandard::Pci6466 => paced(PCI, 0.8 * 533.3e6),
            LinkStandard::Pcie => PCIE,
            LinkStandard::Ethernet1g => LinkFigures { latency_ns: 100_000, ..paced(ETHERNET, 0.117e9) },
            LinkStandard::Ethernet10g => ETHERNET,
            LinkStandard::Ethernet25g => LinkFigures { latency_ns: 30_000, ..paced(ETHERNET, 2.93e9) },
            LinkStandard::Mirror => LinkFigures {
                kind: LinkKind::Mirror,
                full_duplex: false,
                has_lanes: false,
                source: "D command times; the rate must be stated",
                ..PCIE
            },
        }
    }

    /// Returns the payload rate per lane of PCI Express in bytes per second, for generations 1 to 5: 2.5, 5, 8, 16 and
    /// 32 GT/s with their encodings.
    pub fn pcie_bytes_per_s(generation: u32) -> Option<f64> {
        let line = [250e6, 500e6, 984.6e6, 1969.2e6, 3938.5e6];
        let index = generation.checked_sub(1)? as usize;
        line.get(index).map(|rate| rate * 256.0 / 280.0)
    }

    /// Returns the name of the standard in files.
    pub fn name(self) -> String {
        match serde_json::to_value(self) {
            Ok(serde_json::Value::String(name)) => name,
            other => unreachable!("every variant serializes as a name: {other:?}"),
        }
    }
}
