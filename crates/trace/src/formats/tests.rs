//! Tests of detection, bad input and real traces, for all formats with one request per line.

use std::path::{Path, PathBuf};

use super::*;
use crate::meta::{Clock, Meta};
use crate::reader::TraceReader;
use crate::record::{Flags, NOT_RECORDED, Operation, Record};

/// Reads everything from a file in memory.
pub(crate) fn read(bytes: &[u8], options: &ReadOptions) -> Result<(Vec<Record>, Meta), TraceError> {
    let input = Input::from_bytes("t", bytes.to_vec())?;
    let mut reader = TraceReader::from_inputs(vec![input], options)?;
    let (mut batch, mut records) = (Vec::new(), Vec::new());
    while reader.next_batch(&mut batch)? {
        records.append(&mut batch);
    }
    Ok((records, reader.meta().clone()))
}

pub(crate) fn of(format: Format) -> ReadOptions {
    let csv = (format == Format::Csv).then(|| CsvColumns::parse(CSV).unwrap());
    ReadOptions { format: Some(format), csv, ..ReadOptions::default() }
}

/// Returns the formats with one request per line.
fn lines() -> Vec<Format> {
    let coded = [
        Format::Msr,
        Format::Systor,
        Format::Spc,
        Format::Alibaba,
        Format::Tencent,
        Format::CloudPhysics,
        Format::Biosnoop,
        Format::DiskSim,
        Format::Etw,
        Format::MqSim,
        Format::Hfplayer,
        Format::Csv,
    ];
    let tables = Format::ALL.into_iter().filter(|format| matches!(format, Format::Table(_)));
    coded.into_iter().chain(tables).collect()
}

/// Returns the table with this name.
fn table(name: &str) -> Format {
    Format::from_name(name).unwrap_or_else(|| panic!("there is no table {name}"))
}

/// Returns whether each line is a single word, so that truncation cannot be detected.
fn is_list(format: Format) -> bool {
    matches!(format.name(), "blocks" | "keys")
}

/// Declaration for the CSV sample.
const CSV: &str = "time=ts_us:us,offset=lba:512,length=bytes,op=op,device=volume,response=latency_ms:ms,separator=;";

/// Returns the sample of a format from the file with its name.
fn sample(format: Format) -> Vec<u8> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("samples");
    let paths = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut paths = paths.filter(|path| path.file_stem().unwrap() == format.name());
    let path = paths.next().unwrap_or_else(|| panic!("{} has no sample", format.name()));
    assert_eq!(paths.next(), None, "{} has two", format.name());
    std::fs::read(path).unwrap()
}

#[test]
fn names_are_distinguished() {
    for format in lines() {
        assert_eq!(Format::from_name(format.name()), Some(format));
        assert!(!format.title().is_empty());
    }
}

#[test]
fn samples_are_of_one_format() {
    for format in lines() {
        let bytes = sample(format);
        let input = Input::from_bytes("t", bytes.clone()).unwrap();
        let fitting: Vec<Format> = Format::ALL.into_iter().filter(|other| other.fits(input.head())).collect();
        if format == Format::Csv {
            assert_eq!(fitting, []);
        } else {
            assert_eq!(fitting, [format]);
        }
        let (records, meta) = read(&bytes, &of(format)).unwrap();
        assert_eq!(records.len(), 24 - usize::from(format == Format::Hfplayer), "{format:?}");
        assert!(records.iter().all(|record| (record.device as usize) < meta.devices.len()), "{format:?}");
        assert!(meta.resolution_ns > 0, "{format:?}");
        let responses = records.iter().any(|record| record.response_ns != NOT_RECORDED);
        assert_eq!(responses, meta.response.is_some(), "{format:?}");
    }
}

#[test]
fn samples_without_their_last_newline_with_windows_line_ends_and_with_blank_lines_are_the_same() {
    for format in lines() {
        let bytes = sample(format);
        let expected = read(&bytes, &of(format)).unwrap();
        let text = String::from_utf8(bytes.clone()).unwrap();
        assert_eq!(read(text.trim_end().as_bytes(), &of(format)).unwrap(), expected, "{format:?}");
        for end in ["\r\n", "\n\n", "\n \t\r\n"] {
            assert_eq!(read(text.replace('\n', end).as_bytes(), &of(format)).unwrap(), expected, "{format:?}, {end:?}");
        }
        // Concatenated files, as in archives, have two headers.
        if format.order() == Order::Any {
            let (records, meta) = read(&[&bytes[..], &bytes].concat(), &of(format)).unwrap();
            let mut twice = [&expected.0[..], &expected.0].concat();
            twice.sort_by_key(|record| record.arrival_ns);
            if meta.clock != Clock::Order {
                assert_eq!(records, twice, "{format:?}");
            }
            assert_eq!(meta.devices, expected.1.devices);
        }
    }
}

#[test]
fn a_cut_line_is_refused_with_its_number() {
    for format in lines().into_iter().filter(|format| !is_list(*format)) {
        let text = String::from_utf8(sample(format)).unwrap();
        let separator = if text.contains(';') {
            ';'
        } else if text.contains(',') {
            ','
        } else {
            ' '
        };
        let text = text.replace('\t', " ");
        let line = text.trim_end().lines().count() as u64;
        let end = text.trim_end().rfind(separator).unwrap();
        let error = read(text[..end].trim_end().as_bytes(), &of(format)).unwrap_err();
        assert_eq!(error.place, crate::Place::Line(line), "{format:?}: {error}");
        let skipping = ReadOptions { skip_bad: true, ..of(format) };
        let (records, meta) = read(text[..end].trim_end().as_bytes(), &skipping).unwrap();
        assert_eq!(
            (records.len() as u64 + u64::from(format == Format::Hfplayer), meta.rejected),
            (if format == Format::Biosnoop { 24 } else { 23 }, 1),
            "{format:?}"
        );
        assert_eq!(meta.rejects, [error.to_string()]);
    }
}

#[test]
fn a_file_that_changes_its_format_is_refused_at_that_line() {
    for format in lines() {
        for other in lines().into_iter().filter(|&other| other != format) {
            if matches!((format.name(), other.name()), ("disksim", "mqsim") | ("keys", "blocks" | "etw")) {
                // Whole milliseconds are valid times too, and a word is a valid key.
                continue;
            }
            let (first, second) = (sample(format), sample(other));
            let line = first.iter().filter(|&&byte| byte == b'\n').count() as u64 + 1;
            let read = read(&[&first[..], &second].concat(), &of(format));
            let error = read.expect_err(&format!("{format:?}, then {other:?}"));
            assert_eq!(error.place, crate::Place::Line(line), "{format:?}, then {other:?}: {error}");
        }
    }
}

mod each;
mod real;
