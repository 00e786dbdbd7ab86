//! The journal: written records are read back, up to the last complete one.

use headstack_crash::journal::JournalWriter;
use headstack_crash::{Device, Ending, Event, Fate, Recording, Start, Stored};

use crate::support::{Folder, device};

const DONE: Fate = Fate::Acknowledged;

/// One of everything.
fn written(folder: &Folder) -> Vec<u8> {
    let path = folder.file("journal");
    let journal = JournalWriter::create(&path, &device()).unwrap();
    let write = journal.write(10, 4096, &[7; 1024], false).unwrap();
    let zeros = journal.zeros(20, 8192, 512, true).unwrap();
    journal.answered(30, zeros, DONE).unwrap();
    let flush = journal.flush(40).unwrap();
    journal.answered(45, write, Fate::Failed(5)).unwrap();
    journal.answered(50, flush, DONE).unwrap();
    journal.mark(60, "héllo: all there").unwrap();
    journal.trim(70, 0, 65536, false).unwrap();
    journal.power_off(80).unwrap();
    journal.power_on(90).unwrap();
    journal.finish().unwrap();
    std::fs::read(path).unwrap()
}

#[test]
fn what_is_written_is_read() {
    let folder = Folder::new();
    written(&folder);
    let recording = Recording::open(&folder.file("journal")).unwrap();
    assert_eq!(recording.device, device());
    assert_eq!(recording.ending, Ending::Whole);
    use Event::{Change, Changed, Flush, Flushed, Mark, PowerOff, PowerOn};
    assert_eq!(
        recording.events,
        [
            Change(0),
            Change(1),
            Changed(1, DONE),
            Flush(0),
            Changed(0, Fate::Failed(5)),
            Flushed(0, DONE),
            Mark(0),
            Change(2),
            PowerOff,
            PowerOn
        ]
    );
    assert_eq!(recording.times_ns, [10, 20, 30, 40, 45, 50, 60, 70, 80, 90]);
    assert_eq!(recording.marks, ["héllo: all there"]);
    let changes: Vec<_> = recording.changes.iter().map(|c| (c.offset_bytes, c.length_bytes, c.is_forced)).collect();
    assert_eq!(changes, [(4096, 1024, false), (8192, 512, true), (0, 65536, false)]);
    assert_eq!((recording.changes[1].stored, recording.changes[2].stored), (Stored::Zeros, Stored::Trim));
    let mut data = [0; 600];
    recording.read(0, 100, &mut data).unwrap();
    assert_eq!(data, [7; 600]);
    recording.read(1, 0, &mut data[..512]).unwrap();
    assert_eq!(data[..512], [0; 512]);
}

#[test]
fn a_journal_that_was_cut_off_is_read_to_its_last_whole_record() {
    let folder = Folder::new();
    let whole = written(&folder);
    let all = Recording::open(&folder.file("journal")).unwrap();
    let (mut most, mut unfinished) = (0, 0);
    for length in 44..whole.len() {
        let recording = Recording::open(&folder.with("cut", &whole[..length])).unwrap();
        let read = recording.events.len();
        assert_eq!(recording.events, all.events[..read]);
        assert!(read >= most, "a byte more is no event less");
        most = read;
        match recording.ending {
            Ending::Whole => panic!("{length} bytes of {} are not all", whole.len()),
            Ending::Unfinished => unfinished += 1,
            Ending::CutOff { at_bytes, left_bytes } => assert_eq!(at_bytes + left_bytes, length as u64),
        }
    }
    assert_eq!((most, unfinished), (all.events.len(), all.events.len() + 1), "one for each border of records");
    for length in [0, 7, 8, 20, 43] {
        let error = Recording::open(&folder.with("cut", &whole[..length])).unwrap_err().to_string();
        assert!(error.contains("too short") || error.contains("ends within the description"), "{error}");
    }
}

#[test]
fn no_byte_that_changed_is_believed() {
    let folder = Folder::new();
    let whole = written(&folder);
    let all = Recording::open(&folder.file("journal")).unwrap();
    for at in 0..whole.len() {
        let mut bytes = whole.clone();
        bytes[at] ^= 0x40;
        match Recording::open(&folder.with("bad", &bytes)) {
            Ok(recording) => {
                assert!(matches!(recording.ending, Ending::CutOff { .. }), "byte {at}");
                assert_eq!(recording.events, all.events[..recording.events.len()]);
            }
            Err(error) => assert!(at < 44, "byte {at}: {error}"),
        }
    }
}

