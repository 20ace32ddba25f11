//! The block map of a card.
//!
//! Invariant: a use of blocks has one colour, in the map and in the legend.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::{Color, Style};
use ratatui::text::{Line, Span};

use super::super::grid::{self, GridKinds};
use super::snapshot::CardSnapshot;
use crate::size;
use crate::translation::uses;

/// Rows that a map with its frame needs to show each block by itself.
pub fn rows(snapshot: &CardSnapshot, width: u16) -> u16 {
    grid::rows(snapshot.served.block_map.len(), width)
}

/// Draws the map, with the scheme above it and the legend below.
pub fn draw(frame: &mut Frame, area: Rect, snapshot: &CardSnapshot) {
    let blocks: Vec<char> = snapshot.served.block_map.chars().collect();
    // Free comes last: a cell with one block in use shows that.
    let (free, used): (Vec<char>, Vec<char>) =
        uses::words().map(|(_, letter)| letter).partition(|&letter| letter == '.');
    let kinds = GridKinds { order: [used, free].concat(), cell };
    let title = format!("{}, {}", snapshot.scheme, size::human(snapshot.capacity_bytes));
    grid::draw(frame, area, &blocks, &kinds, &title, legend(snapshot));
}

fn cell(letter: char) -> Span<'static> {
    let on = |color| Style::new().fg(Color::Black).bg(color);
    let style = match letter {
        'a' | 'm' => on(Color::Magenta),
        'l' | 'R' => on(Color::Cyan),
        'o' => on(Color::Yellow),
        'D' | 'P' => on(Color::Blue),
        'x' | '?' => on(Color::Red),
        _ => Style::new().fg(Color::DarkGray),
    };
    Span::styled(letter.to_string(), style)
}

/// The uses that there are, and how many blocks have each.
fn legend(snapshot: &CardSnapshot) -> Line<'static> {
    let counted = uses::words().filter_map(|(word, letter)| {
        let count = snapshot.blocks.get(word).copied().filter(|&count| count > 0)?;
        Some([cell(letter), Span::raw(format!(" {count} {word}  "))])
    });
    std::iter::once(Span::raw(" ")).chain(counted.flatten()).collect()
}
