//! The NBD server as clients see it, friendly ones and others.

mod commands;
mod handshake;
mod hostile;
mod served;
mod sharing;
mod tls;
