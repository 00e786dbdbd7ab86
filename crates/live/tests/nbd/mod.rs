//! The NBD server as seen by well-behaved and hostile clients.

mod commands;
mod crowded;
mod extended;
mod handshake;
mod hostile;
mod served;
mod sharing;
mod tls;
