//! [`Kept`]: caches values that only depend on a description, since runs of a sweep differ in their workload more often
//! than in their system.

/// Descriptions that are remembered.
const DESCRIPTIONS: usize = 4;

/// Values for the descriptions that this thread used last.
#[derive(Debug)]
pub struct Kept<D, M>(Vec<(D, M)>);

impl<D, M> Default for Kept<D, M> {
    fn default() -> Self {
        Kept(Vec::new())
    }
}

impl<D: Clone + PartialEq, M: Clone> Kept<D, M> {
    /// Returns the value of a description, created at most once while it is cached.
    ///
    /// # Errors
    /// That of creating it.
    pub fn of<E>(&mut self, description: &D, make: impl FnOnce() -> Result<M, E>) -> Result<M, E> {
        if let Some(at) = self.0.iter().position(|(known, _)| known == description) {
            // Frequently used values stay.
            self.0[..=at].rotate_right(1);
            return Ok(self.0[0].1.clone());
        }
        let made = make()?;
        self.0.truncate(DESCRIPTIONS - 1);
        self.0.insert(0, (description.clone(), made.clone()));
        Ok(made)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_asked_for_last_is_not_made_again() {
        let mut kept = Kept::default();
        let mut made = Vec::new();
        let mut ask = |key: u32| {
            let squared = kept.of(&key, || {
                made.push(key);
                if key == 9 { Err("nine") } else { Ok(key * key) }
            });
            assert_eq!(squared, if key == 9 { Err("nine") } else { Ok(key * key) });
        };
        // Five are one too many: 2 is evicted, since 1 was used again. Failures are retried.
        for key in [1, 2, 1, 3, 4, 1, 5, 1, 9, 9, 2] {
            ask(key);
        }
        assert_eq!(made, [1, 2, 3, 4, 5, 9, 9, 2]);
    }
}
