//! The states that the explorer tries are those that the rules allow: held against a search through all subsets that knows nothing
//! of windows, extents or hashes.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use headstack_crash::journal::JournalWriter;
use headstack_crash::states::{CrashState, From, Rules, Search, SearchOptions, Tear};
use headstack_crash::{
    AccessMethod, Base, Device, Ending, Event, Fate, Image, Overlay, Recording, Reproduced, Start, Stored, dmlog,
    reproduced, write_journal, write_reproducer,
};
use proptest::prelude::*;

use crate::support::Folder;

const BLOCK: u64 = 512;
const BLOCKS: u64 = 6;

/// A step of a client that has several requests under way.
#[derive(Clone, Debug)]
enum Step {
    Write {
        at: u64,
        blocks: u64,
        forced: bool,
    },
    Trim {
        at: u64,
        blocks: u64,
    },
    Flush,
    /// The oldest request, or one behind it, is answered; it may fail.
    Answer {
        which: usize,
        fails: bool,
    },
    Mark,
    Cut,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let place = || (0..BLOCKS, 1..3_u64).prop_map(|(at, blocks)| (at, blocks.min(BLOCKS - at)));
    let step = prop_oneof![
        5 => (place(), proptest::bool::weighted(0.2)).prop_map(|((at, blocks), forced)| Step::Write { at, blocks, forced }),
        1 => place().prop_map(|(at, blocks)| Step::Trim { at, blocks }),
        2 => Just(Step::Flush),
        6 => (0..3_usize, proptest::bool::weighted(0.2)).prop_map(|(which, fails)| Step::Answer { which, fails }),
        1 => Just(Step::Mark),
        1 => proptest::bool::weighted(0.3).prop_map(|cuts| if cuts { Step::Cut } else { Step::Mark }),
    ];
    proptest::collection::vec(step, 1..18)
}

fn journal(path: &Path, steps: &[Step], has_volatile_cache: bool, atomic_bytes: u32) {
    let device = Device {
        capacity_bytes: BLOCKS * BLOCK,
        block_bytes: BLOCK as u32,
        atomic_bytes,
        has_volatile_cache,
        start: Start::Zeros,
    };
    let journal = JournalWriter::create(path, &device).unwrap();
    let mut under_way = Vec::new();
    for (step, at_ns) in steps.iter().zip(0..) {
        match *step {
            Step::Write { at, blocks, forced } => {
                // Few values, so that states coincide.
                let data = vec![(at_ns % 3) as u8 + 1; (blocks * BLOCK) as usize];
                under_way.push(journal.write(at_ns, at * BLOCK, &data, forced).unwrap());
            }
            Step::Trim { at, blocks } => {
                under_way.push(journal.trim(at_ns, at * BLOCK, blocks * BLOCK, false).unwrap());
            }
            Step::Flush => under_way.push(journal.flush(at_ns).unwrap()),
            Step::Answer { which, fails } if !under_way.is_empty() => {
                let number = under_way.remove(which % under_way.len());
                let fate = if fails { Fate::Failed(5) } else { Fate::Acknowledged };
                journal.answered(at_ns, number, fate).unwrap();
            }
            Step::Answer { .. } => {}
            Step::Mark => journal.mark(at_ns, &format!("mark {at_ns}")).unwrap(),
            Step::Cut => {
                journal.power_off(at_ns).unwrap();
                journal.zeros(at_ns, 0, BLOCK, false).unwrap();
                journal.power_on(at_ns).unwrap();
            }
        }
    }
    journal.finish().unwrap();
}

type Contents = Vec<u8>;

