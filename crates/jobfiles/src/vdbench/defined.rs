//! [`Defined`]: definitions of one kind, in the order of a file.

use headstack_workload::document::InputError;

use super::scan::Parameter;

/// A named definition: storage, a tree, a load, a run.
pub(super) trait Definition: Clone {
    /// vdbench's defaults.
    fn new() -> Self;
    /// Its name.
    fn name(&self) -> &str;
    /// A copy with this name, defined at this position.
    fn called(self, name: String, place: Parameter) -> Self;
    /// Sets a parameter; returns a remark if it is not supported.
    fn set(&mut self, parameter: &Parameter) -> Result<Option<&'static str>, InputError>;
}

/// All definitions of a kind, and their defaults: `sd=default` and so on, as at the end of the file.
pub(super) struct Defined<T> {
    pub(super) all: Vec<T>,
    pub(super) default: T,
    /// Whether the following parameters belong to the `default`.
    in_default: bool,
}

impl<T: Definition> Defined<T> {
    pub(super) fn new() -> Self {
        Defined { all: Vec::new(), default: T::new(), in_default: false }
    }

    /// Starts a definition, as a copy of the `default`.
    pub(super) fn begin(&mut self, parameter: &Parameter) -> Result<(), InputError> {
        let name = parameter.word()?.to_owned();
        self.in_default = name == "default";
        if self.in_default {
            return Ok(());
        }
        if self.all.iter().any(|known| known.name() == name) {
            return Err(defined_before(parameter, &name));
        }
        self.all.push(self.default.clone().called(name, parameter.clone()));
        Ok(())
    }

    /// Sets a parameter of the current definition.
    pub(super) fn set(&mut self, parameter: &Parameter) -> Result<Option<&'static str>, InputError> {
        let default = self.in_default;
        match self.all.last_mut().filter(|_| !default) {
            Some(last) => last.set(parameter),
            None => self.default.set(parameter),
        }
    }
}

pub(super) fn defined_before(place: &Parameter, name: &str) -> InputError {
    place.error(format!("{name:?} is defined before; each name is allowed once"))
}
