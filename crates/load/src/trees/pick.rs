//! [`Picker`]: chooses the next member of a load.

use std::sync::atomic::{AtomicU64, Ordering};

use headstack_jobfiles::trees::Order;
use headstack_workload::Random;

/// Number of random draws before all members are tried in turn.
const DRAWS: usize = 64;

/// State shared by the threads of a load.
pub struct Picker {
    order: Order,
    count: u64,
    next: AtomicU64,
}

/// Result of picking a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PickOutcome<T> {
    /// The picked member.
    Member(u64, T),
    /// No member qualifies at present.
    None,
    /// All members have had their turn.
    Done,
}

impl Picker {
    /// Creates a picker among `count` members.
    pub fn new(order: Order, count: u64) -> Picker {
        Picker { order, count, next: AtomicU64::new(0) }
    }

    /// Returns the next member for which `take` succeeds.
    pub fn pick<T>(&self, random: &mut Random, mut take: impl FnMut(u64) -> Option<T>) -> PickOutcome<T> {
        if self.count == 0 {
            return PickOutcome::None;
        }
        match self.order {
            Order::Random => {
                for _ in 0..DRAWS {
                    let member = random.below(self.count);
                    if let Some(taken) = take(member) {
                        return PickOutcome::Member(member, taken);
                    }
                }
                self.look_at_all(random.below(self.count), take)
            }
            Order::Sequential => {
                for _ in 0..self.count {
                    let member = self.next.fetch_add(1, Ordering::Relaxed) % self.count;
                    if let Some(taken) = take(member) {
                        return PickOutcome::Member(member, taken);
                    }
                }
                PickOutcome::None
            }
            Order::Once => loop {
                let member = self.next.fetch_add(1, Ordering::Relaxed);
                if member >= self.count {
                    return PickOutcome::Done;
                }
                if let Some(taken) = take(member) {
                    return PickOutcome::Member(member, taken);
                }
            },
        }
    }

    fn look_at_all<T>(&self, first: u64, mut take: impl FnMut(u64) -> Option<T>) -> PickOutcome<T> {
        let found = (first..self.count).chain(0..first).find_map(|member| take(member).map(|taken| (member, taken)));
        found.map_or(PickOutcome::None, |(member, taken)| PickOutcome::Member(member, taken))
    }
}

#[cfg(test)]
mod tests {
    use headstack_workload::Purpose;

    use super::*;

    #[test]
    fn members_have_their_turns() {
        let mut random = Random::new(1, Purpose::Choices);
        let any = |member: u64| (member != 2).then_some(());
        let mut some = |picker: &Picker| (0..5).map(|_| picker.pick(&mut random, any)).collect::<Vec<_>>();
        let of = |members: &[u64]| members.iter().map(|member| PickOutcome::Member(*member, ())).collect::<Vec<_>>();
        assert_eq!(some(&Picker::new(Order::Sequential, 4)), of(&[0, 1, 3, 0, 1]));
        let mut once = of(&[0, 1, 3]);
        once.extend([PickOutcome::Done, PickOutcome::Done]);
        assert_eq!(some(&Picker::new(Order::Once, 4)), once);
        let drawn = some(&Picker::new(Order::Random, 4));
        assert!(drawn.iter().all(|picked| matches!(picked, PickOutcome::Member(0 | 1 | 3, ()))), "{drawn:?}");
        let picker = Picker::new(Order::Random, 4);
        assert_eq!(picker.pick(&mut random, |_| None::<()>), PickOutcome::None);
        assert_eq!(picker.pick(&mut random, |member| (member == 3).then_some(())), PickOutcome::Member(3, ()));
    }
}
