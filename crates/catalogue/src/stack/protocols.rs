//! [`Protocol`]: ways to storage on another host, with the round trip and processor time of each.

use headstack_sim::stack::description::NetworkDescription;
use serde::{Deserialize, Serialize};

/// A protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Protocol {
    /// NVMe over TCP, with the kernel's initiator and target.
    NvmeTcp,
    /// NVMe over RDMA.
    NvmeRdma,
    /// iSCSI with open-iscsi's defaults.
    Iscsi,
    /// NFS: writes go to the server's memory, syncs are COMMIT. Put it over a stack with a page cache.
    Nfs,
}

/// Share of a 1,500-byte Ethernet frame that is payload: 1,460 of 1,538 bytes.
pub const PAYLOAD_SHARE: f64 = 1460.0 / 1538.0;

/// Part of a core's time by which each further core slows all of them: SPDK's NVMe/TCP target takes 323,000 random
/// writes a second with one core and 4.05 million with 32 (spdk issue 2963, 2023-03; the two rates fitted). With it, 4
/// and 16 cores are predicted within 11 and 16 % of the measured rates.
const SERIAL_SHARE: f64 = 0.05;

impl Protocol {
    /// Returns the network of the protocol on a wire of `bits_per_s`.
    ///
    /// - NVMe/TCP: a 4 KiB read of a null device at depth 1 takes 33 us with the kernel's initiator (spdk issue 2326,
    ///   2022-01), of which 3.1 us are the target's processor (issue 2963), about as much the initiator's, and 1.4 us
    ///   the wire; the rest is the round trip. Linux's target takes 16 KiB (4 pages) with the command.
    /// - NVMe/RDMA: 0.73 us of processor time at either end (SPDK 24.05, second hand); a round trip of 2 to 5 us
    ///   (general knowledge).
    /// - iSCSI: NVMe/TCP has 0.67 times its latency and 1.5 times its IOPS at depth 4 (Blockbridge, second hand). 32
    ///   commands a LUN, 256 KiB without permission, bursts of 16 MiB (open-iscsi).
    /// - NFS: no measured latency of the protocol alone; as iSCSI, which also runs in the kernel over TCP, with slots
    ///   that grow to 65,536. Data travel with the request.
    pub fn network(self, bits_per_s: f64) -> NetworkDescription {
        let network = NetworkDescription {
            round_trip_ns: 25_000,
            bytes_per_s: (bits_per_s / 8.0 * PAYLOAD_SHARE) as u64,
            window: 128,
            initiator_ns: 3_100,
            initiator_cores: 4,
            target_core_ns: 3_100,
            target_cores: 4,
            target_serial_share: SERIAL_SHARE,
            unsolicited_bytes: Some(16 << 10),
            burst_bytes: u32::MAX,
        };
        match self {
            Protocol::NvmeTcp => network,
            Protocol::NvmeRdma => NetworkDescription {
                round_trip_ns: 5_000,
                initiator_ns: 730,
                target_core_ns: 730,
                unsolicited_bytes: None,
                ..network
            },
            Protocol::Iscsi => NetworkDescription {
                round_trip_ns: 38_000,
                window: 32,
                initiator_ns: 4_600,
                target_core_ns: 4_600,
                initiator_cores: 1,
                target_cores: 1,
                unsolicited_bytes: Some(256 << 10),
                burst_bytes: 16 << 20,
                ..network
            },
            Protocol::Nfs => NetworkDescription {
                round_trip_ns: 38_000,
                window: 65_536,
                initiator_ns: 4_600,
                target_core_ns: 4_600,
                target_cores: 8,
                unsolicited_bytes: None,
                ..network
            },
        }
    }
}
