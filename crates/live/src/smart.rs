//! SMART data of each device in the format of `smartctl -j -a`, with counters that follow the injected faults.
//!
//! Power-on hours are model time. Normalised values fall by 1 per count, as on many drives; the temperature is that of
//! an idle enclosure if the device description has thermal data. An HDD reports a predicted failure once its re-reads
//! or reallocated sectors pass the threshold, which happens before data is lost if re-reads and reallocations precede
//! the loss.

use headstack_sim::device::DeviceDescription;
use headstack_sim::drive::description::InterfaceKind;
use headstack_sim::gauges::DeviceHealth;
use headstack_sim::timeline::Timeline;
use headstack_sim::{Model, SystemDescription};
use serde_json::{Value, json};

const HOUR_NS: u64 = 3_600_000_000_000;
/// Size of an NVMe data unit in the health log: 1,000 blocks of 512 bytes, for any block size.
const NVME_UNIT_BYTES: u64 = 512_000;
/// Time per byte in ns below which an SSD is assumed to use PCI Express: SAS at 12 Gb/s (1.2 GB/s) needs 0.83 ns per
/// byte.
const NVME_BELOW_NS_PER_BYTE: f64 = 0.8;

/// Normalised values at or below which an HDD predicts its failure, for re-reads and for reallocated sectors. They are
/// typical of ATA drives; the thresholds of SCSI drives are not public and assumed to be equal.
const READ_ERRORS_THRESHOLD: i64 = 6;
const REALLOCATED_THRESHOLD: i64 = 36;

/// Bits of smartctl's exit status: predicted failure, and a pre-failure attribute at its threshold.
const EXIT_FAILING: u32 = 1 << 3;
const EXIT_PREFAILURE: u32 = 1 << 4;

/// Flags of attributes that predict failure, and of attributes that only count events.
const PREFAILURE: (u32, &str) = (0x33, "PO--CK ");
const OLD_AGE: (u32, &str) = (0x32, "-O--CK ");

/// Protocol of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Protocol {
    Ata,
    /// SCSI, with smartctl's name and number of the transport (SPC-4, 7.6.1).
    Scsi(&'static str, u32),
    Nvme,
}

impl Protocol {
    fn of(device: &DeviceDescription) -> Protocol {
        match device {
            DeviceDescription::Disk(disk) => match disk.interface.kind {
                InterfaceKind::Ata | InterfaceKind::Sata => Protocol::Ata,
                InterfaceKind::Scsi => Protocol::Scsi("Parallel SCSI (SPI-4)", 1),
                InterfaceKind::Sas => Protocol::Scsi("SAS (SPL-4)", 6),
                InterfaceKind::Fc => Protocol::Scsi("Fibre channel (FCP-4)", 0),
            },
            DeviceDescription::Ssd(ssd) if !ssd.interface.full_duplex => Protocol::Ata,
            DeviceDescription::Ssd(ssd) if ssd.interface.read_ns_per_byte < NVME_BELOW_NS_PER_BYTE => Protocol::Nvme,
            DeviceDescription::Ssd(_) => Protocol::Scsi("SAS (SPL-4)", 6),
            DeviceDescription::Volume(_) => Protocol::Nvme,
        }
    }

    fn names(self) -> (&'static str, &'static str) {
        match self {
            Protocol::Ata => ("sat", "ATA"),
            Protocol::Scsi(..) => ("scsi", "SCSI"),
            Protocol::Nvme => ("nvme", "NVMe"),
        }
    }
}

/// Facts about a device that its SMART report needs.
struct DeviceFacts<'a> {
    health: &'a DeviceHealth,
    hours: u64,
    celsius: Option<i64>,
    spin_up_ms: Option<u64>,
    block_bytes: u32,
    /// Commands resent because of link errors.
    resent: u64,
}

/// Returns a SMART report for each device of a timeline's model at `now_ns`.
pub fn reports<T>(timeline: &Timeline<T>, now_ns: u64) -> Vec<Value> {
    let (devices, resent) = (timeline.device_health(), timeline.resent());
    let (descriptions, resent) = match timeline.model() {
        Model::Constant(_) => return Vec::new(),
        Model::System(SystemDescription::Drive(device)) => (vec![device], resent),
        // The host link of an array or a stack is not the link of its members.
        Model::System(system @ (SystemDescription::Array(_) | SystemDescription::Stack(_))) => {
            (system.device_kinds(), 0)
        }
    };
    let numbered = devices.iter().enumerate();
    let report = |(number, health): (usize, &DeviceHealth)| {
        let description = descriptions.iter().find(|device| name_of(device) == health.model);
        let description = description.expect("every device kind has a description");
        report(number, health, description, resent, now_ns)
    };
    numbered.map(report).collect()
}

fn name_of(device: &DeviceDescription) -> &str {
    match device {
        DeviceDescription::Disk(disk) => &disk.name,
        DeviceDescription::Ssd(ssd) => &ssd.name,
        DeviceDescription::Volume(volume) => &volume.name,
    }
}

