//! Kills a writing process at random times. Its data must be judged without a false alarm, and every injected fault
//! must be found.

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::FileExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use headstack_load::integrity::{Class, IntegrityReport, Layout, Ledger, Outcome, Scanner, Severity, Stamper};

const FOLDER: &str = "HEADSTACK_CRASH_FOLDER";
/// Line that a child prints after a number of writes, flushes and trims.
const SAID: &[u8] = b"it writes\n";
const WRITES_BEFORE: u64 = 200;
const UNIT: u64 = 4096;
const UNITS: u64 = 256;

/// Xorshift64 (Marsaglia 2003), good enough to choose places and times.
struct Choices(u64);

impl Choices {
    fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % end
    }
}

fn target(folder: &Path) -> PathBuf {
    folder.join("target")
}

fn ledger(folder: &Path) -> PathBuf {
    folder.join("ledger")
}

/// Runs the child: two threads write, trim, flush and overlap each other's requests until the process is killed.
#[test]
fn child() {
    let Some(folder) = std::env::var_os(FOLDER).map(PathBuf::from) else { return };
    let file = File::options().read(true).write(true).open(target(&folder)).expect("the target");
    let stamper = Stamper::resume(Ledger::open(&ledger(&folder)).expect("the ledger")).expect("room");
    std::thread::scope(|scope| {
        for seed in 1..=2 {
            let (file, stamper) = (&file, &stamper);
            scope.spawn(move || write_for_ever(file, stamper, u64::from(std::process::id()) << 8 | seed));
        }
    });
}

/// Writes forever, and prints a line after a while.
fn write_for_ever(file: &File, stamper: &Stamper, seed: u64) {
    let mut choices = Choices(seed);
    let mut buffer = vec![0; 8 * UNIT as usize];
    for number in 0u64.. {
        if number == WRITES_BEFORE {
            // Bypasses the test harness, which captures the output of tests.
            std::io::stdout().write_all(SAID).expect("the parent listens");
            std::io::stdout().flush().expect("the parent listens");
        }
        let start = choices.below(UNITS);
        let units = (1 + choices.below(8)).min(UNITS - start);
        let (offset, bytes) = (start * UNIT, units * UNIT);
        match choices.below(40) {
            0 => {
                let ticket = stamper.trim(offset, bytes).expect("room");
                file.write_all_at(&vec![0; bytes as usize], offset).expect("zeros");
                stamper.ended(ticket, Outcome::Acknowledged);
            }
            1 => {
                let epoch = stamper.flush();
                file.sync_data().expect("a flush");
                stamper.flushed(epoch);
            }
            _ => {
                let ticket = stamper.fill(offset, &mut buffer[..bytes as usize]).expect("room");
                // Written in two parts, so that a kill may leave half of the data.
                let (begin, end) = buffer[..bytes as usize].split_at(bytes as usize / 1024 * 512);
                file.write_all_at(end, offset + begin.len() as u64).expect("a write");
                file.write_all_at(begin, offset).expect("a write");
                stamper.ended(ticket, Outcome::Acknowledged);
            }
        }
    }
}

fn scan(ledger: &Ledger, content: &[u8]) -> IntegrityReport {
    let mut scanner = Scanner::new(ledger);
    for (offset, buffer) in (0..).step_by(65536).zip(content.chunks(65536)) {
        scanner.read(offset, buffer).expect("whole units");
    }
    scanner.finish()
}

fn run_and_kill(folder: &Path, after: Duration) {
    let program = std::env::current_exe().expect("this program");
    let mut child = Command::new(program)
        .args(["--exact", "child", "--test-threads=1"])
        .env(FOLDER, folder)
        .stdout(Stdio::piped())
        .spawn()
        .expect("a child");
    let mut said = BufReader::new(child.stdout.take().expect("it is piped")).split(b'\n');
    let writes = |line: std::io::Result<Vec<u8>>| line.expect("a line").ends_with(&SAID[..SAID.len() - 1]);
    assert!(said.any(writes), "the child writes nothing");
    std::thread::sleep(after);
    child.kill().expect("a kill");
    drop(said);
    let status = child.wait().expect("its end");
    assert_eq!(status.signal(), Some(9), "the child ended by itself: {status}");
}

