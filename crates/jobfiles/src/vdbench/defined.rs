//! [`Defined`]: the definitions of one kind, in file order.

use headstack_workload::document::InputError;

use super::scan::Parameter;

/// A named definition of storage, a tree, a load or a run.
pub(super) trait Definition: Clone {
    /// Returns a definition with vdbench's defaults.
    fn new() -> Self;
    /// Returns the name of the definition.
    fn name(&self) -> &str;
    /// Returns a copy with this name and position.
    fn called(self, name: String, place: Parameter) -> Self;
    /// Sets a parameter. Returns a remark if the parameter is not supported.
    fn set(&mut self, parameter: &Parameter) -> Result<Option<&'static str>, InputError>;
}

/// All definitions of a kind and their defaults, as set by `sd=default` and the like up to the end of the file.
pub(super) struct Defined<T> {
    pub(super) all: Vec<T>,
    pub(super) default: T,
    /// Whether the following parameters belong to the `default` definition.
    in_default: bool,
}

impl<T: Definition> Defined<T> {
    pub(super) fn new() -> Self {
        Defined { all: Vec::new(), default: T::new(), in_default: false }
    }

    /// Starts a definition as a copy of the `default` definition.
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

    /// Sets a parameter of the current definition. Returns a remark if the parameter is not supported.
    pub(super) fn set(&mut self, parameter: &Parameter) -> Result<Option<&'static str>, InputError> {
        let default = self.in_default;
        match self.all.last_mut().filter(|_| !default) {
            Some(last) => last.set(parameter),
            None => self.default.set(parameter),
        }
    }
}

pub(super) fn defined_before(place: &Parameter, name: &str) -> InputError {
    place.error(format!("{name:?} is already defined; use each name only once"))
}
