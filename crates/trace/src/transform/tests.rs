use proptest::prelude::*;

use super::*;
use crate::meta::{DeviceMeta, Process};

fn steps(texts: &[&str]) -> Vec<Step> {
    texts.iter().map(|text| Step::parse(text).unwrap()).collect()
}

fn meta() -> Meta {
    let device = |name: &str| DeviceMeta { name: name.to_owned(), ..DeviceMeta::default() };
    let process = |pid, name: &str| Process { pid, name: name.to_owned() };
    Meta {
        clock: Clock::Unix,
        devices: vec![device("a"), device("b")],
        processes: vec![process(7, "fio"), process(9, "mysqld")],
        header: Some("secret".to_owned()),
        ..Meta::default()
    }
}

fn record(arrival_ns: u64, offset_bytes: u64, length_bytes: u32) -> Record {
    Record::new(arrival_ns, Operation::Read, offset_bytes, length_bytes)
}

fn apply(texts: &[&str], records: &[Record]) -> Vec<Record> {
    let mut applied = Applied::new(&steps(texts));
    let mut batch = records.to_vec();
    applied.apply(&mut batch, &meta());
    batch
}

#[test]
fn filters() {
    let write = Record { operation: Operation::Write, device: 1, process: 2, ..record(5, 0, 1) };
    let records = [Record { process: 1, ..record(1, 0, 1) }, write];
    assert_eq!(apply(&["kind=write,trim"], &records), [write]);
    assert_eq!(apply(&["device=b"], &records), [write]);
    assert_eq!(apply(&["process=mysqld"], &records), [write]);
    assert_eq!(apply(&["process=9"], &records), [write]);
    assert_eq!(apply(&["process=fio,9"], &records), records);
    assert_eq!(apply(&["time=4ns-"], &records), [write]);
    assert_eq!(apply(&["time=4ns"], &records), records[..1]);
    assert_eq!(apply(&["first=1"], &records), records[..1]);
    assert_eq!(apply(&["process=fio"], &[record(0, 0, 1)]), [], "an unrecorded process matches no name");
}

#[test]
fn clipping_cuts_and_folding_moves() {
    assert_eq!(apply(&["clip=1KiB-2KiB"], &[record(0, 512, 4096)]), [record(0, 1024, 1024)]);
    assert_eq!(apply(&["clip=1KiB-2KiB"], &[record(0, 2048, 512), record(0, 512, 512)]), []);
    assert_eq!(apply(&["fold=1KiB-3KiB"], &[record(0, 2048, 512)]), [record(0, 1024, 512)]);
    assert_eq!(apply(&["fold=2KiB"], &[record(0, 2048 + 1536, 1024)]), [record(0, 1024, 1024)]);
    assert_eq!(apply(&["fold=2KiB"], &[record(0, 512, 1 << 20)]), [record(0, 0, 2048)]);
    let flush = Record { operation: Operation::Flush, ..record(0, 0, 0) };
    assert_eq!(apply(&["clip=1KiB-2KiB"], &[flush]), [flush], "a flush has no place");
}

#[test]
fn moving_and_scaling() {
    assert_eq!(apply(&["shift=-1KiB"], &[record(0, 4096, 1), record(0, 0, 1)]), [record(0, 3072, 1)]);
    assert_eq!(apply(&["shift=1KiB"], &[record(0, (1 << 63) - 513, 512)]), []);
    let second = Record { device: 1, ..record(0, 5, 1) };
    assert_eq!(apply(&["stack=1MiB"], &[second]), [record(0, (1 << 20) + 5, 1)]);
    assert_eq!(apply(&["time-scale=0.5"], &[record(100, 0, 1), record(300, 0, 1)])[1].arrival_ns, 200);
    // An arrival beyond 2^63 ns is dropped, and nothing is beyond the end of an open range.
    assert_eq!(apply(&["time-scale=3"], &[record(0, 0, 1), record(1 << 62, 0, 1)]), [record(0, 0, 1)]);
    assert_eq!(apply(&["fold=9223372036854775805B-"], &[record(7, 9, 4096)]), [record(7, (1 << 63) - 3, 2)]);
    assert_eq!(apply(&["address-scale=1.5"], &[record(0, 1024, 4)]), [record(0, 1536, 4)]);
    assert_eq!(
        apply(&["unknown=read"], &[Record { operation: Operation::Unknown, ..record(0, 0, 1) }]),
        [record(0, 0, 1)]
    );
}

