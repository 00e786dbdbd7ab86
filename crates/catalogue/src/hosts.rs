//! [`HostProfile`]: hosts of drives, with the times that driver, adapter and link take per command, each with its
//! source.
//!
//! Unless noted otherwise, figures were fitted to one SSD, an Intel D3-S4610 under fio (4 KiB random requests of one
//! job at depths 1 to 64, `libaio`, direct), and compared with a Samsung PM883 on the same host; docs/accuracy.md has
//! both errors. They apply to one submitting thread; a faster processor takes less time, a slower one more. An interval
//! is the inverse of the rate that the host reached at depth 8 and more.
//!
//! A sheet states the latency that its maker measured at a host, so a drive's latency already includes that host. The
//! latency of a host here is the difference from the maker's host. For the fitted hosts, it is the time of a write at
//! depth 1 minus the 37 us of the drive's sheet. For NVMe it is 0, because makers also measure under Linux.

use headstack_sim::adapter::description::{AdapterDescription, Coalescing};
use headstack_sim::device::DeviceDescription;
use headstack_sim::drive::description::Policy;
use serde::{Deserialize, Serialize};

/// A host, named by the adapter or bridge to which a drive is attached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum HostProfile {
    /// No adapter: takes no time.
    Direct,
    /// AHCI at 6 Gb/s, on a small server of 2017 (HP MicroServer Gen10, 1.6 GHz).
    Ahci,
    /// AHCI at 3 Gb/s, on a small server of 2013 (HP MicroServer Gen8).
    #[serde(rename = "ahci-3g")]
    Ahci3g,
    /// SAS2008 controller: LSI 9211-8i, 9240-8i, IBM M1015, Dell H200 and H310.
    M1015,
    /// HP Smart Array P420i with each drive as a separate RAID 0; its cache belongs to an array.
    P420i,
    /// HP Smart Array P420i in host bus adapter mode.
    #[serde(rename = "p420i-hba")]
    P420iHba,
    /// USB 3.0 bridge that handles one command at a time (Bulk-Only Transport).
    UsbBot,
    /// USB 3.0 bridge with command queueing (USB Attached SCSI).
    UsbUas,
    /// NVM Express with one queue pair.
    Nvme,
}

/// Overhead of a controller that many drives share; an array uses only this part of a host.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct SharedAdapter {
    /// Processor time per command to any drive, in ns.
    pub command_ns: u64,
    /// Times of the host adapter per request and per drive.
    pub adapter: AdapterDescription,
}

impl HostProfile {
    /// All hosts.
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

    /// Returns the adapter of a single drive on this host; `None` if it takes no time.
    pub fn adapter(self) -> Option<AdapterDescription> {
        let base = AdapterDescription {
            tags: NCQ_TAGS,
            elevator: self.elevator().unwrap_or(Policy::Fcfs),
            read_interval_ns: 0,
            write_interval_ns: 0,
            ns_per_byte: 0.0,
            latency_ns: 0,
            wake_ns: 0,
            coalescing: None,
        };
        Some(match self {
            HostProfile::Direct => return None,
            // 58.9 k reads and 52.1 k writes per second. For 4 KiB, the drive needs 6.8 us of a 6 Gb/s link, so its own
            // rate limits long requests. At depth 2, a write is 17 us faster than at depth 1 because the processor does
            // not go to sleep.
            HostProfile::Ahci => AdapterDescription {
                read_interval_ns: 17_000,
                write_interval_ns: 19_200,
                latency_ns: 21_000,
                wake_ns: 17_000,
                ..base
            },
            // 52.8 k reads and 50.5 k writes per second with any number of jobs: 300 MB/s, with the frames of a command
            // around its data.
            HostProfile::Ahci3g => AdapterDescription {
                read_interval_ns: 5_300,
                write_interval_ns: 6_150,
                ns_per_byte: 1e9 / 300e6,
                latency_ns: 21_000,
                ..base
            },
            // 63.5 k reads and 58.5 k writes per second.
            HostProfile::M1015 => {
                AdapterDescription { read_interval_ns: 15_700, write_interval_ns: 17_100, latency_ns: 31_000, ..base }
            }
            // 69.5 k reads and 48.0 k writes per second (64.4 k and 45.1 k on another day). Medians at depth 4 are 171
            // us regardless of the drive's own time, because the controller coalesces interrupts.
            HostProfile::P420i => AdapterDescription {
                read_interval_ns: 14_900,
                write_interval_ns: 21_300,
                latency_ns: 19_000,
                coalescing: P420I_INTERRUPTS,
                ..base
            },
            // 44.7 k to 50.2 k reads and 47.9 k writes per second.
            HostProfile::P420iHba => AdapterDescription {
                read_interval_ns: 21_100,
                write_interval_ns: 20_900,
                latency_ns: 19_000,
                coalescing: P420I_INTERRUPTS,
                ..base
            },
            // D estimates: three transfers per command, each in its own microframe (125 us); the payload is 400 MB/s of
            // 5 Gb/s.
            HostProfile::UsbBot => AdapterDescription {
                tags: 1,
                read_interval_ns: 60_000,
                write_interval_ns: 60_000,
                ns_per_byte: 1e9 / 400e6,
                latency_ns: 60_000,
                ..base
            },
            // D estimates: Linux queues 30 commands in a bridge, and bridges reach 30 to 40 k requests per second.
            HostProfile::UsbUas => AdapterDescription {
                tags: 30,
                read_interval_ns: 18_000,
                write_interval_ns: 18_000,
                ns_per_byte: 1e9 / 420e6,
                latency_ns: 40_000,
                ..base
            },
            // C usual under Linux: half a million IOPS on one core. The sheet's latency already includes the few
            // microseconds for system call and interrupt: on their hosts, four drives responded sooner than their
            // sheets state.
            HostProfile::Nvme => {
                AdapterDescription { tags: 1023, read_interval_ns: 2_000, write_interval_ns: 2_000, ..base }
            }
        })
    }

