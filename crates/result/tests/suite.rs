//! Results: their sampling errors and their schema.

mod sampling;
mod schema;
mod upgrade;
