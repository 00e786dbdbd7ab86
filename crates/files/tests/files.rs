//! Output files are complete or absent, and links are followed to their destination.

use std::fs;
use std::io::Write;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use headstack_files::{AtomicFile, Outputs, Place, note_input};

/// A temporary folder that is removed when dropped.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("headstack-files-{}-{name}", std::process::id()));
        fs::create_dir(&path).unwrap();
        Folder(path)
    }

    fn at(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    fn names(&self) -> Vec<String> {
        let mut names: Vec<String> =
            fs::read_dir(&self.0).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).unwrap();
    }
}

/// Makes tests that act as a command take turns, because the inputs of a command are global to the process.
fn lock_run() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

fn write(path: &Path, text: &str) -> AtomicFile {
    let mut file = AtomicFile::create(path).unwrap();
    file.write_all(text.as_bytes()).unwrap();
    file
}

#[test]
fn a_file_is_there_when_it_is_finished_and_not_before() {
    let folder = Folder::new("finished");
    let path = folder.at("r.json");
    fs::write(&path, "old").unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o604)).unwrap();
    let file = write(&path, "new");
    assert_eq!(fs::read_to_string(&path).unwrap(), "old");
    assert_eq!(file.draft().unwrap().extension().unwrap(), "json", "which names the format to writers");
    file.finish().unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), "new");
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o7777, 0o604);
    drop(write(&path, "never"));
    assert_eq!((folder.names(), fs::read_to_string(&path).unwrap()), (vec!["r.json".to_owned()], "new".to_owned()));
}

#[test]
fn links_stay_and_lead_to_the_new_file() {
    let folder = Folder::new("links");
    fs::create_dir(folder.at("far")).unwrap();
    symlink("second", folder.at("first")).unwrap();
    symlink(folder.at("far/../far/end"), folder.at("second")).unwrap();
    write(&folder.at("first"), "text").finish().unwrap();
    assert_eq!(fs::read_to_string(folder.at("far/end")).unwrap(), "text");
    assert!(fs::symlink_metadata(folder.at("first")).unwrap().is_symlink());
    symlink("circle", folder.at("circle")).unwrap();
    let error = AtomicFile::create(&folder.at("circle")).unwrap_err().to_string();
    assert!(error.ends_with("has symbolic links that form a loop"), "{error}");
}

#[test]
fn special_files_are_not_replaced_by_regular_files() {
    let folder = Folder::new("none");
    for (path, why) in [
        (folder.at("."), "is a directory"),
        (folder.at("x/y"), "does not exist"),
        (PathBuf::from("/dev/headstack-none"), "write output files outside /dev"),
        (PathBuf::from("/dev/fd/9999"), "Bad file descriptor"),
        (PathBuf::from(""), "is a directory"),
    ] {
        let error = Place::of(&path).unwrap_err().to_string();
        assert!(error.contains(why), "{}: {error}", path.display());
    }
    assert!(matches!(Place::of(Path::new("/dev/null")).unwrap(), Place::Special(_)));
    assert!(matches!(Place::of(Path::new("/dev/fd/2")).unwrap(), Place::Descriptor(2)));
}

#[test]
fn outputs_may_not_overlap_each_other_or_a_target() {
    let _turn = lock_run();
    let folder = Folder::new("outputs");
    fs::write(folder.at("target"), "data").unwrap();
    fs::hard_link(folder.at("target"), folder.at("again")).unwrap();
    let status = fs::metadata(folder.at("target")).unwrap();
    let below = [(std::os::unix::fs::MetadataExt::dev(&status), std::os::unix::fs::MetadataExt::ino(&status))];
    let outputs = Outputs::default();
    outputs.write(&folder.at("new")).unwrap();
    assert!(outputs.write(&folder.at("./new")).unwrap_err().to_string().contains("each output needs its own file"));
    outputs.write(Path::new("/dev/null")).unwrap();
    outputs.write(Path::new("/dev/null")).unwrap();
    outputs.measure(&folder.at("target"), &below).unwrap();
    let refused = outputs.write(&folder.at("again")).unwrap_err().to_string();
    assert!(refused.contains("an input or target of this command"), "{refused}");
    let refused = outputs.measure(&folder.at("new"), &[]).unwrap_err().to_string();
    assert!(refused.contains("is an input or target of this command"), "{refused}");
    // Checking an output leaves no files behind.
    assert_eq!(folder.names(), ["again", "target"]);
}

