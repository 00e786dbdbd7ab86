//! [`Assisted`]: a drive with memories between its host and its mechanism: flash that serves reads, and a media cache
//! that takes writes.

use std::sync::Arc;

use headstack_result::Levels;
use headstack_workload::{Kind, Request, Span};

use super::flash::Flash;
use super::log::{LogPlace, Piece};
use super::split_commands::SplitCommands;
use super::staging::{CLEANING, Staging};
use crate::description::drive::DriveDescription;
use crate::drive::mechanics::SpindleVariation;
use crate::drive::{Completion, Counters, Drive};
use crate::error::InvalidDescription;
use crate::gauges::{DeviceGauge, DeviceState};
use crate::link::Upstream;
use crate::media_defects::MediaDefect;
use crate::media_defects::{Failure, Failures};
use crate::spans::common;

/// A mechanism with its caches.
#[derive(Clone, Debug)]
pub struct Assisted {
    description: Arc<DriveDescription>,
    /// Its home blocks follow the media cache.
    drive: Drive,
    flash: Option<Flash>,
    staging: Option<Staging>,
    flights: SplitCommands,
    /// Failed commands, by the host's names.
    pub failures: Failures,
    sector_bytes: u64,
    /// Time since which the host has had no command in flight, if it has none.
    left_alone_ns: u64,
    /// Time up to which everything has been processed.
    seen_ns: u64,
    done: Vec<Completion>,
    pieces: Vec<Piece>,
}

/// Returns the media cache of a description, if it has one.
fn staging(description: &DriveDescription) -> Option<Staging> {
    description.media_cache.as_ref().map(|cache| Staging::new(description, cache))
}

impl Assisted {
    /// Creates the drive of a checked description.
    pub fn new(description: &DriveDescription, seed: u64) -> Result<Self, InvalidDescription> {
        let geometry = &description.geometry;
        let sector_bytes = u64::from(geometry.physical_sector_bytes);
        let mut behind = description.clone();
        let home_bytes = staging(description).as_ref().map_or(0, Staging::home_block) * sector_bytes;
        behind.geometry.logical_blocks += home_bytes / u64::from(geometry.logical_block_bytes);
        (behind.flash_cache, behind.media_cache, behind.shingles) = (None, None, None);
        Ok(Assisted::at_rest(Drive::new(&behind, seed)?, Arc::new(description.clone())))
    }

    /// Creates another idle one of the same description.
    pub fn another(&self, seed: u64) -> Self {
        Assisted::at_rest(self.drive.another(seed), Arc::clone(&self.description))
    }

    /// Gives the spindle its own phase and speed.
    pub fn vary_spindle(&mut self, variation: SpindleVariation) {
        self.drive.vary_spindle(variation);
    }

    fn at_rest(drive: Drive, description: Arc<DriveDescription>) -> Self {
        Assisted {
            drive,
            flash: description.flash_cache.as_ref().map(Flash::new),
            staging: staging(&description),
            sector_bytes: u64::from(description.geometry.physical_sector_bytes),
            description,
            flights: SplitCommands::default(),
            failures: Failures::default(),
            left_alone_ns: 0,
            seen_ns: 0,
            done: Vec::new(),
            pieces: Vec::new(),
        }
    }

    /// Returns its description.
    pub fn description(&self) -> &DriveDescription {
        &self.description
    }

    /// Returns when the spindle stops if no command arrives before.
    pub fn stops_ns(&self) -> u64 {
        self.drive.stops_ns()
    }

    /// Returns its counters.
    pub fn counters(&self) -> Counters {
        let mut counters = self.drive.counters();
        if let Some(flash) = &self.flash {
            (counters.flash_hits, counters.flash_fills, counters.flash_ns) = (flash.hits, flash.filled, flash.busy_ns);
        }
        if let Some(staging) = &self.staging {
            staging.count(&mut counters);
        }
        counters
    }

    /// Returns the time of the next event; `u64::MAX` if there is none.
    pub fn next_event_ns(&self) -> u64 {
        self.drive.next_event_ns().min(self.cleaning_ns())
    }

    /// Returns when the host will have been idle long enough for the media cache to be cleaned.
    fn cleaning_ns(&self) -> u64 {
        match &self.staging {
            Some(staging) if self.flights.count() == 0 && staging.has_work() => {
                let at_ns = self.left_alone_ns + staging.idle_ns();
                if at_ns > self.seen_ns { at_ns } else { u64::MAX }
            }
            _ => u64::MAX,
        }
    }

