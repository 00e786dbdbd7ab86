//! The NBD server as clients see it, friendly ones and others.

mod commands;
mod crowded;
mod extended;
mod handshake;
mod hostile;
mod served;
mod sharing;
mod tls;
