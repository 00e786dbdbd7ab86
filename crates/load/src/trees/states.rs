//! [`States`]: the state of each member, in one word of 64 bits.
//!
//! | bits | of a file | of a directory |
//! | --- | --- | --- |
//! | 0 | it exists | it exists |
//! | 1 | it is full: it has its full length | |
//! | 2 | a thread works on it | a thread works on it |
//! | 3 | an operation failed, so the state is unknown | an operation failed, so the state is unknown |
//! | 4..34 | lowest generation of its contents | number of members in it |
//! | 34..64 | the generation last written | |
//!
//! A generation is a visit that writes. A visit that wrote the whole file raises both generations; one that wrote a
//! part raises only the last written.

use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use super::ledger::StateWords;
use super::place::Place;
use super::shape::Shape;
use crate::LoadError;

const EXISTS: u64 = 1;
const FULL: u64 = 2;
const BUSY: u64 = 4;
const UNKNOWN: u64 = 8;
const GENERATION_BITS: u32 = 30;
const GENERATION_MASK: u64 = (1 << GENERATION_BITS) - 1;
const WHOLE_SHIFT: u32 = 4;
const LATEST_SHIFT: u32 = WHOLE_SHIFT + GENERATION_BITS;
const MEMBER: u64 = 1 << WHOLE_SHIFT;

/// State of a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FileState {
    /// Whether the file exists.
    pub exists: bool,
    /// Whether the file has its full length.
    pub is_full: bool,
    /// Whether an operation on the file failed, so that its state is unknown.
    pub is_unknown: bool,
    /// Lowest generation of its contents.
    pub whole: u32,
    /// Generation of the last write.
    pub latest: u32,
}

impl FileState {
    fn word(self) -> u64 {
        let flag = |is_set: bool, bit: u64| if is_set { bit } else { 0 };
        let flags = flag(self.exists, EXISTS) | flag(self.is_full, FULL) | flag(self.is_unknown, UNKNOWN);
        let generations = (u64::from(self.whole) & GENERATION_MASK) << WHOLE_SHIFT;
        flags | generations | (u64::from(self.latest) & GENERATION_MASK) << LATEST_SHIFT
    }

    fn of(word: u64) -> FileState {
        FileState {
            exists: word & EXISTS != 0,
            is_full: word & FULL != 0,
            is_unknown: word & UNKNOWN != 0,
            whole: (word >> WHOLE_SHIFT & GENERATION_MASK) as u32,
            latest: (word >> LATEST_SHIFT & GENERATION_MASK) as u32,
        }
    }

    /// Returns the generation of the next visit that writes.
    pub fn next(self) -> u32 {
        ((u64::from(self.latest) + 1) & GENERATION_MASK) as u32
    }
}

/// Allowed contents of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Expected {
    /// Expected state; the file may have any generation from `whole` to `latest`.
    pub state: FileState,
    /// Whether the state is guaranteed. If not, the file may be missing or shorter, or contain zeros.
    pub is_sure: bool,
    /// Whether nothing is known about the file.
    pub is_unknown: bool,
}

/// States of all members of a tree.
#[derive(Debug)]
pub struct States {
    words: StateWords,
}

impl States {
    /// Creates the states of an empty tree. `generation` is the last generation before this run.
    ///
    /// # Errors
    /// Returns an error if there is not enough memory.
    pub fn in_memory(shape: &Shape, generation: u32) -> io::Result<States> {
        let states = States { words: StateWords::in_memory(shape)? };
        states.forget(shape, generation);
        Ok(states)
    }

    /// Loads the states that an earlier run left in a ledger, or creates an empty ledger. Members that were in use when
    /// that run ended become unknown. Also returns whether there was a ledger.
    ///
    /// # Errors
    /// Returns the errors of [`StateWords::in_file`].
    pub fn in_file(path: &Path, place: &Place, shape: &Shape) -> Result<(States, bool), LoadError> {
        let (words, is_old) = StateWords::in_file(path, place, shape)?;
        let states = States { words };
        if !is_old {
            states.forget(shape, place.generation());
        }
        Ok((states, is_old))
    }

