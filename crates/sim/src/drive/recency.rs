//! [`Recency`]: the order in which a buffer's segments were last used. A linked list, because each read miss needs the
//! oldest segment and searching all segments took longer than the rest of a request.

/// Segments, least recently used first. Empty segments come first, in the order of their numbers.
#[derive(Clone, Debug)]
pub struct Recency {
    /// Neighbors of each segment. The extra entry at the end holds the two ends of the list.
    links: Vec<Link>,
}

#[derive(Clone, Copy, Debug)]
struct Link {
    older: u32,
    newer: u32,
    is_empty: bool,
}

impl Recency {
    /// Creates a list of empty segments.
    pub fn new(segments: usize) -> Recency {
        let ends = segments as u32;
        let link = |at: u32| Link {
            older: at.checked_sub(1).unwrap_or(ends),
            newer: if at == ends { 0 } else { at + 1 },
            is_empty: true,
        };
        Recency { links: (0..=ends).map(link).collect() }
    }

    fn ends(&self) -> usize {
        self.links.len() - 1
    }

    /// Returns the segment to replace next.
    #[inline]
    pub fn oldest(&self) -> Option<usize> {
        let ends = self.ends();
        (ends > 0).then(|| self.links[ends].newer as usize)
    }

    /// Marks a segment as just used. A segment that is not in the list is never replaced.
    #[inline]
    pub fn touch(&mut self, segment: usize) {
        if segment < self.ends() {
            self.unlink(segment);
            self.link_before(segment, self.ends());
            self.links[segment].is_empty = false;
        }
    }

    /// Marks a segment as empty.
    pub fn forget(&mut self, segment: usize) {
        if segment >= self.ends() {
            return;
        }
        self.unlink(segment);
        let mut next = self.links[self.ends()].newer as usize;
        while next < segment && self.links[next].is_empty {
            next = self.links[next].newer as usize;
        }
        self.link_before(segment, next);
        self.links[segment].is_empty = true;
    }

    #[inline]
    fn unlink(&mut self, segment: usize) {
        let Link { older, newer, .. } = self.links[segment];
        self.links[older as usize].newer = newer;
        self.links[newer as usize].older = older;
    }

    #[inline]
    fn link_before(&mut self, segment: usize, next: usize) {
        let older = self.links[next].older;
        (self.links[segment].older, self.links[segment].newer) = (older, next as u32);
        self.links[older as usize].newer = segment as u32;
        self.links[next].older = segment as u32;
    }
}

#[cfg(test)]
mod tests {
    use headstack_workload::{Purpose, Random};

    use super::*;

    #[test]
    fn the_oldest_is_the_one_that_a_search_finds() {
        for segments in [0, 1, 2, 7] {
            let (mut recency, mut used) = (Recency::new(segments), vec![0u64; segments]);
            let mut random = Random::new(1, Purpose::Choices);
            for clock in 1..=2000 {
                // One index more than there are read segments: the write segment.
                let segment = random.below(segments as u64 + 1) as usize;
                let is_touched = random.below(3) > 0;
                if is_touched {
                    recency.touch(segment)
                } else {
                    recency.forget(segment)
                }
                if let Some(used) = used.get_mut(segment) {
                    *used = if is_touched { clock } else { 0 };
                }
                let found = used.iter().enumerate().min_by_key(|&(_, &used)| used).map(|(at, _)| at);
                assert_eq!(recency.oldest(), found, "{used:?}");
            }
        }
    }
}
