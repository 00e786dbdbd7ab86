//! Compares the rule with its definition, and the checks with a device model that reorders, tears, loses and forgets
//! writes.

use proptest::prelude::*;

use super::*;

const UNITS: u64 = 4;
const UNIT: usize = 1024;
const SECTOR: usize = 512;

/// A request in the terms of the definition: times of issue and end on one clock, and its outcome.
struct Event {
    units: std::ops::Range<u64>,
    data: Option<Vec<u8>>,
    issued: usize,
    ended: Option<(usize, Outcome)>,
    ticket: Ticket,
    /// Sectors that the device has not written yet.
    pending: Vec<usize>,
}

struct Flush {
    begun: usize,
    epoch: u32,
    /// Version of each sector when the flush began.
    versions: Vec<usize>,
    done: bool,
}

struct Read {
    expectation: Expectation,
    sectors: std::ops::Range<usize>,
    content: Vec<Option<Vec<u8>>>,
}

/// A device with a volatile cache: for each sector, all contents since creation, and the oldest that a power loss may
/// leave.
struct Model {
    stamper: Stamper,
    clock: usize,
    events: Vec<Event>,
    flushes: Vec<Flush>,
    reads: Vec<Read>,
    versions: Vec<Vec<Vec<u8>>>,
    kept: Vec<usize>,
}

impl Model {
    fn new() -> Model {
        let layout = Layout::new(UNITS * UNIT as u64, UNIT as u32, SECTOR as u32).unwrap();
        let sectors = UNITS as usize * UNIT / SECTOR;
        Model {
            stamper: Stamper::new(layout, None).unwrap(),
            clock: 0,
            events: Vec::new(),
            flushes: Vec::new(),
            reads: Vec::new(),
            versions: vec![vec![vec![0x33; SECTOR]]; sectors],
            kept: vec![0; sectors],
        }
    }

    fn step(&mut self, action: u8, choice: u64) {
        self.clock += 1;
        let under_way: Vec<usize> = (0..self.events.len()).filter(|&at| self.events[at].ended.is_none()).collect();
        let picked = under_way.get(choice as usize % under_way.len().max(1)).copied();
        match (action, picked) {
            (0..=3, _) => self.issue(choice, action == 3),
            (4..=6, Some(at)) => self.write_one_sector(at, choice),
            (7..=10, Some(at)) => self.end(at, choice),
            (11, _) => {
                let versions = self.versions.iter().map(|versions| versions.len() - 1).collect();
                let epoch = self.stamper.flush();
                self.flushes.push(Flush { begun: self.clock, epoch, versions, done: false });
            }
            (12, _) => self.end_flush(choice),
            (13, _) => self.begin_read(choice),
            (14, _) => self.read_one_sector(choice),
            (15, _) => self.end_read(),
            _ => {}
        }
    }

    fn issue(&mut self, choice: u64, trim: bool) {
        let start = choice % UNITS;
        let end = (start + 1 + choice / 7 % 3).min(UNITS);
        let mut buffer = vec![0; (end - start) as usize * UNIT];
        let offset = start * UNIT as u64;
        let ticket = if trim {
            self.stamper.trim(offset, buffer.len() as u64).unwrap()
        } else {
            self.stamper.fill(offset, &mut buffer).unwrap()
        };
        let per_unit = UNIT / SECTOR;
        self.events.push(Event {
            units: start..end,
            data: (!trim).then_some(buffer),
            issued: self.clock,
            ended: None,
            ticket,
            pending: (start as usize * per_unit..end as usize * per_unit).collect(),
        });
    }

    /// Writes one sector of a request, in any order. A trim may zero the sector or leave it.
    fn write_one_sector(&mut self, at: usize, choice: u64) {
        let event = &mut self.events[at];
        if event.pending.is_empty() {
            return;
        }
        let sector = event.pending.swap_remove(choice as usize / 3 % event.pending.len());
        let begin = (sector - event.units.start as usize * (UNIT / SECTOR)) * SECTOR;
        match &event.data {
            Some(data) => self.versions[sector].push(data[begin..begin + SECTOR].to_vec()),
            None if choice.is_multiple_of(2) => self.versions[sector].push(vec![0; SECTOR]),
            None => {}
        }
    }

