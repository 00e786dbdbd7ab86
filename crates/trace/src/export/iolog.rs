//! fio's iolog, version 3, which fio replays from 3.31 on. Trims are written, as fio itself does, but fio 3.33 does not
//! replay them: it reports `bad ddir: 2` for each.

use std::io::{self, Write};

use rustc_hash::FxHashSet;

use super::Losses;
use crate::formats::iolog::NAME_BYTES_MAX;
use crate::meta::Meta;
use crate::record::{Flags, NOT_RECORDED, Operation, Record};

const NS_PER_US: u64 = 1_000;
/// Time of the first request: fio loses the gap after a time of 0.
const FIRST_US: u64 = 1;

/// An iolog being written.
#[derive(Debug)]
pub struct Writer<W: Write> {
    out: W,
    /// Names of the devices that have appeared, by index.
    names: Vec<Option<String>>,
    taken: FxHashSet<String>,
    has_begun: bool,
    /// The first arrival, which becomes [`FIRST_US`].
    start_ns: Option<u64>,
    now_us: u64,
    losses: Losses,
}

impl<W: Write> Writer<W> {
    /// Starts a log in `out`.
    pub fn new(out: W) -> Writer<W> {
        let (names, taken) = (Vec::new(), FxHashSet::default());
        Writer { out, names, taken, has_begun: false, start_ns: None, now_us: FIRST_US, losses: Losses::new() }
    }

    /// Writes requests in order of arrival; `meta` has the names of their devices.
    ///
    /// # Errors
    /// Those of writing.
    pub fn write(&mut self, records: &[Record], meta: &Meta) -> io::Result<()> {
        self.begin()?;
        for record in records {
            let action = match record.operation {
                Operation::Read => "read",
                Operation::Write => "write",
                Operation::Trim => "trim",
                Operation::Flush => "sync",
                Operation::Other => {
                    self.lose("requests other than read, write, trim and flush");
                    continue;
                }
                Operation::Unknown => {
                    self.lose("requests of unknown operation");
                    continue;
                }
            };
            if record.length_bytes == 0 && record.operation != Operation::Flush {
                self.lose("requests without length");
                continue;
            }
            self.count(record);
            let since_start_ns = record.arrival_ns.saturating_sub(*self.start_ns.get_or_insert(record.arrival_ns));
            self.now_us = self.now_us.max(FIRST_US + since_start_ns / NS_PER_US);
            let (us, index) = (self.now_us, record.device as usize);
            self.open(index, meta)?;
            let name = self.names[index].as_deref().unwrap_or_default();
            if record.operation == Operation::Write && record.flags.contains(Flags::PRE_FLUSH) {
                writeln!(self.out, "{us} {name} sync 0 0")?;
            }
            match record.operation {
                Operation::Flush => writeln!(self.out, "{us} {name} {action} 0 0")?,
                _ => writeln!(self.out, "{us} {name} {action} {} {}", record.offset_bytes, record.length_bytes)?,
            }
        }
        Ok(())
    }

    /// Closes the devices and returns the losses.
    ///
    /// # Errors
    /// Those of writing.
    pub fn finish(mut self) -> io::Result<Losses> {
        self.begin()?;
        for name in self.names.iter().flatten() {
            writeln!(self.out, "{} {name} close", self.now_us)?;
        }
        self.out.flush()?;
        Ok(self.losses)
    }

    fn begin(&mut self) -> io::Result<()> {
        if !self.has_begun {
            writeln!(self.out, "fio version 3 iolog")?;
            self.has_begun = true;
        }
        Ok(())
    }

    fn lose(&mut self, what: &'static str) {
        *self.losses.entry(what).or_default() += 1;
    }

    /// Counts data of a request that cannot be written.
    fn count(&mut self, record: &Record) {
        let start_ns = self.start_ns.unwrap_or(record.arrival_ns);
        let losses = [
            (record.response_ns != NOT_RECORDED, "response times"),
            (record.wait_ns != NOT_RECORDED, "wait times"),
            (record.flags.without(Flags::PRE_FLUSH) != Flags::default(), "flags"),
            (record.process != 0, "processes"),
            (!record.arrival_ns.saturating_sub(start_ns).is_multiple_of(NS_PER_US), "arrivals cut to microseconds"),
        ];
        for (_, what) in losses.into_iter().filter(|(is_lost, _)| *is_lost) {
            self.lose(what);
        }
    }

