//! DiskSim's `validate` trace: requests to a real drive, one outstanding at a time, with their measured times.
//!
//! One request a line, six columns separated by blanks: `R` or `W`; what the real drive's buffer did (`Hit`, `Miss`,
//! `Doub`, `Trip`; known for few drives, used for nothing); first block and number of 512-byte blocks; service time and
//! think time in microseconds. Replay it closed-loop: the next request is issued `think_ns` after the completion of
//! this one, the first at 0.

use headstack_workload::{Kind, Recorded, Request};

use crate::collect::Collector;
use crate::error::{Place, Problem, TraceError, refused};
use crate::input::{Head, Input};
use crate::meta::ResponseSpan;
use crate::record::Record;
use crate::text::{decimal, whole, words};

/// One measured request. Its blocks are of 512 bytes, whatever the drive's sectors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ValidateRecord {
    /// Read or write.
    pub kind: Kind,
    /// First 512-byte block.
    pub block: u64,
    /// Length in 512-byte blocks, from 1 to 2^23 - 1.
    pub blocks: u32,
    /// Measured time from issue to completion, which is the response time.
    pub service_ns: u64,
    /// From the completion of this request to the issue of the next.
    pub think_ns: u64,
}

impl ValidateRecord {
    /// The request alone, in bytes.
    pub fn request(&self) -> Request {
        Request {
            kind: self.kind,
            offset_bytes: self.block * u64::from(BLOCK_BYTES),
            length_bytes: self.blocks * BLOCK_BYTES,
            force_unit_access: false,
            ordered: false,
        }
    }
}

/// The recording that the measured times make: the first request arrives at 0, each later one its predecessor's think
/// time after that one's completion.
pub fn recorded(records: &[ValidateRecord]) -> impl Iterator<Item = Recorded> {
    records.iter().scan(0u64, |next_ns, record| {
        let arrival_ns = *next_ns;
        let completion_ns = arrival_ns.saturating_add(record.service_ns);
        *next_ns = completion_ns.saturating_add(record.think_ns);
        Some(Recorded { arrival_ns, completion_ns: Some(completion_ns), request: record.request() })
    })
}

const BLOCK_BYTES: u32 = 512;
/// A request's length in bytes fits 32 bits.
const BLOCKS_MAX: u64 = (u32::MAX / BLOCK_BYTES) as u64;
const CLASSES: [&[u8]; 4] = [b"Hit", b"Miss", b"Doub", b"Trip"];
const COLUMNS: &str = "`R|W class block blocks service_us think_us`";
/// Microseconds are read as nanoseconds, with three digits behind the point.
const US_EXPONENT: u32 = 3;
/// 11 days: no request takes longer.
const TIME_NS_MAX: u64 = 1_000_000_000_000_000;
const TIME: &str = "a time from 0 to 1e12 us";

/// Reads a trace, which came from `file`. Blank lines are skipped.
///
/// # Errors
/// At the first line that is no request.
pub fn read_validate(file: &str, text: &str) -> Result<Vec<ValidateRecord>, TraceError> {
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    lines
        .map(|(index, line)| {
            record(line.as_bytes()).map_err(|(field, message)| TraceError {
                file: file.to_owned(),
                place: Place::Line(index as u64 + 1),
                field,
                message,
            })
        })
        .collect()
}

fn record(line: &[u8]) -> Result<ValidateRecord, Problem> {
    let (columns, count) = words::<6>(line);
    if count != columns.len() {
        return Err(("", format!("{count} columns; expected the six of {COLUMNS}")));
    }
    let [kind, class, block, blocks, service, think] = columns;
    let kind = match kind {
        b"R" => Kind::Read,
        b"W" => Kind::Write,
        _ => return Err(refused("kind", kind, "R or W")),
    };
    if !CLASSES.contains(&class) {
        return Err(refused("class", class, "Hit, Miss, Doub or Trip"));
    }
    let length = whole(blocks).filter(|blocks| (1..=BLOCKS_MAX).contains(blocks));
    let time_ns = |text| decimal(text, US_EXPONENT).filter(|&ns| ns <= TIME_NS_MAX);
    let record = ValidateRecord {
        kind,
        block: whole(block).ok_or_else(|| refused("block", block, "a whole number of 512-byte blocks"))?,
        blocks: length.ok_or_else(|| refused("blocks", blocks, "a whole number from 1 to 8388607"))? as u32,
        service_ns: time_ns(service).ok_or_else(|| refused("service_us", service, TIME))?,
        think_ns: time_ns(think).ok_or_else(|| refused("think_us", think, TIME))?,
    };
    match record.block.checked_add(u64::from(record.blocks)) {
        Some(end) if end < (1 << 63) / u64::from(BLOCK_BYTES) => Ok(record),
        _ => Err(refused("block", block, "below 2^54: the end must be below 2^63 bytes")),
    }
}

