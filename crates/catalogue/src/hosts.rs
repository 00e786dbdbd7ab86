//! [`HostProfile`]: costs of driver, host adapter and link for each command, each figure with its source.
//!
//! Unless stated otherwise, figures were fitted to one SSD, an Intel D3-S4610 under fio (4 KiB random requests of one
//! job at depths 1 to 64, `libaio`, direct), and validated with another, a Samsung PM883, on the same host:
//! docs/accuracy.md has both errors. They apply to one submitting thread; a faster processor takes less, a slower one
//! more. An interval is the inverse of the rate that the host reached at depth 8 and more.
//!
//! A sheet states a latency as measured by the vendor at a host, so a drive's latency already includes that host. The
//! latency of a host here is the excess over the vendor's: for the fitted hosts, the excess of a write at depth 1 over
//! the 37 us of the drive's sheet; for NVMe 0, since vendors measure under Linux too.

use headstack_sim::adapter::description::{AdapterDescription, Coalescing};
use headstack_sim::device::DeviceDescription;
use headstack_sim::drive::description::Policy;
use serde::{Deserialize, Serialize};

/// A host, by the connection of a drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum HostProfile {
    /// Nothing that takes time.
    Direct,
    /// AHCI at 6 Gb/s, on a small server of 2017 (HP MicroServer Gen10, 1.6 GHz).
    Ahci,
    /// AHCI at 3 Gb/s, on a small server of 2013 (HP MicroServer Gen8).
    #[serde(rename = "ahci-3g")]
    Ahci3g,
    /// SAS2008: LSI 9211-8i, 9240-8i, IBM M1015, Dell H200 and H310.
    M1015,
    /// HP Smart Array P420i, each drive a RAID 0 of its own; its cache is an array's.
    P420i,
    /// The same controller in HBA mode.
    #[serde(rename = "p420i-hba")]
    P420iHba,
    /// USB 3.0 bridge that takes one command at a time (Bulk-Only Transport).
    UsbBot,
    /// USB 3.0 bridge that queues (USB Attached SCSI).
    UsbUas,
    /// NVM Express, one queue pair.
    Nvme,
}

/// Costs that a controller adds for many drives, as part of an array's host.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct SharedAdapter {
    /// Time of its processor for a command to any drive.
    pub command_ns: u64,
    /// Times of the host adapter for each request and each drive.
    pub adapter: AdapterDescription,
}

impl HostProfile {
    /// Every host.
    pub const ALL: [HostProfile; 9] = [
        HostProfile::Direct,
        HostProfile::Ahci,
        HostProfile::Ahci3g,
        HostProfile::M1015,
        HostProfile::P420i,
        HostProfile::P420iHba,
        HostProfile::UsbBot,
        HostProfile::UsbUas,
        HostProfile::Nvme,
    ];

