//! Synthetic files for each feature, the five validation drives if they are available, and arbitrary text.

mod description;
mod language;
mod validation;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::PathBuf;

use headstack_sim::drive::description::{
    AfterReadWrite, BlockOrder, Disconnect, ExtraDisconnect, Policy, ReadAhead, SeekCurve, Sparing, WriteCache,
};
use headstack_sim::drive::geometry::zone_blocks;
use headstack_sim::drive::{Drive, check};
use headstack_workload::InputError;
use proptest::prelude::*;

use super::*;

/// The 64 parameters of a drive besides its model. As far as possible, all values differ.
const DISK: [(&str, &str); 64] = [
    ("Scheduler", "disksim_ioqueue { Scheduling policy = 3, Cylinder mapping strategy = 4 }"),
    ("Max queue length", "16"),
    ("Avg sectors per cylinder", "300"),
    ("Bulk sector transfer time", "0.064"),
    ("Hold bus entire read xfer", "0"),
    ("Hold bus entire write xfer", "1"),
    ("Never disconnect", "0"),
    ("Segment size (in blks)", "200"),
    ("Number of buffer segments", "7"),
    ("Maximum number of write segments", "3"),
    ("Use separate write segment", "1"),
    ("Low (write) water mark", "0.25"),
    ("High (read) water mark", "0.5"),
    ("Set watermark by reqsize", "1"),
    ("Enable caching in buffer", "1"),
    ("Calc sector by sector", "1"),
    ("Buffer continuous read", "2"),
    ("Minimum read-ahead (blks)", "8"),
    ("Maximum read-ahead (blks)", "180"),
    ("Read-ahead over requested", "1"),
    ("Read-ahead on idle hit", "1"),
    ("Read any free blocks", "1"),
    ("Stop prefetch in sector", "0"),
    ("Write hit stop prefetch", "1"),
    ("Allow almost read hits", "1"),
    ("Allow sneaky full read hits", "0"),
    ("Allow sneaky partial read hits", "0"),
    ("Allow sneaky intermediate read hits", "1"),
    ("Allow read hits on write data", "1"),
    ("Immed transfer partial hit", "0"),
    ("Read directly to buffer", "1"),
    ("Fast write level", "1"),
    ("Combine seq writes", "1"),
    ("Allow write prebuffering", "0"),
    ("Disconnect write if seek", "0"),
    ("Extra write disconnect", "1"),
    ("Extradisc command overhead", "1.1"),
    ("Extradisc disconnect overhead", "1.2"),
    ("Extradisc inter-disconnect delay", "1.3"),
    ("Extradisc 2nd disconnect overhead", "1.4"),
    ("Extradisc seek delta", "1.5"),
    ("Immediate buffer read", "2"),
    ("Immediate buffer write", "0"),
    ("Preseeking level", "0"),
    ("Per-request overhead time", "0.01"),
    ("Time scale for overheads", "2.0"),
    ("Read hit over. after read", "0.1"),
    ("Read hit over. after write", "0.2"),
    ("Read miss over. after read", "0.3"),
    ("Read miss over. after write", "0.4"),
    ("Write hit over. after read", "0.5"),
    ("Write hit over. after write", "0.6"),
    ("Write miss over. after read", "0.7"),
    ("Write miss over. after write", "0.8"),
    ("Read completion overhead", "0.9"),
    ("Write completion overhead", "0.11"),
    ("Data preparation overhead", "0.12"),
    ("First reselect overhead", "0.13"),
    ("Other reselect overhead", "0.14"),
    ("Read disconnect afterread", "0.15"),
    ("Read disconnect afterwrite", "0.16"),
    ("Write disconnect overhead", "0.17"),
    ("Minimum seek delay", "0.18"),
    ("Print stats", "0"),
];

const MECHANICS: &str = "dm_mech_g1 { Access time type = trackSwitchPlusRotation, Seek type = constant, \
    Constant seek time = 4.5, Add. write settling delay = -0.25, Head switch time = 0.75, \
    Rotation speed (in rpms) = 6000, Percent error in rpms = 0.0 }";
const LAYOUT: &str = "dm_layout_g1 { LBN-to-PBN mapping scheme = 2, Sparing scheme used = 3, Zones = [ ZONE ] }";
const ZONE: &str = "dm_layout_g1_zone { First cylinder number = 0, Last cylinder number = 9, Blocks per track = 50, \
    Offset of first block = 5, Empty space at zone front = 10, Skew for track switch = 7.9, \
    Skew for cylinder switch = 12, Number of spares = 1, slips = [ 3, 120 ], defects = [ 30, 49 ] }";

fn model(mechanics: &str, layout: &str, zones: &str) -> String {
    format!(
        "dm_disk TOY.model {{ Block count = 980, Number of data surfaces = 2, Number of cylinders = 12,\n\
         Mechanical Model = {mechanics},\nLayout Model = {} }}",
        layout.replace("ZONE", zones)
    )
}

fn toy_model() -> String {
    model(MECHANICS, LAYOUT, ZONE)
}

/// Returns a `disksim_disk TOY` with one parameter per line. `changes` replaces values; `-` removes a parameter.
fn disk(changes: &[(&str, &str)]) -> String {
    let mut text = format!("disksim_disk TOY {{\n  Model = {}", toy_model().replace('\n', " "));
    for (name, value) in DISK {
        let value = changes.iter().find(|(changed, _)| *changed == name).map_or(value, |(_, value)| value);
        if value != "-" {
            write!(text, ",\n  {name} = {value}").unwrap();
        }
    }
    text + "\n}\n"
}

fn only(text: &str) -> ImportedDrive {
    let mut imported = parse_str("toy", text).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(imported.drives.len(), 1);
    imported.drives.remove(0)
}

fn refusal(text: &str) -> String {
    match parse_str("toy", text) {
        Ok(_) => panic!("accepted: {text}"),
        Err(error) => error.to_string(),
    }
}

/// Imports `files[0]` from memory.
fn import_files(files: &[(&str, &str)]) -> Result<Imported, InputError> {
    let files: BTreeMap<PathBuf, &str> = files.iter().map(|(name, text)| (PathBuf::from(name), *text)).collect();
    let main = PathBuf::from("dir/main.parv");
    import_with(&main, &mut |path| {
        files.get(path).map(|text| (*text).to_owned()).ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))
    })
}

/// Returns every `FILE:LINE` named by a drive's sources and unmapped parameters.
fn named_lines(sources: &BTreeMap<String, String>, unmapped: &[Unmapped]) -> BTreeSet<String> {
    let mapped = sources.values().flat_map(|source| source.split(", ")).filter_map(|one| one.strip_prefix("A "));
    let left = unmapped.iter().map(|entry| format!("{}:{}", entry.file, entry.line));
    mapped.map(str::to_owned).chain(left).collect()
}

/// Returns the lines of a text that set a parameter at most `depth` braces deep.
fn parameter_lines(text: &str, depth: usize) -> impl Iterator<Item = usize> {
    let mut open = 0;
    text.lines().enumerate().filter_map(move |(index, line)| {
        let code = line.split('#').next().unwrap();
        let at_start = open;
        open = open + code.matches('{').count() - code.matches('}').count();
        (code.contains('=') && at_start <= depth).then_some(index + 1)
    })
}
