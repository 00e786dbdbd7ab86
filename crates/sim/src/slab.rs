//! [`Slab`]: a container of values with stable numbers. Free numbers are reused.

/// Values by number.
#[derive(Clone, Debug)]
pub struct Slab<T> {
    values: Vec<Option<T>>,
    free: Vec<u32>,
}

impl<T> Default for Slab<T> {
    fn default() -> Self {
        Slab { values: Vec::new(), free: Vec::new() }
    }
}

impl<T> Slab<T> {
    /// Returns how many numbers are in use.
    pub fn len(&self) -> usize {
        self.values.len() - self.free.len()
    }

    /// Stores a value; returns its number.
    #[inline]
    pub fn insert(&mut self, value: T) -> u32 {
        match self.free.pop() {
            Some(at) => {
                self.values[at as usize] = Some(value);
                at
            }
            None => {
                self.values.push(Some(value));
                (self.values.len() - 1) as u32
            }
        }
    }

    /// Removes a value and returns it.
    #[inline]
    pub fn remove(&mut self, at: u32) -> T {
        self.free.push(at);
        self.values[at as usize].take().expect("the number is in use")
    }

    /// Returns the value of a number, which must be in use.
    #[inline]
    pub fn get(&self, at: u32) -> &T {
        self.values[at as usize].as_ref().expect("the number is in use")
    }

    /// Returns the value of a number, which must be in use, for modification.
    #[inline]
    pub fn get_mut(&mut self, at: u32) -> &mut T {
        self.values[at as usize].as_mut().expect("the number is in use")
    }

    /// Whether no number is in use.
    pub fn is_empty(&self) -> bool {
        self.free.len() == self.values.len()
    }

    /// Returns the numbers in use, ascending, and their values.
    pub fn iter(&self) -> impl Iterator<Item = (u32, &T)> {
        self.values.iter().enumerate().filter_map(|(at, value)| value.as_ref().map(|value| (at as u32, value)))
    }
}
