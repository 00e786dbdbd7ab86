//! Tests that apply to every format, on the samples included in the project.

use crate::reading;
use std::collections::HashSet;
use std::path::PathBuf;

use crate::reading::read;
use headstack_trace::{Format, Input, Record};
use proptest::prelude::*;

/// Returns the name, content and detected format of each sample.
fn samples() -> Vec<(String, Vec<u8>, Format)> {
    let folder = reading::sample("");
    let paths = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let sample = |path: PathBuf| {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let bytes = std::fs::read(&path).unwrap();
        let (_, meta) = read(&bytes, None, false).unwrap_or_else(|error| panic!("{name}: {error}"));
        (name, bytes, Format::from_name(&meta.origin[0].format).unwrap())
    };
    // The sample with declared columns needs a declaration and is tested separately.
    paths.filter(|path| path.file_name().is_some_and(|name| name != "csv.csv")).map(sample).collect()
}

fn assert_sound(records: &[Record], format: Format, name: &str) {
    assert!(records.iter().all(|record| record.end_bytes() < 1 << 63), "{name}");
    assert!(records.is_sorted_by_key(|record| record.arrival_ns), "{name} as {}", format.name());
}

#[test]
fn every_format_has_a_sample_that_only_it_fits() {
    let mut found = HashSet::new();
    for (name, bytes, format) in samples() {
        let input = Input::from_bytes(&name, bytes.clone()).unwrap();
        let fitting: Vec<Format> = Format::ALL.into_iter().filter(|format| format.fits(input.head())).collect();
        assert_eq!(fitting, [format], "{name}");
        let (records, meta) = read(&bytes, None, false).unwrap();
        assert!(!records.is_empty() && meta.rejected == 0, "{name}");
        assert!(records.iter().all(|record| (record.device as usize) < meta.devices.len()), "{name}");
        assert_sound(&records, format, &name);
        found.insert(format);
    }
    // The stored form is read only from files: see tests/store.rs.
    found.insert(Format::Parquet);
    found.insert(Format::Csv);
    let missing: Vec<&str> =
        Format::ALL.iter().filter(|format| !found.contains(format)).map(|format| format.name()).collect();
    assert!(missing.is_empty(), "no sample of {missing:?}");
}

#[test]
fn a_sample_cut_at_any_byte_gives_an_error_or_fewer_records() {
    for (name, bytes, format) in samples() {
        let all = read(&bytes, None, false).unwrap().0.len();
        for end in headstack_needs::sampled(0..bytes.len(), 7) {
            for format in [None, Some(format)] {
                match read(&bytes[..end], format, false) {
                    Ok((records, _)) => assert!(records.len() <= all, "{name} cut to {end} bytes"),
                    Err(error) => assert_eq!(error.to_string().lines().count(), 1, "{error}"),
                }
            }
        }
    }
}

#[test]
fn a_sample_read_as_any_other_format_is_refused_or_sound() {
    for (name, bytes, own) in samples() {
        for format in Format::ALL.into_iter().filter(|format| *format != own) {
            for skip_bad in [false, true] {
                if let Ok((records, _)) = read(&bytes, Some(format), skip_bad) {
                    assert_sound(&records, format, &name);
                }
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: headstack_needs::cases(256), ..ProptestConfig::default() })]

    #[test]
    fn arbitrary_bytes_fit_no_format(bytes in proptest::collection::vec(any::<u8>(), 1..2_000)) {
        prop_assert!(read(&bytes, None, false).is_err());
    }

    /// Many binary files consist of words with small values.
    #[test]
    fn small_words_fit_no_format(words in proptest::collection::vec(0u64..5_000, 6..400), width in 2usize..9) {
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()[..width].to_vec()).collect();
        prop_assert!(read(&bytes, None, false).is_err());
    }

    #[test]
    fn samples_with_bytes_changed_are_read_or_refused(
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        skip_bad in any::<bool>(),
    ) {
        for (name, mut bytes, format) in samples() {
            for (index, byte) in &changes {
                let at = index.index(bytes.len());
                bytes[at] = *byte;
            }
            match read(&bytes, Some(format), skip_bad) {
                Ok((records, _)) => assert_sound(&records, format, &name),
                Err(error) => prop_assert_eq!(error.to_string().lines().count(), 1),
            }
        }
    }
}