    /// Whether nothing is queued, in service, or only in the buffer; the media cache may hold data.
    pub fn is_idle(&self) -> bool {
        self.drive.is_idle() && self.staging.as_ref().is_none_or(Staging::is_durable)
    }

    /// Whether all data are at home.
    pub fn is_clean(&self) -> bool {
        self.is_idle() && !self.staging.as_ref().is_some_and(Staging::has_work)
    }

    /// Adds a request that took no time to the flash.
    pub fn warm_with(&mut self, request: &Request) {
        let Some(flash) = &mut self.flash else {
            return;
        };
        match request.kind {
            Kind::Read => flash.warm(request.offset_bytes, u64::from(request.length_bytes)),
            Kind::Write => flash.was_written(request.offset_bytes, u64::from(request.length_bytes)),
            Kind::Trim => flash.was_trimmed(request.offset_bytes, u64::from(request.length_bytes)),
            Kind::Flush => {}
        }
    }

    /// Takes a command.
    pub fn submit_behind(&mut self, upstream: &mut Upstream, now_ns: u64, id: u32, request: &Request) {
        match request.kind {
            Kind::Read => self.read(upstream, now_ns, id, request),
            Kind::Write => self.write(upstream, now_ns, id, request),
            Kind::Flush => self.flush(upstream, now_ns, id, request),
            Kind::Trim => self.trim(upstream, now_ns, id, request),
        }
        self.work(upstream, now_ns);
    }

    /// Returns the sectors that a request touches.
    fn sectors(&self, request: &Request) -> (u64, u64) {
        let end = request.offset_bytes + u64::from(request.length_bytes);
        (request.offset_bytes / self.sector_bytes, end.div_ceil(self.sector_bytes))
    }

    /// Returns a request to home, in the drive's addresses.
    fn at_home(&self, request: &Request) -> Request {
        let home_block = self.staging.as_ref().map_or(0, Staging::home_block);
        Request { offset_bytes: request.offset_bytes + home_block * self.sector_bytes, ..*request }
    }

    fn read(&mut self, upstream: &mut Upstream, now_ns: u64, id: u32, request: &Request) {
        let (start, length) = (request.offset_bytes, u64::from(request.length_bytes));
        let mut wanted = false;
        if let Some(flash) = &mut self.flash {
            wanted = flash.is_random(start, length);
            if !self.drive.holds_back(request.ordered) && flash.holds(now_ns, start, length) {
                let name = self.flights.start(id, 1);
                let ready_ns = flash.read(self.drive.decode_hit(now_ns), length);
                let (from, to) = self.sectors(request);
                return self.drive.send(upstream, now_ns, name, ready_ns, (to - from) as u32);
            }
        }
        let (from, to) = self.sectors(request);
        let mut pieces = std::mem::take(&mut self.pieces);
        match &mut self.staging {
            Some(staging) => staging.find(from, to, &mut pieces),
            None => pieces.push(Piece { place: LogPlace::Home, home: from, sectors: (to - from) as u32 }),
        }
        let name = self.flights.start(id, pieces.len() as u32);
        if wanted {
            self.flights.want(name, start, length);
        }
        if let [Piece { place: LogPlace::Home, .. }] = pieces[..] {
            self.drive.submit_behind(upstream, now_ns, name, &self.at_home(request));
        } else {
            pieces.iter().for_each(|piece| self.read_piece(upstream, now_ns, name, request, piece));
        }
        pieces.clear();
        self.pieces = pieces;
    }

    fn read_piece(&mut self, upstream: &mut Upstream, now_ns: u64, name: u32, request: &Request, piece: &Piece) {
        let length_bytes = (u64::from(piece.sectors) * self.sector_bytes) as u32;
        let part = |block: u64| Request { offset_bytes: block * self.sector_bytes, length_bytes, ..*request };
        match piece.place {
            LogPlace::Home => self.drive.submit_behind(upstream, now_ns, name, &self.at_home(&part(piece.home))),
            LogPlace::Log(block) => self.drive.submit_behind(upstream, now_ns, name, &part(block)),
            LogPlace::Buffer => {
                let ready_ns = self.drive.decode_hit(now_ns);
                self.drive.send(upstream, now_ns, name, ready_ns, piece.sectors);
            }
        }
    }