    /// Adds and opens a device that has not appeared before.
    fn open(&mut self, index: usize, meta: &Meta) -> io::Result<()> {
        if self.names.len() <= index {
            self.names.resize(index + 1, None);
        }
        if self.names[index].is_some() {
            return Ok(());
        }
        let device_name = meta.devices.get(index).map_or("", |device| &device.name);
        let name = self.free_name(device_name);
        if name != device_name {
            self.lose("device names changed");
        }
        for action in ["add", "open"] {
            writeln!(self.out, "{} {name} {action}", self.now_us)?;
        }
        self.taken.insert(name.clone());
        self.names[index] = Some(name);
        Ok(())
    }

    /// Converts `device_name` to a name that fio can read: one word, not too long, and unique.
    fn free_name(&self, device_name: &str) -> String {
        let word: String =
            device_name.chars().map(|c| if c.is_whitespace() || c.is_control() { '_' } else { c }).collect();
        let word = if word.is_empty() { "device" } else { &word };
        let named = |suffix: &str| {
            let end = (0..=NAME_BYTES_MAX - suffix.len()).rev().find(|&end| word.is_char_boundary(end.min(word.len())));
            format!("{}{suffix}", &word[..end.unwrap_or(0).min(word.len())])
        };
        let suffixes = (2u64..).map(|number| format!("-{number}"));
        let mut names = std::iter::once(String::new()).chain(suffixes).map(|suffix| named(&suffix));
        names.find(|name| !self.taken.contains(name)).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;
    use crate::{DeviceMeta, Input, ReadOptions, TraceReader};

    fn meta(names: &[&str]) -> Meta {
        let devices = names.iter().map(|name| DeviceMeta { name: (*name).to_owned(), ..DeviceMeta::default() });
        Meta { devices: devices.collect(), ..Meta::default() }
    }

    fn log(records: &[Record], meta: &Meta) -> (String, Losses) {
        let mut out = Vec::new();
        let mut writer = Writer::new(&mut out);
        writer.write(records, meta).unwrap();
        let losses = writer.finish().unwrap();
        (String::from_utf8(out).unwrap(), losses)
    }

    fn on(device: u32, record: Record) -> Record {
        Record { device, ..record }
    }

    #[test]
    fn begins_at_1_us_and_opens_devices_as_they_appear() {
        let records = [
            Record::new(7_000, Operation::Read, 4_096, 512),
            on(1, Record::new(9_999, Operation::Flush, 4_096, 512)),
            Record::new(1_000_007_000, Operation::Trim, 0, u32::MAX),
        ];
        let (text, losses) = log(&records, &meta(&["sda", "sdb"]));
        let expected = "fio version 3 iolog\n1 sda add\n1 sda open\n1 sda read 4096 512\n3 sdb add\n3 sdb open\n\
            3 sdb sync 0 0\n1000001 sda trim 0 4294967295\n1000001 sda close\n1000001 sdb close\n";
        assert_eq!(text, expected);
        assert_eq!(losses, Losses::from([("arrivals cut to microseconds", 1)]));
    }

    #[test]
    fn what_a_log_cannot_hold_is_counted() {
        let mut known = Record::new(0, Operation::Write, 0, 512);
        (known.response_ns, known.wait_ns, known.process, known.flags) = (5, 1, 1, Flags::SYNC);
        let records = [
            Record::new(0, Operation::Unknown, 0, 512),
            Record::new(0, Operation::Other, 0, 512),
            Record::new(0, Operation::Read, 0, 0),
            known,
        ];
        let (text, losses) = log(&records, &meta(&["a b\tc"]));
        assert_eq!(text.lines().filter(|line| line.ends_with(" a_b_c write 0 512")).count(), 1);
        assert_eq!(losses.values().copied().collect::<Vec<_>>(), [1; 8]);
    }

    #[test]
    fn a_pre_flush_is_written_as_a_sync_before_its_write() {
        let commit = Record { flags: Flags::PRE_FLUSH, ..Record::new(0, Operation::Write, 4_096, 512) };
        let (text, losses) = log(&[commit], &meta(&["sda"]));
        assert!(text.contains("open\n1 sda sync 0 0\n1 sda write 4096 512\n1 sda close"), "{text}");
        assert!(losses.is_empty(), "{losses:?}");
    }

    #[test]
    fn names_are_short_words_and_differ() {
        let long = "é".repeat(200);
        let names = ["x y", "x_y", "x\ny", "", &long, &format!("{long}z")];
        let records: Vec<Record> = (0..7).map(|n| on(n, Record::new(0, Operation::Read, 0, 512))).collect();
        let (text, _) = log(&records, &meta(&names));
        let added: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("1 ")?.strip_suffix(" add")).collect();
        assert_eq!(added[..4], ["x_y", "x_y-2", "x_y-3", "device"]);
        assert_eq!((added[4].len(), added[5].len(), added[6]), (256, 256, "device-2"));
        assert_ne!(added[4], added[5]);
        assert!(added.iter().all(|name| name.len() <= 256 && !name.contains(char::is_whitespace)));
    }

