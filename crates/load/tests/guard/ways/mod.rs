//! Ways to destroy data, one per row: the existing data, how they are set up, the requested write, and why it is
//! refused. Other rows are allowed, so that refusing everything does not pass. `docs/safety.md` contains the rows.

mod allowed;
mod contents;
mod names;
mod running;
mod uses;

use std::fs;
use std::hash::{DefaultHasher, Hasher};
use std::io::{Seek, SeekFrom};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::{Command, Stdio};

use headstack_jobfiles::Sync;
use headstack_load::{LoadError, Permission, Target};
use headstack_needs::{Need, lacks};
use headstack_workload::quantity::parse_bytes;

use crate::bench::LoopDevice;
use crate::{MIB, descriptor_writes};

/// Time at which the obstacle is set up.
#[derive(Clone, Copy, PartialEq)]
enum When {
    Before,
    /// While the target is being written.
    Running,
}

/// A row. `sh` runs the scripts, with `$DISK` (a loop device), `$NAME` (its kernel name), `$FILE` (its backing file)
/// and `$DIR` (an empty directory). `hold` and `release` start and end background commands.
struct Way {
    /// Description of the existing data or use.
    what: &'static str,
    disk_mib: u64,
    sector_bytes: u32,
    when: When,
    /// Scripts that set up the row, and that undo the setup.
    make: &'static str,
    undo: &'static str,
    /// Target to write.
    target: &'static str,
    /// Permissions, as options of the commands.
    asked: &'static str,
    /// Part of the message of the refusal; empty if the write is allowed.
    refused: &'static str,
}

impl Way {
    const fn new(what: &'static str, make: &'static str, asked: &'static str, refused: &'static str) -> Way {
        let (disk_mib, sector_bytes, when, undo, target) = (64, 512, When::Before, "", "$DISK");
        Way { what, disk_mib, sector_bytes, when, make, undo, target, asked, refused }
    }

    /// Creates a row for the contents of a device, with only the device's name given.
    const fn carries(what: &'static str, make: &'static str, refused: &'static str) -> Way {
        Way::new(what, make, DESTROY, refused)
    }

    const fn mib(mut self, disk_mib: u64) -> Way {
        self.disk_mib = disk_mib;
        self
    }

    const fn sectors(mut self, sector_bytes: u32) -> Way {
        self.sector_bytes = sector_bytes;
        self
    }

    const fn undo(mut self, undo: &'static str) -> Way {
        self.undo = undo;
        self
    }

    const fn target(mut self, target: &'static str) -> Way {
        self.target = target;
        self
    }

    const fn running(mut self) -> Way {
        self.when = When::Running;
        self
    }
}

const DESTROY: &str = "--destroy $NAME";
const OVERWRITE: &str = "--overwrite";

/// Shell functions: `hold` starts a command in the background, with empty standard input and the given redirections;
/// `release` ends all of these commands.
const STAYING: &str = r#"
hold() {
  "$@" & echo $! >>"$DIR/pids"
  while [ "$(cat /proc/$!/comm)" = sh ]; do sleep 0.01; done
}
release() {
  for pid in $(cat "$DIR/pids"); do
    kill $pid
    while ls /proc/$pid/fd 2>/dev/null | grep -q .; do sleep 0.01; done
  done
}
"#;

/// Device and directory on which a row is run.
struct Place {
    device: LoopDevice,
    folder: String,
}

impl Place {
    fn new(way: &Way) -> Option<Place> {
        let device = LoopDevice::with_sectors(way.disk_mib * MIB, way.sector_bytes)?;
        let folder = Path::new(&device.backing).parent().unwrap().to_str().unwrap().to_owned();
        Some(Place { device, folder })
    }

    fn fill(&self, text: &str) -> String {
        let LoopDevice { path, backing, .. } = &self.device;
        let text = text.replace("$DISK", path).replace("$NAME", self.device.name());
        text.replace("$FILE", backing).replace("$DIR", &self.folder)
    }

