//! Local disks of cloud instances (instance store): one catalogue entry per row of `catalogue/instances/rates.toml`,
//! which that folder's README.md explains.

use std::fmt::Write as _;
use std::sync::LazyLock;

use headstack_workload::Document;
use headstack_workload::quantity::Bytes;
use serde::Deserialize;

use super::QUEUE_DEPTH;
use crate::Entry;

const FILE: &str = "catalogue/instances/rates.toml";
pub(crate) const TEXT: &str = include_str!("../../../../catalogue/instances/rates.toml");

/// Bytes per second for each read or write IOPS that Amazon states, since Amazon states no bytes; low confidence. They
/// are the geometric means of four disks whose bytes were measured (i3, i4g and im4gn, i7i, i7ie): 4,890 to 9,380 for
/// reads, 4,490 to 10,210 for writes.
const BYTES_PER_STATED_IOPS: Rates = Rates { reads: 7_350, writes: 6_020 };

/// Sources of measured and stated rates.
const MEASURED: &str = "ScyllaDB's iotune (scylladb/scylla-machine-image f25b2c5, 2026-06-10)";
const STATED_BY_AMAZON: &str = "B Amazon EC2 instance types, instance store specifications (2026, read in a copy)";
const STATED_BY_GOOGLE: &str = "B Google's limits of local SSD with NVMe, from general knowledge; the read and write axes \
    of ScyllaDB's diskplorer (2024) end at those of 1, 8 and 24 disks";
const ESTIMATED_BYTES: &str = "D estimate: Amazon states IOPS only; ";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    families: Vec<Family>,
}

/// Instances with the same kind of disk.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Family {
    name: String,
    vendor: String,
    year: u32,
    /// Size of a whole physical disk; `None` if every disk is limited by the host.
    whole: Option<Bytes>,
    latency: LatencyClass,
    sizes: String,
    #[serde(default)]
    of_disk: Vec<FullRow>,
    #[serde(default)]
    of_set: Vec<FullRow>,
    #[serde(default)]
    stated: Vec<StatedRow>,
}

/// Instance type, disks, size of a disk, read IOPS, read bytes per second, write IOPS, write bytes per second.
type FullRow = (String, u64, Bytes, u64, u64, u64, u64);

#[derive(Deserialize)]
#[serde(untagged)]
enum StatedRow {
    Full(FullRow),
    /// The same without bytes.
    Requests(String, u64, Bytes, u64, u64),
}

/// A figure for reads and one for writes.
#[derive(Clone, Copy)]
struct Rates {
    reads: u64,
    writes: u64,
}

/// Origin of the rates of an instance.
#[derive(Clone, Copy, PartialEq)]
enum Basis {
    MeasuredOfDisk,
    MeasuredOfSet,
    Stated,
}

/// Systems whose latency was measured, and classes without a measurement.
#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum LatencyClass {
    /// Amazon's disks of 2017; reads measured on an i3.2xlarge.
    I3,
    /// Amazon's own disks of the first generation; reads measured on an im4gn.4xlarge.
    Im4gn,
    /// Google's local SSD; reads measured on an n2-standard-8 with one.
    Gcp,
    /// Amazon's m5d, c5d and r5d; writes measured on an m5d.4xlarge.
    M5d,
    /// NVMe disks without a measurement.
    Nvme,
    /// SATA disks without a measurement.
    Sata,
}

/// Floor, median and 99th percentile of a latency, in us, with its source.
struct Stated {
    floor: u32,
    median: u32,
    p99: u32,
    source: &'static str,
}

impl LatencyClass {
    /// Latency of a read while no other is in flight. The median and the crowding of i3 and im4gn were fitted to
    /// measured medians at 9 to 95 % of the read IOPS (17 and 19 rates, 1 % root mean square, worst 2.5 %); the 99th
    /// percentile is that of a log-normal excess over the floor with the 95th percentile measured at half load. Floors
    /// are assumed.
    fn read(self) -> Stated {
        let stated = |floor, median, p99, source| Stated { floor, median, p99, source };
        match self {
            LatencyClass::I3 => stated(
                75,
                93,
                151,
                "A diskplorer (ScyllaDB, 33a5db3) on an i3.2xlarge; medians of 0.10 to \
                0.22 ms from 15 to 95 % of its IOPS fit within 2 %",
            ),
            LatencyClass::Im4gn => stated(
                85,
                106,
                157,
                "A diskplorer (ScyllaDB, 33a5db3) on an im4gn.4xlarge; medians of \
                0.11 to 0.18 ms from 9 to 93 % of its IOPS fit within 3 %",
            ),
            LatencyClass::Gcp => stated(
                110,
                149,
                237,
                "A diskplorer (ScyllaDB, 33a5db3) with one local SSD: median 0.149 \
                ms, p95 0.20 ms at 5 to 25 % of the limit; 0.16 and 0.24 ms up to the limit",
            ),
            LatencyClass::M5d | LatencyClass::Nvme => stated(
                85,
                115,
                180,
                "D not known: not measured on this type; medians \
                of 0.09 to 0.15 ms on three others (i3, im4gn, GCP local SSD)",
            ),
            LatencyClass::Sata => stated(
                100,
                160,
                400,
                "D not known: not measured on this type; 0.1 to 0.3 ms are usual for \
                SATA SSDs",
            ),
        }
    }