/// What may be there after a crash behind each event: marks that were made, and contents. Every sector has the newest of its
/// versions that is there; versions are durable by the rules, or chosen.
fn by_the_rules(recording: &Recording, rules: &Rules) -> BTreeSet<(usize, Contents)> {
    let mut found = BTreeSet::new();
    let mut is_off = false;
    for end in 0..=recording.events.len() {
        let events = &recording.events[..end];
        match events.last() {
            Some(Event::PowerOff) => is_off = true,
            Some(Event::PowerOn) => is_off = false,
            _ => {}
        }
        if is_off {
            continue;
        }
        let marks = events.iter().filter(|event| matches!(event, Event::Mark(_))).count();
        let place = |wanted: Event| events.iter().position(|event| *event == wanted);
        let mut pieces: Vec<(u32, Vec<u64>, Vec<Vec<bool>>)> = Vec::new();
        let mut durable: BTreeMap<u32, bool> = BTreeMap::new();
        for number in 0..recording.changes.len() as u32 {
            let change = &recording.changes[number as usize];
            let Some(sent) = place(Event::Change(number)) else { continue };
            let answered = place(Event::Changed(number, Fate::Acknowledged));
            let failed = place(Event::Changed(number, Fate::Failed(5))).is_some();
            let is_now = change.is_forced || !recording.device.has_volatile_cache;
            let flushed = (0..recording.flushes).any(|flush| {
                let asked = place(Event::Flush(flush));
                let done = place(Event::Flushed(flush, Fate::Acknowledged));
                done.is_some() && answered.is_some_and(|at| at < asked.unwrap())
            });
            let survived = events[sent..].contains(&Event::PowerOn);
            durable.insert(number, flushed || survived || (is_now && answered.is_some()));
            let blocks: Vec<u64> =
                (change.offset_bytes / BLOCK..(change.offset_bytes + change.length_bytes) / BLOCK).collect();
            let count = blocks.len();
            let whole = vec![vec![false; count], vec![true; count]];
            let any: Vec<Vec<bool>> =
                (0..1 << count).map(|set: u32| (0..count).map(|b| set >> b & 1 == 1).collect()).collect();
            let prefixes = (0..=count).map(|end| (0..count).map(|b| b < end).collect()).collect();
            let is_atomic = match u64::from(recording.device.atomic_bytes) {
                0 => false,
                unit => blocks[0] * BLOCK / unit == blocks[count - 1] * BLOCK / unit,
            };
            let ways = match rules.tear {
                _ if durable[&number] => vec![vec![true; count]],
                _ if failed => any,
                _ if is_atomic && change.stored != Stored::Trim => whole,
                Tear::None => whole,
                Tear::Prefix => prefixes,
                Tear::Any => any,
            };
            pieces.push((number, blocks, ways));
        }
        // Where the device keeps order, nothing of a region is there behind what is not.
        let mut all = vec![(vec![0; (BLOCKS * BLOCK) as usize], BTreeSet::new())];
        let mut durable_above = vec![None; BLOCKS as usize];
        for (number, blocks, _) in &pieces {
            if durable[number] {
                blocks.iter().for_each(|&block| durable_above[block as usize] = Some(*number));
            }
        }
        for (number, blocks, ways) in &pieces {
            let mut next = BTreeSet::new();
            let region = rules.regions.iter().filter(|&&from| from <= blocks[0] * BLOCK).count();
            for (contents, over) in &all {
                for way in ways {
                    let (mut contents, mut over) = (contents.clone(), over.clone());
                    if over.contains(&region) && !durable[number] && way.contains(&true) {
                        continue;
                    }
                    if !rules.regions.is_empty() && way.contains(&false) {
                        over.insert(region);
                    }
                    for (place, &block) in blocks.iter().enumerate() {
                        let is_beneath = durable_above[block as usize].is_some_and(|above| above > *number);
                        if way[place] && !is_beneath {
                            let mut data = [0; BLOCK as usize];
                            recording.read(*number, place as u64 * BLOCK, &mut data).unwrap();
                            contents[(block * BLOCK) as usize..((block + 1) * BLOCK) as usize].copy_from_slice(&data);
                        }
                    }
                    next.insert((contents, over));
                }
            }
            all = next.into_iter().collect();
        }
        found.extend(all.into_iter().map(|(contents, _)| (marks, contents)));
    }
    found
}