    fn end(&mut self, at: usize, choice: u64) {
        let outcome = match choice / 11 % 8 {
            0 => Outcome::Failed,
            1 => Outcome::Durable,
            _ => Outcome::Acknowledged,
        };
        if outcome != Outcome::Failed {
            while !self.events[at].pending.is_empty() {
                self.write_one_sector(at, choice);
            }
        }
        let event = &mut self.events[at];
        event.pending.clear();
        event.ended = Some((self.clock, outcome));
        self.stamper.ended(event.ticket, outcome);
        if let (Outcome::Durable, Some(data)) = (outcome, &event.data) {
            let first = event.units.start as usize * (UNIT / SECTOR);
            for (sector, data) in (first..).zip(data.chunks_exact(SECTOR)) {
                let own = self.versions[sector].iter().rposition(|content| content == data).unwrap();
                self.kept[sector] = self.kept[sector].max(own);
            }
        }
    }

    fn end_flush(&mut self, choice: u64) {
        let open: Vec<usize> = (0..self.flushes.len()).filter(|&at| !self.flushes[at].done).collect();
        let Some(&at) = open.get(choice as usize % open.len().max(1)) else { return };
        let flush = &mut self.flushes[at];
        flush.done = true;
        self.stamper.flushed(flush.epoch);
        for (kept, &version) in self.kept.iter_mut().zip(&flush.versions) {
            *kept = (*kept).max(version);
        }
    }

    fn begin_read(&mut self, choice: u64) {
        let start = choice % UNITS;
        let end = (start + 1 + choice / 5 % 2).min(UNITS);
        let mut expectation = Expectation::default();
        self.stamper.expect(start * UNIT as u64, (end - start) * UNIT as u64, &mut expectation).unwrap();
        let sectors = start as usize * (UNIT / SECTOR)..end as usize * (UNIT / SECTOR);
        self.reads.push(Read { expectation, content: vec![None; sectors.len()], sectors });
    }

    fn read_one_sector(&mut self, choice: u64) {
        if let Some(read) = self.reads.last_mut() {
            let at = choice as usize % read.content.len();
            read.content[at] = self.versions[read.sectors.start + at].last().cloned();
        }
    }

    fn end_read(&mut self) {
        let Some(read) = self.reads.pop() else { return };
        let contents = read.sectors.zip(read.content);
        let content: Vec<u8> = contents
            .flat_map(|(sector, content)| content.unwrap_or_else(|| self.versions[sector].last().unwrap().clone()))
            .collect();
        let mut report = IntegrityReport::default();
        self.stamper.check(&read.expectation, &content, &mut report);
        assert_eq!((report.faults(), report.unsettled.count), (0, 0), "a read under load: {report:?}");
    }

    fn scan(&self, offset: u64, content: &[u8]) -> IntegrityReport {
        let mut scanner = Scanner::new(self.stamper.ledger());
        scanner.read(offset, content).unwrap();
        scanner.finish()
    }

    /// Kills the process; the device keeps its contents.
    fn check_killed(&self) {
        let content: Vec<u8> = self.versions.iter().flat_map(|versions| versions.last().unwrap().clone()).collect();
        let report = self.scan(0, &content);
        assert_eq!(report.faults(), 0, "after a kill: {report:?}");
    }

    /// Simulates a power loss: each sector keeps any of its contents since the last flush.
    fn check_power_lost(&self, choices: &[u64]) {
        let sectors = self.versions.iter().zip(&self.kept).zip(choices.iter().cycle());
        let content: Vec<u8> = sectors
            .flat_map(|((versions, &kept), &choice)| versions[kept + choice as usize % (versions.len() - kept)].clone())
            .collect();
        let report = self.scan(0, &content);
        let severe = (report.damaged.count, report.lost_flushed.count, report.unknown.count, report.ahead.count);
        assert_eq!(severe, (0, 0, 0, 0), "after power was lost: {report:?}");
    }

    /// Returns whether, by the definition, acknowledged writes to a unit were issued after `ended`; with `on_medium`,
    /// only durable writes count.
    fn superseded(&self, unit: u64, ended: Option<usize>, on_medium: bool) -> bool {
        let Some(ended) = ended else { return false };
        self.events.iter().any(|event| {
            let acknowledged = match event.ended {
                Some((_, Outcome::Failed)) | None => false,
                Some((_, Outcome::Durable)) => true,
                Some((at, Outcome::Acknowledged)) => {
                    !on_medium || self.flushes.iter().any(|flush| flush.done && flush.begun > at)
                }
            };
            event.units.contains(&unit) && event.data.is_some() && event.issued > ended && acknowledged
        })
    }

