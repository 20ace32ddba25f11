//! One client's connection, from the greeting to its end.
//!
//! Invariant: a client that breaks the protocol, or is silent in the midst of a request for longer than the stream allows,
//! is left alone with its connection closed; what it asked for before was done and answered.

mod handshake;
mod request_reader;
mod transmission;

use std::io;

pub use handshake::{Agreement, ExportOffer, handshake};
pub use transmission::transmit;

/// Why a connection ended otherwise than by the client's wish.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClientError {
    #[error("it breaks the protocol: {0}")]
    Protocol(&'static str),
    #[error("its connection failed: {0}")]
    Connection(#[from] io::Error),
}
