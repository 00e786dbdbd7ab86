use headstack_sim::power_cut::{Changed, Exposure, Fate, LostWrites, Medium, PowerLoss, Tear, Verdict};
use headstack_workload::{Purpose, Random, Span};
use proptest::prelude::*;

use super::undo::{Change, UndoLog};
use crate::Contents;

const SECTOR_BYTES: u64 = 512;
const SECTORS: u64 = 48;
/// Sectors per track.
const TRACK: u64 = 10;

fn span(first: u64, sectors: u64) -> Span {
    Span { start_bytes: first * SECTOR_BYTES, length_bytes: sectors * SECTOR_BYTES }
}

/// Sectors of a span.
fn sectors(span: Span) -> std::ops::Range<usize> {
    (span.start_bytes / SECTOR_BYTES) as usize..((span.start_bytes + span.length_bytes) / SECTOR_BYTES) as usize
}

/// A change, as recorded by a list that keeps everything.
#[derive(Clone, Debug)]
struct RecordedChange {
    span: Span,
    /// Stamp of its sectors; 0 for zeros.
    stamp: u16,
    number: u64,
    forced: bool,
    acknowledged_ns: Option<u64>,
    /// Whether it cannot be lost.
    durable: bool,
}

#[derive(Clone, Debug)]
enum Step {
    Write {
        first: u64,
        length: u64,
        zeros: bool,
        forced: bool,
    },
    /// Acknowledges the oldest, or another one that is under way.
    Acknowledge(usize),
    /// Submits a flush, or completes it.
    Flush,
    Flushed,
    /// Destages a sector from the cache.
    Destage(usize),
    /// Applies the outcomes of changes.
    Settle,
    Cut {
        tear: usize,
        late: Option<(u64, u64)>,
    },
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let at = (0..SECTORS, 1..16u64).prop_map(|(first, length)| (first, length.min(SECTORS - first)));
    let write = (at.clone(), any::<bool>(), 0..5u8).prop_map(|((first, length), zeros, forced)| Step::Write {
        first,
        length,
        zeros: zeros && length % 2 == 0,
        forced: forced == 0,
    });
    let step = prop_oneof![
        8 => write,
        6 => (0..8usize).prop_map(Step::Acknowledge),
        1 => Just(Step::Flush),
        1 => Just(Step::Flushed),
        4 => (0..SECTORS as usize).prop_map(Step::Destage),
        2 => Just(Step::Settle),
        1 => (0..3usize, prop::option::of(at)).prop_map(|(tear, late)| Step::Cut { tear, late }),
    ];
    prop::collection::vec(step, 1..120)
}

/// Compares the undo log and the exposure with a list of every change and the rule.
struct Bench {
    contents: Contents,
    log: UndoLog,
    exposure: Exposure,
    random: Random,
    made: Vec<RecordedChange>,
    stamps: u16,
    now_ns: u64,
    flushes_ns: Vec<u64>,
    /// Sectors that are only in the cache according to the model, which may be any.
    volatile: Vec<bool>,
}

impl Bench {
    fn new() -> Bench {
        Bench {
            contents: Contents::in_memory(SECTORS * SECTOR_BYTES).expect("memory"),
            log: UndoLog::default(),
            exposure: Exposure::default(),
            random: Random::new(7, Purpose::Faults),
            made: vec![RecordedChange {
                span: span(0, SECTORS),
                stamp: 0,
                number: 0,
                forced: true,
                acknowledged_ns: Some(0),
                durable: true,
            }],
            stamps: 0,
            now_ns: 0,
            flushes_ns: Vec::new(),
            volatile: vec![false; SECTORS as usize],
        }
    }

    fn change(&mut self, at: Span, zeros: bool) -> (u64, u16) {
        self.stamps += 1;
        let stamp = if zeros { 0 } else { self.stamps };
        let data = stamp.to_le_bytes().repeat(at.length_bytes as usize / 2);
        let change = if zeros { Change::Zero } else { Change::Data(&data) };
        (self.log.apply(&self.contents, at, change).expect("memory"), stamp)
    }

