//! Every workload of the catalogue is valid, has a source, and can be generated.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use headstack_workload::{Generator, Span, Workload};

fn files() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../catalogue/workloads");
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "toml"))
        .collect();
    files.sort();
    files
}

fn read(path: &Path) -> Workload {
    let text = std::fs::read_to_string(path).unwrap();
    Workload::from_toml(&path.display().to_string(), &text).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn every_workload_is_valid_named_and_sourced() {
    assert!(!files().is_empty());
    let mut names = HashSet::new();
    for path in files() {
        let workload = read(&path);
        assert_eq!(Some(workload.name.as_str()), path.file_stem().and_then(|stem| stem.to_str()));
        assert!(!workload.source.is_empty(), "{} has no source", workload.name);
        assert!(names.insert(workload.specification.name.clone()), "two workloads have the same name");
        let sum: f64 = workload.specification.lines.iter().map(|line| line.share_percent).sum();
        assert!((sum - 100.0).abs() <= 1e-6, "{} sums to {sum}", workload.name);
    }
}

#[test]
fn every_workload_has_the_mean_size_of_its_table() {
    let span = Span { start_bytes: 0, length_bytes: 1 << 30 };
    for path in files() {
        let workload = read(&path);
        let lines = &workload.specification.lines;
        let mean = |power: i32| {
            lines.iter().map(|line| f64::from(line.size_bytes).powi(power) * line.share_percent / 100.0).sum::<f64>()
        };
        let mut generator = Generator::new(&workload, span, 512, 1).unwrap();
        let count = 200_000;
        let sum: u64 = (0..count).map(|_| u64::from(generator.next().length_bytes)).sum();
        let error = ((mean(2) - mean(1).powi(2)).max(0.0) / f64::from(count)).sqrt();
        let miss = (sum as f64 / f64::from(count) - mean(1)).abs();
        assert!(miss <= 4.5 * error + 1e-6, "{}: the mean size misses by {miss} bytes", workload.name);
    }
}

#[test]
fn published_mean_sizes_are_met() {
    // Published by Tom's Hardware in 2009: 11.1 KB for File Server and 15.7 KB for Web Server, with 1,024 bytes per KB.
    for (name, mean_kib) in [("file-server", 11.1), ("web-server", 15.7)] {
        let path = files().into_iter().find(|path| path.ends_with(format!("{name}.toml"))).unwrap();
        let lines = read(&path).specification.lines;
        let mean: f64 = lines.iter().map(|line| f64::from(line.size_bytes) * line.share_percent / 100.0 / 1024.0).sum();
        assert!((mean - mean_kib).abs() <= 0.05, "{name}: {mean} KiB");
    }
}
