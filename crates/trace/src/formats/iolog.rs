//! fio's iolog, versions 2 and 3.
//!
//! The first line is `fio version N iolog`. Then `FILE add|open|close|unlink`, and `FILE ACTION OFFSET LENGTH` in
//! bytes, where the action is `read`, `write`, `trim`, `sync` or `datasync`; the offset of a sync means nothing.
//! Version 3 has a time in microseconds since the start before each line. Version 2 has lines `FILE wait T 0`: the
//! following requests are issued T *milliseconds* after the start, contrary to fio's manual.
//!
//! fio appends to an existing log, so a second header and times from 0 may occur in the middle. That is refused with
//! its line; if bad lines are skipped, the second log continues where the first ended.

use rustc_hash::FxHashMap;

use crate::collect::Collector;
use crate::error::{Problem, refused};
use crate::input::Head;
use crate::record::{Operation, Record};
use crate::text::{BYTES_END, whole, words};
use crate::time::TIME_NS_END;

const NS_PER_US: u64 = 1_000;
const NS_PER_MS: u64 = 1_000_000;
/// fio's own limit.
pub(crate) const NAME_BYTES_MAX: usize = 256;

pub(crate) fn fits(head: Head<'_>) -> bool {
    head.lines().next().is_some_and(|line| version(line).is_some())
}