    fn step(&mut self, step: Step) {
        self.now_ns += 1;
        match step {
            Step::Write { first, length, zeros, forced } => {
                let at = span(first, length);
                let (number, stamp) = self.change(at, zeros);
                self.exposure.began(Changed { number, forced }, at);
                self.made.push(RecordedChange {
                    span: at,
                    stamp,
                    number,
                    forced,
                    acknowledged_ns: None,
                    durable: false,
                });
            }
            Step::Acknowledge(which) => {
                let mut under_way = self.made.iter_mut().filter(|made| made.acknowledged_ns.is_none());
                let Some(made) = under_way.nth(which) else { return };
                made.acknowledged_ns = Some(self.now_ns);
                made.durable = made.forced;
                self.volatile[sectors(made.span)].fill(!made.forced);
                let number = made.number;
                let volatile = self.volatile.clone();
                self.with_medium(&volatile, |exposure, medium, now_ns, _| {
                    exposure.acknowledged(number, now_ns, true, medium);
                });
            }
            Step::Flush => self.flushes_ns.push(self.now_ns),
            Step::Flushed => {
                let Some(submitted_ns) = self.flushes_ns.pop() else { return };
                self.exposure.flushed(submitted_ns);
                for made in &mut self.made {
                    made.durable |= made.acknowledged_ns.is_some_and(|at_ns| at_ns < submitted_ns);
                }
            }
            Step::Destage(sector) => self.volatile[sector] = false,
            Step::Settle => drop(self.settle()),
            Step::Cut { tear, late } => self.cut([Tear::Sector, Tear::Track, Tear::None][tear], late),
        }
    }