    /// Drops stale copies of data that a request changes.
    fn forget(&mut self, request: &Request) {
        if let Some(flash) = &mut self.flash {
            let (start_bytes, length_bytes) = (request.offset_bytes, u64::from(request.length_bytes));
            match request.kind {
                Kind::Trim => flash.was_trimmed(start_bytes, length_bytes),
                Kind::Read | Kind::Write | Kind::Flush => flash.was_written(start_bytes, length_bytes),
            }
            self.flights.was_written(request.offset_bytes, u64::from(request.length_bytes));
        }
    }

    fn write(&mut self, upstream: &mut Upstream, now_ns: u64, id: u32, request: &Request) {
        self.forget(request);
        let band_bytes = self.description.shingles.map_or(u64::MAX, |shingles| shingles.band_bytes);
        let end = request.offset_bytes + u64::from(request.length_bytes);
        let bands = (end - 1) / band_bytes - request.offset_bytes / band_bytes + 1;
        let name = self.flights.start(id, bands as u32);
        let mut from = request.offset_bytes;
        while from < end {
            let to = end.min((from / band_bytes + 1).saturating_mul(band_bytes));
            let part = Request { offset_bytes: from, length_bytes: (to - from) as u32, ..*request };
            self.write_part(upstream, now_ns, name, &part);
            from = to;
        }
    }

    /// Processes a write that stays within one band.
    fn write_part(&mut self, upstream: &mut Upstream, now_ns: u64, name: u32, part: &Request) {
        let (from, to) = self.sectors(part);
        if let Some(staging) = &mut self.staging
            && !staging.goes_direct(name, from, to)
        {
            let forced = part.force_unit_access;
            // The log has the sectors from now on; at home they will be on spares.
            self.drive.renew(staging.home_block() + from, staging.home_block() + to);
            return staging.write(&mut self.drive, upstream, now_ns, name, (from, to), forced);
        }
        self.drive.submit_behind(upstream, now_ns, name, &self.at_home(part));
    }

    fn flush(&mut self, upstream: &mut Upstream, now_ns: u64, id: u32, request: &Request) {
        let waits = self.staging.as_ref().map_or(0, Staging::flush_parts);
        let name = self.flights.start(id, 1 + waits);
        if let Some(staging) = self.staging.as_mut().filter(|_| waits > 0) {
            staging.flush(now_ns, name);
        }
        self.drive.submit_behind(upstream, now_ns, name, request);
    }

    fn trim(&mut self, upstream: &mut Upstream, now_ns: u64, id: u32, request: &Request) {
        self.forget(request);
        // A sector of which only part is trimmed stays.
        let end = request.offset_bytes + u64::from(request.length_bytes);
        let (from, to) = (request.offset_bytes.div_ceil(self.sector_bytes), end / self.sector_bytes);
        if let Some(staging) = self.staging.as_mut().filter(|_| from < to) {
            staging.trim(from, to);
        }
        let name = self.flights.start(id, 1);
        self.drive.submit_behind(upstream, now_ns, name, &self.at_home(request));
    }

    /// Processes every event up to `now_ns`.
    pub fn advance_behind(&mut self, upstream: &mut Upstream, now_ns: u64, mut completed: impl FnMut(Completion)) {
        loop {
            let at_ns = self.next_event_ns();
            if at_ns > now_ns {
                return;
            }
            let mut done = std::mem::take(&mut self.done);
            self.drive.advance_behind(upstream, at_ns, |completion| done.push(completion));
            for part in done.drain(..) {
                self.part_done(&part, &mut completed);
            }
            self.done = done;
            self.seen_ns = at_ns;
            self.work(upstream, at_ns);
        }
    }

    fn part_done(&mut self, part: &Completion, completed: &mut impl FnMut(Completion)) {
        if self.drive.has_failures() {
            self.note_failure(part.id);
        }
        if part.id >= CLEANING {
            let staging = self.staging.as_mut().expect("only a media cache makes accesses of its own");
            return staging.internal_access_done(&mut self.drive, part.at_ns, part.id);
        }
        let Some(landed) = self.flights.part_done(part) else {
            return;
        };
        if let Some(staging) = &mut self.staging {
            staging.direct_done(part.id);
        }
        if let (Some(flash), Some((from, to))) = (&mut self.flash, landed.wanted) {
            flash.was_read(part.at_ns, from, to - from);
        }
        self.left_alone_ns = part.at_ns;
        completed(landed.completion);
    }

