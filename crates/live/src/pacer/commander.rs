//! [`Commander`]: orders and queries to a running session.

use std::path::Path;
use std::sync::{Arc, mpsc};

use headstack_catalogue::faults::read_map;
use serde_json::{Value, json};

use super::Shared;
use crate::LiveError;
use crate::ledger::Ledger;
use crate::orders::Order;
use crate::telemetry::{self, Figures};

/// Gives orders, from any thread.
#[derive(Clone, Debug)]
pub struct Commander {
    pub(super) shared: Arc<Shared>,
}

impl Commander {
    /// Executes an order at the present moment of the model, and returns its answer.
    ///
    /// # Errors
    /// When the order is invalid, or the session is over.
    pub fn order(&self, order: Order) -> Result<Value, LiveError> {
        if order == Order::Status { Ok(self.figures()?.status) } else { Ok(self.send_order(order)?.0) }
    }

    /// Writes a line of text to the journal; returns its moment of the model when it is in the file.
    ///
    /// # Errors
    /// When there is no journal, or it cannot be written.
    pub fn mark(&self, text: &str) -> Result<u64, LiveError> {
        let marked = self.shared.gate.note(|journal| journal.mark(text));
        marked.unwrap_or_else(|| Err(LiveError::Invalid("mark: no journal is kept; give --journal FILE".to_owned())))
    }

    /// Current state with the counters.
    ///
    /// # Errors
    /// When the session is over.
    pub(crate) fn figures(&self) -> Result<Figures, LiveError> {
        let (mut status, ledger) = self.send_order(Order::Status)?;
        let ledger = ledger.expect("the status has the counters");
        // Sums are not computed on the clock thread.
        telemetry::complete_status(&mut status, &ledger, &self.shared.fidelity(&ledger));
        if let Some(contents) = self.shared.contents.get() {
            let mismatches = self.shared.gate.mismatches(contents).map_err(LiveError::io("the contents"))?;
            status["mismatches"] = json!(mismatches);
        }
        Ok(Figures { status, ledger })
    }

    fn send_order(&self, mut order: Order) -> Result<(Value, Option<Ledger>), LiveError> {
        // The clock thread opens no files.
        if let Order::Inject { fault, .. } = &mut order {
            if self.shared.is_instant {
                let why = "this device answers immediately and has no faults; use a simulated system or --latency";
                return Err(LiveError::Invalid(why.to_owned()));
            }
            read_map(fault, Path::new(""))?;
            self.shared.gate.expect(fault);
        }
        let (answer, heard) = mpsc::channel();
        let over = || LiveError::Invalid("the session is over".to_owned());
        let mut inbox = self.shared.inbox();
        if inbox.closing {
            return Err(over());
        }
        inbox.orders.push((order, answer));
        drop(inbox);
        self.shared.wake();
        heard.recv().unwrap_or_else(|_| Err(over()))
    }
}