    /// How much each read in flight lengthens another on a whole disk, with its source. The fit of medians alone gives
    /// 0.61 and 0.42; these are smaller by the mean over the median, since the mean determines the reads in flight.
    fn crowding(self) -> (&'static str, &'static str) {
        match self {
            LatencyClass::I3 => ("0.59", "A fitted to the medians of diskplorer on an i3.2xlarge"),
            LatencyClass::Im4gn => ("0.41", "A fitted to the medians of diskplorer on an im4gn.4xlarge"),
            LatencyClass::Gcp | LatencyClass::M5d | LatencyClass::Nvme | LatencyClass::Sata => {
                ("0.5", "D not known: not measured on this type; 0.41 on im4gn, 0.59 on i3")
            }
        }
    }

    /// Latency of a write while the disk is nearly idle.
    fn write(self) -> Stated {
        let stated = |floor, median, p99, source| Stated { floor, median, p99, source };
        match self {
            LatencyClass::M5d => stated(
                15,
                30,
                80,
                "B 33,700 synchronous writes of 4 KiB per second on an m5d.4xlarge \
                (cockroachdb/pebble PR 92): a mean of 0.030 ms; D the distribution",
            ),
            LatencyClass::I3 | LatencyClass::Im4gn | LatencyClass::Gcp | LatencyClass::Nvme => stated(
                15,
                30,
                80,
                "D not \
                known: not measured on this type; 0.03 ms on an m5d.4xlarge, 0.008 to 0.012 ms on data-centre NVMe drives \
                without a hypervisor",
            ),
            LatencyClass::Sata => stated(
                30,
                60,
                200,
                "D not known: not measured on this type; 0.03 to 0.1 ms are usual for \
                SATA SSDs",
            ),
        }
    }
}

/// One row of the table.
struct Row<'t> {
    family: &'t Family,
    instance: &'t str,
    disks: u64,
    disk: Bytes,
    iops: Rates,
    /// `None` if the vendor does not state it.
    bytes_per_s: Option<Rates>,
    basis: Basis,
}

/// Returns the entries, family by family, smallest instance first.
pub(crate) fn entries() -> &'static [Entry] {
    static ENTRIES: LazyLock<Vec<Entry>> = LazyLock::new(|| {
        let table: Table =
            Document::parse(FILE, TEXT).and_then(|document| document.read()).expect("tests read the table");
        let entry = |row: Row| Entry {
            id: row.instance.to_owned().leak(),
            file_name: format!("{}.toml", row.instance).leak(),
            text: row.text().leak(),
        };
        table.families.iter().flat_map(Family::rows).map(entry).collect()
    });
    &ENTRIES
}

impl Family {
    fn rows(&self) -> impl Iterator<Item = Row<'_>> {
        let of_disk = self.of_disk.iter().map(|row| self.full(row, Basis::MeasuredOfDisk));
        let of_set = self.of_set.iter().map(|row| self.full(row, Basis::MeasuredOfSet));
        let stated = self.stated.iter().map(|row| match row {
            StatedRow::Full(row) => self.full(row, Basis::Stated),
            StatedRow::Requests(instance, disks, disk, reads, writes) => Row {
                family: self,
                instance,
                disks: *disks,
                disk: *disk,
                iops: Rates { reads: *reads, writes: *writes },
                bytes_per_s: None,
                basis: Basis::Stated,
            },
        });
        of_disk.chain(of_set).chain(stated)
    }

    fn full<'t>(&'t self, row: &'t FullRow, basis: Basis) -> Row<'t> {
        let (instance, disks, disk, read_iops, read_bytes, write_iops, write_bytes) = row;
        Row {
            family: self,
            instance,
            disks: *disks,
            disk: *disk,
            iops: Rates { reads: *read_iops, writes: *write_iops },
            bytes_per_s: Some(Rates { reads: *read_bytes, writes: *write_bytes }),
            basis,
        }
    }
}

