//! Results: their sampling errors, their schema and their tables.

mod sampling;
mod schema;
mod tables;
mod upgrade;