/// What the explorer tries, as an image shows it, and whether that is all of each window.
fn explored(folder: &Folder, recording: &Arc<Recording>, rules: Rules) -> (BTreeSet<(usize, Contents)>, bool) {
    let asked = SearchOptions { rules: rules.clone(), from: From::Beginning, seed: 1 };
    let mut search = Search::new(Arc::clone(recording), &Base::zeros(), asked).unwrap();
    let mut image = Image::create(folder.as_ref(), Arc::clone(recording), &Base::zeros(), &rules).unwrap();
    let mut found = BTreeSet::new();
    while let Some(state) = search.next_state().unwrap() {
        image.take(&state).unwrap();
        let marks = recording.events[..state.events].iter().filter(|event| matches!(event, Event::Mark(_))).count();
        assert!(found.insert((marks, std::fs::read(image.path()).unwrap())), "no state comes twice");
    }
    let coverage = search.coverage();
    assert_eq!(coverage.states, found.len() as u64);
    assert!(coverage.subsets as f64 <= coverage.possible);
    let is_whole = coverage.whole_windows == coverage.windows;
    assert!(!is_whole || coverage.subsets as f64 == coverage.possible, "{coverage:?}");
    (found, is_whole)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1024))]

    #[test]
    fn the_search_visits_exactly_the_allowed_states(
        steps in steps(),
        has_volatile_cache in proptest::bool::weighted(0.8),
        tear in prop_oneof![Just(Tear::None), Just(Tear::Prefix), Just(Tear::Any)],
        atomic_bytes in prop_oneof![Just(0), Just(1024)],
        regions in prop_oneof![2 => Just(vec![]), 1 => Just(vec![0]), 1 => Just(vec![0, 3 * BLOCK])],
    ) {
        let folder = Folder::new();
        journal(&folder.file("journal"), &steps, has_volatile_cache, atomic_bytes);
        let recording = Arc::new(Recording::open(&folder.file("journal")).unwrap());
        let rules = Rules { tear, atom_bytes: 0, regions };
        let wanted = by_the_rules(&recording, &rules);
        let (found, is_whole) = explored(&folder, &recording, rules);
        prop_assert!(found.is_subset(&wanted), "a state that no crash leaves");
        // Where more is open, states are drawn.
        prop_assert!(!is_whole || found.len() == wanted.len(), "a state is missing");
        prop_assert!(is_whole || steps.len() > 8);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn a_log_of_the_kernel_holds_no_state_that_the_journal_does_not(steps in steps()) {
        // What fails is no part of such a log, nor are power failures, and then more may be there.
        let is_told = |step: &Step| !matches!(step, Step::Answer { fails: true, .. } | Step::Cut);
        let steps: Vec<Step> = steps.into_iter().filter(is_told).collect();
        let folder = Folder::new();
        journal(&folder.file("journal"), &steps, true, 0);
        let recording = Arc::new(Recording::open(&folder.file("journal")).unwrap());
        prop_assert_eq!(dmlog::write(&recording, &folder.file("log")).unwrap(), 0);
        let mut logged = Recording::open(&folder.file("log")).unwrap();
        prop_assert_eq!(logged.ending, Ending::Whole);
        prop_assert_eq!(&logged.marks, &recording.marks);
        logged.device.capacity_bytes = BLOCKS * BLOCK;
        prop_assert_eq!(last(&folder, &recording), last(&folder, &Arc::new(logged)), "all of it is the same");
        let mut logged = Recording::open(&folder.file("log")).unwrap();
        logged.device.capacity_bytes = BLOCKS * BLOCK;
        let logged = Arc::new(logged);
        let (found, _) = explored(&folder, &logged, Rules::default());
        prop_assert!(found.is_subset(&by_the_rules(&recording, &Rules::default())));
        // And a journal of it is the same again.
        write_journal(&logged, &folder.file("again")).unwrap();
        let again = Recording::open(&folder.file("again")).unwrap();
        prop_assert_eq!(&again.events, &logged.events);
        prop_assert_eq!(again.changes.len(), logged.changes.len());
    }

    #[test]
    fn a_reproducer_has_its_state_without_the_recording(steps in steps(), tears in any::<bool>()) {
        let folder = Folder::new();
        journal(&folder.file("journal"), &steps, true, 0);
        let recording = Arc::new(Recording::open(&folder.file("journal")).unwrap());
        let rules = Rules { tear: if tears { Tear::Any } else { Tear::None }, ..Rules::default() };
        let asked = SearchOptions { rules: rules.clone(), from: From::Beginning, seed: 3 };
        let mut search = Search::new(Arc::clone(&recording), &Base::zeros(), asked).unwrap();
        let mut image = Image::create(folder.as_ref(), Arc::clone(&recording), &Base::zeros(), &rules).unwrap();
        let mut number = 0;
        while let Some(state) = search.next_state().unwrap() {
            number += 1;
            if number % 7 != 1 {
                continue;
            }
            let marks = recording.events[..state.events].iter().filter(|event| matches!(event, Event::Mark(_))).count();
            let (check, message) = ("./check.sh".to_owned(), "broken".to_owned());
            let found = Reproduced { state: state.clone(), rules: rules.clone(), check, over: AccessMethod::Nbd, message };
            write_reproducer(&mut image, &found, &folder.file("repro")).unwrap();
            image.take(&state).unwrap();
            let alone = Arc::new(Recording::open(&folder.file("repro")).unwrap());
            let read = reproduced(&alone).unwrap().unwrap();
            prop_assert_eq!((&read.check, read.over, &read.message), (&found.check, found.over, &found.message));
            std::fs::create_dir_all(folder.file("alone")).unwrap();
            let mut again = Image::create(&folder.file("alone"), Arc::clone(&alone), &Base::zeros(), &read.rules).unwrap();
            again.take(&read.state).unwrap();
            prop_assert!(std::fs::read(again.path()).unwrap() == std::fs::read(image.path()).unwrap());
            prop_assert_eq!(&alone.marks[..alone.marks.len() - 1], &recording.marks[..marks]);
            let last = alone.events.len() - 1;
            prop_assert_eq!(read.state.events, last);
        }
    }
}

/// What is there when all of it is.
fn last(folder: &Folder, recording: &Arc<Recording>) -> Contents {
    let state = CrashState { events: recording.events.len(), ..CrashState::default() };
    let mut image = Image::create(folder.as_ref(), Arc::clone(recording), &Base::zeros(), &Rules::default()).unwrap();
    image.take(&state).unwrap();
    std::fs::read(image.path()).unwrap()
}

