//! The journal of a session: replayed as a whole it is what the device holds, whatever went wrong, and equal sessions have
//! equal ones.

use std::path::PathBuf;

use crate::common::*;
use crate::damage::{Bench, block};
use headstack_crash::{Ending, Event, Recording};
use headstack_live::journal::JournalPlan;
use headstack_live::nbd::wire::command;
use headstack_sim::{Constant, Model};

const BLOCK: u64 = 4096;
const USED_BYTES: u64 = 8 << 20;

fn plan(name: &str) -> JournalPlan {
    let path = std::env::temp_dir().join(format!("headstack-journal-{name}-{}", std::process::id()));
    JournalPlan { path, image: None }
}

fn small() -> Model {
    Model::Constant(Constant { latency_ns: 20_000, capacity_bytes: 16 << 20 })
}

/// Requests of every kind, the same each time.
fn work(bench: &mut Bench, requests: u64) {
    for number in 0..requests {
        let place = number.wrapping_mul(0x9E37_79B9_7F4A_7C15) % (USED_BYTES / BLOCK) * BLOCK;
        let _ = match number % 16 {
            3 => bench.try_to((command::FLUSH, 0), 0, &mut []),
            7 => bench.try_to((command::TRIM, 0), place, &mut [0; 4096]),
            9 => bench.try_to((command::WRITE_ZEROES, 0), place, &mut [0; 4096]),
            11 => bench.try_to((command::WRITE, command::FLAG_FUA), place, &mut block(number)),
            12 => bench.try_to((command::READ, 0), place, &mut [0; 4096]),
            _ => bench.try_to((command::WRITE, 0), place, &mut block(number)),
        };
    }
}

/// Ends the session, and returns what is in the first bytes of the device and what the journal says.
fn end(bench: Bench, path: &PathBuf) -> (Vec<u8>, Recording) {
    let device = std::sync::Arc::clone(&bench.device);
    drop(bench);
    device.submitter.gate().finish_journal().unwrap();
    let mut stored = vec![0; 2 * USED_BYTES as usize];
    device.contents.read(0, &mut stored).unwrap();
    let recording = Recording::open(path).unwrap();
    std::fs::remove_file(path).unwrap();
    (stored, recording)
}

/// The contents after all changes of a journal.
fn replayed(recording: &Recording) -> Vec<u8> {
    let mut contents = vec![0; 2 * USED_BYTES as usize];
    for (number, change) in recording.changes.iter().enumerate() {
        let place = change.offset_bytes as usize..(change.offset_bytes + change.length_bytes) as usize;
        recording.read(number as u32, 0, &mut contents[place]).unwrap();
    }
    contents
}

#[test]
fn a_full_journal_replay_equals_the_device() {
    let wrong = "seed = 5\n\
                 [[fault]]\nwhat = \"lose-write\"\nevery = 11\n\
                 [[fault]]\nat = \"0s\"\nwhat = \"corrupt\"\non = \"write\"\nhow = \"bit-flip\"\npercent = 10.0\n\
                 [[fault]]\nwhat = \"misdirect\"\ndistance = \"4MiB\"\nevery = 13\n\
                 [[fault]]\nwhat = \"shorn-write\"\npart = \"3/8\"\nevery = 17\n\
                 [[fault]]\nwhat = \"errno\"\nkinds = [\"write\", \"trim\"]\nevery = 19\n\
                 [[fault]]\nwhat = \"errno\"\nkinds = [\"flush\"]\nunflushed = \"drop\"\nevery = 3\n\
                 [[fault]]\nwhat = \"power-cut\"\nevery = { write = 150 }\nfor = \"1ms\"\n";
    for (name, model, faults) in [
        ("plain", small(), ""),
        ("wrong", small(), wrong),
        ("cut", model("wd1200bb"), wrong),
        ("cut-array", model("md-raid5-8x2tb"), wrong),
    ] {
        let plan = plan(name);
        let mut bench = Bench::journaled(name, &model, faults, Some(plan.clone()));
        work(&mut bench, 800);
        let (stored, recording) = end(bench, &plan.path);
        assert!(matches!(recording.ending, Ending::Whole), "{name}: {:?}", recording.ending);
        assert!(recording.changes.len() > 600 && recording.flushes > 30, "{name}");
        let again = replayed(&recording);
        let differs = again.iter().zip(&stored).position(|(is, should)| is != should);
        assert_eq!(differs, None, "{name}");
        let cuts = recording.events.iter().filter(|event| matches!(event, Event::PowerOff)).count();
        assert_eq!(cuts > 0, !faults.is_empty(), "{name}");
    }
}

