//! [`Port`]: the controller's side of each member, and the links that a command holds.

use std::collections::VecDeque;

use crate::description::array::{ArrayDescription, Member};

/// The controller's side of a member.
#[derive(Clone, Debug)]
pub struct Port {
    pub(super) tags: u32,
    pub(super) tagged: u32,
    pub(super) waiting: VecDeque<u32>,
    /// Time at which the adapter can take the next command.
    pub(super) free_ns: u64,
    pub(super) ways: Vec<Vec<u32>>,
    /// Path used last: commands alternate between paths (multipath).
    pub(super) way: usize,
    /// End of the last command sent to the member.
    pub last_end_bytes: u64,
}

impl Port {
    /// Creates the port of an idle member.
    pub fn new(description: &ArrayDescription, member: &Member) -> Port {
        let device = &description.devices[member.device as usize];
        let mut ways = member.ways.clone();
        if ways.is_empty() {
            ways.push(Vec::new());
        }
        Port {
            tags: description.controller.member_tags.min(device.tags()),
            tagged: 0,
            waiting: VecDeque::new(),
            free_ns: 0,
            ways,
            way: 0,
            last_end_bytes: 0,
        }
    }

    /// Returns the commands in the member and waiting for it.
    #[inline]
    pub fn outstanding(&self) -> usize {
        self.tagged as usize + self.waiting.len()
    }

    /// Whether no command waits while a tag is free, and the member has no more commands than tags.
    pub fn is_filled_up(&self) -> bool {
        self.tagged == self.tags || (self.tagged < self.tags && self.waiting.is_empty())
    }

    /// Resets the port after its member lost all commands.
    pub fn reset(&mut self) {
        self.tagged = 0;
        self.waiting.clear();
    }

    /// Returns the path of the last command that was delivered.
    #[inline]
    pub(super) fn way(&self) -> &[u32] {
        &self.ways[self.way]
    }
}

/// A link that a command holds from its delivery to its completion.
#[derive(Clone, Debug, Default)]
pub struct HeldLink {
    pub(super) by_command: bool,
    pub(super) member: u32,
    pub(super) waiting: VecDeque<u32>,
}
