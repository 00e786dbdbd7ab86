//! [`Steps`]: counts, times and bytes by kind of step; a step is roughly a system call.

use headstack_jobfiles::trees::Operation;
use headstack_result::{KindResult, OperationResult};

/// An operation on a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    Mkdir,
    Rmdir,
    Create,
    Open,
    Close,
    Read,
    Write,
    Flush,
    Getattr,
    Setattr,
    Access,
    Delete,
    Copy,
    Move,
}

impl Step {
    const ALL: [Step; 14] = [
        Step::Mkdir,
        Step::Rmdir,
        Step::Create,
        Step::Open,
        Step::Close,
        Step::Read,
        Step::Write,
        Step::Flush,
        Step::Getattr,
        Step::Setattr,
        Step::Access,
        Step::Delete,
        Step::Copy,
        Step::Move,
    ];

    /// Returns the name of the step.
    pub fn name(self) -> &'static str {
        match self {
            Step::Mkdir => "mkdir",
            Step::Rmdir => "rmdir",
            Step::Create => "create",
            Step::Open => "open",
            Step::Close => "close",
            Step::Read => "read",
            Step::Write => "write",
            Step::Flush => "flush",
            Step::Getattr => "getattr",
            Step::Setattr => "setattr",
            Step::Access => "access",
            Step::Delete => "delete",
            Step::Copy => "copy",
            Step::Move => "move",
        }
    }

    /// Returns the step under which an operation is counted.
    pub fn of(operation: Operation) -> Step {
        match operation {
            Operation::Mkdir => Step::Mkdir,
            Operation::Rmdir => Step::Rmdir,
            Operation::Create => Step::Create,
            Operation::Open => Step::Open,
            Operation::Read => Step::Read,
            Operation::Write => Step::Write,
            Operation::Getattr => Step::Getattr,
            Operation::Setattr => Step::Setattr,
            Operation::Access => Step::Access,
            Operation::Delete => Step::Delete,
            Operation::Copy => Step::Copy,
            Operation::Move => Step::Move,
        }
    }
}

/// Results of all kinds of steps.
#[derive(Clone, Debug, Default)]
pub struct Steps([KindResult; Step::ALL.len()]);

impl Steps {
    /// Returns the mutable results of one kind of step.
    pub fn of(&mut self, step: Step) -> &mut KindResult {
        &mut self.0[step as usize]
    }

    /// Returns the results of one kind of step.
    pub fn get(&self, step: Step) -> &KindResult {
        &self.0[step as usize]
    }

    /// Adds the results of another thread.
    pub fn merge(&mut self, other: &Steps) {
        for (own, other) in self.0.iter_mut().zip(&other.0) {
            own.count += other.count;
            own.bytes += other.bytes;
            own.errors += other.errors;
            own.latency.merge(&other.latency);
            own.service.merge(&other.service);
        }
    }

    /// Returns the results of all kinds of steps that occurred.
    pub fn operation_results(&self) -> Vec<OperationResult> {
        let done = Step::ALL.iter().zip(&self.0).filter(|(_, kind)| kind.count > 0 || kind.errors > 0);
        done.map(|(step, kind)| OperationResult {
            name: step.name().to_owned(),
            count: kind.count,
            errors: kind.errors,
            bytes: kind.bytes,
            latency: kind.latency.clone(),
        })
        .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_step_has_a_place_of_its_own() {
        let mut steps = Steps::default();
        for (index, step) in Step::ALL.into_iter().enumerate() {
            steps.of(step).count = index as u64 + 1;
        }
        let counts: Vec<_> = steps.operation_results().into_iter().map(|one| (one.name, one.count)).collect();
        let expected: Vec<_> = Step::ALL.iter().zip(1..).map(|(step, count)| (step.name().to_owned(), count)).collect();
        assert_eq!(counts, expected);
    }
}