#[test]
fn no_file_replaces_an_input_of_a_command_under_way() {
    let _turn = lock_run();
    let folder = Folder::new("inputs");
    fs::write(folder.at("input"), "data").unwrap();
    fs::write(folder.at("found-later"), "data").unwrap();
    fs::hard_link(folder.at("input"), folder.at("hard")).unwrap();
    std::os::unix::fs::symlink("found-later", folder.at("soft")).unwrap();
    let files = Outputs::default();
    files.measure(&folder.at("input"), &[]).unwrap();
    note_input(&folder.at("found-later")).unwrap();
    for name in ["input", "hard", "soft", "found-later"] {
        let refused = AtomicFile::create(&folder.at(name)).unwrap_err().to_string();
        assert!(refused.contains("input or target of this command"), "{name}: {refused}");
        let refused = files.write(&folder.at(name)).unwrap_err().to_string();
        assert!(refused.contains("input or target of this command"), "{name}: {refused}");
    }
    files.search(&folder.at(".")).unwrap();
    fs::write(folder.at("another"), "data").unwrap();
    let refused = files.write(&folder.at("another")).unwrap_err().to_string();
    assert!(refused.contains("whose files this command reads"), "{refused}");
    files.keep(&folder.at("another")).unwrap();
    files.write(&folder.at("new")).unwrap();
    assert!(files.fill(&folder.at(".")).is_ok());
    let refused = files.measure(&folder.at("."), &[]).unwrap_err().to_string();
    assert!(refused.contains("input or target of this command"), "{refused}");
    files.close();
    AtomicFile::create(&folder.at("input")).unwrap().finish().unwrap();
    note_input(&folder.at("input")).unwrap();
    drop(files);
    AtomicFile::create(&folder.at("soft")).unwrap().finish().unwrap();
}

#[test]
fn an_input_that_is_gone_keeps_no_file_that_has_its_inode() {
    let _turn = lock_run();
    let folder = Folder::new("gone");
    fs::write(folder.at("input"), "data").unwrap();
    let files = Outputs::default();
    note_input(&folder.at("input")).unwrap();
    // The same inode under another name, as when a file system reuses it for the next file.
    fs::rename(folder.at("input"), folder.at("another")).unwrap();
    files.write(&folder.at("another")).unwrap();
    AtomicFile::create(&folder.at("another")).unwrap().finish().unwrap();
}

#[test]
fn an_output_is_not_read_as_an_input_and_a_log_is() {
    let _turn = lock_run();
    let folder = Folder::new("log");
    fs::write(folder.at("output"), "data").unwrap();
    fs::write(folder.at("log"), "data").unwrap();
    let files = Outputs::default();
    files.write(&folder.at("output")).unwrap();
    files.keep(&folder.at("log")).unwrap();
    let refused = note_input(&folder.at("output")).unwrap_err().to_string();
    assert!(refused.contains("input or target of this command"), "{refused}");
    note_input(&folder.at("log")).unwrap();
    AtomicFile::create(&folder.at("log")).unwrap().finish().unwrap();
}

#[test]
fn atomic_files_are_complete_before_streams_are_written() {
    let folder = Folder::new("whole");
    let path = folder.at("standing");
    let open = fs::File::create(&path).unwrap();
    let number = std::os::fd::AsRawFd::as_raw_fd(&open);
    let mut file = AtomicFile::create_whole(Path::new(&format!("/dev/fd/{number}"))).unwrap();
    file.write_all(b"text").unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"");
    file.finish().unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"text");
}