    /// Resets all states to those of an empty tree.
    pub fn forget(&self, shape: &Shape, generation: u32) {
        let nothing = FileState { latest: generation, ..FileState::default() }.word();
        for file in 0..shape.files() {
            self.words.file(file).store(nothing, Ordering::Release);
            self.words.durable(file).store(0, Ordering::Release);
        }
        (0..shape.folders()).for_each(|folder| self.words.folder(folder).store(0, Ordering::Release));
    }

    /// Marks files that were in use when an earlier run ended as unknown.
    pub fn take_up(&self, shape: &Shape) {
        let lost = |word: u64| (word & BUSY != 0).then_some(word & !BUSY | UNKNOWN);
        let take_up = |word: &AtomicU64| {
            // If no thread worked on the file, its word does not change.
            let _ = word.fetch_update(Ordering::AcqRel, Ordering::Acquire, lost);
        };
        (0..shape.files()).for_each(|file| take_up(self.words.file(file)));
        (0..shape.folders()).for_each(|folder| take_up(self.words.folder(folder)));
    }

    /// Returns the allowed contents of a file that no thread works on, after the process ended or after a power loss.
    pub fn expected(&self, file: u64, power_was_lost: bool) -> Expected {
        let word = self.words.file(file).load(Ordering::Acquire);
        let (known, durable) = (FileState::of(word), FileState::of(self.words.durable(file).load(Ordering::Acquire)));
        if known.is_unknown {
            return Expected { state: known, is_sure: false, is_unknown: true };
        }
        let after = FileState { latest: known.next(), ..known };
        match (power_was_lost, word & BUSY != 0) {
            (false, false) => Expected { state: known, is_sure: true, is_unknown: false },
            (false, true) => Expected { state: after, is_sure: false, is_unknown: false },
            (true, _) if durable.exists => {
                let state = FileState { exists: true, is_full: durable.is_full, whole: durable.whole, ..after };
                Expected { state, is_sure: true, is_unknown: false }
            }
            (true, _) => Expected { state: FileState { whole: 0, ..after }, is_sure: false, is_unknown: false },
        }
    }

    /// Marks the current state of a file as being on stable storage.
    pub fn flushed(&self, file: u64, state: FileState) {
        self.words.durable(file).store(state.word(), Ordering::Release);
    }

    /// Records that a file is about to be removed, so that nothing about it is guaranteed.
    pub fn unpromise(&self, file: u64) {
        self.words.durable(file).store(0, Ordering::Release);
    }

    /// Returns the state of a file. Call this only as its holder, or while no thread works.
    pub fn file(&self, file: u64) -> FileState {
        FileState::of(self.words.file(file).load(Ordering::Acquire))
    }

    /// Takes a file that no thread works on, if `wanted` returns true for it.
    pub fn take_file(&self, file: u64, wanted: impl Fn(FileState) -> bool) -> Option<FileState> {
        let word = self.words.file(file);
        let seen = word.load(Ordering::Acquire);
        let state = FileState::of(seen);
        let is_free = seen & (BUSY | UNKNOWN) == 0 && wanted(state);
        let taken = is_free && word.compare_exchange(seen, seen | BUSY, Ordering::AcqRel, Ordering::Relaxed).is_ok();
        taken.then_some(state)
    }

    /// Gives a file back with its new state.
    pub fn give_file(&self, file: u64, state: FileState) {
        self.words.file(file).store(state.word(), Ordering::Release);
    }

    /// Returns whether a directory exists.
    pub fn has_folder(&self, folder: u64) -> bool {
        self.words.folder(folder).load(Ordering::Acquire) & EXISTS != 0
    }

    /// Adds a member to the count of a directory, which then cannot be removed; the anchor (`None`) always exists.
    /// Returns false if the directory does not exist.
    pub fn join(&self, folder: Option<u64>) -> bool {
        let Some(folder) = folder else { return true };
        let joined = |word: u64| (word & (EXISTS | BUSY | UNKNOWN) == EXISTS).then_some(word + MEMBER);
        self.words.folder(folder).fetch_update(Ordering::AcqRel, Ordering::Acquire, joined).is_ok()
    }

