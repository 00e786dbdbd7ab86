//! [`Resolver`]: reads values from an array's files and records the values that the files do not state.

use headstack_sim::array::description::Member;
use headstack_sim::device::DeviceDescription;
use headstack_workload::InputError;
use headstack_workload::quantity::{Bytes, DurationNs};
use serde::Serialize;

use super::Layers;
use crate::resolve::Derived;

/// The files of an array that is being completed.
pub(super) struct Resolver<'a> {
    /// The array's file and its base files.
    pub(super) layers: &'a Layers,
    /// Values that the files do not state, in order of derivation.
    pub(super) derived: Vec<Derived>,
}

/// The drives of an array and their names.
pub(super) struct Parts<'a> {
    pub(super) devices: &'a [DeviceDescription],
    pub(super) members: &'a [Member],
}

impl Parts<'_> {
    /// Returns the device of a member.
    pub(super) fn device(&self, member: u32) -> &DeviceDescription {
        &self.devices[self.members[member as usize].device as usize]
    }

    /// Returns the indexes of the drives in a list of names and ranges.
    pub(super) fn find(&self, resolver: &Resolver, key: &str, names: &[String]) -> Result<Vec<u32>, InputError> {
        let own: Vec<&str> = self.members.iter().map(|member| member.name.as_str()).collect();
        let indices: Result<Vec<_>, _> = names.iter().map(|name| resolver.find(key, "drive", &own, name)).collect();
        Ok(indices?.concat())
    }
}

/// Converts a duration to nanoseconds; a negative duration is an error.
pub(super) fn ns(resolver: &Resolver, key: &str, duration: DurationNs) -> Result<u64, InputError> {
    u64::try_from(duration.0).map_err(|_| resolver.error(key, format!("{duration} is negative; must be 0ns or more")))
}

impl Resolver<'_> {
    /// Returns an error about a key, with file and line.
    pub(super) fn error(&self, key: &str, message: impl Into<String>) -> InputError {
        self.layers.error(key, message)
    }

    /// Returns the stated value. If there is none, returns `value` and records it with its rule.
    pub(super) fn or<T: Serialize>(&mut self, stated_value: Option<T>, key: &str, rule: &str, value: T) -> T {
        match stated_value {
            Some(stated_value) => stated_value,
            None => {
                self.derived.push(Derived::new(key, &value, rule));
                value
            }
        }
    }

    /// Returns the stated size rounded down to whole units. Records the result if it differs from the stated size.
    pub(super) fn in_units(&mut self, stated_value: Option<Bytes>, key: &str, unit: u64, what: &str) -> Option<Bytes> {
        let (stated, unit) = (stated_value?, unit.max(1));
        let whole = Bytes(stated.0 / unit * unit);
        // `check` rejects a size below one unit.
        if whole == stated || whole.0 == 0 {
            return stated_value;
        }
        self.derived.push(Derived::new(key, &whole, &format!("{stated} in the file, rounded down to whole {what}")));
        Some(whole)
    }

    /// Returns the indexes of `name` among `names`: a single index, or several if `name` is a range.
    pub(super) fn find(&self, key: &str, what: &str, names: &[&str], name: &str) -> Result<Vec<u32>, InputError> {
        let place = |name: &str| match names.iter().position(|&own| own == name) {
            Some(place) => Ok(place as u32),
            None if names.is_empty() => Err(self.error(key, format!("no {what} {name:?}; this array has none"))),
            None => {
                let closest = crate::closest(name, names).join(", ");
                Err(self.error(key, format!("no {what} {name:?}; closest: {closest}")))
            }
        };
        match name.split_once("..") {
            None => Ok(vec![place(name)?]),
            Some((first, last)) => {
                let (from, to) = (place(first)?, place(last)?);
                if from > to {
                    return Err(
                        self.error(key, format!("{name:?} is a descending range; write the lower number first"))
                    );
                }
                Ok((from..=to).collect())
            }
        }
    }
}
