//! The card as hosts see it, over real sockets.

mod disk;
mod handshake;
mod harness;
mod patience;
mod recording;
