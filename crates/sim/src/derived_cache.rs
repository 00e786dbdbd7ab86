//! [`DerivedCache`]: remembers values derived from descriptions, because runs of a sweep differ in their workload more often
//! than in their system.

/// Number of descriptions that are remembered.
const DESCRIPTIONS: usize = 4;

/// Values derived from the descriptions that this thread used last.
#[derive(Debug)]
pub struct DerivedCache<D, M>(Vec<(D, M)>);

impl<D, M> Default for DerivedCache<D, M> {
    fn default() -> Self {
        DerivedCache(Vec::new())
    }
}

impl<D: Clone + PartialEq, M: Clone> DerivedCache<D, M> {
    /// Returns the value of a description, which is derived at most once while it is remembered.
    ///
    /// # Errors
    /// That of `make`.
    pub fn of<E>(&mut self, description: &D, make: impl FnOnce() -> Result<M, E>) -> Result<M, E> {
        if let Some(at) = self.0.iter().position(|(known, _)| known == description) {
            // Frequently used entries stay.
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
    fn remembered_values_are_not_derived_again() {
        let mut kept = DerivedCache::default();
        let mut made = Vec::new();
        let mut ask = |key: u32| {
            let squared = kept.of(&key, || {
                made.push(key);
                if key == 9 { Err("nine") } else { Ok(key * key) }
            });
            assert_eq!(squared, if key == 9 { Err("nine") } else { Ok(key * key) });
        };
        // Five are one too many: 2 is dropped, since 1 was used again. A failed derivation is tried again.
        for key in [1, 2, 1, 3, 4, 1, 5, 1, 9, 9, 2] {
            ask(key);
        }
        assert_eq!(made, [1, 2, 3, 4, 5, 9, 9, 2]);
    }
}