#[test]
fn equal_sessions_have_equal_journals_but_for_the_times() {
    let faults = "seed = 5\n[[fault]]\nat = \"0s\"\nwhat = \"corrupt\"\non = \"write\"\nhow = \"bit-flip\"\npercent = 20.0\n\
                  [[fault]]\nwhat = \"errno\"\nevery = 10\n[[fault]]\nwhat = \"lose-write\"\nevery = 7\n";
    let once = |name: &str| {
        let plan = plan(name);
        let mut bench = Bench::journaled(name, &small(), faults, Some(plan.clone()));
        work(&mut bench, 300);
        bench.parts.as_ref().unwrap().0.commander().mark("the end").unwrap();
        let (stored, recording) = end(bench, &plan.path);
        // The file is open as long as it is.
        (stored, recording.digest().unwrap(), recording)
    };
    let (first, second) = (once("one"), once("two"));
    assert!(first.0 == second.0);
    assert_eq!(first.1, second.1);
    assert_ne!(first.2.times_ns, second.2.times_ns, "the clock is the wall's");
    assert!(format!("{:?}", first.2.events).contains("Failed"), "errors have their fates");
}

#[test]
fn a_mark_is_in_the_file_when_it_is_answered_behind_all_that_was_acknowledged() {
    let plan = plan("mark");
    let mut bench = Bench::journaled("mark", &small(), "", Some(plan.clone()));
    let commander = bench.parts.as_ref().unwrap().0.commander();
    for number in 0..50 {
        assert_eq!(bench.try_to((command::WRITE, 0), number * BLOCK, &mut block(number)), Some(0));
        commander.mark(&format!("committed {number}")).unwrap();
        let so_far = Recording::open(&plan.path).unwrap();
        assert_eq!((so_far.changes.len() as u64, so_far.marks.len() as u64), (number + 1, number + 1));
        let [.., before, mark] = &so_far.events[..] else { panic!("{:?}", so_far.events) };
        assert!(matches!(mark, Event::Mark(_)), "{mark:?}");
        let text = format!("{before:?}");
        assert!(text.contains("Acknowledged"), "{text}");
    }
    let refused = commander.mark("two\nlines").unwrap_err().to_string();
    assert!(refused.starts_with("mark: "), "{refused}");
    end(bench, &plan.path);
    let without = Bench::journaled("no-mark", &small(), "", None);
    let refused = without.parts.as_ref().unwrap().0.commander().mark("x").unwrap_err().to_string();
    assert_eq!(refused, "mark: no journal is kept; give --journal FILE");
}

/// Writes of 4 KiB that a device answered in half a second, 32 under way at a time.
fn answered(name: &str, journal: Option<JournalPlan>) -> u64 {
    let model = Model::Constant(Constant { latency_ns: MS, capacity_bytes: 16 << 20 });
    let mut bench = Bench::at_speed(name, &model, "", (1.0, journal.clone()));
    let answered = bench.writes_at_depth(32, std::time::Duration::from_millis(500));
    let device = std::sync::Arc::clone(&bench.device);
    drop(bench);
    device.submitter.gate().finish_journal().unwrap();
    journal.into_iter().for_each(|plan| std::fs::remove_file(plan.path).unwrap());
    answered
}

#[test]
#[ignore = "a figure, of an optimised build on a quiet machine"]
fn a_journal_costs_little_of_the_rate() {
    let pair = |number: u32| {
        let with = || answered("rate-with", Some(plan("rate")));
        let without = || answered("rate-without", None);
        // Neither always comes first.
        let (with, without) = if number.is_multiple_of(2) {
            (with(), without())
        } else {
            let it = without();
            (with(), it)
        };
        (with as f64 / without as f64, without)
    };
    let mut pairs: Vec<(f64, u64)> = (0..15).map(pair).collect();
    pairs.sort_by(|one, other| one.0.total_cmp(&other.0));
    println!("with a journal over without, sorted: {pairs:.3?}");
    assert!(pairs[7].0 > 0.95, "the median pair");
}