    /// Removes a member from the count of a directory.
    pub fn leave(&self, folder: Option<u64>) {
        if let Some(folder) = folder {
            let before = self.words.folder(folder).fetch_sub(MEMBER, Ordering::AcqRel);
            assert!(before >= MEMBER, "a directory that a member leaves has a member");
        }
    }

    /// Takes a directory: one that does not exist, or an empty one, as `exists` says.
    pub fn take_folder(&self, folder: u64, exists: bool) -> bool {
        let wanted = if exists { EXISTS } else { 0 };
        let word = self.words.folder(folder);
        word.compare_exchange(wanted, wanted | BUSY, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }

    /// Gives an empty directory back; `None` if it is unknown whether the directory exists.
    pub fn give_folder(&self, folder: u64, exists: Option<bool>) {
        let word = match exists {
            Some(true) => EXISTS,
            Some(false) => 0,
            None => UNKNOWN,
        };
        self.words.folder(folder).store(word, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use headstack_jobfiles::trees::Tree;

    use super::*;

    fn empty() -> Tree {
        Tree {
            name: String::new(),
            anchor: String::new(),
            depth: 0,
            width: 0,
            files: 0,
            has_files_everywhere: false,
            sizes: vec![(4_096, 100.0)],
            total_bytes: None,
            used_bytes: None,
        }
    }

    /// Tests what is guaranteed about a file, step by step, after the process ended or power was lost.
    #[test]
    fn possible_states_follow_from_flushes() {
        let shape = Shape::new(&Tree { files: 1, ..empty() }, 1, true).unwrap();
        let states = States::in_memory(&shape, 10).unwrap();
        let sure = |power_was_lost| states.expected(0, power_was_lost).is_sure;
        assert!(sure(false) && !sure(true), "the file never existed, and nothing is guaranteed after a power loss");
        let full = FileState { exists: true, is_full: true, is_unknown: false, whole: 11, latest: 11 };
        assert!(states.take_file(0, |_| true).is_some());
        assert!(!sure(false), "a thread works on the file");
        states.give_file(0, full);
        assert!(sure(false) && !sure(true), "acknowledged but not flushed");
        states.flushed(0, full);
        states.give_file(0, FileState { latest: 13, ..full });
        let expected = states.expected(0, true);
        assert!(expected.is_sure);
        assert_eq!((expected.state.whole, expected.state.latest), (11, 14));
        states.unpromise(0);
        assert!(!sure(true) && states.expected(0, true).state.whole == 0);
        states.take_file(0, |_| true);
        states.take_up(&shape);
        assert!(states.expected(0, false).is_unknown);
    }

    #[test]
    fn a_word_keeps_all_that_is_known() {
        let state = FileState { exists: true, is_full: true, is_unknown: false, whole: 12_345, latest: (1 << 30) - 1 };
        assert_eq!(FileState::of(state.word()), state);
        assert_eq!(state.next(), 0);
        assert_eq!(FileState::of(FileState::default().word()), FileState::default());
    }

    #[test]
    fn a_member_is_used_by_one_thread_and_pins_its_directory() {
        let tree = Tree { depth: 1, width: 1, files: 2, ..empty() };
        let states = States::in_memory(&Shape::new(&tree, 1, true).unwrap(), 7).unwrap();
        assert!(!states.join(Some(0)), "the directory does not exist yet");
        assert!(states.take_folder(0, false));
        assert!(!states.take_folder(0, false) && !states.join(Some(0)), "a thread is creating the directory");
        states.give_folder(0, Some(true));
        assert!(states.join(Some(0)) && !states.take_folder(0, true), "the directory is not empty");
        let state = states.take_file(0, |state| !state.exists).unwrap();
        assert_eq!(states.take_file(0, |_| true), None);
        states.give_file(0, FileState { exists: true, ..state });
        assert_eq!(states.take_file(0, |state| !state.exists), None);
        states.leave(Some(0));
        assert!(states.take_folder(0, true));
        states.give_folder(0, None);
        assert!(!states.take_folder(0, true) && !states.has_folder(0));
    }
}
