//! The block map of a volume.
//!
//! Invariant: a kind of block has one colour, in the map and in the legend.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::{Color, Style};
use ratatui::text::{Line, Span};

use super::super::grid::{self, GridKinds};
use super::snapshot::Snapshot;
use crate::block_kind::Kind;
use crate::size;

/// How a kind of block is coloured.
pub fn style(kind: Kind) -> Style {
    let on = |color| Style::new().fg(Color::Black).bg(color);
    match kind {
        Kind::Slc => on(Color::Cyan),
        Kind::Hot => on(Color::Yellow),
        Kind::Native => on(Color::Blue),
        Kind::Metadata => on(Color::Magenta),
        Kind::Bad => on(Color::Red),
        Kind::Free => Style::new().fg(Color::DarkGray),
    }
}

/// Rows that a map with its frame needs to show each block by itself.
pub fn rows(snapshot: &Snapshot, width: u16) -> u16 {
    grid::rows(snapshot.mounted.block_map.len(), width)
}

/// Draws the map, with what is stored above it and the legend below.
pub fn draw(frame: &mut Frame, area: Rect, snapshot: &Snapshot) {
    let used = format!("{} of {} used", size::human(snapshot.used_bytes), size::human(snapshot.capacity_bytes));
    // Free comes last: a cell with one block in use shows that.
    let kinds = GridKinds { order: Kind::ALL.to_vec(), cell };
    grid::draw(frame, area, &snapshot.mounted.block_map, &kinds, &used, legend(snapshot));
}

fn cell(kind: Kind) -> Span<'static> {
    Span::styled(kind.letter().to_string(), style(kind))
}

/// What the letters mean, and how many blocks are what.
fn legend(snapshot: &Snapshot) -> Line<'static> {
    let blocks = &snapshot.blocks;
    let named = |kind, count: u32, name: &str, after: &str| [cell(kind), Span::raw(format!(" {count} {name}{after}"))];
    let entries = [
        named(Kind::Free, blocks.free, "free", "  "),
        named(Kind::Slc, blocks.slc, "SLC", " ("),
        named(Kind::Hot, blocks.slc_hot, "hot", ")  "),
        named(Kind::Native, blocks.native, "native", "  "),
        named(Kind::Metadata, blocks.metadata, "metadata", "  "),
        named(Kind::Bad, blocks.bad, "bad", " "),
    ];
    std::iter::once(Span::raw(" ")).chain(entries.into_iter().flatten()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_shows_the_commonest_kind_and_rather_one_in_use_than_free() {
        let of = |letters: &str| {
            let kinds: Vec<Kind> = letters.chars().filter_map(Kind::from_letter).collect();
            grid::commonest(&kinds, &Kind::ALL).unwrap().letter()
        };
        for (letters, expected) in
            [("n", 'n'), ("nns", 'n'), ("..s", '.'), ("..ss", 's'), ("hhnn.", 'h'), ("b...", '.')]
        {
            assert_eq!(of(letters), expected, "{letters}");
        }
    }
}
