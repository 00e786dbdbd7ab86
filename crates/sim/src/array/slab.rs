//! A slab: stable slots that are reused when free.

/// Values by number.
#[derive(Clone, Debug)]
pub struct Slab<T> {
    values: Vec<Option<T>>,
    free: Vec<u32>,
}

impl<T> Slab<T> {
    /// An empty slab.
    pub fn new() -> Self {
        Slab { values: Vec::new(), free: Vec::new() }
    }

    /// Keeps a value; returns its number.
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

    /// Gives a value back.
    #[inline]
    pub fn remove(&mut self, at: u32) -> T {
        self.free.push(at);
        self.values[at as usize].take().expect("a number in use")
    }

    /// The value with a number that is in use.
    #[inline]
    pub fn get(&self, at: u32) -> &T {
        self.values[at as usize].as_ref().expect("a number in use")
    }

    /// Mutable access to a slot.
    #[inline]
    pub fn get_mut(&mut self, at: u32) -> &mut T {
        self.values[at as usize].as_mut().expect("a number in use")
    }

    /// No number is in use.
    pub fn is_empty(&self) -> bool {
        self.free.len() == self.values.len()
    }

    /// Numbers in use, ascending.
    pub fn numbers(&self) -> impl Iterator<Item = u32> + '_ {
        self.values.iter().enumerate().filter(|(_, value)| value.is_some()).map(|(at, _)| at as u32)
    }
}