    fn with_medium<R>(
        &mut self,
        volatile: &[bool],
        work: impl FnOnce(&mut Exposure, &Medium<'_>, u64, &mut Random) -> R,
    ) -> R {
        let in_cache = |of: &[Span], into: &mut Vec<Span>| {
            let held = of.iter().flat_map(|&of| sectors(of)).filter(|&sector| volatile[sector]);
            into.extend(held.map(|sector| span(sector as u64, 1)));
        };
        let tear_bound = |at_bytes: u64| (at_bytes / (TRACK * SECTOR_BYTES) + 1) * TRACK * SECTOR_BYTES;
        let medium = Medium { volatile: &in_cache, tear_bound: &tear_bound, atom_bytes: SECTOR_BYTES };
        work(&mut self.exposure, &medium, self.now_ns, &mut self.random)
    }

    fn settle(&mut self) -> LostWrites {
        let mut verdicts = Vec::new();
        self.exposure.take_verdicts(&mut verdicts);
        self.log.settle(&self.contents, &verdicts).expect("memory")
    }

    fn stamp_of(&self, sector: usize) -> u16 {
        let mut data = [0; SECTOR_BYTES as usize];
        self.contents.read(sector as u64 * SECTOR_BYTES, &mut data).expect("memory");
        let stamp = u16::from_le_bytes([data[0], data[1]]);
        assert!(data.chunks(2).all(|half| half == stamp.to_le_bytes()), "sector {sector} is not whole");
        stamp
    }

    /// Changes of a sector, oldest first.
    fn of(&self, sector: usize) -> impl DoubleEndedIterator<Item = &RecordedChange> {
        self.made.iter().filter(move |made| sectors(made.span).contains(&sector))
    }

    fn cut(&mut self, tear: Tear, late: Option<(u64, u64)>) {
        for sector in 0..SECTORS as usize {
            let newest = self.of(sector).next_back().expect("the first");
            assert_eq!(self.stamp_of(sector), newest.stamp, "before the cut, sector {sector}");
        }
        let volatile = self.volatile.clone();
        let loss =
            self.with_medium(&volatile, |exposure, medium, now_ns, random| exposure.cut(now_ns, tear, medium, random));
        if let Some((first, length)) = late {
            // Received before the cut was known: some of it before the contents are restored, some after.
            let (number, _) = self.change(span(first, length), false);
            self.exposure.refused(Changed { number, forced: true }, span(first, length));
        }
        let lost = self.settle();
        assert!(self.log.is_empty(), "what is decided needs no pre-image");
        assert_eq!(self.log.memory_bytes(), 0);
        self.judge_lost(&lost);
        self.judge(tear, &loss);
        self.volatile.fill(false);
        self.flushes_ns.clear();
    }

    /// Checks that the listed losses are exactly those found by comparing each sector with the data acknowledged last,
    /// or sent after that.
    fn judge_lost(&self, lost: &LostWrites) {
        for sector in 0..SECTORS as usize {
            let stamp = self.stamp_of(sector);
            let changes: Vec<&RecordedChange> = self.of(sector).collect();
            let newest = changes.iter().rposition(|made| made.acknowledged_ns.is_some()).expect("the first");
            let is_there = changes[newest..].iter().any(|made| made.stamp == stamp);
            let is_listed = lost.spans.iter().any(|span| sectors(*span).contains(&sector));
            assert_eq!(is_listed, !is_there, "sector {sector}: {stamp} of {changes:?}");
        }
        assert_eq!(lost.writes == 0, lost.spans.is_empty());
    }

    /// Checks the rule: no sector is older than its durable data, and if nothing was under way or volatile, it is the
    /// newest.
    fn judge(&mut self, tear: Tear, loss: &PowerLoss) {
        let mut left = Vec::new();
        for sector in 0..SECTORS as usize {
            let stamp = self.stamp_of(sector);
            let changes: Vec<&RecordedChange> = self.of(sector).collect();
            let floor = changes.iter().rposition(|made| made.durable).expect("the first");
            let found = changes.iter().rposition(|made| made.stamp == stamp).expect("something that was written");
            assert!(found >= floor, "sector {sector}: {stamp} is older than {:?}", changes[floor]);
            let calm = changes[floor..].iter().all(|made| made.acknowledged_ns.is_some());
            if calm && !self.volatile[sector] {
                assert_eq!(stamp, changes.last().expect("the first").stamp, "sector {sector} was not volatile");
            }
            let whole = span(sector as u64, 1);
            let acknowledged_ns = Some(0);
            left.push(RecordedChange { span: whole, stamp, durable: true, acknowledged_ns, ..changes[found].clone() });
        }
        for torn in &loss.torn {
            assert!(torn.at_bytes < torn.torn_at_bytes && torn.torn_at_bytes < torn.at_bytes + torn.length_bytes);
            let unit = if tear == Tear::Track { TRACK * SECTOR_BYTES } else { SECTOR_BYTES };
            assert_eq!(torn.torn_at_bytes % unit, 0, "{tear:?}");
        }
        assert!(tear != Tear::None || loss.torn.is_empty());
        let under_way = self.made.iter().filter(|made| made.acknowledged_ns.is_none()).count() as u64;
        let torn = loss.torn.iter().filter(|torn| !torn.acknowledged).count() as u64;
        assert_eq!((loss.under_way, loss.absent + loss.whole + torn), (under_way, under_way));
        self.made = left;
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]
    #[test]
    fn every_state_after_a_cut_is_one_that_the_rule_allows(steps in steps()) {
        let mut bench = Bench::new();
        steps.into_iter().for_each(|step| bench.step(step));
        bench.step(Step::Cut { tear: 0, late: None });
    }
}

#[test]
fn holes_are_holes_again() {
    let contents = Contents::in_memory(1 << 20).expect("memory");
    contents.write(8192, &[7; 4096]).expect("memory");
    let before = contents.extents(0, 1 << 20, 16).expect("memory");
    let mut log = UndoLog::default();
    let over = Span { start_bytes: 4096, length_bytes: 16384 };
    let first = log.apply(&contents, over, Change::Data(&[1; 16384])).expect("memory");
    let second = log.apply(&contents, Span { start_bytes: 0, length_bytes: 1 << 20 }, Change::Zero).expect("memory");
    let third = log.apply(&contents, over, Change::Fill).expect("memory");
    // In any order.
    let whole = Span { start_bytes: 0, length_bytes: 1 << 20 };
    for (number, span) in [(first, over), (third, over), (second, whole)] {
        let gone = Verdict { number, span, fate: Fate::Lost { acknowledged: true } };
        log.settle(&contents, &[gone]).expect("memory");
    }
    assert!(log.is_empty());
    assert_eq!(contents.extents(0, 1 << 20, 16).expect("memory"), before);
    let mut data = [0; 4096];
    contents.read(8192, &mut data).expect("memory");
    assert_eq!(data, [7; 4096]);
}

#[test]
fn what_is_exposed_stays_bounded() {
    let mut exposure = Exposure::default();
    let everything = |of: &[Span], into: &mut Vec<Span>| into.extend_from_slice(of);
    let tear_bound = |at_bytes: u64| at_bytes + 1;
    let medium = Medium { volatile: &everything, tear_bound: &tear_bound, atom_bytes: 512 };
    for number in 0..1000 {
        let span = Span { start_bytes: number << 20, length_bytes: 1 << 20 };
        exposure.began(Changed { number, forced: false }, span);
        exposure.acknowledged(number, number, true, &medium);
        assert!(exposure.len() <= 257);
    }
    let mut verdicts = Vec::new();
    exposure.take_verdicts(&mut verdicts);
    assert!(exposure.len() >= 192, "no more is given up than must be");
    assert!(verdicts.iter().all(|verdict| verdict.fate == Fate::Durable));
    // The oldest were dropped, in order.
    let numbers: Vec<u64> = verdicts.iter().map(|verdict| verdict.number).collect();
    assert_eq!(numbers, (0..numbers.len() as u64).collect::<Vec<_>>());
}

#[test]
fn what_the_model_destaged_is_dropped_without_a_flush() {
    let mut exposure = Exposure::default();
    let nothing = |_: &[Span], _: &mut Vec<Span>| {};
    let tear_bound = |at_bytes: u64| at_bytes + 1;
    let medium = Medium { volatile: &nothing, tear_bound: &tear_bound, atom_bytes: 512 };
    for number in 0..100_000 {
        exposure.began(Changed { number, forced: false }, Span { start_bytes: 0, length_bytes: 512 });
        exposure.acknowledged(number, number, true, &medium);
        assert!(exposure.len() < 64);
    }
}

/// Blocks that a file occupies on its disk.
fn taken_bytes(path: &std::path::Path) -> u64 {
    std::os::unix::fs::MetadataExt::blocks(&std::fs::metadata(path).expect("a file")) * 512
}

#[test]
fn trimmed_ranges_stay_in_the_undo_log_until_settled() {
    const MIB: u64 = 1 << 20;
    let path = std::env::temp_dir().join(format!("headstack-undo-{}", std::process::id()));
    let contents = Contents::in_file(&path, 16 * MIB).expect("a file");
    contents.write(0, &vec![7; 4 * MIB as usize]).expect("a file");
    contents.sync().expect("a file");
    let before = taken_bytes(&path);
    let mut log = UndoLog::default();
    let span = Span { start_bytes: 0, length_bytes: 4 * MIB };
    let verdict = |number, fate| Verdict { number, span, fate };
    let is = |wanted: u8| {
        let mut data = vec![1; 4 * MIB as usize];
        contents.read(0, &mut data).expect("a file");
        data.iter().all(|&byte| byte == wanted)
    };
    // Trimmed, and lost in a cut: the previous data return.
    let trim = log.apply(&contents, span, Change::Zero).expect("a file");
    contents.sync().expect("a file");
    assert!(is(0) && taken_bytes(&path) >= before, "{} B are left of {before}", taken_bytes(&path));
    let lost = log.settle(&contents, &[verdict(trim, Fate::Lost { acknowledged: true })]).expect("a file");
    assert!(is(7) && lost == LostWrites { writes: 1, spans: vec![span] });
    // Trimmed, and durable: the space is freed. Previous holes take no space.
    let trim = log.apply(&contents, Span { length_bytes: 16 * MIB, ..span }, Change::Zero).expect("a file");
    log.settle(&contents, &[Verdict { span: Span { length_bytes: 16 * MIB, ..span }, ..verdict(trim, Fate::Durable) }])
        .expect("a file");
    contents.sync().expect("a file");
    assert!(is(0) && log.is_empty() && contents.is_hole(0, 16 * MIB));
    assert!(taken_bytes(&path) < MIB, "{} B are taken by nothing", taken_bytes(&path));
    std::fs::remove_file(&path).expect("it is there");
}

#[test]
fn zeros_that_take_their_place_have_it_again() {
    let contents = Contents::in_memory(1 << 20).expect("memory");
    let span = Span { start_bytes: 0, length_bytes: 65536 };
    contents.fill(0, 65536).expect("memory");
    let mut log = UndoLog::default();
    let number = log.apply(&contents, span, Change::Data(&[3; 65536])).expect("memory");
    let gone = Verdict { number, span, fate: Fate::Lost { acknowledged: false } };
    assert_eq!(log.settle(&contents, &[gone]).expect("memory"), LostWrites::default());
    assert!(!contents.is_hole(0, 4096), "their place is somebody else's");
}

/// Processor time of this thread, which a busy machine affects less than wall-clock time.
fn thread_cpu_ns() -> i64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    now.tv_sec * 1_000_000_000 + now.tv_nsec
}