pub(crate) fn fits(head: Head<'_>) -> bool {
    let mut lines = head.lines().filter(|line| !line.trim_ascii().is_empty()).take(3).peekable();
    lines.peek().is_some()
        && lines.all(|line| {
            let (column, count) = words::<6>(line);
            count == 6 && matches!(column[0], b"R" | b"W") && CLASSES.contains(&column[1])
        })
}

/// A file being read with arrival times: each request arrives when it was issued to the recorded drive, so that the time
/// from its completion to the next arrival is the think time, exactly.
#[derive(Debug)]
pub(crate) struct Validate {
    next_arrival_ns: u64,
    device: u32,
}

impl Validate {
    pub(crate) fn new(out: &mut Collector) -> Validate {
        out.meta.resolution_ns = 1;
        out.meta.response = Some(ResponseSpan::AtTheHost);
        out.meta.note(
            "arrivals follow from the recorded drive's completions and hold for that drive alone: replay it closed-loop",
        );
        Validate { next_arrival_ns: 0, device: 0 }
    }

    pub(crate) fn begin(&mut self, input: &Input, out: &mut Collector) {
        *self = Validate { next_arrival_ns: 0, device: out.device(&input.label) };
        out.meta.devices[self.device as usize].sector_bytes = Some(BLOCK_BYTES);
    }