#[test]
fn a_state_does_not_depend_on_the_previous_state() {
    let folder = Folder::new();
    let steps: Vec<Step> = (0..40)
        .map(|step| match step % 8 {
            7 => Step::Flush,
            3 | 5 => Step::Answer { which: 0, fails: false },
            _ => Step::Write { at: step % BLOCKS, blocks: 1, forced: false },
        })
        .collect();
    journal(&folder.file("journal"), &steps, true, 0);
    let recording = Arc::new(Recording::open(&folder.file("journal")).unwrap());
    let base = Base::open(&folder.with("base", &[9; 2048])).unwrap();
    let (rules, asked) = (Rules::default(), SearchOptions { from: From::Beginning, ..SearchOptions::default() });
    let mut search = Search::new(Arc::clone(&recording), &base, asked).unwrap();
    let mut states: Vec<CrashState> = std::iter::from_fn(|| search.next_state().unwrap()).take(60).collect();
    states.reverse();
    let mut image = Image::create(folder.as_ref(), Arc::clone(&recording), &base, &rules).unwrap();
    std::fs::create_dir(folder.file("fresh")).unwrap();
    let mut overlay = Overlay::new(Arc::clone(&recording), &base, &rules).unwrap();
    for (number, state) in states.iter().enumerate() {
        image.take(state).unwrap();
        overlay.take(state).unwrap();
        // A check that grows, cuts and writes its image leaves no trace.
        if number % 2 == 0 {
            std::fs::write(image.path(), vec![number as u8; 100 * number]).unwrap();
            assert!(image.restore().unwrap());
        }
        assert!(!image.restore().unwrap());
        let mut fresh = Image::create(&folder.file("fresh"), Arc::clone(&recording), &base, &rules).unwrap();
        fresh.take(state).unwrap();
        let held = std::fs::read(fresh.path()).unwrap();
        assert_eq!(std::fs::read(image.path()).unwrap(), held);
        is_there(&mut overlay, held, number);
    }
    assert!(states.len() > 30);
}

/// What an overlay holds is what a file of the same state does; what is written to it is there, for as long as it should be.
fn is_there(overlay: &mut Overlay, held: Contents, number: usize) {
    let read = |overlay: &Overlay, from: usize, to: usize| {
        let mut data = vec![0xEE; to - from];
        overlay.read(from as u64, &mut data).unwrap();
        data
    };
    assert_eq!(read(overlay, 0, held.len()), held);
    let mut written = held.clone();
    for turn in 0..number % 5 {
        // Whatever the size of a block.
        let (at, length) = ((number * 131 + turn * 577) % (held.len() - 600), 1 + (number * 37 + turn * 211) % 600);
        let value = (turn % 2) as u8 * 0xAA;
        written[at..at + length].fill(value);
        match turn % 2 {
            0 => overlay.zero(at as u64, length as u64).unwrap(),
            _ => overlay.write(at as u64, &vec![value; length]).unwrap(),
        }
        assert_eq!(read(overlay, at / 2, held.len()), written[at / 2..]);
        let runs = overlay.runs((0, held.len() as u64)).unwrap();
        assert!(runs.windows(2).all(|pair| pair[0].0.1 == pair[1].0.0 && pair[0].1 != pair[1].1), "{runs:?}");
        assert_eq!((runs[0].0.0, runs[runs.len() - 1].0.1), (0, held.len() as u64));
        let is_zeros =
            |&((from, to), _): &((u64, u64), bool)| written[from as usize..to as usize].iter().all(|&b| b == 0);
        assert!(runs.iter().filter(|run| run.1).all(is_zeros), "{runs:?}");
    }
    assert_eq!(overlay.restore().unwrap(), !number.is_multiple_of(5));
    assert_eq!(read(overlay, 0, held.len()), held);
}

/// A file system without barriers flushes once, at its end: JSON would have nothing where there are too many subsets to count.
#[test]
fn too_many_subsets_to_count_are_a_number_all_the_same() {
    let folder = Folder::new();
    let path = folder.file("journal");
    journal(&path, &vec![Step::Write { at: 0, blocks: 1, forced: false }; 1100], true, 0);
    let recording = Arc::new(Recording::open(&path).unwrap());
    for regions in [vec![], vec![BLOCK]] {
        let rules = Rules { regions, ..Rules::default() };
        let asked = SearchOptions { rules, from: From::Beginning, seed: 1 };
        let search = Search::new(Arc::clone(&recording), &Base::zeros(), asked).unwrap();
        assert!(search.coverage().possible.is_finite());
        assert!(search.moments().iter().all(|moment| moment.possible.is_finite()));
    }
}