    /// Adapter of a single drive; `None` if nothing takes time.
    pub fn adapter(self) -> Option<AdapterDescription> {
        let base = AdapterDescription {
            tags: NCQ_TAGS,
            read_interval_ns: 0,
            write_interval_ns: 0,
            ns_per_byte: 0.0,
            latency_ns: 0,
            wake_ns: 0,
            coalescing: None,
        };
        Some(match self {
            HostProfile::Direct => return None,
            // 58.9 k reads and 52.1 k writes per second; the drive needs 6.8 us of a link of 6 Gb/s for 4 KiB, so that
            // its own rate limits long requests. At depth 2 a write is 17 us faster than at depth 1: the processor does
            // not go to sleep.
            HostProfile::Ahci => AdapterDescription {
                read_interval_ns: 17_000,
                write_interval_ns: 19_200,
                latency_ns: 21_000,
                wake_ns: 17_000,
                ..base
            },
            // 52.8 k and 50.5 k with any number of jobs: 300 MB/s, and the frames of a command around its data.
            HostProfile::Ahci3g => AdapterDescription {
                read_interval_ns: 5_300,
                write_interval_ns: 6_150,
                ns_per_byte: 1e9 / 300e6,
                latency_ns: 21_000,
                ..base
            },
            // 63.5 k and 58.5 k.
            HostProfile::M1015 => {
                AdapterDescription { read_interval_ns: 15_700, write_interval_ns: 17_100, latency_ns: 31_000, ..base }
            }
            // 69.5 k and 48.0 k (tests of another day: 64.4 k and 45.1 k). Medians at depth 4 are 171 us for any
            // latency of the drive: the controller coalesces interrupts.
            HostProfile::P420i => AdapterDescription {
                read_interval_ns: 14_900,
                write_interval_ns: 21_300,
                latency_ns: 19_000,
                coalescing: P420I_INTERRUPTS,
                ..base
            },
            // 44.7 k to 50.2 k and 47.9 k.
            HostProfile::P420iHba => AdapterDescription {
                read_interval_ns: 21_100,
                write_interval_ns: 20_900,
                latency_ns: 19_000,
                coalescing: P420I_INTERRUPTS,
                ..base
            },
            // D estimates: three transfers a command, each in a microframe of its own (125 us); 400 MB/s of 5 Gb/s are payload.
            HostProfile::UsbBot => AdapterDescription {
                tags: 1,
                read_interval_ns: 60_000,
                write_interval_ns: 60_000,
                ns_per_byte: 1e9 / 400e6,
                latency_ns: 60_000,
                ..base
            },
            // D estimates: Linux keeps 30 commands in a bridge, and bridges reach 30 to 40 k requests a second.
            HostProfile::UsbUas => AdapterDescription {
                tags: 30,
                read_interval_ns: 18_000,
                write_interval_ns: 18_000,
                ns_per_byte: 1e9 / 420e6,
                latency_ns: 40_000,
                ..base
            },
            // C usual of Linux: half a million requests a second on one core. Its few microseconds for system call and interrupt are in
            // the sheet's latency: four drives answered sooner at their hosts than their sheets state.
            HostProfile::Nvme => {
                AdapterDescription { tags: 1023, read_interval_ns: 2_000, write_interval_ns: 2_000, ..base }
            }
        })
    }

    /// The host that an adapter is.
    pub fn of(adapter: &AdapterDescription) -> Option<HostProfile> {
        HostProfile::ALL.into_iter().find(|host| host.adapter().as_ref() == Some(adapter))
    }

    /// The part that the drives of an array share; links have their own tables.
    pub(crate) fn shared(self) -> Option<SharedAdapter> {
        let adapter = self.adapter()?;
        let command_ns = match self {
            // Ports of a chipset and bridges have nothing in common.
            HostProfile::Direct | HostProfile::Ahci | HostProfile::Ahci3g => 0,
            HostProfile::UsbBot | HostProfile::UsbUas => 0,
            // C 350,000 requests a second (ServeTheHome on the SAS2008).
            HostProfile::M1015 => 2_900,
            // D estimate: as its generation, 200,000 requests a second.
            HostProfile::P420i | HostProfile::P420iHba => 5_000,
            HostProfile::Nvme => 2_000,
        };
        Some(SharedAdapter { command_ns, adapter })
    }

    /// Puts a drive on this host.
    pub fn carry(self, device: &mut DeviceDescription) {
        device.set_host(self.adapter());
        if let (DeviceDescription::Disk(disk), Some(elevator)) = (device, self.elevator()) {
            disk.interface.host_elevator = elevator;
        }
    }

    /// Order in which it submits commands that the drive does not hold; the drive's usual one if absent.
    pub(crate) fn elevator(self) -> Option<Policy> {
        match self {
            // Linux sorts for drives without queueing (mq-deadline).
            HostProfile::UsbBot => Some(Policy::CLook),
            HostProfile::Direct
            | HostProfile::Ahci
            | HostProfile::Ahci3g
            | HostProfile::M1015
            | HostProfile::P420i
            | HostProfile::P420iHba
            | HostProfile::UsbUas
            | HostProfile::Nvme => None,
        }
    }
}

/// Native command queueing.
const NCQ_TAGS: u32 = 32;

/// Fitted to the D3-S4610: the 95th percentiles of its reads at depths 1, 2 and 4 are 157, 173 and 175 us, of its writes 161, 181 and
/// 183 us, a quarter of them at depths 1 and 2 and nearly all at depth 4; at depth 16 the steps are gone.
const P420I_INTERRUPTS: Option<Coalescing> =
    Some(Coalescing { interval_ns: 170_000, completions_max: 8, from_outstanding: 4, one_in: 4 });