    /// Runs a script. Returns its error message if it fails.
    fn carry_out(&self, script: &str) -> Result<(), String> {
        let mut shell = Command::new("sh");
        shell
            .args(["-euc", &format!("{STAYING}{script}")])
            .current_dir(&self.folder)
            .stdin(Stdio::null())
            .stdout(Stdio::null());
        shell.env("DISK", &self.device.path).env("NAME", self.device.name());
        shell.env("FILE", &self.device.backing).env("DIR", &self.folder);
        // A file, since background processes would keep a pipe open.
        let said = format!("{}/.said", self.folder);
        let status = shell.stderr(fs::File::create(&said).unwrap()).status().unwrap();
        let text = fs::read_to_string(&said).unwrap();
        fs::remove_file(&said).unwrap();
        if status.success() { Ok(()) } else { Err(text.trim().replace('\n', "; ")) }
    }

    fn permission(&self, asked: &str) -> Permission {
        let mut permission = Permission { write: true, ..Permission::default() };
        let mut words = asked.split(' ').filter(|word| !word.is_empty());
        while let Some(word) = words.next() {
            let mut value = || match words.next().unwrap() {
                "''" => String::new(),
                value => self.fill(value),
            };
            match word {
                "--destroy" => permission.destroy.push(value()),
                "--signature" => permission.signatures.push(value()),
                "--create" => permission.create_bytes = Some(parse_bytes(&value()).unwrap()),
                "--overwrite" => permission.overwrite = true,
                word => panic!("{word} is not an option"),
            }
        }
        permission
    }

    fn open(&self, way: &Way) -> Result<Target, LoadError> {
        let (path, permission) = (self.fill(way.target), self.permission(way.asked));
        Target::open(&path, false, Sync::No, &permission, &|_| true)
    }

    /// Returns a checksum of the contents of all files in the directory, with their names and offsets.
    fn sum(&self) -> u64 {
        // The data that a script has written reach the file when the last user of the device closes it, and other
        // programs on this machine look at all loop devices.
        if let Ok(device) = fs::File::open(&self.device.path) {
            device.sync_all().unwrap();
        }
        let mut sum = DefaultHasher::new();
        let mut paths: Vec<_> = fs::read_dir(&self.folder).unwrap().map(|entry| entry.unwrap().path()).collect();
        paths.sort();
        for path in paths.iter().filter(|path| fs::symlink_metadata(path).is_ok_and(|it| it.is_file())) {
            sum.write(path.as_os_str().as_encoded_bytes());
            let mut file = fs::File::open(path).unwrap();
            let end = file.metadata().unwrap().len();
            sum.write_u64(end);
            let mut at = 0;
            while let Ok(start) = file.seek(SeekFrom::Start(at)).and_then(|_| data_from(&file, at)) {
                at = end.min(start + MIB);
                let mut bytes = vec![0; (at - start) as usize];
                file.read_exact_at(&mut bytes, start).unwrap();
                // Zeros may be stored or be a hole.
                if bytes.iter().any(|&byte| byte != 0) {
                    sum.write_u64(start);
                    sum.write(&bytes);
                }
            }
        }
        sum.finish()
    }
}

/// Returns the offset of the next data of a file, rounded to whole MiB.
fn data_from(file: &fs::File, at: u64) -> std::io::Result<u64> {
    use std::os::fd::AsRawFd;
    // SAFETY: takes only numbers.
    match unsafe { libc::lseek(file.as_raw_fd(), at as i64, libc::SEEK_DATA) } {
        -1 => Err(std::io::Error::last_os_error()),
        found => Ok((found as u64 / MIB * MIB).max(at)),
    }
}

/// Runs a row. Returns what is wrong with it, if anything.
fn try_out(way: &Way) -> Result<(), String> {
    let Some(place) = Place::new(way) else { return Ok(()) };
    let outcome = try_out_at(way, &place);
    // If the setup failed half-way, it is undone as far as it got.
    let undone = if way.undo.is_empty() { Ok(()) } else { place.carry_out(way.undo) };
    outcome.and(undone.map_err(|said| format!("cannot be undone: {said}")))
}