#[test]
fn samples_have_the_requested_share_and_are_reproducible() {
    let records: Vec<Record> = (0..100_000).map(|i| record(i, (i % 1_000) << 12, 512)).collect();
    let sample = apply(&["sample=0.1"], &records);
    assert!((9_500..10_500).contains(&sample.len()), "{}", sample.len());
    assert_eq!(sample, apply(&["sample=0.1"], &records));
    assert_ne!(sample, apply(&["sample=0.1@7"], &records));
    let blocks = apply(&["sample-addresses=0.1"], &records);
    // All hundred requests of a block, or none.
    assert!(blocks.len().is_multiple_of(100) && (5_000..15_000).contains(&blocks.len()), "{}", blocks.len());
    assert_eq!(apply(&["sample=1"], &records), records);
}

#[test]
fn stripped_traces_have_no_names() {
    let mut anonymous = meta();
    Applied::new(&steps(&["device=a", "strip-names"])).describe(&mut anonymous);
    let text = serde_json::to_string(&anonymous).unwrap();
    for secret in ["fio", "mysqld", "secret", "\"a\"", "unix"] {
        assert!(!text.contains(secret), "{secret} in {text}");
    }
    assert_eq!(anonymous.steps, ["strip-names"]);
    assert_eq!(apply(&["strip-names"], &[record(500, 1, 1), record(700, 1, 1)])[1].arrival_ns, 200);
}

#[test]
fn nothing_needs_no_unit() {
    for (plain, with_unit) in [("clip=0-36GB", "clip=0B-36GB"), ("fold=0-1KiB", "fold=1KiB"), ("shift=0", "shift=0B")] {
        assert_eq!(Step::parse(plain).unwrap(), Step::parse(with_unit).unwrap(), "{plain}");
    }
}

#[test]
fn wrong_steps_are_refused_with_allowed_values() {
    for (text, told) in [
        ("kind=reed", "read, write"),
        ("kind=", "read, write"),
        ("fold=0", "not a range"),
        ("fold=36", "fold: `36` needs a unit, such as 36GB, or 36B for bytes"),
        ("fold=10-46GB", "fold: `10` needs a unit"),
        ("clip=0-36", "clip: `36` needs a unit"),
        ("shift=-10", "shift: `10` needs a unit"),
        ("stack=1", "stack: `1` needs a unit"),
        ("clip=2GB-1GB", "not a range"),
        ("clip=2XB", "2XB"),
        ("time=-5s", "duration"),
        ("time-scale=0", "above 0"),
        ("time-scale=-1", "above 0"),
        ("time-scale=1e3", "above 0"),
        ("sample=1.5", "at most 1"),
        ("sample=0.5@x", "seed"),
        ("first=0", "above 0"),
        ("device=", "names"),
        ("stack=0B", "above 0"),
        ("unknown=what", "read, write"),
        ("strip-names=yes", "not a step"),
        ("anonymise", "renamed to strip-names"),
        ("sort", "not a step"),
    ] {
        let error = Step::parse(text).unwrap_err();
        assert!(error.contains(told) && !error.contains('\n'), "{text}: {error}");
    }
}

proptest! {
    #[test]
    fn steps_parse_their_own_output(number in 1u64..1 << 40, digits in 1u64..999_999, seed in 0u64..9) {
        let half = format!("0.{digits:06}");
        for text in [
            format!("clip={number}B-"), format!("fold={number}B"), format!("shift=-{number}B"), format!("stack={number}B"),
            format!("time={number}ns-{}ns", number + 5), format!("first={number}"), format!("time-scale={half}"),
            format!("sample={half}@{seed}"), format!("sample-addresses={half}"), "kind=trim,flush".to_owned(),
        ] {
            let step = Step::parse(&text).unwrap();
            prop_assert_eq!(Step::parse(&step.to_string()).unwrap(), step);
        }
    }

    #[test]
    fn folding_stays_within(offset in 0u64..1 << 62, length in 0u32.., from in 0u64..1 << 40, size in 1u64..1 << 40) {
        let range = format!("fold={from}B-{}B", from + size);
        let folded = apply(&[&range], &[record(0, offset, length)])[0];
        prop_assert!(folded.offset_bytes >= from && folded.end_bytes() <= from + size);
    }

    /// Batch boundaries have no effect.
    #[test]
    fn a_step_does_not_see_batches(cut in 0usize..40, seed in 0u64..5) {
        let records: Vec<Record> = (0..40).map(|i| record(i * 10 + 3, i * 700, 512)).collect();
        let texts = ["time=50ns-", "sample=0.7@1", "time-scale=1.5", "fold=10000B", "first=17"];
        let texts = &texts[seed as usize..];
        let mut applied = Applied::new(&steps(texts));
        let (mut first, mut second) = (records[..cut].to_vec(), records[cut..].to_vec());
        applied.apply(&mut first, &meta());
        applied.apply(&mut second, &meta());
        first.append(&mut second);
        prop_assert_eq!(first, apply(texts, &records));
    }
}
