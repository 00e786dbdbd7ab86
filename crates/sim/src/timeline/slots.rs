//! [`Slots`]: values with numbers that are reused.

/// Values with numbers that are reused.
#[derive(Debug)]
pub(super) struct Slots<V> {
    slots: Vec<Option<V>>,
    free: Vec<u32>,
    /// Number of slots in use.
    pub used: usize,
}

impl<V> Default for Slots<V> {
    fn default() -> Self {
        Slots { slots: Vec::new(), free: Vec::new(), used: 0 }
    }
}

impl<V> Slots<V> {
    /// Returns all values with their numbers.
    pub fn iter(&self) -> impl Iterator<Item = (u32, &V)> {
        let numbered = self.slots.iter().enumerate();
        numbered.filter_map(|(number, slot)| slot.as_ref().map(|value| (number as u32, value)))
    }

    /// Stores a value; returns its number.
    pub fn insert(&mut self, value: V) -> u32 {
        self.used += 1;
        match self.free.pop() {
            Some(number) => {
                self.slots[number as usize] = Some(value);
                number
            }
            None => {
                self.slots.push(Some(value));
                (self.slots.len() - 1) as u32
            }
        }
    }

    /// Returns the value of a number.
    pub fn get_mut(&mut self, number: u32) -> &mut V {
        self.slots[number as usize].as_mut().expect("a number in use")
    }

    /// Removes the value of a number, which is free now.
    pub fn take(&mut self, number: u32) -> V {
        self.used -= 1;
        self.free.push(number);
        self.slots[number as usize].take().expect("a number in use")
    }
}