    /// Checks every content that a unit ever had: the verdict must be a fault exactly if the definition requires it.
    fn check_rule(&self, unit: u64) {
        let here = || self.events.iter().filter(move |event| event.units.contains(&unit));
        let ended = |event: &Event| event.ended.map(|(at, _)| at);
        let base_stands = !self.superseded(unit, Some(0), false);
        let oldest = here().find(|event| event.data.is_some() && !self.superseded(unit, ended(event), false));
        let oldest = oldest.map(|event| event.issued);
        for event in here() {
            let Some(data) = &event.data else { continue };
            let begin = (unit - event.units.start) as usize * UNIT;
            let report = self.scan(unit * UNIT as u64, &data[begin..begin + UNIT]);
            let lost = !base_stands && oldest.is_some_and(|oldest| event.issued < oldest);
            assert_eq!(report.faults() == 1, lost, "{report:?}");
            let severe = report.lost_flushed.count == 1;
            assert!(!severe || self.superseded(unit, ended(event), true), "called flushed: {report:?}");
        }
        let report = self.scan(unit * UNIT as u64, &[0; UNIT]);
        let trims = || here().filter(|event| event.data.is_none());
        let zeros = base_stands || trims().any(|trim| !self.superseded(unit, ended(trim), false));
        assert_eq!(report.faults() == 0, zeros, "zeros: {report:?}");
        let kept =
            !self.superseded(unit, Some(0), true) || trims().any(|trim| !self.superseded(unit, ended(trim), true));
        assert!(report.lost_flushed.count == 0 || !kept, "zeros called flushed: {report:?}");
    }
}

/// Injects one fault into the contents of a settled device.
fn plant(content: &mut [u8], old: &[u8], fault: u8, at: usize) -> bool {
    let unit = at % UNITS as usize * UNIT;
    let before = content.to_vec();
    match fault {
        0 => content[unit + at % UNIT] ^= 1 << (at / 7 % 8),
        1 => content[unit..unit + UNIT].copy_from_slice(&old[unit..unit + UNIT]),
        2 => content[unit..unit + SECTOR].copy_from_slice(&old[unit..unit + SECTOR]),
        3 => content.copy_within(unit..unit + UNIT, (unit + UNIT) % (UNITS as usize * UNIT)),
        _ => content[unit..unit + UNIT].fill(0xa5),
    }
    content != before
}

/// Returns `PROPTEST_CASES`, or enough cases to cover two overlapping writes and a trim.
fn cases() -> u32 {
    std::env::var("PROPTEST_CASES").ok().and_then(|text| text.parse().ok()).unwrap_or(2000)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), ..ProptestConfig::default() })]

    #[test]
    fn no_false_alarm_and_no_miss(
        steps in proptest::collection::vec((0_u8..17, any::<u64>()), 1..80),
        choices in proptest::collection::vec(any::<u64>(), 1..20),
    ) {
        let mut model = Model::new();
        for (action, choice) in steps {
            model.step(action, choice);
            model.check_killed();
        }
        (0..UNITS).for_each(|unit| model.check_rule(unit));
        model.check_power_lost(&choices);
        while !model.reads.is_empty() {
            model.end_read();
        }
    }

    #[test]
    fn every_planted_fault_is_detected(writes in 2_usize..6, fault in 0_u8..5, at in any::<u16>()) {
        let model = Model::new();
        let mut contents = Vec::new();
        for _ in 0..writes {
            let mut content = vec![0; UNITS as usize * UNIT];
            let ticket = model.stamper.fill(0, &mut content).unwrap();
            model.stamper.ended(ticket, Outcome::Acknowledged);
            contents.push(content);
        }
        let mut content = contents.pop().unwrap();
        prop_assert_eq!(model.scan(0, &content).intact.count, UNITS);
        prop_assert!(plant(&mut content, &contents[0], fault, usize::from(at)));
        let report = model.scan(0, &content);
        let classes = [report.corrupt, report.stale, report.torn, report.misplaced, report.foreign].map(|tally| tally.count);
        let mut expected = [0; 5];
        expected[usize::from(fault)] = 1;
        prop_assert_eq!((classes, report.intact.count, report.faults()), (expected, UNITS - 1, 1));
    }
}

#[test]
fn a_steady_state_keeps_its_room() {
    use crate::integrity::history::{Histories, Kind};
    let ledger = Ledger::create(Layout::new(1 << 20, 4096, 512).unwrap(), None).unwrap();
    let mut histories = Histories::new();
    let mut rounds = |requests: std::ops::Range<u64>| {
        for request in requests {
            let entry = ledger.entry(request % 8);
            histories.issue(request % 8, entry, request, if request % 5 == 0 { Kind::Trim } else { Kind::Write });
            if request >= 20 {
                let ended = request - 20;
                histories.end(ended % 8, ledger.entry(ended % 8), ended, Outcome::Acknowledged, ledger.counters());
            }
        }
        histories.room()
    };
    let first = rounds(0..1000);
    assert_eq!(rounds(1000..100_000), first);
}
