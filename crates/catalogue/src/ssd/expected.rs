//! Estimates figures that a data sheet omits: from another capacity of the same product family if the catalogue has
//! one, otherwise from link, year, class and flash.
//!
//! | omitted | estimated from the family | otherwise |
//! | --- | --- | --- |
//! | `random_read` | its random reads, less with fewer dies | a fraction of the link, by class |
//! | `sequential_write` | its rate, scaled by the estimate for both | dies, power budget of the year, link |
//! | `random_write`, steady | | program rate and write amplification of the spare flash |

use headstack_workload::Document;

use super::file::{Cells, Generation, SsdFile, SsdInterfaceKind};
use super::generation::usual_raw;
use crate::array::standards::LinkStandard;
use crate::constants::{SSD_CONTROLLER_SHARE, SSD_ENDURANCE_CLASSES, SSD_READS_CAPACITY, SSD_READS_EXPONENT};
use crate::drives;

/// Constants of the estimates, fitted to data sheets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EstimateRules {
    /// Random reads of 4 KiB of an NVMe drive with capacitors as a fraction of its sequential read rate, by PCI Express
    /// generation from 3. Controllers of one generation differ by a factor of 1.8.
    pub read_share: [f64; 3],
    /// The same fraction for drives without capacitors (0.35 to 0.88).
    pub consumer_read_share: f64,
    /// Sequential write rate of an NVMe drive without capacitors as a fraction of its read rate (0.5 to 1.0). Such
    /// drives write to cells in one-bit mode first.
    pub consumer_write_share: f64,
    /// Rate at which three-bit flash in an NVMe drive with capacitors is programmed at its power limit, in 2019, in
    /// bytes per second.
    pub program_bytes_per_s: f64,
    /// Yearly growth factor of that rate, because newer flash needs less energy for a byte.
    pub program_growth: f64,
    /// Rate of four-bit flash at the power limit as a fraction of that of three-bit flash (0.30 to 0.50).
    pub qlc_share: f64,
}

/// Fitted to every data sheet in the catalogue whose source was read: medians, from 3 TB for `read_share`, and the
/// least mean error over drives of 6 TB and more for the program rate. The test `estimates_hold_for_other_makers` repeats
/// the fit, and scores each maker with a fit to the others.
pub const ESTIMATE_RULES: EstimateRules = EstimateRules {
    read_share: [0.77, 0.61, 0.84],
    consumer_read_share: 0.58,
    consumer_write_share: 0.88,
    program_bytes_per_s: 3.6e9,
    program_growth: 1.16,
    qlc_share: 0.42,
};

/// An estimated figure and its source.
pub(super) struct Estimate {
    /// Rate in IOPS or bytes per second.
    pub rate: f64,
    /// Source with its confidence, as in [`crate::resolve::Derived`].
    pub rule: String,
}

fn is_protected(file: &SsdFile) -> bool {
    file.buffer.power_loss_protected == Some(true)
}

fn raw_bytes(file: &SsdFile) -> f64 {
    usual_raw(file.capacity.size.map_or(0, |size| size.0)) as f64
}

/// Returns the payload rate of the PCI Express link in bytes per second.
fn link_bytes_per_s(file: &SsdFile) -> f64 {
    let generation = file.interface.generation.unwrap_or(3);
    let line = LinkStandard::pcie_bytes_per_s(generation).unwrap_or(f64::INFINITY);
    line * f64::from(file.interface.lanes.unwrap_or(4))
}

fn sequential_read(file: &SsdFile) -> f64 {
    file.stated.sequential_read.map_or(SSD_CONTROLLER_SHARE * link_bytes_per_s(file), |rate| rate.0)
}

/// Returns the part of a product name before the capacity, without the maker's name for the endurance class of a
/// data-center drive, which differs only in spare flash; `None` if the name has no capacity. For example, `Micron 9550`
/// for `Micron 9550 MAX 12.8 TB`.
fn family(file: &SsdFile) -> Option<&str> {
    let words: Vec<&str> = file.name.split(' ').collect();
    let size = words.windows(2).position(|pair| pair[0].parse::<f64>().is_ok() && matches!(pair[1], "TB" | "GB"))?;
    let length = words[..size].iter().map(|word| word.len() + 1).sum::<usize>().checked_sub(1)?;
    let family = &file.name[..length];
    if !is_protected(file) {
        return Some(family);
    }
    Some(SSD_ENDURANCE_CLASSES.iter().find_map(|class| family.strip_suffix(class)).unwrap_or(family))
}

/// Returns the drive of the catalogue that is of the same family, has the nearest other capacity, and states the figure
/// with a source that was read, and the figure.
fn relative<T>(file: &SsdFile, key: &str, figure: impl Fn(&SsdFile) -> Option<T>) -> Option<(SsdFile, T)> {
    let (vendor, name) = (file.vendor.as_deref()?, family(file)?);
    let start = format!("\"{name}");
    let candidates = drives().iter().filter(|entry| entry.text.contains(&start)).filter_map(|entry| {
        let other: SsdFile = Document::parse(entry.file_name, entry.text).ok()?.read().ok()?;
        let source = [&format!("stated.{key}"), "stated", "default"].iter().find_map(|key| other.sources.get(*key));
        let is_read = source.is_some_and(|source| source.starts_with("A "));
        let is_relative = other.vendor.as_deref() == Some(vendor) && family(&other) == Some(name);
        let ratio = other.capacity.size?.0 as f64 / file.capacity.size?.0 as f64;
        let distance = libm::log(ratio).abs();
        // Another form factor of the same capacity is the same drive.
        (is_read && is_relative && distance > 0.02).then_some((distance, other))
    });
    let relatives = candidates.filter_map(|(distance, other)| figure(&other).map(|figure| (distance, other, figure)));
    relatives.min_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, other, figure)| (other, figure))
}