    #[inline]
    pub(crate) fn parse(&mut self, line: &[u8]) -> Result<Record, Problem> {
        let measured = record(line)?;
        let Request { kind, offset_bytes, length_bytes, .. } = measured.request();
        let arrival_ns = self.next_arrival_ns;
        let next_ns = arrival_ns.checked_add(measured.service_ns + measured.think_ns).filter(|&ns| ns < 1 << 63);
        self.next_arrival_ns = next_ns.ok_or_else(|| ("", "times add up to 2^63 ns".to_owned()))?;
        let mut request = Record::new(arrival_ns, kind.into(), offset_bytes, length_bytes);
        request.response_ns = measured.service_ns;
        request.device = self.device;
        Ok(request)
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use proptest::prelude::*;

    use super::*;
    use crate::{Operation, ReadOptions, TraceReader};

    fn only(line: &str) -> ValidateRecord {
        let records = read_validate("t", line).unwrap();
        assert_eq!(records.len(), 1);
        records[0]
    }

    #[test]
    fn reads_all_columns() {
        let expected = ValidateRecord {
            kind: Kind::Write,
            block: 1_205_090,
            blocks: 13,
            service_ns: 10_133_390,
            think_ns: 19_712_711,
        };
        assert_eq!(only("W Trip 1205090    13\t10133.390   19712.7106"), expected);
        assert_eq!(only("R Hit 0 1 0 0").kind, Kind::Read);
    }

    #[test]
    fn requests_are_in_bytes() {
        let longest = Request {
            kind: Kind::Write,
            offset_bytes: 1_536,
            length_bytes: 4_294_966_784,
            force_unit_access: false,
            ordered: false,
        };
        assert_eq!(only("W Miss 3 8388607 4 5").request(), longest);
    }

    #[test]
    fn measured_times_make_a_recording() {
        let records = read_validate("t", "R Hit 1 2 3 4\nW Miss 5 6 7 8\nR Hit 7 1 0 0").unwrap();
        let times: Vec<_> = recorded(&records).map(|record| (record.arrival_ns, record.completion_ns)).collect();
        assert_eq!(times, [(0, Some(3_000)), (7_000, Some(14_000)), (22_000, Some(22_000))]);
        assert!(recorded(&records).map(|record| record.request).eq(records.iter().map(ValidateRecord::request)));
    }

    #[test]
    fn skips_blank_lines_and_carriage_returns() {
        let records = read_validate("t", "R Hit 1 2 3 4\r\n\r\n   \r\nW Miss 5 6 7 8").unwrap();
        assert_eq!(records.iter().map(|record| record.block).collect::<Vec<_>>(), [1, 5]);
        assert_eq!(records[0].think_ns, 4_000);
        assert!(read_validate("t", "").unwrap().is_empty());
    }

    #[test]
    fn refuses_with_line_and_field() {
        let cases = [
            ("r Hit 1 2 3 4", "kind"),
            ("R 1 2 3 4 5", "class"),
            ("R Hit -1 2 3 4", "block"),
            ("R Hit 18446744073709551615 2 3 4", "block"),
            ("R Hit 36028797018963968 1 3 4", "block"),
            ("R Hit 1 0 3 4", "blocks"),
            ("R Hit 1 4294967296 3 4", "blocks"),
            ("R Hit 1 8388608 3 4", "blocks"),
            ("R Hit 1 2 -3 4", "service_us"),
            ("R Hit 1 2 NaN 4", "service_us"),
            ("R Hit 1 2 1e99 4", "service_us"),
            ("R Hit 1 2 3 inf", "think_us"),
            ("R Hit 1 2 3 x", "think_us"),
            ("R Hit 1 2 3", ""),
            ("R Hit 1 2 3 4 5", ""),
        ];
        for (line, field) in cases {
            let error = read_validate("f.trace", &format!("R Hit 1 2 3 4\n\n{line}\n")).unwrap_err();
            assert_eq!((error.place, error.field), (Place::Line(3), field), "{line}");
            let shown = error.to_string();
            assert!(shown.starts_with("f.trace:3: ") && shown.lines().count() == 1, "{shown}");
        }
    }

    #[test]
    fn arrivals_follow_from_completions_and_think_times() {
        let text = include_bytes!("../../samples/validate.trace").to_vec();
        let input = Input::from_bytes("toy/validate.trace", text.clone()).unwrap();
        let mut reader = TraceReader::from_inputs(vec![input], &ReadOptions::default()).unwrap();
        let mut records = Vec::new();
        assert!(reader.next_batch(&mut records).unwrap());
        let arrivals: Vec<u64> = records.iter().map(|record| record.arrival_ns).collect();
        assert_eq!(arrivals, [0, 46_085_000, 55_205_250, 76_953_190, 92_076_315]);
        let measured = read_validate("t", std::str::from_utf8(&text).unwrap()).unwrap();
        for (record, measured) in records.iter().zip(&measured) {
            let request = measured.request();
            let same = (Operation::from(request.kind), request.offset_bytes, request.length_bytes);
            assert_eq!((record.operation, record.offset_bytes, record.length_bytes), same);
            assert_eq!(record.response_ns, measured.service_ns);
        }
        assert_eq!((reader.meta().devices[0].name.as_str(), reader.meta().resolution_ns), ("validate.trace", 1));
        assert!(reader.meta().notes[0].contains("closed-loop"));
    }

    #[test]
    fn times_that_add_up_to_too_much_are_refused() {
        let text = "R Hit 0 1 1000000000000 1000000000000\n".repeat(4_700);
        let input = Input::from_bytes("t", text.into_bytes()).unwrap();
        let mut reader = TraceReader::from_inputs(vec![input], &ReadOptions::default()).unwrap();
        let error = reader.next_batch(&mut Vec::new()).unwrap_err();
        // 2^63 ns are 4,611.7 times 2e15 ns.
        assert_eq!(error.to_string(), "t:4612: times add up to 2^63 ns");
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused_on_one_line(text in "(?s).{0,200}") {
            if let Err(error) = read_validate("t", &text) {
                prop_assert_eq!(error.to_string().lines().count(), 1);
            }
        }

        #[test]
        fn near_misses_are_read_or_refused(text in "([RW] (Hit|Miss) -?[0-9]{1,22} [0-9]{1,12} [0-9.e+-]{1,9} [0-9]{1,24}\r?\n){0,4}") {
            if let Ok(records) = read_validate("t", &text) {
                prop_assert!(records.iter().all(|record| record.blocks > 0));
                prop_assert_eq!(records.len(), text.lines().count());
            }
        }
    }

    /// The five validation traces of DiskSim 4.0: requests, mean service time in ms, mean blocks, mean think time in ms.
    const REAL: [(&str, usize, f64, f64, f64); 5] = [
        ("atlas10k", 10_000, 3.893, 6.31, 46.19),
        ("barracuda", 10_000, 6.627, 6.33, 43.43),
        ("cheetah9LP", 10_000, 4.273, 6.32, 45.49),
        ("dec_rz26", 7_980, 15.809, 16.87, 13.87),
        ("hp_c2247a", 9_999, 15.298, 16.50, 14.19),
    ];

    #[test]
    fn real_traces_have_their_published_means() {
        let shared = std::env::var_os("HEADSTACK_SHARED")
            .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared"), PathBuf::from);
        for (name, requests, service_ms, blocks, think_ms) in REAL {
            let path = shared.join("validation/disksim").join(format!("{name}.trace"));
            let Ok(text) = std::fs::read_to_string(&path) else {
                println!("skipped: {} is missing", path.display());
                continue;
            };
            let records = read_validate(name, &text).unwrap();
            assert_eq!(records.len(), requests, "{name}");
            let mean = |figure: fn(&ValidateRecord) -> f64| records.iter().map(figure).sum::<f64>() / requests as f64;
            let is_close = |a: f64, b: f64, digits: i32| (a - b).abs() <= 0.5001 * 10f64.powi(-digits);
            assert!(is_close(mean(|r| r.service_ns as f64 / 1e6), service_ms, 3), "{name}");
            assert!(is_close(mean(|r| f64::from(r.blocks)), blocks, 2), "{name}");
            assert!(is_close(mean(|r| r.think_ns as f64 / 1e6), think_ms, 2), "{name}");
        }
    }
}