/// Parses the header, if `line` is one.
fn version(line: &[u8]) -> Option<&[u8]> {
    match words::<4>(line) {
        ([b"fio", b"version", version, b"iolog"], 4) => Some(version),
        _ => None,
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Version {
    V2,
    V3,
}

impl Version {
    fn columns(self) -> &'static str {
        match self {
            Version::V2 => "`FILE ACTION` or `FILE ACTION OFFSET LENGTH`",
            Version::V3 => "`US FILE ACTION` or `US FILE ACTION OFFSET LENGTH`",
        }
    }
}

#[derive(Debug)]
struct File {
    device: u32,
    is_open: bool,
}

/// A parser of a log.
#[derive(Debug, Default)]
pub(crate) struct Iolog {
    version: Option<Version>,
    files: FxHashMap<Vec<u8>, File>,
    /// Base of the log's times: the end of the log to which it was appended.
    start_ns: u64,
    /// Arrival of the latest request, or the end of the latest wait.
    now_ns: u64,
}

impl Iolog {
    #[inline]
    pub(crate) fn parse(&mut self, line: &[u8], out: &mut Collector) -> Result<Option<Record>, Problem> {
        if let Some(version) = version(line) {
            return self.header(version, out).map(|()| None);
        }
        let (word, count) = words::<5>(line);
        match (self.version, word) {
            (None, _) => {
                Err(("", "must come after a header `fio version 2 iolog` or 3; version 1 has none".to_owned()))
            }
            (Some(Version::V2), [file, action, ..]) if count == 2 => self.file_action(file, action, out),
            (Some(Version::V2), [_, b"wait", ms, ..]) if count == 4 => {
                self.now_ns = self.time_ns(ms, NS_PER_MS)?;
                Ok(None)
            }
            (Some(Version::V2), [file, action, offset, length, _]) if count == 4 => {
                self.request(self.now_ns, file, action, [offset, length]).map(Some)
            }
            (Some(Version::V3), [us, file, action, ..]) if count == 3 => {
                // fio logs these before it begins, some without their own time: it need not be in order.
                whole(us).ok_or_else(|| refused("time", us, "whole"))?;
                self.file_action(file, action, out)
            }
            (Some(Version::V3), [us, file, action, offset, length]) if count == 5 => {
                let time_ns = self.time_ns(us, NS_PER_US)?;
                let request = self.request(time_ns, file, action, [offset, length])?;
                self.now_ns = time_ns;
                Ok(Some(request))
            }
            (Some(version), _) => Err(("", format!("{count} columns; expected {}", version.columns()))),
        }
    }

    fn header(&mut self, version: &[u8], out: &mut Collector) -> Result<(), Problem> {
        let (version, resolution_ns) = match version {
            b"2" => (Version::V2, NS_PER_MS),
            b"3" => (Version::V3, NS_PER_US),
            _ => {
                self.version = None;
                return Err(refused("version", version, "2 or 3"));
            }
        };
        let is_first = self.version.is_none();
        *self = Iolog { version: Some(version), start_ns: self.now_ns, now_ns: self.now_ns, ..Iolog::default() };
        out.meta.resolution_ns = out.meta.resolution_ns.max(resolution_ns);
        if version == Version::V2 {
            out.meta.note("iolog version 2 has only waits, no times: requests between two waits arrive together");
        }
        if is_first {
            return Ok(());
        }
        out.meta.note("two logs were concatenated; times of the second continue those of the first");
        Err(("", "a second header: two logs were concatenated, and times start again".to_owned()))
    }

    fn file_action(&mut self, name: &[u8], action: &[u8], out: &mut Collector) -> Result<Option<Record>, Problem> {
        let file_state = self.files.get_mut(name);
        match (action, file_state) {
            (b"add", None) => {
                let text = std::str::from_utf8(name).ok().filter(|name| name.len() <= NAME_BYTES_MAX);
                let text = text.ok_or_else(|| refused("file", name, "a name of at most 256 bytes"))?;
                self.files.insert(name.to_vec(), File { device: out.device(text), is_open: false });
            }
            // fio adds a file once for each job that shares it.
            (b"add", Some(_)) => {}
            (b"open", Some(file)) => file.is_open = true,
            (b"close", Some(file)) => file.is_open = false,
            (b"unlink", Some(_)) => drop(self.files.remove(name)),
            (b"open" | b"close" | b"unlink", None) => return Err(refused("file", name, "added before it is used")),
            _ => return Err(refused("action", action, "add, open, close or unlink if no offset follows")),
        }
        Ok(None)
    }

    /// Parses a time, which must not decrease.
    fn time_ns(&self, text: &[u8], unit_ns: u64) -> Result<u64, Problem> {
        let time_ns = whole(text).and_then(|time| time.checked_mul(unit_ns)?.checked_add(self.start_ns));
        let time_ns =
            time_ns.filter(|&ns| ns < TIME_NS_END).ok_or_else(|| refused("time", text, "whole, below 2^63 ns"))?;
        if time_ns < self.now_ns {
            let latest = (self.now_ns - self.start_ns) / unit_ns;
            return Err(refused("time", text, &format!("no earlier than the previous one, {latest}")));
        }
        Ok(time_ns)
    }

    #[inline]
    fn request(&self, time_ns: u64, name: &[u8], action: &[u8], range: [&[u8]; 2]) -> Result<Record, Problem> {
        let file = self.files.get(name).ok_or_else(|| refused("file", name, "added before it is used"))?;
        if !file.is_open {
            return Err(refused("file", name, "opened before it is used"));
        }
        let operation = match action {
            b"read" => Operation::Read,
            b"write" => Operation::Write,
            b"trim" => Operation::Trim,
            b"sync" | b"datasync" => Operation::Flush,
            _ => return Err(refused("action", action, "read, write, trim, sync or datasync")),
        };
        let [offset, length] = range;
        let offset_bytes = whole(offset).ok_or_else(|| refused("offset", offset, "bytes below 2^63"))?;
        let length_bytes = whole(length).and_then(|bytes| u32::try_from(bytes).ok());
        let length_bytes = length_bytes.ok_or_else(|| refused("length", length, "bytes below 2^32"))?;
        let mut request = Record::new(time_ns, operation, offset_bytes, length_bytes);
        if operation == Operation::Flush {
            (request.offset_bytes, request.length_bytes) = (0, 0);
        } else if offset_bytes.checked_add(u64::from(length_bytes)).is_none_or(|end| end >= BYTES_END) {
            return Err(refused("offset", offset, "such that the request ends below 2^63 bytes"));
        }
        request.device = file.device;
        Ok(request)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Format, Input, Meta, Place, ReadOptions, TraceError, TraceReader};

    fn read(files: &[&str], skip_bad: bool) -> Result<(Vec<Record>, Meta), TraceError> {
        let inputs = files.iter().map(|text| Input::from_bytes("log", text.as_bytes().to_vec()).unwrap());
        let options = ReadOptions { format: Some(Format::Iolog), skip_bad, ..ReadOptions::default() };
        let mut reader = TraceReader::from_inputs(inputs.collect(), &options)?;
        let (mut records, mut batch) = (Vec::new(), Vec::new());
        while reader.next_batch(&mut batch)? {
            records.append(&mut batch);
        }
        Ok((records, reader.meta().clone()))
    }

    /// Arrival in us, operation, offset, length, device.
    fn short(records: &[Record]) -> Vec<(u64, Operation, u64, u32, u32)> {
        let one = |r: &Record| (r.arrival_ns / 1_000, r.operation, r.offset_bytes, r.length_bytes, r.device);
        records.iter().map(one).collect()
    }

    #[test]
    fn version_2_waits_for_milliseconds_since_the_start() {
        let (records, meta) = read(&[include_str!("../../samples/iolog-v2.iolog")], false).unwrap();
        use Operation::{Flush, Read, Trim, Write};
        let expected = [
            (0, Read, 0, 4_096, 0),
            (0, Write, 1 << 20, 65_536, 0),
            (12_000, Write, 4_096, 8_192, 1),
            (12_000, Flush, 0, 0, 1),
            (30_000, Trim, 2 << 20, 1 << 20, 0),
            (30_000, Flush, 0, 0, 0),
        ];
        assert_eq!(short(&records), expected);
        assert_eq!((meta.resolution_ns, meta.notes.len()), (NS_PER_MS, 1));
    }

    #[test]
    fn version_3_has_microseconds() {
        let (records, meta) = read(&[include_str!("../../samples/iolog-v3.iolog")], false).unwrap();
        use Operation::{Flush, Read, Trim, Write};
        let expected = [
            (12, Read, 8_192, 4_096, 0),
            (12, Write, 0, 131_072, 1),
            // Its offset means nothing.
            (1_040, Flush, 0, 0, 1),
            (2_077, Trim, 1 << 30, 4_294_963_200, 0),
            (2_100, Flush, 0, 0, 0),
            (3_009, Read, 12_288, 4_096, 0),
        ];
        assert_eq!(short(&records), expected);
        let names: Vec<&str> = meta.devices.iter().map(|device| device.name.as_str()).collect();
        assert_eq!((names, meta.resolution_ns), (vec!["scratch.0.0", "scratch.1.0"], NS_PER_US));
    }

    #[test]
    fn what_cannot_be_is_refused_with_line_and_field() {
        let long = format!("9 {} add", "n".repeat(257));
        let cases = [
            ("5 f read 0 4294967296", "length"),
            ("5 f read 0 4294971392", "length"),
            ("5 f read 0 -1", "length"),
            ("5 f read 9223372036854775808 1", "offset"),
            ("5 f read 9223372036854775807 1", "offset"),
            ("5 f read 18446744073709551615 1", "offset"),
            ("5 f read x 1", "offset"),
            ("3 f read 0 512", "time"),
            ("-5 f read 0 512", "time"),
            ("5.5 f read 0 512", "time"),
            ("9223372036854776 f read 0 512", "time"),
            ("x f open", "time"),
            ("5 g read 0 512", "file"),
            ("5 g open", "file"),
            ("5 closed read 0 512", "file"),
            (&long, "file"),
            ("5 f erase 0 512", "action"),
            ("5 f wait 0 512", "action"),
            ("5 f sync", "action"),
            ("f read 0 512", ""),
            ("5 f read 0 512 512", ""),
            ("5", ""),
            ("fio version 3 iolog", ""),
            ("fio version 2 iolog", ""),
            ("fio version 4 iolog", "version"),
        ];
        for (line, field) in cases {
            let head = "fio version 3 iolog\n0 f add\n0 f open\n0 closed add\n4 f read 0 1\n";
            let error = read(&[&format!("{head}{line}\n")], false).unwrap_err();
            assert_eq!((error.place, error.field), (Place::Line(6), field), "{line}: {error}");
            assert_eq!(error.to_string().lines().count(), 1);
            let (records, meta) = read(&[&format!("{head}{line}\n")], true).unwrap();
            assert_eq!((records.len(), meta.rejected, &meta.rejects[0]), (1, 1, &error.to_string()), "{line}");
        }
    }

    #[test]
    fn version_2_is_as_strict_as_fio() {
        for (line, field) in [
            ("f wait 600", ""),
            ("f wait 2 0", "time"),
            ("f wait -1 0", "time"),
            ("f sync", "action"),
            ("5 f open", ""),
        ] {
            let text = format!("fio version 2 iolog\nf add\nf open\nf wait 3 0\n{line}\nf read 0 512\n");
            let error = read(&[&text], false).unwrap_err();
            assert_eq!((error.place, error.field), (Place::Line(5), field), "{line}: {error}");
            assert_eq!(short(&read(&[&text], true).unwrap().0), [(3_000, Operation::Read, 0, 512, 0)], "{line}");
        }
    }

    #[test]
    fn other_versions_are_refused_by_name() {
        let error = |text| read(&[text], false).unwrap_err().to_string();
        assert_eq!(error("fio version 4 iolog\n"), "log:1: version: must be 2 or 3, not `4`");
        assert!(error("0, 4096, 4096\n").contains("version 1 has none"));
        // By content it is still an iolog, so the reported reason is the one above.
        assert!(fits(Head { bytes: b"fio version 4 iolog\n", is_whole: true }));
        assert!(!fits(Head { bytes: b"fio version 4\n", is_whole: true }));
    }

    #[test]
    fn an_appended_log_continues_the_first() {
        let log = "fio version 3 iolog\n0 f add\n0 f open\n10 f read 0 512\n20 f close\n";
        let error = read(&[&log.repeat(2)], false).unwrap_err();
        assert_eq!(error.place, Place::Line(6));
        let (records, meta) = read(&[&log.repeat(2)], true).unwrap();
        assert_eq!(short(&records), [(10, Operation::Read, 0, 512, 0), (20, Operation::Read, 0, 512, 0)]);
        assert_eq!((meta.rejected, meta.devices.len()), (1, 1));
        // Several logs are jobs that ran concurrently.
        assert_eq!(short(&read(&[log, log], false).unwrap().0), [(10, Operation::Read, 0, 512, 0); 2]);
    }
}
