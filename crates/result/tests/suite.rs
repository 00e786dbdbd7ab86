//! Tests of results: sampling errors, schema and tables.

mod sampling;
mod schema;
mod tables;
mod upgrade;