#[test]
fn a_mark_is_in_the_file_when_it_is_answered() {
    let folder = Folder::new();
    let path = folder.file("journal");
    let journal = JournalWriter::create(&path, &device()).unwrap();
    for number in 0..100 {
        journal.write(number, 0, &[1; 512], false).unwrap();
        journal.mark(number, &format!("transaction {number}")).unwrap();
        let seen = Recording::open(&path).unwrap();
        assert_eq!(seen.marks.last().unwrap(), &format!("transaction {number}"));
        assert_eq!(seen.changes.len() as u64, number + 1, "and whatever came before it");
    }
}

#[test]
fn digests_do_not_depend_on_times() {
    let folder = Folder::new();
    let path = folder.file("journal");
    let digest = |device: Device, at_ns: u64, byte: u8, length: usize, forced: bool, mark: &str, fate: Fate| {
        let journal = JournalWriter::create(&path, &device).unwrap();
        let write = journal.write(at_ns, 4096, &vec![byte; length], forced).unwrap();
        let flush = journal.flush(2 * at_ns).unwrap();
        journal.answered(3 * at_ns, write, fate).unwrap();
        journal.answered(4 * at_ns, flush, DONE).unwrap();
        journal.mark(5 * at_ns, mark).unwrap();
        journal.finish().unwrap();
        Recording::open(&path).unwrap().digest().unwrap()
    };
    let image = |name: &str| Device { start: Start::Image(name.to_owned()), ..device() };
    let one = digest(device(), 10, 7, 1024, false, "text", DONE);
    assert_eq!(one, digest(device(), 999, 7, 1024, false, "text", DONE));
    assert_eq!(digest(image("a"), 1, 7, 512, false, "text", DONE), digest(image("b"), 1, 7, 512, false, "text", DONE));
    let others = [
        digest(image("a"), 10, 7, 1024, false, "text", DONE),
        digest(Device { has_volatile_cache: false, ..device() }, 10, 7, 1024, false, "text", DONE),
        digest(device(), 10, 8, 1024, false, "text", DONE),
        digest(device(), 10, 7, 512, false, "text", DONE),
        digest(device(), 10, 7, 1024, true, "text", DONE),
        digest(device(), 10, 7, 1024, false, "test", DONE),
        digest(device(), 10, 7, 1024, false, "text", Fate::Failed(5)),
    ];
    for (place, other) in others.iter().enumerate() {
        assert!(*other != one && !others[..place].contains(other), "{place}");
    }
    // A journal that ends too early is another one.
    let whole = std::fs::read(&path).unwrap();
    let cut = Recording::open(&folder.with("cut", &whole[..whole.len() - 1])).unwrap();
    assert_ne!(cut.digest().unwrap(), Recording::open(&path).unwrap().digest().unwrap());
}

#[test]
fn many_threads_write_one_journal() {
    let folder = Folder::new();
    let path = folder.file("journal");
    let device = Device { capacity_bytes: 64 << 20, start: Start::Image("base.img".to_owned()), ..device() };
    let journal = JournalWriter::create(&path, &device).unwrap();
    std::thread::scope(|scope| {
        for thread in 0..4_u64 {
            let journal = &journal;
            scope.spawn(move || {
                for turn in 0..500 {
                    let data = vec![thread as u8 + 1; 65536];
                    let number = journal.write(turn, (thread * 500 + turn) % 1024 * 65536, &data, false).unwrap();
                    journal.answered(turn, number, DONE).unwrap();
                }
            });
        }
    });
    journal.finish().unwrap();
    let recording = Recording::open(&path).unwrap();
    assert_eq!((recording.changes.len(), recording.events.len(), recording.ending), (2000, 4000, Ending::Whole));
    assert_eq!(recording.device, device);
    let mut written = [0; 5];
    for change in 0..2000 {
        let mut data = [0; 65536];
        recording.read(change, 0, &mut data).unwrap();
        assert!(data.iter().all(|&byte| byte == data[0]));
        written[data[0] as usize] += 1;
    }
    assert_eq!(written, [0, 500, 500, 500, 500]);
}

#[test]
fn a_journal_is_a_file_of_a_device_that_can_be() {
    let folder = Folder::new();
    let message = |path: &std::path::Path, device| JournalWriter::create(path, &device).unwrap_err().to_string();
    assert!(message("/dev/null".as_ref(), device()).contains("is not a regular file"));
    assert!(message(&folder.file("x"), Device { block_bytes: 500, ..device() }).contains("a power of two"));
    assert!(message(&folder.file("x"), Device { capacity_bytes: 1000, ..device() }).contains("a multiple"));
    assert!(Recording::open(&folder.with("other", &[1; 100])).unwrap_err().to_string().contains("is neither"));
}