impl Row<'_> {
    /// Whether the host limits each disk, because it is a share of a physical one.
    fn is_limited(&self) -> bool {
        self.family.whole.is_none_or(|whole| self.disk < whole)
    }

    /// Factor from the rates of the table to those of all disks.
    fn factor(&self) -> u64 {
        if self.basis == Basis::MeasuredOfDisk { self.disks } else { 1 }
    }

    /// Source of the IOPS, and of the throughput unless it is estimated.
    fn source(&self) -> String {
        match self.basis {
            Basis::MeasuredOfDisk if self.disks > 1 => {
                format!("I {MEASURED} of one disk, times {} disks", self.disks)
            }
            Basis::MeasuredOfDisk | Basis::MeasuredOfSet => format!("A {MEASURED}"),
            Basis::Stated if self.bytes_per_s.is_some() => STATED_BY_GOOGLE.to_owned(),
            Basis::Stated => STATED_BY_AMAZON.to_owned(),
        }
    }

    /// Returns the source of an estimated throughput.
    fn bytes_source(&self, per_request: u64, range: &str) -> String {
        match self.bytes_per_s {
            Some(_) => self.source(),
            None => format!("{ESTIMATED_BYTES}{per_request} bytes for each, {range} on four measured disks"),
        }
    }

    fn notes(&self) -> String {
        let mut notes = String::from("Contents are lost when the instance stops. ");
        if self.disks > 1 {
            notes += "All disks together, as RAID 0. ";
        }
        notes += if self.is_limited() {
            "Each disk is a share of a physical one: the host limits its rates. "
        } else {
            "Whole disks: the latency of reads rises toward the limit. "
        };
        notes + "Reads and writes are limited apart."
    }

    /// Returns the file of the entry.
    fn text(&self) -> String {
        let Row { family, instance, disks, disk, iops, bytes_per_s, basis } = self;
        let factor = self.factor();
        let bytes = bytes_per_s.unwrap_or(Rates {
            reads: iops.reads * BYTES_PER_STATED_IOPS.reads,
            writes: iops.writes * BYTES_PER_STATED_IOPS.writes,
        });
        let (read, write) = (family.latency.read(), family.latency.write());
        let latency = |Stated { floor, median, p99, .. }: &Stated| {
            format!("{{ floor = \"{floor}us\", median = \"{median}us\", p99 = \"{p99}us\" }}")
        };
        let rates = if *basis == Basis::Stated { "stated" } else { "measured" };
        let slack = if self.is_limited() { "30ms" } else { "1ms" };
        let slack_source = if self.is_limited() {
            "D latency is flat up to the limit (measured on GCP local SSD); 30 ms to 1 s fit"
        } else {
            "D short: waits of random arrivals are part of the fitted read latency"
        };
        let mut text = String::new();
        let mut line = |line: &str| writeln!(text, "{line}").expect("a string takes it");
        line(&format!("name   = \"{} {instance}, local disks\"", family.vendor));
        line(&format!("vendor = \"{}\"\nyear   = {}\nnotes  = \"{}\"", family.vendor, family.year, self.notes()));
        line(&format!("\n[capacity]\nsize = \"{}\"", Bytes(disk.0 * disks)));
        line("\n[volume]");
        line(&format!("read_iops        = {}\nwrite_iops       = {}", iops.reads * factor, iops.writes * factor));
        line(&format!("read_throughput  = \"{}B/s\"", bytes.reads * factor));
        line(&format!("write_throughput = \"{}B/s\"", bytes.writes * factor));
        line(&format!("slack            = \"{slack}\"\nqueue_depth      = {}", disks * u64::from(QUEUE_DEPTH)));
        let (crowding, crowding_source) = family.latency.crowding();
        if !self.is_limited() {
            line(&format!("read_crowding    = {crowding}"));
        }
        line(&format!("read  = {}\nwrite = {}", latency(&read), latency(&write)));
        line(&format!("\n[instance]\ntype   = \"{instance}\"\nfamily = \"{}\"", family.name));
        line(&format!("disks  = {disks}\ndisk   = \"{disk}\"\nrates  = \"{rates}\""));
        line(
            "\n# Confidence: A read in the named source, B read in a copy or general knowledge, I inferred, D estimate.",
        );
        line(&format!("[sources]\ndefault = \"{}\"", family.sizes));
        line(&format!("\"volume.read_iops\" = \"{0}\"\n\"volume.write_iops\" = \"{0}\"", self.source()));
        let Rates { reads, writes } = BYTES_PER_STATED_IOPS;
        line(&format!("\"volume.read_throughput\" = \"{}\"", self.bytes_source(reads, "4,890 to 9,380")));
        line(&format!("\"volume.write_throughput\" = \"{}\"", self.bytes_source(writes, "4,490 to 10,210")));
        line(&format!("\"volume.slack\" = \"{slack_source}\""));
        if !self.is_limited() {
            line(&format!("\"volume.read_crowding\" = \"{crowding_source}\""));
        }
        line("\"volume.queue_depth\" = \"B 1,024 for each disk, as in Linux's NVMe driver\"");
        line(&format!("\"volume.read\" = \"{}\"\n\"volume.write\" = \"{}\"", read.source, write.source));
        text
    }
}