fn report(number: usize, health: &DeviceHealth, device: &DeviceDescription, resent: u64, now_ns: u64) -> Value {
    let protocol = Protocol::of(device);
    let name = if health.name.is_empty() { "drive" } else { &health.name };
    let (kind, protocol_name) = protocol.names();
    let messages = match health.missing {
        true => vec![json!({ "string": format!("Smartctl open device: {name} failed: No such device"),
                             "severity": "error" })],
        false => Vec::new(),
    };
    let mut report = json!({
        "json_format_version": [1, 0],
        "smartctl": { "version": [7, 3], "argv": ["smartctl", "-j", "-a", name], "messages": messages,
                      "exit_status": if health.missing { 2 } else { 0 } },
        "device": { "name": name, "info_name": name, "type": kind, "protocol": protocol_name },
    });
    if health.missing {
        return report;
    }
    let (celsius, spin_up_ms) = match device {
        DeviceDescription::Disk(disk) => (
            disk.power.as_ref().map(|power| power.case_celsius(power.idle_w())),
            disk.power.as_ref().map(|power| power.spin_up.ns / 1_000_000),
        ),
        DeviceDescription::Ssd(ssd) => {
            (ssd.power.as_ref().map(|power| power.ambient_celsius + power.airflow_k_per_w * power.idle_w), None)
        }
        DeviceDescription::Volume(_) => (None, None),
    };
    let facts = DeviceFacts {
        health,
        hours: now_ns / HOUR_NS,
        celsius: celsius.map(|celsius| celsius.round() as i64),
        spin_up_ms,
        block_bytes: device.block_bytes(),
        resent,
    };
    let serial = format!("HEADSTACK{number:05}");
    merge(&mut report, facts.identity(&serial));
    merge(
        &mut report,
        match protocol {
            Protocol::Ata => facts.ata(),
            Protocol::Scsi(transport, value) => facts.scsi(transport, value),
            Protocol::Nvme => facts.nvme(),
        },
    );
    if report["smart_status"]["passed"] == false {
        let attributes = if protocol == Protocol::Ata { EXIT_PREFAILURE } else { 0 };
        report["smartctl"]["exit_status"] = json!(EXIT_FAILING | attributes);
    }
    report
}

/// Adds the keys of `from` to `into`.
fn merge(into: &mut Value, from: Value) {
    if let (Value::Object(into), Value::Object(from)) = (into, from) {
        into.extend(from);
    }
}

