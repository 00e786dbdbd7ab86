//! DiskSim's `validate` trace: requests to a real drive, one outstanding at a time, with their measured times.
//!
//! One request per line, six columns separated by blanks: `R` or `W`; the result of the real drive's buffer (`Hit`,
//! `Miss`, `Doub`, `Trip`; known for few drives, ignored); first block and number of 512-byte blocks; service time and
//! think time in microseconds. Replay it closed-loop: the next request is issued `think_ns` after the completion of
//! this one, the first at 0.

use crate::collect::Collector;
use crate::error::{Problem, refused};
use crate::input::{Head, Input};
use crate::meta::ResponseSpan;
use crate::record::{Operation, Record};
use crate::text::{BYTES_END, decimal, offset_bytes, whole, words};
use crate::time::TIME_NS_END;

const BLOCK_BYTES: u32 = 512;
/// A request's length in bytes fits 32 bits.
const BLOCKS_MAX: u64 = (u32::MAX / BLOCK_BYTES) as u64;
const CLASSES: [&[u8]; 4] = [b"Hit", b"Miss", b"Doub", b"Trip"];
const COLUMNS: &str = "`R|W class block blocks service_us think_us`";
/// Microseconds are read as nanoseconds, with three decimal places.
const US_EXPONENT: u32 = 3;
/// Longest time, 11 days: no request takes longer.
const MEASURED_NS_MAX: u64 = 1_000_000_000_000_000;
const MEASURED: &str = "a time from 0 to 1e12 us";

pub(crate) fn fits(head: Head<'_>) -> bool {
    let mut lines = head.lines().filter(|line| !line.trim_ascii().is_empty()).take(3).peekable();
    lines.peek().is_some()
        && lines.all(|line| {
            let (column, count) = words::<6>(line);
            count == 6 && matches!(column[0], b"R" | b"W") && CLASSES.contains(&column[1])
        })
}

/// A parser of a file: each request arrives when it was issued to the recorded drive, so that the time from its
/// completion to the next arrival is exactly the think time.
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
            "arrivals follow the completions of the recorded drive and are valid only for it; replay closed-loop",
        );
        Validate { next_arrival_ns: 0, device: 0 }
    }

    pub(crate) fn begin(&mut self, input: &Input, out: &mut Collector) {
        *self = Validate { next_arrival_ns: 0, device: out.device(&input.label) };
        out.meta.devices[self.device as usize].sector_bytes = Some(BLOCK_BYTES);
    }

    #[inline]
    pub(crate) fn parse(&mut self, line: &[u8]) -> Result<Record, Problem> {
        let (columns, count) = words::<6>(line);
        if count != columns.len() {
            return Err(("", format!("{count} columns; expected the six of {COLUMNS}")));
        }
        let [kind, class, block, blocks, service, think] = columns;
        let operation = match kind {
            b"R" => Operation::Read,
            b"W" => Operation::Write,
            _ => return Err(refused("kind", kind, "R or W")),
        };
        if !CLASSES.contains(&class) {
            return Err(refused("class", class, "Hit, Miss, Doub or Trip"));
        }
        let offset_bytes = offset_bytes("block", block, BLOCK_BYTES)?;
        let length = whole(blocks).filter(|blocks| (1..=BLOCKS_MAX).contains(blocks));
        let length = length.ok_or_else(|| refused("blocks", blocks, "a whole number from 1 to 8388607"))?;
        let measured = |field, text| {
            let ns = decimal(text, US_EXPONENT).filter(|&ns| ns <= MEASURED_NS_MAX);
            ns.ok_or_else(|| refused(field, text, MEASURED))
        };
        let (service_ns, think_ns) = (measured("service_us", service)?, measured("think_us", think)?);
        let mut request = Record::new(self.next_arrival_ns, operation, offset_bytes, length as u32 * BLOCK_BYTES);
        if request.end_bytes() >= BYTES_END {
            return Err(refused("block", block, "below 2^54: the end must be below 2^63 bytes"));
        }
        (request.response_ns, request.device) = (service_ns, self.device);
        let next_ns = self.next_arrival_ns.checked_add(service_ns + think_ns).filter(|&ns| ns < TIME_NS_END);
        self.next_arrival_ns = next_ns.ok_or_else(|| ("", "times add up to 2^63 ns".to_owned()))?;
        Ok(request)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::{Place, TraceError};
    use crate::formats::tests::{of, read};
    use crate::{Format, ReadOptions, TraceReader};

    fn records(text: &str) -> Result<Vec<Record>, TraceError> {
        read(text.as_bytes(), &of(Format::Validate)).map(|(records, _)| records)
    }

    #[test]
    fn reads_all_columns() {
        let records = records("W Trip 1205090    13\t10133.390   19712.7106\r\n \r\nR Hit 0 8388607 0 0").unwrap();
        let first = Record { response_ns: 10_133_390, ..Record::new(0, Operation::Write, 1_205_090 * 512, 13 * 512) };
        let arrival_ns = 10_133_390 + 19_712_711;
        let second = Record { response_ns: 0, ..Record::new(arrival_ns, Operation::Read, 0, 4_294_966_784) };
        assert_eq!(records, [first, second]);
    }

    #[test]
    fn refuses_with_line_and_field() {
        let cases = [
            ("r Hit 1 2 3 4", "kind"),
            ("R 1 2 3 4 5", "class"),
            ("R Hit -1 2 3 4", "block"),
            ("R Hit 18446744073709551615 2 3 4", "block"),
            ("R Hit 36028797018963968 1 3 4", "block"),
            ("R Hit 18014398509481983 1 3 4", "block"),
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
            let error = records(&format!("R Hit 1 2 3 4\n\n{line}\n")).unwrap_err();
            assert_eq!((error.place, error.field), (Place::Line(3), field), "{line}");
            let shown = error.to_string();
            assert!(shown.starts_with("t:3: ") && shown.lines().count() == 1, "{shown}");
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
        assert_eq!((reader.meta().devices[0].name.as_str(), reader.meta().resolution_ns), ("validate.trace", 1));
        assert!(reader.meta().notes[0].contains("closed-loop"));
    }

    #[test]
    fn times_that_add_up_to_too_much_are_refused() {
        let text = "R Hit 0 1 1000000000000 1000000000000\n".repeat(4_700);
        let input = Input::from_bytes("t", text.into_bytes()).unwrap();
        let mut reader = TraceReader::from_inputs(vec![input], &ReadOptions::default()).unwrap();
        let error = reader.read_all().unwrap_err();
        // 2^63 ns are 4,611.7 times 2e15 ns.
        assert_eq!(error.to_string(), "t:4612: times add up to 2^63 ns");
    }
}