#[test]
fn zeros_cost_no_more_than_data_by_much() {
    const BYTES: usize = 4 << 20;
    let soonest = |byte: u8| {
        let contents = Contents::in_memory(BYTES as u64).expect("memory");
        contents.write(0, &vec![byte; BYTES]).expect("memory");
        let again = || {
            let (mut log, begun_ns) = (UndoLog::default(), thread_cpu_ns());
            let span = Span { start_bytes: 0, length_bytes: BYTES as u64 };
            log.apply(&contents, span, Change::Data(&vec![byte; BYTES])).expect("memory");
            thread_cpu_ns() - begun_ns
        };
        (0..5).map(|_| again()).min().expect("five times")
    };
    // A page of zeros costs a query for holes: eight times as much as data in an unoptimised build. Scanning all the
    // zeros behind it each time would cost hundreds of times as much.
    let (zeros_ns, data_ns) = (soonest(0), soonest(1));
    assert!(zeros_ns < 50 * data_ns, "{zeros_ns} ns against {data_ns} ns");
}

#[test]
fn what_is_written_again_as_it_was_is_not_lost() {
    let contents = Contents::in_memory(1 << 20).expect("memory");
    let span = Span { start_bytes: 0, length_bytes: 4096 };
    contents.write(0, &[5; 4096]).expect("memory");
    let mut log = UndoLog::default();
    let same = log.apply(&contents, span, Change::Data(&[5; 4096])).expect("memory");
    let mut half = [5; 4096];
    half[512..1024].fill(6);
    let other = log.apply(&contents, span, Change::Data(&half)).expect("memory");
    let gone = |number| Verdict { number, span, fate: Fate::Lost { acknowledged: true } };
    let lost = log.settle(&contents, &[gone(other), gone(same)]).expect("memory");
    assert_eq!(lost, LostWrites { writes: 1, spans: vec![Span { start_bytes: 512, length_bytes: 512 }] });
}

#[test]
fn what_is_kept_of_overlapping_writes_is_counted_as_it_is() {
    let contents = Contents::in_memory(8 << 20).expect("memory");
    contents.write(0, &vec![1; 8 << 20]).expect("memory");
    let mut log = UndoLog::default();
    let mut numbers = Vec::new();
    for number in 0..32u64 {
        let span = Span { start_bytes: number * 100 * 512, length_bytes: 4 << 20 };
        let data = vec![number as u8; 4 << 20];
        let before = log.memory_bytes();
        numbers.push((log.apply(&contents, span, Change::Data(&data)).expect("memory"), span));
        let grown = log.memory_bytes() - before;
        assert!(grown < (4 << 20) + (1 << 16), "{grown} B for 4 MiB");
    }
    let verdicts: Vec<_> =
        numbers.into_iter().map(|(number, span)| Verdict { number, span, fate: Fate::Durable }).collect();
    log.settle(&contents, &verdicts).expect("memory");
    assert_eq!(log.memory_bytes(), 0);
}