fn try_out_at(way: &Way, place: &Place) -> Result<(), String> {
    let running = match way.when {
        When::Before => None,
        When::Running => {
            let target = place.open(way).map_err(|error| error.to_string())?;
            Target::check_unused(&[&target]).map_err(|error| format!("before anything happened: {error}"))?;
            Some(target)
        }
    };
    if let Err(said) = place.carry_out(way.make) {
        if !said.contains("not found") {
            return Err(format!("cannot be made: {said}"));
        }
        lacks(Need::Programs, format_args!("{}: {said}", way.what));
        return Ok(());
    }
    let before = place.sum();
    let outcome = match running {
        Some(target) => Target::check_unused(&[&target]),
        None => place.open(way).and_then(|target| {
            assert!(descriptor_writes(&target));
            Target::check_unused(&[&target])
        }),
    };
    let path = place.fill(way.target);
    match (outcome, place.fill(way.refused).as_str()) {
        (Ok(()), "") => return Ok(()),
        (Ok(()), wanted) => return Err(format!("is allowed, and should be refused: {wanted}")),
        (Err(error), "") => return Err(format!("should be allowed: {error}")),
        (Err(error), wanted) => {
            let line = error.to_string();
            if !line.contains(wanted) || !line.starts_with(&path) || line.contains('\n') {
                return Err(format!("is refused, but not for {wanted:?}: {line}"));
            }
        }
    }
    if place.sum() == before { Ok(()) } else { Err("has changed".to_owned()) }
}

/// Chapters of the table: titles and rows.
fn chapters() -> [(&'static str, Vec<Way>); 5] {
    [
        ("Signatures and data on a device", contents::ways()),
        ("Devices and files in use", uses::ways()),
        ("Names, links and paths", names::ways()),
        ("Uses that begin during a run", running::ways()),
        ("Allowed", allowed::ways()),
    ]
}

/// Runs a chapter, and reports every row that is wrong.
fn chapter(index: usize) {
    let (title, ways) = chapters().into_iter().nth(index).unwrap();
    let wrong: Vec<String> =
        ways.iter().filter_map(|way| Some(format!("{}: {}", way.what, try_out(way).err()?))).collect();
    assert!(wrong.is_empty(), "{title}: {} of {} are wrong:\n{}", wrong.len(), ways.len(), wrong.join("\n"));
}

#[test]
fn what_a_device_carries_is_not_overwritten() {
    chapter(0);
}

#[test]
fn what_is_in_use_is_not_overwritten() {
    chapter(1);
}

#[test]
fn only_named_targets_are_overwritten() {
    chapter(2);
}

#[test]
fn what_others_begin_to_need_is_written_no_further() {
    chapter(3);
}

#[test]
fn unused_targets_are_written() {
    chapter(4);
}

/// Checks that the list in `docs/safety.md` is current, with one line for each message; `HEADSTACK_WRITE_DOCS=1` renews it.
#[test]
fn the_table_in_the_documentation_is_current() {
    let chapters = chapters();
    let refused: usize = chapters.iter().flat_map(|(_, ways)| ways).filter(|way| !way.refused.is_empty()).count();
    assert!(refused >= 120, "{refused} ways");
    let mut table = format!(
        "{refused} ways to destroy data are refused, and {} things are allowed.\n",
        chapters.iter().map(|(_, ways)| ways.len()).sum::<usize>() - refused
    );
    for (title, ways) in &chapters {
        let mut lines: Vec<(&str, Vec<String>)> = Vec::new();
        for way in ways {
            let message = way.refused.split(" (at byte").next().unwrap_or_default().trim_end_matches(" (as ");
            let sectors = if way.sector_bytes == 512 { "" } else { ", 4 KiB sectors" };
            let what = format!("{}{sectors}", way.what);
            match lines.iter_mut().find(|(other, _)| *other == message) {
                Some((_, group)) => group.push(what),
                None => lines.push((message, vec![what])),
            }
        }
        table += &format!("\n### {title}\n\n");
        for (message, group) in lines {
            let message = if message.is_empty() { "allowed".to_owned() } else { format!("`{message}`") };
            table += &format!("- {message}: {}\n", group.join("; "));
        }
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/safety.md");
    let text = fs::read_to_string(&path).unwrap();
    let (begin, end) = ("<!-- ways: begin -->\n", "<!-- ways: end -->");
    let (head, rest) = text.split_once(begin).unwrap();
    let (old, tail) = rest.split_once(end).unwrap();
    if std::env::var_os("HEADSTACK_WRITE_DOCS").is_some() {
        return fs::write(&path, format!("{head}{begin}{table}{end}{tail}")).unwrap();
    }
    assert!(
        old == table,
        "docs/safety.md is not current: HEADSTACK_WRITE_DOCS=1 cargo test -p headstack-load --test guard table"
    );
}
