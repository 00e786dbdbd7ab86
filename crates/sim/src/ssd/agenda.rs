//! The next event time of each die: a tree of minima, so that a time can also be withdrawn (suspension).

/// An entry of the tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Entry {
    at_ns: u64,
    source: u32,
}

/// The next time of each of a fixed number of sources; `u64::MAX` for none.
#[derive(Clone, Debug)]
pub struct Agenda {
    /// Node `n` holds the earlier of nodes `2n` and `2n + 1`; the leaves are the last half.
    nodes: Vec<Entry>,
}

impl Agenda {
    /// Nothing is planned.
    pub fn new(sources: usize) -> Self {
        Agenda { nodes: vec![Entry { at_ns: u64::MAX, source: 0 }; 2 * sources.next_power_of_two()] }
    }

    /// Plans a source for a time, or for none with `u64::MAX`.
    #[inline]
    pub fn set(&mut self, source: u32, at_ns: u64) {
        let mut node = self.nodes.len() / 2 + source as usize;
        self.nodes[node] = Entry { at_ns, source };
        while node > 1 {
            let (left, right) = (self.nodes[node & !1], self.nodes[node | 1]);
            let first = if right.at_ns < left.at_ns { right } else { left };
            node /= 2;
            if self.nodes[node] == first {
                return;
            }
            self.nodes[node] = first;
        }
    }

    /// (Earliest time, source); the lowest source of several.
    #[inline]
    pub fn next(&self) -> (u64, u32) {
        (self.nodes[1].at_ns, self.nodes[1].source)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_earliest_is_next_whatever_changed() {
        for sources in [1, 2, 5, 64] {
            let mut agenda = Agenda::new(sources);
            let mut times = vec![u64::MAX; sources];
            let mut state = 1u64;
            for _ in 0..2_000 {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                let source = (state >> 33) as usize % sources;
                times[source] = if state & 1 << 60 == 0 { u64::MAX } else { state >> 54 };
                agenda.set(source as u32, times[source]);
                let earliest = *times.iter().min().expect("a source");
                assert_eq!(agenda.next().0, earliest);
                if earliest != u64::MAX {
                    let first = times.iter().position(|&at_ns| at_ns == earliest).expect("just found");
                    assert_eq!(agenda.next().1, first as u32);
                }
            }
        }
    }
}
