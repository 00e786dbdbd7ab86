//! Solid-state drives against what their sheets and reviewers say, as predictions: each stated figure is hidden in turn, and
//! the drive that the rest of its file describes is measured. Figures that decide are of the confidence of a source that was read.
//!
//! Run with `--nocapture` for the table.

use headstack_catalogue::ssd::{self, file::SsdFile};
use headstack_catalogue::{ResolvedDevice, drives, load_device};
use headstack_workload::Document;

use crate::common::Errors;
use crate::common::ssds::{Figure, What};

/// Makers whose drives no default was fitted to.
const HELD_OUT: [&str; 2] = ["KIOXIA", "Micron"];

/// The key of `[stated]` that a figure is of.
fn key(what: What) -> &'static str {
    match what {
        What::RandomRead { .. } => "random_read",
        What::SteadyWrite { .. } | What::BurstWrite { .. } => "random_write",
        What::SequentialRead => "sequential_read",
        What::SequentialWrite => "sequential_write",
        What::ReadLatency => "read_latency",
        What::WriteLatency => "write_latency",
        What::SlcCache => "slc_cache",
        What::AfterSlc => "after_slc",
    }
}

/// The file without one of its stated figures.
fn without(text: &str, key: &str) -> String {
    let mut stated = false;
    let kept = text.lines().filter(|line| {
        stated = if line.starts_with('[') { *line == "[stated]" } else { stated };
        let is_it = stated && line.split('=').next().is_some_and(|name| name.trim() == key);
        !is_it && !line.starts_with(&format!("\"stated.{key}\""))
    });
    kept.collect::<Vec<_>>().join("\n")
}

/// Whether the figure's source was read, or is general knowledge that decides nothing.
fn decides(file: &SsdFile, figure: &Figure) -> bool {
    let key = format!("stated.{}", key(figure.what));
    let source = file.sources.get(&key).or_else(|| file.sources.get("stated")).or_else(|| file.sources.get("default"));
    source.is_some_and(|source| source.starts_with("A "))
}

/// Errors by kind of figure.
#[derive(Default)]
struct Score {
    stated: Vec<(&'static str, Errors)>,
}

impl Score {
    fn add(&mut self, kind: &'static str, what: String, found: f64, stated: f64) {
        let index = self.stated.iter().position(|(name, _)| *name == kind).unwrap_or_else(|| {
            self.stated.push((kind, Errors::default()));
            self.stated.len() - 1
        });
        self.stated[index].1.add(what, found, stated);
    }

    fn print(&self, title: &str) {
        self.stated.iter().for_each(|(kind, errors)| errors.print(&format!("{title}, {kind}")));
    }
}

/// Figures that say how fast a drive is; the volume of a cache is no such.
fn is_rate(what: What) -> bool {
    !matches!(what, What::SlcCache)
}

#[test]
fn hidden_figures_follow_from_the_others() {
    let (mut fitted, mut held_out, mut input) = (Score::default(), Score::default(), Score::default());
    let (mut all, mut devices) = (Errors::default(), 0);
    for entry in drives().iter().filter(|entry| entry.is_ssd()) {
        let ResolvedDevice::Ssd(resolved) = load_device(entry.id).unwrap() else { panic!("{} is a disk", entry.id) };
        let figures = Figure::of(&resolved.file);
        let figures: Vec<_> = figures.into_iter().filter(|figure| decides(&resolved.file, figure)).collect();
        devices += u32::from(!figures.is_empty());
        let held = resolved.file.vendor.as_deref().is_some_and(|vendor| HELD_OUT.contains(&vendor));
        for figure in &figures {
            let name = key(figure.what);
            let document = Document::parse(entry.file_name, &without(entry.text, name)).unwrap();
            let hidden = ssd::resolve(&document).unwrap_or_else(|error| panic!("{error}"));
            assert_eq!(Figure::of(&hidden.file).len() + 1, Figure::of(&resolved.file).len(), "{name} is hidden");
            let (given, predicted) = (figure.measure(&resolved.description), figure.measure(&hidden.description));
            println!(
                "{:24} {figure} as input {given:>11.1} ({:+6.1} %), hidden {predicted:>11.1} ({:+6.1} %)",
                entry.id,
                100.0 * (given / figure.stated - 1.0),
                100.0 * (predicted / figure.stated - 1.0)
            );
            input.add(name, entry.id.to_owned(), given, figure.stated);
            if is_rate(figure.what) {
                all.add(format!("{} {name}", entry.id), given, figure.stated);
            }
            let score = if held { &mut held_out } else { &mut fitted };
            score.add(name, entry.id.to_owned(), predicted, figure.stated);
        }
    }
    assert!(devices >= 15, "only {devices} drives");
    input.print("as input");
    all.print("as input, all rates and latencies");
    fitted.print("hidden, families whose sheets the defaults know");
    held_out.print("hidden, families kept out");
    assert!(all.mean() <= 0.03 && all.worst() <= 0.10);
}
