//! MSR Cambridge CSV: `timestamp,host,disk,Read|Write,offset,size,response`.
//!
//! Response times that were not recorded are left blank. Times without a date count from 2000-01-01 UTC.

use std::io::{self, Write};

use rustc_hash::FxHashSet;

use super::{Losses, reads};
use crate::meta::{Clock, Meta};
use crate::record::{Flags, NOT_RECORDED, Record};
use crate::time::{NEWEST_UNIX_S, NS_PER_S, NS_PER_TICK, OLDEST_UNIX_S, UNIX_EPOCH_TICKS};

/// 2000-01-01 UTC in ns since 1970: a plausible date for readers of the format.
const DATELESS_UNIX_NS: u64 = 946_684_800 * NS_PER_S;

/// A trace being written.
#[derive(Debug)]
pub struct Writer<W: Write> {
    out: W,
    /// `host,disk` of the devices that have appeared, by index.
    disks: Vec<String>,
    taken: FxHashSet<String>,
    losses: Losses,
}

impl<W: Write> Writer<W> {
    /// Starts a trace in `out`.
    pub fn new(out: W) -> Writer<W> {
        Writer { out, disks: Vec::new(), taken: FxHashSet::default(), losses: Losses::new() }
    }

    /// Writes requests; `meta` has the names of their devices and the base of times.
    ///
    /// # Errors
    /// Those of writing.
    pub fn write(&mut self, records: &[Record], meta: &Meta) -> io::Result<()> {
        let zero_unix_ns = match (meta.clock, meta.zero_unix_ns) {
            (Clock::Unix, _) => 0,
            (_, Some(zero_unix_ns)) => zero_unix_ns,
            (_, None) => DATELESS_UNIX_NS,
        };
        let is_dateless = meta.clock != Clock::Unix && meta.zero_unix_ns.is_none();
        for record in records {
            let kind = match reads(record.operation) {
                Ok(true) => "Read",
                Ok(false) => "Write",
                Err(lost) => {
                    self.lose(lost);
                    continue;
                }
            };
            let unix_ns = record.arrival_ns.checked_add(zero_unix_ns);
            let dates_ns = OLDEST_UNIX_S * NS_PER_S..NEWEST_UNIX_S * NS_PER_S;
            let Some(unix_ns) = unix_ns.filter(|unix_ns| dates_ns.contains(unix_ns)) else {
                self.lose("requests before 1980 or after 2099");
                continue;
            };
            self.count_losses(record, unix_ns, is_dateless);
            let ticks = UNIX_EPOCH_TICKS + unix_ns / NS_PER_TICK;
            let (offset, length) = (record.offset_bytes, record.length_bytes);
            let disk = self.disk(record.device, meta);
            write!(self.out, "{ticks},{},{kind},{offset},{length},", self.disks[disk])?;
            match record.response_ns {
                NOT_RECORDED => writeln!(self.out)?,
                response_ns => writeln!(self.out, "{}", response_ns / NS_PER_TICK)?,
            }
        }
        Ok(())
    }

    /// Ends the trace and returns the losses.
    ///
    /// # Errors
    /// Those of writing.
    pub fn finish(mut self) -> io::Result<Losses> {
        self.out.flush()?;
        Ok(self.losses)
    }

    fn lose(&mut self, what: &'static str) {
        *self.losses.entry(what).or_default() += 1;
    }

    fn count_losses(&mut self, record: &Record, unix_ns: u64, is_dateless: bool) {
        let is_held = |ns: u64| ns == NOT_RECORDED || ns.is_multiple_of(NS_PER_TICK);
        if !is_held(unix_ns) || !is_held(record.response_ns) {
            self.lose("sub-100-ns parts of times");
        }
        if is_dateless {
            self.lose("the missing date: times count from 2000-01-01");
        }
        if record.wait_ns != NOT_RECORDED {
            self.lose("times in queue");
        }
        if record.flags != Flags::default() {
            self.lose("flags");
        }
        if record.process > 0 {
            self.lose("processes");
        }
    }

    /// Index in `disks` of a device.
    fn disk(&mut self, device: u32, meta: &Meta) -> usize {
        while self.disks.len() <= device as usize {
            let index = self.disks.len();
            let name = meta.devices.get(index).map_or("", |device| device.name.as_str());
            let own = host_and_disk(name).filter(|disk| !self.taken.contains(disk));
            let disk = own.unwrap_or_else(|| {
                self.lose("names of devices");
                let mut others = (0u32..).map(|attempt| match attempt {
                    0 => format!("device,{index}"),
                    _ => format!("device{attempt},{index}"),
                });
                others.find(|disk| !self.taken.contains(disk)).unwrap_or_default()
            });
            self.taken.insert(disk.clone());
            self.disks.push(disk);
        }
        device as usize
    }
}

/// The two columns of a name such as `hm.0`, if it has that form.
fn host_and_disk(name: &str) -> Option<String> {
    let (host, disk) = name.rsplit_once('.')?;
    let is_plain = !host.is_empty() && host.trim_ascii() == host && !host.contains([',', '\n', '\r']);
    let is_number = crate::text::whole(disk.as_bytes()).is_some();
    (is_plain && is_number).then(|| format!("{host},{disk}"))
}
