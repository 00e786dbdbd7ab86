//! [`Log`]: the contents of a media cache: a log written in order of arrival, and a map from home sectors to log
//! positions.
//!
//! A log position counts sectors from the start of the log and grows forever; modulo the log's size it is a sector of
//! the media. Data are assigned a position when they arrive. Data below `durable` are on the media, later data only in
//! the buffer.

use std::collections::{BTreeMap, VecDeque};

/// Run of home sectors whose newest data are in the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cached {
    /// First home sector.
    pub home: u64,
    /// Length in sectors.
    pub sectors: u32,
    /// Log position of the first sector.
    pub at: u64,
}

impl Cached {
    fn end(&self) -> u64 {
        self.home + u64::from(self.sectors)
    }
}

/// Location of the newest data of a piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogPlace {
    /// At the home location.
    Home,
    /// On the media, in the log, from this sector on.
    Log(u64),
    /// Only in the buffer.
    Buffer,
}

/// Part of a range with all its newest data in one location.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Location of the newest data.
    pub place: LogPlace,
    /// First home sector.
    pub home: u64,
    /// Length in sectors.
    pub sectors: u32,
}

/// Data that one access can write to the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Batch {
    /// First sector of the log.
    pub block: u64,
    /// Length in sectors.
    pub sectors: u32,
    /// Number of writes in the batch.
    writes: usize,
}

/// Log of a media cache, with the map of its contents.
#[derive(Clone, Debug)]
pub struct Log {
    sectors: u64,
    extents_max: usize,
    /// Map from first home sector to (sectors, log position), with disjoint ranges.
    map: BTreeMap<u64, (u32, u64)>,
    /// Writes in log order, starting with the oldest that is still needed.
    records: VecDeque<Cached>,
    /// Number of records that are on the media.
    durable_records: usize,
    durable: u64,
    head: u64,
}

impl Log {
    /// Creates an empty log of `sectors` sectors that can map `extents_max` extents.
    pub fn new(sectors: u64, extents_max: u32) -> Self {
        Log {
            sectors,
            extents_max: extents_max as usize,
            map: BTreeMap::new(),
            records: VecDeque::new(),
            durable_records: 0,
            durable: 0,
            head: 0,
        }
    }

    /// Returns the maximum number of sectors in one record, chosen so that several records fit even with the space lost
    /// at the log's end.
    pub fn record_max(&self) -> u32 {
        (self.sectors / 8).min(1 << 16) as u32
    }

    /// Returns the size of the log in sectors.
    pub fn sectors(&self) -> u64 {
        self.sectors
    }

    /// Returns the log position after the last write.
    pub fn head(&self) -> u64 {
        self.head
    }

    /// Returns the log position below which all data are on the media.
    pub fn durable(&self) -> u64 {
        self.durable
    }

    /// Whether all data of the log are on the media.
    pub fn is_durable(&self) -> bool {
        self.durable_records == self.records.len()
    }

    /// Whether the log holds no data.
    pub fn is_clean(&self) -> bool {
        self.durable_records == 0
    }

    fn tail(&self) -> u64 {
        self.records.front().map_or(self.head, |record| record.at)
    }

    /// Returns the number of sectors in use.
    pub fn used_sectors(&self) -> u64 {
        self.head - self.tail()
    }

    /// Returns the share of the log in use, by space or by extents, whichever is higher.
    pub fn used_share(&self) -> f64 {
        let room = self.durable.saturating_sub(self.tail()) as f64 / self.sectors as f64;
        room.max(self.durable_records as f64 / self.extents_max as f64)
    }

    /// Appends a write of at most [`Self::record_max`] sectors.
    pub fn write(&mut self, home: u64, sectors: u32) {
        // A record is contiguous. If it does not fit before the log's end, the space there is lost.
        let left = self.sectors - self.head % self.sectors;
        let at = self.head + if left < u64::from(sectors) { left } else { 0 };
        self.head = at + u64::from(sectors);
        self.unmap(home, home + u64::from(sectors), u64::MAX);
        self.map.insert(home, (sectors, at));
        self.records.push_back(Cached { home, sectors, at });
    }

    /// Drops the log's data of the home range `[from, to)` at log positions below `below`.
    pub fn unmap(&mut self, from: u64, to: u64, below: u64) {
        let mut next = self.map.range(..from).next_back().map_or(from, |(&home, _)| home);
        while next < to
            && let Some((&home, &(sectors, at))) = self.map.range(next..to).next()
        {
            let end = home + u64::from(sectors);
            next = end;
            if at >= below || end <= from {
                continue;
            }
            self.map.remove(&home);
            if home < from {
                self.map.insert(home, ((from - home) as u32, at));
            }
            if end > to {
                self.map.insert(to, ((end - to) as u32, at + (to - home)));
            }
        }
    }

