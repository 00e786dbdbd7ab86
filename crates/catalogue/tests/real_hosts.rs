//! Compares one SSD on several hosts with fio: the rates at the depths at which the host is the bottleneck.
//!
//! The hosts were fitted to the Intel D3-S4610; the Samsung PM883 is held out. Run with `--nocapture` to print the
//! tables.

use headstack_catalogue::{HostProfile, load_device};
use headstack_sim::{SystemDescription, run, run_all};

use crate::common::{Errors, FioRow, fio_runs, random_4k, under_light_load};

const REQUESTS: u64 = 30_000;
/// A drive of the same kind: 6 Gb/s, three bits per cell.
const DRIVE: &str = "dc-s4500-960gb";
/// Minimum queue depth; at lower depths, the drive's own latency matters more than the host.
const DEPTH_MIN: u32 = 8;

/// Hosts with the measurements of the drive to which they were fitted.
const FITTED: [(HostProfile, &str); 5] = [
    (HostProfile::Ahci, "HPMICROSERVERG10/SATA_AHCI_INTEL_D3-S4610_SSDSC2KG48"),
    (HostProfile::Ahci3g, "HPMICROSERVERG8/SATA300/INTELD3S4610"),
    (HostProfile::M1015, "SERVER/IBM_M1015/INTEL_D3-S4610_SSDSC2KG48"),
    (HostProfile::P420i, "HPDL380G8/RAID/P420i_INTEL_D3-S4610_SSDSC2KG48/TEST01"),
    (HostProfile::P420iHba, "HPDL380G8/HBA/INTEL_D3_S4610"),
];

/// Hosts with the measurements of a drive to which nothing was fitted.
const HELD_OUT: [(HostProfile, &str); 4] = [
    (HostProfile::Ahci, "HPMICROSERVERG10/SATA_AHCI_SAMSUNG_PM833_MZ7LH480HAHQ"),
    (HostProfile::Ahci3g, "HPMICROSERVERG8/SATA300/SAMSUNGPM833"),
    (HostProfile::M1015, "SERVER/IBM_M1015/SAMSUNG_PM883"),
    (HostProfile::P420i, "HPDL380G8/RAID/P420i_SAMSUNG_PM883_MZ7LH480"),
];

/// Returns the errors of read and write rates at the depths at which the host is the bottleneck.
fn rates(hosts: &[(HostProfile, &str)]) -> Option<[Errors; 2]> {
    let mut errors = [Errors::default(), Errors::default()];
    for &(host, system) in hosts {
        let mut device = load_device(DRIVE).unwrap().description();
        host.carry(&mut device);
        let rows = fio_runs(system)?;
        for (errors, (rw, reads_percent)) in errors.iter_mut().zip([("randread", 100.0), ("randwrite", 0.0)]) {
            let of_one_job = |row: &&FioRow| row.rw == rw && row.numjobs == 1;
            let mut rows: Vec<&FioRow> = rows.iter().filter(of_one_job).collect();
            rows.sort_by_key(|row| row.iodepth);
            let spec = |row: &&FioRow| {
                random_4k(system, SystemDescription::Drive(device.clone()), row.iodepth, reads_percent, REQUESTS)
            };
            let specs: Vec<_> = rows.iter().map(spec).collect();
            for (row, result) in rows.iter().zip(run_all(&specs, &|_, _| true)) {
                let result = result.unwrap();
                let ms = |q: f64| result.quantile_ns(q).expect("a drive answers") as f64 / 1e6;
                println!(
                    "{system:60} {rw:9} {:>2} {:>7.0}/{:<7.0} p50 {:.3}/{:.3} p99 {:.3}/{:.3}",
                    row.iodepth,
                    result.throughput_per_s(),
                    row.iops,
                    ms(0.5),
                    row.p50_ms,
                    ms(0.99),
                    row.p99_ms
                );
                if row.iodepth >= DEPTH_MIN {
                    errors.add(format!("{host:?} {rw} at {}", row.iodepth), result.throughput_per_s(), row.iops);
                }
            }
        }
    }
    Some(errors)
}