    /// Fails the command of a finished part if the part has failed.
    #[cold]
    fn note_failure(&mut self, name: u32) {
        let Some(Failure { from_bytes, to_bytes, write, .. }) = self.drive.take_failure(name) else {
            return;
        };
        if name < CLEANING {
            let home = self.home_bytes();
            let (from_bytes, to_bytes) = (from_bytes.saturating_sub(home), to_bytes.saturating_sub(home));
            self.failures.note(Failure { id: self.flights.id(name), from_bytes, to_bytes, write });
            self.flights.spoil(name);
        }
    }

    fn home_bytes(&self) -> u64 {
        self.staging.as_ref().map_or(0, Staging::home_block) * self.sector_bytes
    }

    /// Returns the mechanism.
    pub fn drive(&self) -> &Drive {
        &self.drive
    }

    /// Replaces the media defects at home.
    pub fn set_media_defects(&mut self, media_defects: &[MediaDefect], seed: u64) {
        let home = self.home_bytes();
        let at_home = |media_defect: &MediaDefect| MediaDefect {
            span: Span { start_bytes: home + media_defect.span.start_bytes, ..media_defect.span },
            ..*media_defect
        };
        let at_home: Vec<MediaDefect> = media_defects.iter().map(at_home).collect();
        self.drive.set_media_defects(&at_home, seed);
    }

    /// Whether acknowledged data can be in a volatile cache.
    pub fn caches_writes(&self) -> bool {
        self.drive.caches_writes() || self.staging.as_ref().is_some_and(Staging::is_volatile)
    }

    /// Switches the write cache.
    pub fn set_write_cache(&mut self, on: bool) {
        self.drive.set_write_cache(on);
        if let Some(staging) = &mut self.staging {
            staging.set_write_cache(on);
        }
    }

    /// Appends the parts of a span that are only in a volatile cache.
    pub fn volatile(&self, span: Span, into: &mut Vec<Span>) {
        let (home, first) = (self.home_bytes(), into.len());
        self.drive.volatile(Span { start_bytes: home + span.start_bytes, ..span }, into);
        into[first..].iter_mut().for_each(|span| span.start_bytes -= home);
        let Some(staging) = self.staging.as_ref().filter(|staging| staging.is_volatile()) else {
            return;
        };
        let sector = self.sector_bytes;
        let end = (span.start_bytes + span.length_bytes).div_ceil(sector);
        staging.buffered(span.start_bytes / sector, end, |from, to| {
            into.extend(common(span, from * sector, to * sector));
        });
    }

    /// Returns the end of the track that holds a byte at home.
    pub fn track_end_bytes(&self, at_bytes: u64) -> u64 {
        self.drive.track_end_bytes(self.home_bytes() + at_bytes) - self.home_bytes()
    }

    /// Handles a power cycle: the flash and the media cache keep their data and their maps.
    pub fn power_cycle(&mut self, now_ns: u64) {
        self.drive.power_cycle(now_ns);
        self.flights = SplitCommands::default();
        self.failures.clear();
        if let Some(flash) = &mut self.flash {
            flash.power_cycle(now_ns);
        }
        if let Some(staging) = &mut self.staging {
            staging.power_cycle();
        }
        (self.left_alone_ns, self.seen_ns) = (now_ns, now_ns);
        self.work(&mut Upstream::none(), now_ns);
    }

    /// Returns its fill levels, such as that of a cache.
    pub fn levels(&self) -> Levels {
        let in_flash = self.flash.as_ref().map_or(0, Flash::resident_bytes);
        let in_log = self.staging.as_ref().map_or(0, Staging::logged_sectors) * self.sector_bytes;
        [self.drive.dirty_bytes() + self.buffered_bytes(), 0, in_flash + in_log, 0, 0]
    }

    fn buffered_bytes(&self) -> u64 {
        self.staging.as_ref().map_or(0, Staging::buffered_sectors) * self.sector_bytes
    }

    /// Returns its activity for display.
    pub fn gauge(&self, now_ns: u64) -> DeviceGauge {
        let mut gauge = self.drive.gauge(now_ns);
        gauge.dirty_bytes += self.buffered_bytes();
        gauge.queue = self.flights.count() as u32;
        if gauge.queue == 0 && matches!(gauge.state, DeviceState::Reading | DeviceState::Writing) {
            gauge.state = DeviceState::Internal;
        }
        gauge
    }

    fn work(&mut self, upstream: &mut Upstream, now_ns: u64) {
        if let Some(staging) = &mut self.staging {
            let away = self.flights.count() == 0 && now_ns >= self.left_alone_ns + staging.idle_ns();
            staging.work(&mut self.drive, upstream, now_ns, away);
        }
    }
}