/// Returns the factor by which a drive with few dies serves fewer random reads than one with enough dies.
fn reads_of_dies(file: &SsdFile) -> f64 {
    let enough = SSD_READS_CAPACITY[usize::from(is_protected(file))];
    libm::pow((raw_bytes(file) / enough).min(1.0), SSD_READS_EXPONENT)
}

/// Estimates the random read IOPS of an NVMe drive.
pub(super) fn random_reads(file: &SsdFile, rules: &EstimateRules) -> Estimate {
    let most = sequential_read(file) / 4096.0;
    if let Some((other, read)) = relative(file, "random_read", |other| other.stated.random_read) {
        let rate = (read.iops * reads_of_dies(file) / reads_of_dies(&other)).min(most);
        return Estimate { rate, rule: format!("C stated for {}, scaled by capacity", other.name) };
    }
    if !is_protected(file) {
        let rule = "C fraction of sequential reads, usual for consumer drives of the capacity".to_owned();
        return Estimate { rate: rules.consumer_read_share * reads_of_dies(file) * most, rule };
    }
    // Dies and channels of the simulated drive limit the reads of small capacities.
    let generation = file.interface.generation.unwrap_or(3).clamp(3, 5) as usize;
    let rule = format!("C fraction of sequential reads, usual for PCI Express {generation} in data centers");
    Estimate { rate: rules.read_share[generation - 3] * most, rule }
}

/// Returns the generation of the flash, or the usual one of the year.
fn generation(file: &SsdFile) -> Option<Generation> {
    file.flash.generation.or_else(|| file.flash.cells.map(|cells| Generation::of(cells, file.year)))
}

/// Returns the usual sequential write rate of a drive in bytes per second and what limits it.
fn usual_write_rate(file: &SsdFile, rules: &EstimateRules) -> (f64, &'static str) {
    let read = sequential_read(file);
    if !is_protected(file) {
        return (rules.consumer_write_share * read, "C fraction of sequential reads, usual for consumer drives");
    }
    let flash = generation(file).map_or(f64::INFINITY, |generation| {
        let figures = generation.figures();
        let row = f64::from(figures.planes_per_die) * figures.page.0 as f64;
        let row_s = figures.program.0 as f64 / 1e9 + row / figures.channel_rate.0;
        0.9 * raw_bytes(file) / figures.die.0 as f64 * row / row_s
    });
    // Without a year, the year in which the link was new.
    let introduced = [2010, 2012, 2016, 2021, 2024][(file.interface.generation.unwrap_or(3).clamp(1, 5) - 1) as usize];
    let years = f64::from(file.year.unwrap_or(introduced)) - 2019.0;
    let cells = generation(file).map_or(Cells::Tlc, Generation::cells);
    let share = if cells == Cells::Qlc { rules.qlc_share } else { 1.0 };
    let power = rules.program_bytes_per_s * libm::pow(rules.program_growth, years) * share;
    let limits = [
        (flash, "C program rate of the dies"),
        (power, "C program rate at the power limit, usual for the year"),
        (read, "C no faster than sequential reads"),
    ];
    limits.into_iter().min_by(|a, b| a.0.total_cmp(&b.0)).expect("there are three limits")
}

/// Estimates the sequential write rate of an NVMe drive, in bytes per second.
pub(super) fn sequential_write(file: &SsdFile, rules: &EstimateRules) -> Estimate {
    let (usual, rule) = usual_write_rate(file, rules);
    if let Some((other, rate)) = relative(file, "sequential_write", |other| other.stated.sequential_write) {
        let scaled = rate.0 * usual / usual_write_rate(&other, rules).0;
        // Scaling must not leave the range of both.
        let rate = scaled.clamp(usual.min(rate.0), usual.max(rate.0)).min(sequential_read(file));
        return Estimate { rate, rule: format!("C stated for {}, scaled by dies and link", other.name) };
    }
    Estimate { rate: usual, rule: rule.to_owned() }
}

/// Returns true if a file describes a product, with a vendor or figures of its data sheet. Figures that any other file
/// omits are not estimated, because it describes the flash itself.
pub(super) fn is_product(file: &SsdFile) -> bool {
    let stated = &file.stated;
    file.vendor.is_some()
        || stated.random_read.is_some()
        || stated.random_write.is_some()
        || stated.sequential_read.is_some()
        || stated.sequential_write.is_some()
}

/// Returns true if the sequential write rate of an NVMe product has to be estimated: neither it nor the program time is
/// stated.
pub(crate) fn has_estimated_writes(file: &SsdFile) -> bool {
    file.interface.kind == Some(SsdInterfaceKind::Nvme)
        && is_product(file)
        && file.stated.sequential_write.is_none()
        && file.flash.program.is_none()
}
