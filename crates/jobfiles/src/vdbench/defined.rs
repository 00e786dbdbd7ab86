//! Definitions of one kind, as a file states them one after another.

use headstack_workload::document::InputError;

use super::scan::Parameter;

/// What is defined by name: storage, a tree, a load, a run.
pub(super) trait Definition: Clone {
    /// What vdbench assumes where nothing is said.
    fn new() -> Self;
    /// Its name.
    fn name(&self) -> &str;
    /// The same under this name, defined there.
    fn called(self, name: String, place: Parameter) -> Self;
    /// Notes a parameter; the text says what becomes of one that is not done.
    fn set(&mut self, parameter: &Parameter) -> Result<Option<&'static str>, InputError>;
}

/// All of a kind, and what they begin with: `sd=default` and so on, as it stands at the end of the file.
pub(super) struct Defined<T> {
    pub(super) all: Vec<T>,
    pub(super) default: T,
    /// Whether the parameters that follow are those of the `default`.
    in_default: bool,
}

impl<T: Definition> Defined<T> {
    pub(super) fn new() -> Self {
        Defined { all: Vec::new(), default: T::new(), in_default: false }
    }

    /// Begins a definition, as a copy of the `default`.
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

    /// Notes a parameter of the definition that was begun last.
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
