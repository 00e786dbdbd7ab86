//! An error in a file is reported on one line with its position; if bad lines are skipped, it is counted with the same
//! reason.

use crate::reading;
use crate::reading::CSV_COLUMNS;
use headstack_trace::{CsvColumns, Format, Input, Meta, Place, ReadOptions, Record, TraceError, TraceReader};

fn read(bytes: &[u8], format: Format, skip_bad: bool) -> Result<(Vec<Record>, Meta), TraceError> {
    let csv = (format == Format::Csv).then(|| CsvColumns::parse(CSV_COLUMNS).unwrap());
    let options = ReadOptions { format: Some(format), skip_bad, csv, ..ReadOptions::default() };
    let mut reader = TraceReader::from_inputs(vec![Input::from_bytes("bad", bytes.to_vec())?], &options)?;
    let records = reader.read_all()?;
    Ok((records, reader.meta().clone()))
}

/// One sample of each layout of each format except Parquet.
const SAMPLES: [(&str, &str); 37] = [
    ("alibaba.csv", "alibaba"),
    ("arc.txt", "arc"),
    ("biosnoop.txt", "biosnoop"),
    ("blocks.txt", "blocks"),
    ("cachelib.csv", "cachelib"),
    ("cloudphysics.csv", "cloudphysics"),
    ("csv.csv", "csv"),
    ("disksim.txt", "disksim"),
    ("etw.csv", "etw"),
    ("fiu.txt", "fiu"),
    ("ftrace.txt", "ftrace"),
    ("ftrace-perf.txt", "ftrace"),
    ("hfplayer.csv", "hfplayer"),
    ("iolog-v2.iolog", "iolog"),
    ("iolog-v3.iolog", "iolog"),
    ("keys.txt", "keys"),
    ("mooncake.txt", "mooncake"),
    ("mqsim.txt", "mqsim"),
    ("msr.csv", "msr"),
    ("open-cas.csv", "open-cas"),
    ("sample.blkparse", "blkparse"),
    ("spc.csv", "spc"),
    ("systor.csv", "systor"),
    ("tectonic.txt", "tectonic"),
    ("tencent.csv", "tencent"),
    ("thesios.csv", "thesios"),
    ("twitter.csv", "twitter"),
    ("validate.trace", "validate"),
    ("lcs-v1.bin", "lcs"),
    ("lcs-v3.bin", "lcs"),
    ("oracle-general-opns.bin", "oracle-general"),
    ("oracle-general.bin", "oracle-general"),
    ("sample-version-8.blktrace", "blktrace"),
    ("sample.blktrace.0", "blktrace"),
    ("srt.bin", "srt"),
    ("vscsi-v1.bin", "vscsi"),
    ("vscsi-v2.bin", "vscsi"),
];
/// Number of samples that are text.
const TEXTS: usize = 28;

fn format_of(name: &str) -> Format {
    Format::from_name(name).unwrap_or_else(|| panic!("no format {name}"))
}

fn sample(name: &str) -> Vec<u8> {
    std::fs::read(reading::sample(name)).unwrap()
}

/// Returns the lines of a sample up to its middle, and the rest.
fn halves(name: &str) -> (String, String) {
    let text = String::from_utf8(sample(name)).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    let (first, second) = lines.split_at(lines.len() / 2);
    let joined = |lines: &[&str]| lines.iter().map(|line| format!("{line}\n")).collect();
    (joined(first), joined(second))
}

/// Asserts that `bytes` are rejected after the first `good_bytes`, and that these are still read if bad input is
/// skipped.
fn assert_refused(bytes: &[u8], good_bytes: usize, format: Format, what: &str) {
    let error = read(bytes, format, false).expect_err(what);
    let text = error.to_string();
    assert!(text.starts_with("bad:") && text.lines().count() == 1, "{what}: {text}");
    match error.place {
        Place::Line(line) => {
            let good = bytes[..good_bytes].iter().filter(|&&byte| byte == b'\n').count() as u64;
            assert_eq!(line, good + 1, "{what}: {text}");
        }
        Place::Record(record) => assert!(record > 1, "{what}: {text}"),
        Place::Byte(byte) => assert!(byte >= good_bytes as u64, "{what}: {text}"),
        Place::File | Place::Output(_) => panic!("{what}: {text}"),
    }
    let (records, meta) = read(bytes, format, true).expect(what);
    assert!(meta.rejected > 0 && meta.rejects[0] == text, "{what}: {text}, then {:?}", meta.rejects);
    let good = read(&bytes[..good_bytes], format, true).expect(what).0;
    assert_eq!(records, good, "{what}");
}

#[test]
fn every_format_but_the_stored_form_is_here() {
    for format in Format::ALL.into_iter().filter(|&format| format != Format::Parquet) {
        assert!(SAMPLES.iter().any(|&(_, of)| of == format.name()), "{format:?}");
    }
}

/// Returns whether lines of one format can be valid in the other: both have five numbers, whole milliseconds are valid
/// times, and keys may consist of digits.
fn is_alike(one: &str, other: &str) -> bool {
    matches!((one, other), ("disksim", "mqsim") | ("keys", "blocks"))
}

#[test]
fn the_second_half_of_another_format_is_refused_where_it_begins() {
    for &(name, format) in &SAMPLES[..TEXTS] {
        for &(other_name, other) in &SAMPLES[..TEXTS] {
            if other == format || is_alike(format, other) {
                continue;
            }
            let (first, second) = (halves(name).0, halves(other_name).1);
            let bytes = format!("{first}{second}");
            assert_refused(bytes.as_bytes(), first.len(), format_of(format), &format!("{name}, then {other_name}"));
        }
    }
}

#[test]
fn garbage_is_refused_where_it_begins() {
    for (number, (name, format)) in SAMPLES.into_iter().enumerate() {
        let mut bytes = if number < TEXTS { halves(name).0.into_bytes() } else { sample(name) };
        let good_bytes = bytes.len();
        // Shorter than the sample, because the layout is detected from most of the file.
        bytes.extend_from_slice(&[0xff; 30]);
        assert_refused(&bytes, good_bytes, format_of(format), name);
    }
}
