//! Copies of jobs: their names in results and their seeds.

use std::collections::HashSet;

use super::{Job, Phase};

impl Phase {
    /// Returns the names of each job's copies in results, in job order. A copy has the name of its job's group; without
    /// a group, it has the job's name, with the copy's number appended if several copies share the name.
    pub fn stream_names(&self) -> Vec<Vec<String>> {
        self.names_of_first(u32::MAX)
    }

    /// Like [`stream_names`](Self::stream_names), but for the first `most` copies of each job.
    pub(super) fn names_of_first(&self, most: u32) -> Vec<Vec<String>> {
        let mut taken = HashSet::new();
        let mut groups: Vec<(u32, String)> = Vec::new();
        let mut names = Vec::new();
        for job in &self.jobs {
            let copies = job.copies.clamp(1, most);
            names.push(match job.group {
                Some(group) => {
                    let existing = groups.iter().find(|(existing, _)| *existing == group).map(|(_, name)| name.clone());
                    let name = existing.unwrap_or_else(|| {
                        let name = unlike(&mut taken, self.group_name(group, &job.name));
                        groups.push((group, name.clone()));
                        name
                    });
                    vec![name; copies as usize]
                }
                None => (0..copies).map(|copy| unlike(&mut taken, self.copy_name(job, copy))).collect(),
            });
        }
        names
    }

    /// Returns the words that the names of a group's jobs have in common at the start; the name of its first job if
    /// there are none.
    fn group_name(&self, group: u32, first: &str) -> String {
        let others = self.jobs.iter().filter(|job| job.group == Some(group)).map(|job| job.name.as_str());
        let mut words: Vec<&str> = first.split(' ').collect();
        for other in others {
            let shared = words.iter().zip(other.split(' ')).take_while(|(word, theirs)| *word == theirs).count();
            words.truncate(shared);
        }
        if words.is_empty() { first.to_owned() } else { words.join(" ") }
    }

    fn copy_name(&self, job: &Job, copy: u32) -> String {
        let bearers: u64 = self
            .jobs
            .iter()
            .filter(|other| other.group.is_none() && other.name == job.name)
            .map(|other| u64::from(other.copies.max(1)))
            .sum();
        let number = u64::from(job.first_copy) + u64::from(copy);
        if bearers > 1 { format!("{}.{number}", job.name) } else { job.name.clone() }
    }
}

impl Job {
    /// Returns the seed of a copy, numbered from 0. It depends only on the job, the copy and the run seed, and differs
    /// from every other copy's seed. The job's own seed takes precedence over the run's.
    pub fn seed_of(&self, copy: u32, run_seed: u64) -> u64 {
        let number = u64::from(self.first_copy) + u64::from(copy);
        let bytes = self.name.bytes().chain(number.to_le_bytes());
        // FNV-1a hashes the name, and the finalizer of SplitMix64 spreads the hash over all bits.
        let mut hash =
            bytes.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
        hash ^= self.seed.unwrap_or(run_seed).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        hash = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        hash = (hash ^ (hash >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        hash ^ (hash >> 31)
    }
}

/// Makes a name unique within the phase by appending a number.
pub(super) fn unlike(names: &mut HashSet<String>, name: String) -> String {
    let mut unlike = name.clone();
    for number in 2.. {
        if names.insert(unlike.clone()) {
            break;
        }
        unlike = format!("{name} ({number})");
    }
    unlike
}
