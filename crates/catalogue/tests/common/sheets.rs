//! Fits the constants of estimated figures to the data sheets of the catalogue, for example without one maker.

use headstack_catalogue::Entry;
use headstack_catalogue::ssd::EstimateRules;
use headstack_catalogue::ssd::file::{Cells, SsdFile, SsdInterfaceKind, WriteState};
use headstack_workload::Document;

/// Makers that sell the same controllers and flash: brands of one company, and three drives with the Phison E26.
const ONE_MAKER: [&[&str]; 3] =
    [&["Intel", "Solidigm", "SK hynix"], &["Micron", "Crucial", "Corsair", "Seagate"], &["Western Digital", "HGST"]];

pub fn file(entry: &Entry) -> SsdFile {
    Document::parse(entry.file_name, entry.text).unwrap().read().unwrap()
}

/// Whether the source of a stated figure was read.
pub fn is_read(file: &SsdFile, key: &str) -> bool {
    let source = [&format!("stated.{key}"), "stated", "default"].iter().find_map(|key| file.sources.get(*key));
    source.is_some_and(|source| source.starts_with("A "))
}

/// Returns a name that all brands of one maker share.
fn maker(file: &SsdFile) -> &str {
    let vendor = file.vendor.as_deref().unwrap_or("");
    ONE_MAKER.iter().find(|brands| brands.contains(&vendor)).map_or(vendor, |brands| brands[0])
}

pub fn same_maker(a: &SsdFile, b: &SsdFile) -> bool {
    maker(a) == maker(b)
}

fn size_tb(file: &SsdFile) -> f64 {
    file.capacity.size.unwrap().0 as f64 / 1e12
}

fn is_nvme(file: &SsdFile, protected: bool) -> bool {
    file.interface.kind == Some(SsdInterfaceKind::Nvme) && (file.buffer.power_loss_protected == Some(true)) == protected
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    if values.len() % 2 == 1 { values[middle] } else { f64::midpoint(values[middle - 1], values[middle]) }
}

fn read_share(file: &SsdFile) -> Option<f64> {
    let share = file.stated.random_read?.iops * 4096.0 / file.stated.sequential_read?.0;
    is_read(file, "random_read").then_some(share)
}

fn written(file: &SsdFile) -> Option<f64> {
    file.stated.sequential_write.map(|rate| rate.0).filter(|_| is_read(file, "sequential_write"))
}

/// Fits the constants: medians, and the least mean error for the program rate at the power limit.
pub fn fit<'a>(files: impl Iterator<Item = &'a SsdFile>) -> EstimateRules {
    let files: Vec<&SsdFile> = files.collect();
    let protected = || files.iter().copied().filter(|file| is_nvme(file, true));
    let consumer = || files.iter().copied().filter(|file| is_nvme(file, false));
    let of_link = |generation| {
        let large =
            protected().filter(move |file| file.interface.generation == Some(generation) && size_tb(file) > 3.0);
        median(large.filter_map(read_share))
    };
    let consumer_write = consumer().filter_map(|file| Some(written(file)? / file.stated.sequential_read?.0));
    let years = |file: &SsdFile| f64::from(file.year.unwrap()) - 2019.0;
    let is = |file: &SsdFile, cells| {
        file.flash.cells.or(file.flash.generation.map(|generation| generation.cells())) == Some(cells)
    };
    let large: Vec<(f64, f64, f64)> = protected()
        .filter(|file| is(file, Cells::Tlc) && size_tb(file) > 6.0)
        .filter_map(|file| Some((years(file), 0.95 * link(file), written(file)?)))
        .collect();
    let error = |rate: f64, growth: f64| {
        let of = |(years, link, written): &(f64, f64, f64)| (rate * growth.powf(*years)).min(*link) / written - 1.0;
        large.iter().map(|it| of(it).abs()).sum::<f64>()
    };
    let grid =
        (25..=50).flat_map(|rate| (50..=68).map(move |growth| (f64::from(rate) * 1e8, f64::from(growth) / 50.0)));
    let (rate, growth) = grid.min_by(|a, b| error(a.0, a.1).total_cmp(&error(b.0, b.1))).unwrap();
    let qlc = protected().filter(|file| is(file, Cells::Qlc));
    EstimateRules {
        read_share: [3, 4, 5].map(of_link),
        consumer_read_share: median(consumer().filter(|file| size_tb(file) > 0.9).filter_map(read_share)),
        consumer_write_share: median(consumer_write),
        program_bytes_per_s: rate,
        program_growth: growth,
        qlc_share: median(qlc.filter_map(|file| Some(written(file)? / rate / growth.powf(years(file))))),
    }
}

/// Returns the payload rate of the link in bytes per second.
fn link(file: &SsdFile) -> f64 {
    let lane = [0.0, 0.229e9, 0.457e9, 0.9e9, 1.8e9, 3.6e9][file.interface.generation.unwrap() as usize];
    lane * f64::from(file.interface.lanes.unwrap_or(4))
}

pub fn values(rules: &EstimateRules) -> Vec<f64> {
    let EstimateRules {
        read_share,
        consumer_read_share,
        consumer_write_share,
        program_bytes_per_s,
        program_growth,
        qlc_share,
    } = *rules;
    [&read_share[..], &[consumer_read_share, consumer_write_share, program_bytes_per_s, program_growth, qlc_share]]
        .concat()
}

/// Whether two drives of different makers have the same link, cells, class and spare flash, capacities within 25 % and
/// years within 1.
fn are_alike(a: &SsdFile, b: &SsdFile) -> bool {
    let spare = |file: &SsdFile| file.endurance.dwpd.is_some_and(|dwpd| dwpd > 2.0);
    let of = |file: &SsdFile| {
        (
            file.interface.kind,
            file.interface.generation,
            file.flash.cells,
            file.buffer.power_loss_protected,
            spare(file),
        )
    };
    !same_maker(a, b)
        && of(a) == of(b)
        && a.controller.map_cache.is_some() == b.controller.map_cache.is_some()
        && (size_tb(a) / size_tb(b)).ln().abs() < 0.25
        && a.year.unwrap().abs_diff(b.year.unwrap()) <= 1
}

/// Prints the mean difference between sheets of drives that are alike in all that a file states besides rates.
pub fn print_floor(files: &[SsdFile]) {
    type Value = fn(&SsdFile) -> Option<f64>;
    let kinds: [(&str, Value); 4] = [
        ("random_read", |file| file.stated.random_read.map(|read| read.iops)),
        ("random_write", |file| {
            let writes = file.stated.random_write?;
            (writes.state != Some(WriteState::Burst)).then_some(writes.iops)
        }),
        ("sequential_read", |file| file.stated.sequential_read.map(|rate| rate.0)),
        ("sequential_write", |file| file.stated.sequential_write.map(|rate| rate.0)),
    ];
    for (key, value) in kinds {
        let of = |file: &SsdFile| value(file).filter(|_| is_read(file, key));
        let errors: Vec<f64> = files
            .iter()
            .flat_map(|a| files.iter().filter(|b| are_alike(a, b)).filter_map(|b| Some(of(a)? / of(b)? - 1.0)))
            .map(f64::abs)
            .collect();
        let mean = errors.iter().sum::<f64>() / errors.len() as f64;
        println!(
            "{key}: sheets of {} pairs of like drives differ by {:.1} % on average",
            errors.len() / 2,
            100.0 * mean
        );
    }
}