    /// Returns the log's data of a home range in ascending order, clipped to the range.
    pub fn cached(&self, from: u64, to: u64) -> impl Iterator<Item = Cached> {
        // Extents are disjoint: if the last extent that starts before `to` ends by `from`, the log holds no data of the
        // range. This is the usual case, and needs only one search of the map.
        let last = self.map.range(..to).next_back().map(|(&home, &(sectors, _))| (home, home + u64::from(sectors)));
        let first = match last {
            Some((home, end)) if end > from && home > from => {
                self.map.range(..from).next_back().map_or(from, |(&home, _)| home)
            }
            Some((home, end)) if end > from => home,
            _ => to,
        };
        self.map.range(first..to).filter_map(move |(&home, &(sectors, at))| {
            let end = (home + u64::from(sectors)).min(to);
            let begin = home.max(from);
            (begin < end).then(|| Cached { home: begin, sectors: (end - begin) as u32, at: at + (begin - home) })
        })
    }

    /// Whether the log holds any data of a home range.
    pub fn holds_any(&self, from: u64, to: u64) -> bool {
        self.cached(from, to).next().is_some()
    }

    /// Appends the pieces of a home range with their locations, in ascending order.
    pub fn pieces(&self, from: u64, to: u64, pieces: &mut Vec<Piece>) {
        let mut next = from;
        let home = |from: u64, to: u64| Piece { place: LogPlace::Home, home: from, sectors: (to - from) as u32 };
        for cached in self.cached(from, to) {
            if next < cached.home {
                pieces.push(home(next, cached.home));
            }
            let place =
                if cached.at < self.durable { LogPlace::Log(cached.at % self.sectors) } else { LogPlace::Buffer };
            pieces.push(Piece { place, home: cached.home, sectors: cached.sectors });
            next = cached.end();
        }
        if next < to {
            pieces.push(home(next, to));
        }
    }

    /// Returns the next data to write to the media: up to `sectors_max` sectors, or one record if longer. Returns
    /// `None` if there is no space.
    pub fn next_batch(&self, sectors_max: u32) -> Option<Batch> {
        let first = self.records.get(self.durable_records)?;
        let limit = self.tail() + self.sectors;
        let room = self.extents_max.saturating_sub(self.durable_records);
        let (mut sectors, mut writes) = (0, 0);
        for record in self.records.range(self.durable_records..).take(room) {
            let follows = record.at == first.at + u64::from(sectors) && (writes == 0 || record.at % self.sectors != 0);
            let fits = writes == 0 || sectors + record.sectors <= sectors_max;
            if !follows || !fits || record.at + u64::from(record.sectors) > limit {
                break;
            }
            sectors += record.sectors;
            writes += 1;
        }
        (writes > 0).then_some(Batch { block: first.at % self.sectors, sectors, writes })
    }

    /// Marks a batch as written to the media.
    pub fn appended(&mut self, batch: &Batch) {
        self.durable_records += batch.writes;
        let last = self.records[self.durable_records - 1];
        self.durable = last.at + u64::from(last.sectors);
        self.drop_dead();
    }

    /// Frees the space of the oldest data that are no longer needed.
    pub fn drop_dead(&mut self) {
        while self.durable_records > 0 && !self.is_live(&self.records[0]) {
            self.records.pop_front();
            self.durable_records -= 1;
        }
    }

    /// Returns the records on the media, oldest first.
    pub fn durable_records(&self) -> impl Iterator<Item = &Cached> {
        self.records.range(..self.durable_records)
    }

    /// Returns the parts of a record that no newer write has replaced.
    pub fn live(&self, record: Cached) -> impl Iterator<Item = Cached> {
        let places = record.at..record.at + u64::from(record.sectors);
        self.cached(record.home, record.end()).filter(move |cached| places.contains(&cached.at))
    }

    fn is_live(&self, record: &Cached) -> bool {
        self.live(*record).next().is_some()
    }

    /// Calls `each` with the parts of the home range `[from, to)` whose newest data are only in the buffer.
    pub fn undurable(&self, from: u64, to: u64, mut each: impl FnMut(u64, u64)) {
        let in_buffer = self.cached(from, to).filter(|cached| cached.at >= self.durable);
        in_buffer.for_each(|cached| each(cached.home, cached.end()));
    }

    /// Discards data that are only in the buffer. The home location then holds the newest remaining data.
    pub fn lose_undurable(&mut self) {
        let durable = self.durable;
        self.map.retain(|_, &mut (_, at)| at < durable);
        self.records.truncate(self.durable_records);
        self.head = durable;
        self.drop_dead();
    }

    /// Returns the sector of the log area at a log position.
    pub fn block(&self, at: u64) -> u64 {
        at % self.sectors
    }
}