#[test]
fn hosts_allow_the_rates_that_were_measured() {
    // `make test` runs one host in three.
    let [fitted, held_out] =
        [&FITTED[..], &HELD_OUT[..]].map(|hosts| headstack_needs::sampled(hosts.iter().copied(), 3));
    let (Some([reads, writes]), Some([held_reads, held_writes])) = (rates(&fitted), rates(&held_out)) else { return };
    reads.print("reads, fitted");
    writes.print("writes, fitted");
    held_reads.print("reads, held out");
    held_writes.print("writes, held out");
    assert!(reads.mean() <= 0.15 && writes.mean() <= 0.20);
    assert!(held_reads.mean() <= 0.15 && held_writes.mean() <= 0.20);
}

#[test]
fn no_host_adapter_adds_no_latency() {
    let rate = |host: Option<HostProfile>| {
        let mut device = load_device(DRIVE).unwrap().description();
        if let Some(host) = host {
            host.carry(&mut device);
        }
        let spec = random_4k("", SystemDescription::Drive(device), 32, 100.0, REQUESTS);
        run(&spec, &|_| true).unwrap().throughput_per_s()
    };
    assert_eq!(rate(Some(HostProfile::Direct)), rate(None));
    for host in HostProfile::ALL.into_iter().filter(|host| *host != HostProfile::Direct) {
        assert!(rate(Some(host)) <= rate(None), "{host:?}");
    }
}

/// NVMe drives whose sheets state latencies, with drives of the same models measured on Linux hosts.
const NVME: [(&str, &str); 3] = [
    ("d7-p5520-7680gb", "Solidigm D7-P5520 1.92TB (a)"),
    ("d7-p5520-7680gb", "Solidigm D7-P5520 1.92TB (b)"),
    ("7450-pro-7680gb", "Micron 7450 PRO 960GB"),
];

/// Returns the median latency at queue depth 1, in us.
fn alone_us(id: &str, host: HostProfile, reads_percent: f64) -> f64 {
    let mut device = load_device(id).unwrap().description();
    host.carry(&mut device);
    let spec = random_4k(id, SystemDescription::Drive(device), 1, reads_percent, 3_000);
    run(&spec, &|_| true).unwrap().quantile_ns(0.5).expect("a drive answers") as f64 / 1e3
}

/// A sheet's latency includes the maker's host, so a drive on such a host has the latency that the sheet states.
#[test]
fn the_latency_of_an_nvme_host_is_counted_once() {
    for (id, _) in NVME {
        for reads_percent in [100.0, 0.0] {
            let (direct, hosted) =
                [HostProfile::Direct, HostProfile::Nvme].map(|host| alone_us(id, host, reads_percent)).into();
            assert!(
                (hosted / direct - 1.0f64).abs() < 0.01,
                "{id}, {reads_percent} % reads: {hosted} us, {direct} us without a host"
            );
        }
    }
}

/// Prints the differences between simulated latencies on a host and measured ones. Both simulated and sheet latencies
/// are higher than measured; with the host's latency added, the difference was larger.
#[test]
fn nvme_drives_answer_at_their_hosts_no_later_than_their_sheets_state() {
    let mut errors = Errors::default();
    for (id, measured) in NVME {
        let Some(row) = under_light_load(measured) else { return };
        for (kind, reads_percent, measured_us) in [("read", 100.0, row.read_50p_us), ("write", 0.0, row.write_50p_us)] {
            let simulated_us = alone_us(id, HostProfile::Nvme, reads_percent);
            assert!(
                measured_us <= simulated_us,
                "{measured}, {kind}: {measured_us} us, the sheet states {simulated_us}"
            );
            errors.add(format!("{measured} {kind}"), simulated_us, measured_us);
        }
    }
    errors.print("median latency of NVMe drives at depth 1, host nvme");
    assert!(errors.mean() < 0.5);
}

/// The option has the same effect as the key in the file, and the complete description names the host again.
#[test]
fn a_host_is_stated_in_a_file_or_by_an_option() {
    for id in [DRIVE, "exos-x24-24tb"] {
        for host in HostProfile::ALL {
            let mut device = load_device(id).unwrap().description();
            host.carry(&mut device);
            assert_eq!(device.host().copied(), host.adapter(), "{id} {host:?}");
            assert_eq!(device.host().and_then(HostProfile::of), host.adapter().map(|_| host));
        }
    }
}