impl DeviceFacts<'_> {
    fn identity(&self, serial: &str) -> Value {
        let DeviceFacts { health, block_bytes, .. } = *self;
        let block = u64::from(block_bytes);
        let mut identity = json!({
            "model_name": health.model,
            "serial_number": serial,
            "user_capacity": { "blocks": health.capacity_bytes / block, "bytes": health.capacity_bytes },
            "logical_block_size": block,
            "power_on_time": { "hours": self.hours },
            "power_cycle_count": health.power_cycles,
        });
        if let Some(celsius) = self.celsius {
            merge(&mut identity, json!({ "temperature": { "current": celsius } }));
        }
        identity
    }

    fn ata(&self) -> Value {
        let health = self.health;
        let block = u64::from(self.block_bytes);
        let repeated = health.retried_passes;
        let mut rows = vec![attribute(1, "Raw_Read_Error_Rate", repeated, READ_ERRORS_THRESHOLD, PREFAILURE)];
        if health.rpm.is_some() {
            let spin_up = self.spin_up_ms.map(|ms| steady(3, "Spin_Up_Time", ms, PREFAILURE));
            rows.extend(spin_up);
            rows.push(steady(4, "Start_Stop_Count", u64::from(health.power_cycles), OLD_AGE));
        }
        let reallocated = health.reallocated_sectors;
        rows.push(attribute(5, "Reallocated_Sector_Ct", reallocated, REALLOCATED_THRESHOLD, PREFAILURE));
        rows.push(steady(9, "Power_On_Hours", self.hours, OLD_AGE));
        if health.rpm.is_some() {
            rows.push(attribute(10, "Spin_Retry_Count", 0, 97, PREFAILURE));
        }
        rows.push(steady(12, "Power_Cycle_Count", u64::from(health.power_cycles), OLD_AGE));
        rows.push(attribute(187, "Reported_Uncorrect", health.uncorrectable_errors, 0, OLD_AGE));
        rows.push(attribute(188, "Command_Timeout", self.resent, 0, OLD_AGE));
        if let Some(celsius) = self.celsius {
            let value = 100 - celsius.clamp(0, 99);
            rows.push(row(194, "Temperature_Celsius", celsius.max(0) as u64, value, 0, (0x22, "-O---K ")));
        }
        rows.push(attribute(197, "Current_Pending_Sector", health.pending_sectors, 0, OLD_AGE));
        rows.push(attribute(198, "Offline_Uncorrectable", health.pending_sectors, 0, OLD_AGE));
        rows.push(attribute(199, "UDMA_CRC_Error_Count", self.resent, 0, OLD_AGE));
        rows.push(steady(241, "Total_LBAs_Written", health.written_bytes / block, OLD_AGE));
        rows.push(steady(242, "Total_LBAs_Read", health.read_bytes / block, OLD_AGE));
        let passed = rows.iter().all(|row| row["when_failed"] == "");
        json!({
            "rotation_rate": health.rpm.unwrap_or(0),
            "smart_support": { "available": true, "enabled": true },
            "smart_status": { "passed": passed },
            "ata_smart_attributes": { "revision": 10, "table": rows },
            "ata_smart_error_log": { "summary": { "revision": 1, "count": health.uncorrectable_errors } },
        })
    }

    fn scsi(&self, transport: &str, transport_value: u32) -> Value {
        let health = self.health;
        let gigabytes = |bytes: u64| format!("{:.3}", bytes as f64 / 1e9);
        let counter = |corrected: u64, uncorrected: u64, bytes: u64| {
            json!({
                "errors_corrected_by_eccfast": 0,
                "errors_corrected_by_eccdelayed": 0,
                "errors_corrected_by_rereads_rewrites": corrected,
                "total_errors_corrected": corrected,
                "correction_algorithm_invocations": corrected + uncorrected,
                "gigabytes_processed": gigabytes(bytes),
                "total_uncorrected_errors": uncorrected,
            })
        };
        json!({
            "rotation_rate": health.rpm.unwrap_or(0),
            "scsi_model_name": health.model,
            "scsi_transport_protocol": { "name": transport, "value": transport_value },
            "smart_support": { "available": true, "enabled": true },
            "smart_status": scsi_status(health),
            "scsi_grown_defect_list": health.reallocated_sectors,
            "scsi_pending_defects": { "count": health.pending_sectors },
            "scsi_start_stop_cycle_counter": { "accumulated_start_stop_cycles": health.power_cycles },
            "scsi_error_counter_log": {
                "read": counter(health.retried_passes, health.uncorrectable_errors, health.read_bytes),
                "write": counter(0, 0, health.written_bytes),
            },
            "scsi_non_medium_error_count": self.resent,
        })
    }

    fn nvme(&self) -> Value {
        let health = self.health;
        let mut log = json!({
            "critical_warning": 0,
            "data_units_read": health.read_bytes.div_ceil(NVME_UNIT_BYTES),
            "data_units_written": health.written_bytes.div_ceil(NVME_UNIT_BYTES),
            "power_cycles": health.power_cycles,
            "power_on_hours": self.hours,
            // The model has no other shutdown than a power loss.
            "unsafe_shutdowns": health.power_cycles.saturating_sub(1),
            "media_errors": health.uncorrectable_errors,
            "num_err_log_entries": health.uncorrectable_errors,
        });
        if let Some(celsius) = self.celsius {
            merge(&mut log, json!({ "temperature": celsius }));
        }
        json!({
            "nvme_total_capacity": health.capacity_bytes,
            "nvme_number_of_namespaces": 1,
            "smart_support": { "available": true, "enabled": true },
            "smart_status": { "passed": true, "nvme": { "value": 0 } },
            "nvme_smart_health_information_log": log,
        })
    }
}

/// Returns the health status of a SCSI drive: sense code 5D/00 if a threshold is passed (informational exceptions, mode
/// page 1C).
fn scsi_status(health: &DeviceHealth) -> Value {
    let failing = normalised(health.retried_passes) <= READ_ERRORS_THRESHOLD
        || normalised(health.reallocated_sectors) <= REALLOCATED_THRESHOLD;
    match failing {
        true => json!({ "passed": false,
                        "scsi": { "asc": 0x5d, "ascq": 0, "ie_string": "FAILURE PREDICTION THRESHOLD EXCEEDED" } }),
        false => json!({ "passed": true }),
    }
}

/// Returns the normalised value after `raw` counts: 100 minus the counts.
fn normalised(raw: u64) -> i64 {
    100 - raw.min(99) as i64
}

/// Returns an attribute whose normalised value falls with each count.
fn attribute(id: u32, name: &str, raw: u64, threshold: i64, flags: (u32, &str)) -> Value {
    row(id, name, raw, normalised(raw), threshold, flags)
}

/// Returns an attribute that only counts events.
fn steady(id: u32, name: &str, raw: u64, flags: (u32, &str)) -> Value {
    row(id, name, raw, 100, 0, flags)
}

fn row(id: u32, name: &str, raw: u64, value: i64, threshold: i64, (flags, text): (u32, &str)) -> Value {
    let failed = threshold > 0 && value <= threshold;
    json!({
        "id": id,
        "name": name,
        "value": value,
        "worst": value,
        "thresh": threshold,
        "when_failed": if failed { "now" } else { "" },
        "flags": {
            "value": flags,
            "string": text,
            "prefailure": flags & 0x01 != 0,
            "updated_online": flags & 0x02 != 0,
            "performance": flags & 0x04 != 0,
            "error_rate": flags & 0x08 != 0,
            "event_count": flags & 0x10 != 0,
            "auto_keep": flags & 0x20 != 0,
        },
        "raw": { "value": raw, "string": raw.to_string() },
    })
}