/// Returns the units with one whole write that is older than the newest, whose contents in `older` differ.
fn replaced_since(older: &[u8], newer: &[u8], ledger: &Ledger) -> Vec<u64> {
    let unit = |content: &[u8], at: u64| content[(at * UNIT) as usize..((at + 1) * UNIT) as usize].to_vec();
    let whole = |at: u64, content: &[u8]| {
        let mut scanner = Scanner::without_ledger(ledger.layout(), Some(ledger.run()));
        scanner.read(at * UNIT, &unit(content, at)).expect("a unit");
        scanner.finish().intact.count == 1
    };
    (0..UNITS).filter(|&at| unit(older, at) != unit(newer, at) && whole(at, older) && whole(at, newer)).collect()
}

fn check_planted(ledger: &Ledger, older: &[u8], content: &[u8], choices: &mut Choices) {
    let places = replaced_since(older, content, ledger);
    let place = places[choices.below(places.len() as u64) as usize] * UNIT;
    let unit = place as usize..(place + UNIT) as usize;
    let found = |content: &[u8]| {
        let report = scan(ledger, content);
        let faults: Vec<_> = report.findings.iter().filter(|finding| finding.class != Class::TornRequest).collect();
        assert_eq!((report.faults(), faults.len()), (1, 1), "{report:?}");
        assert_eq!(faults[0].offset, place);
        (faults[0].class, faults[0].severity)
    };
    let mut flipped = content.to_vec();
    flipped[unit.start + choices.below(UNIT) as usize] ^= 1 << choices.below(8);
    assert_eq!(found(&flipped), (Class::Corrupt, Severity::Damage));
    let mut stale = content.to_vec();
    stale[unit.clone()].copy_from_slice(&older[unit.clone()]);
    assert_eq!(found(&stale).0, Class::Stale);
    let mut torn = content.to_vec();
    torn[unit.start..unit.start + 1024].copy_from_slice(&older[unit.start..unit.start + 1024]);
    assert_eq!(found(&torn).0, Class::Torn);
    let mut misplaced = content.to_vec();
    let from = places[(places.iter().position(|&at| at * UNIT == place).expect("it") + 1) % places.len()] * UNIT;
    misplaced[unit].copy_from_slice(&content[from as usize..(from + UNIT) as usize]);
    assert_eq!(found(&misplaced), (Class::Misplaced, Severity::Damage));
}

#[test]
fn killed_at_any_moment_it_raises_no_false_alarm_and_hides_no_fault() {
    let folder = std::env::temp_dir().join(format!("headstack-crash-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    std::fs::write(target(&folder), vec![0; (UNITS * UNIT) as usize]).expect("a target");
    let layout = Layout::new(UNITS * UNIT, UNIT as u32, 512).expect("a layout");
    drop(Ledger::create(layout, Some(&ledger(&folder))).expect("a ledger"));
    let seed = std::time::SystemTime::UNIX_EPOCH.elapsed().expect("a clock").as_nanos() as u64 | 1;
    println!("choices from {seed}");
    let mut choices = Choices(seed);
    let mut older: Option<Vec<u8>> = None;
    let (mut under_way, mut intact) = (0, 0);
    for _ in 0..20 {
        run_and_kill(&folder, Duration::from_micros(choices.below(60_000)));
        let kept = Ledger::open(&ledger(&folder)).expect("the ledger");
        let content = std::fs::read(target(&folder)).expect("the target");
        let report = scan(&kept, &content);
        assert_eq!((report.faults(), report.unknown.count, report.ahead.count), (0, 0, 0), "seed {seed}: {report:?}");
        assert_eq!(report.checked.count, UNITS);
        under_way += report.mixed.count + report.torn_requests.count;
        intact += report.intact.count;
        if let Some(older) = older.replace(content.clone()) {
            check_planted(&kept, &older, &content, &mut choices);
        }
    }
    println!("{intact} units whole, {under_way} units and requests of which a part was written");
    assert!(intact > 10 * UNITS, "the children wrote almost nothing: {intact} units");
    std::fs::remove_dir_all(&folder).expect("the folder");
}
