//! The screen of `flexfs top`: what a mounted volume, or a card that is served, does, drawn from the answers of its server.
//!
//! A [`Picture`] is of a `volume` or of a `card`; `grid`, `wear` and `frame` are parts of both. Invariant: a screen is a function of the
//! [`Picture`] and the size alone, and every figure on it is what
//! `flexfs info --json` tells of the same moment; only rates are differences of two answers.

mod card;
mod frame;
mod grid;
mod picture;
pub mod screen;
#[cfg(test)]
mod tests;
mod volume;
mod wear;

use std::convert::Infallible;

use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::buffer::Buffer;

pub use picture::{HEIGHT, Picture, ServerAnswer, WIDTH};

/// The picture as plain text of [`WIDTH`] x [`HEIGHT`].
pub fn text(picture: &Picture) -> String {
    text_of(picture, WIDTH, HEIGHT).unwrap_or_else(|never| match never {})
}

/// The picture as plain text of this size.
fn text_of(picture: &Picture, width: u16, height: u16) -> Result<String, Infallible> {
    let mut terminal = Terminal::new(TestBackend::new(width, height))?;
    let drawn = terminal.draw(|frame| picture.draw(frame))?;
    Ok(lines(drawn.buffer).join("\n"))
}

/// The rows of a screen, without the spaces at their ends.
fn lines(buffer: &Buffer) -> Vec<String> {
    let rows = buffer.content().chunks(usize::from(buffer.area.width).max(1));
    rows.map(|row| row.iter().map(|cell| cell.symbol()).collect::<String>().trim_end().to_owned()).collect()
}