    #[test]
    fn what_was_written_is_read_again() {
        let records: Vec<Record> = (0..1_000)
            .map(|n| {
                on(
                    n % 3,
                    Record::new(u64::from(n) * 1_500_000, Operation::ALL[n as usize % 3], u64::from(n) << 12, 4_096),
                )
            })
            .collect();
        let (text, losses) = log(&records, &meta(&["a", "b", "c"]));
        assert!(losses.is_empty(), "{losses:?}");
        let input = Input::from_bytes("log", text.into_bytes()).unwrap();
        let mut reader = TraceReader::from_inputs(vec![input], &ReadOptions::default()).unwrap();
        let mut again = Vec::new();
        assert!(reader.next_batch(&mut again).unwrap());
        again.iter_mut().for_each(|record| record.arrival_ns -= NS_PER_US);
        assert_eq!(again, records);
    }

    #[test]
    fn fio_replays_as_many_requests_as_were_written() {
        if Command::new("fio").arg("--version").output().is_err() {
            headstack_needs::lacks(headstack_needs::Need::Programs, "fio is not installed");
            return;
        }
        let operations = [Operation::Read, Operation::Write, Operation::Read, Operation::Read, Operation::Flush];
        let request = |n: u64| Record::new(n * 500_000, operations[n as usize % 5], n << 14, 1 << (9 + n % 8));
        let records: Vec<Record> = (0..1_000).map(request).collect();
        let (text, _) = log(&records, &meta(&["a disk"]));
        let path = std::env::temp_dir().join(format!("headstack-{}.iolog", std::process::id()));
        std::fs::write(&path, text).unwrap();
        let output = Command::new("fio")
            .args(["--name=replay", "--ioengine=null", "--output-format=json", "--size=1g", "--filesize=1g"])
            .arg(format!("--read_iolog={}", path.display()))
            .current_dir(std::env::temp_dir())
            .output()
            .unwrap();
        std::fs::remove_file(&path).unwrap();
        let report = String::from_utf8_lossy(&output.stdout).into_owned();
        let json = &report[report.find('{').unwrap_or_else(|| panic!("fio says {report} {output:?}"))..];
        let job = serde_json::from_str::<serde_json::Value>(json).unwrap()["jobs"][0].clone();
        let bytes = |operation| {
            records.iter().filter(|r| r.operation == operation).map(|r| u64::from(r.length_bytes)).sum::<u64>()
        };
        for (name, operation) in [("read", Operation::Read), ("write", Operation::Write), ("sync", Operation::Flush)] {
            let requests = records.iter().filter(|record| record.operation == operation).count();
            assert_eq!(job[name]["total_ios"], requests, "{name}");
            if operation != Operation::Flush {
                assert_eq!(job[name]["io_bytes"], bytes(operation), "{name}");
            }
        }
        // 500 ms of requests: a log whose times fio misreads takes longer or shorter.
        let runtime_ms = job["job_runtime"].as_u64().unwrap();
        assert!((490..2_000).contains(&runtime_ms), "{runtime_ms} ms");
    }
}
