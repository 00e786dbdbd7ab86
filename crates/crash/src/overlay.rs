//! [`Overlay`]: a device in a crash state, without a file: reads are resolved in the layers, and a check's writes are
//! kept separately in memory. Changing to another state is fast for devices of any size.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use rustix::fs::{FallocateFlags, MemfdFlags, fallocate, memfd_create};

use crate::CrashError;
use crate::base::Base;
use crate::layers::Layers;
use crate::recording::Recording;
use crate::states::extents::{Extents, Range};
use crate::states::{CrashState, Rules};

/// Marks data that a check has written, in place of the number of a change.
const DATA: u32 = 0;
const ZEROS: u32 = 1;

/// The contents of a device after a power loss, with subsequent writes.
#[derive(Debug)]
pub struct Overlay {
    layers: Layers,
    /// Data written by the check, at its original offsets.
    own: File,
    written: Extents,
}

impl Overlay {
    /// Creates an overlay in the state before the first event.
    ///
    /// # Errors
    /// Returns the file system's error.
    pub fn new(recording: Arc<Recording>, base: &Base, rules: &Rules) -> Result<Overlay, CrashError> {
        let failed = CrashError::io(recording.path());
        let own = memfd_create("headstack-overlay", MemfdFlags::CLOEXEC).map_err(|error| failed(error.into()))?;
        let own = File::from(own);
        own.set_len(recording.device.capacity_bytes).map_err(failed)?;
        Ok(Overlay { layers: Layers::new(recording, base, rules)?, own, written: Extents::default() })
    }

    /// Returns the size of the device in bytes.
    pub fn capacity_bytes(&self) -> u64 {
        self.layers.capacity_bytes()
    }

    /// Returns the logical block size of the device in bytes.
    pub fn block_bytes(&self) -> u32 {
        self.layers.recording.device.block_bytes
    }

    /// Changes to another state, and discards all writes.
    ///
    /// # Errors
    /// Returns an error if the recording has no such moment, or the file system's error.
    pub fn take(&mut self, state: &CrashState) -> Result<(), CrashError> {
        self.restore()?;
        self.layers.take(state).map(drop)
    }

    /// Discards all writes; returns whether there were any.
    ///
    /// # Errors
    /// Returns the file system's error.
    pub fn restore(&mut self) -> Result<bool, CrashError> {
        if self.written.iter().next().is_none() {
            return Ok(false);
        }
        let ranges: Vec<Range> = self.written.iter().map(|(range, _)| range).collect();
        self.written.clear();
        for range in ranges {
            self.free(range).map_err(CrashError::io(self.layers.recording.path()))?;
        }
        Ok(true)
    }

    /// Reads the data at an offset.
    ///
    /// # Errors
    /// Returns the file system's error.
    pub fn read(&self, at_bytes: u64, into: &mut [u8]) -> io::Result<()> {
        let part_of = |range: Range| (range.0 - at_bytes) as usize..(range.1 - at_bytes) as usize;
        for (part, own) in self.written.parts((at_bytes, at_bytes + into.len() as u64)) {
            match own {
                Some(DATA) => self.own.read_exact_at(&mut into[part_of(part)], part.0)?,
                Some(_) => into[part_of(part)].fill(0),
                None => {
                    for (part, version) in self.layers.versions(part) {
                        self.layers.read(part.0, version, &mut into[part_of(part)])?;
                    }
                }
            }
        }
        Ok(())
    }

    /// Writes data at an offset.
    ///
    /// # Errors
    /// Returns an error if memory is exhausted.
    pub fn write(&mut self, at_bytes: u64, data: &[u8]) -> io::Result<()> {
        self.own.write_all_at(data, at_bytes)?;
        self.written.put((at_bytes, at_bytes + data.len() as u64), DATA);
        Ok(())
    }

    /// Makes a range read as zeros.
    ///
    /// # Errors
    /// Returns the file system's error.
    pub fn zero(&mut self, at_bytes: u64, length_bytes: u64) -> io::Result<()> {
        let range = (at_bytes, at_bytes + length_bytes);
        self.free(range)?;
        self.written.put(range, ZEROS);
        Ok(())
    }

    /// Returns the parts of a range in order, each with whether the part is known to be zeros.
    ///
    /// # Errors
    /// Returns the file system's error.
    pub fn runs(&self, range: Range) -> io::Result<Vec<(Range, bool)>> {
        let mut runs: Vec<(Range, bool)> = Vec::new();
        let mut add = |(start, end): Range, is_zeros: bool| match runs.last_mut() {
            _ if start == end => {}
            Some((last, of)) if *of == is_zeros => last.1 = end,
            _ => runs.push(((start, end), is_zeros)),
        };
        for (part, own) in self.written.parts(range) {
            if let Some(own) = own {
                add(part, own == ZEROS);
                continue;
            }
            for (part, version) in self.layers.versions(part) {
                if version.is_some() || self.layers.is_zeros(part.0, version) {
                    add(part, self.layers.is_zeros(part.0, version));
                    continue;
                }
                let mut at_bytes = part.0;
                for data in self.layers.base.data_in(part)? {
                    add((at_bytes, data.0), true);
                    add(data, false);
                    at_bytes = data.1;
                }
                add((at_bytes, part.1), true);
            }
        }
        Ok(runs)
    }

    fn free(&self, (start, end): Range) -> io::Result<()> {
        if start == end {
            return Ok(());
        }
        let hole = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        fallocate(&self.own, hole, start, end - start).map_err(Into::into)
    }
}