    /// Returns the host of an adapter.
    pub fn of(adapter: &AdapterDescription) -> Option<HostProfile> {
        HostProfile::ALL.into_iter().find(|host| host.adapter().as_ref() == Some(adapter))
    }

    /// Returns the part of the host that the drives of an array share; links have their own tables.
    pub(crate) fn shared(self) -> Option<SharedAdapter> {
        let adapter = self.adapter()?;
        let command_ns = match self {
            // Chipset ports and bridges share nothing.
            HostProfile::Direct | HostProfile::Ahci | HostProfile::Ahci3g => 0,
            HostProfile::UsbBot | HostProfile::UsbUas => 0,
            // C 350,000 requests per second (ServeTheHome on the SAS2008).
            HostProfile::M1015 => 2_900,
            // D estimate: 200,000 requests per second, as for its generation.
            HostProfile::P420i | HostProfile::P420iHba => 5_000,
            HostProfile::Nvme => 2_000,
        };
        Some(SharedAdapter { command_ns, adapter })
    }

    /// Attaches a drive to this host.
    pub fn carry(self, device: &mut DeviceDescription) {
        device.set_host(self.adapter());
        if let (DeviceDescription::Disk(disk), Some(elevator)) = (device, self.elevator()) {
            disk.interface.host_elevator = elevator;
        }
    }

    /// Returns the order in which the host submits requests that exceed the drive's queue; `None` for the drive's usual
    /// order.
    pub(crate) fn elevator(self) -> Option<Policy> {
        match self {
            // Linux sorts what waits for a tag by address (mq-deadline, the default of hosts with one queue). At depth 64,
            // requests of both SSDs wait for 0 to 2 times the mean on these hosts: the 95th percentile is 1.45 to 1.75
            // times the median, on the others 1.03 to 1.1 times.
            HostProfile::UsbBot | HostProfile::Ahci3g | HostProfile::M1015 | HostProfile::P420iHba => {
                Some(Policy::CLook)
            }
            HostProfile::Direct | HostProfile::Ahci | HostProfile::P420i | HostProfile::UsbUas | HostProfile::Nvme => {
                None
            }
        }
    }
}

/// Number of tags of native command queueing.
const NCQ_TAGS: u32 = 32;

/// Interrupt coalescing, fitted to the D3-S4610. At depths 1, 2 and 4, the 95th percentiles of its reads are 157, 173
/// and 175 us, and of its writes 161, 181 and 183 us. 25 % of the requests are at these times at depths 1 and 2, and
/// nearly all at depth 4. At depth 16 the steps have disappeared.
const P420I_INTERRUPTS: Option<Coalescing> =
    Some(Coalescing { interval_ns: 170_000, completions_max: 8, from_outstanding: 4, one_in: 4 });
