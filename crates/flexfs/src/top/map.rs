//! The block map: a cell for a block, or for several where there are more blocks than cells.
//!
//! Invariants: the blocks of a cell follow each other, each block is in one cell, and all cells but the last stand for as
//! many blocks; a cell shows the commonest kind of its blocks.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::{Color, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;

use super::frame;
use super::snapshot::Snapshot;
use crate::block_kind::Kind;
use crate::output::grouped;
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
    let cells = usize::from(width.saturating_sub(2)).max(1);
    u16::try_from(snapshot.mounted.block_map.len().div_ceil(cells)).unwrap_or(u16::MAX).saturating_add(2)
}

/// Draws the map, with what is stored above it and the legend below.
pub fn draw(frame: &mut Frame, area: Rect, snapshot: &Snapshot) {
    let kinds = &snapshot.mounted.block_map;
    let (columns, rows) = (usize::from(area.width.saturating_sub(2)), usize::from(area.height.saturating_sub(2)));
    let blocks_per_cell = kinds.len().div_ceil((columns * rows).max(1)).max(1);
    let title = format!(
        "{} blocks, {blocks_per_cell} a cell; {} of {} used",
        grouped(kinds.len() as u64),
        size::human(snapshot.used_bytes),
        size::human(snapshot.capacity_bytes),
    );
    let cells: Vec<Kind> = kinds.chunks(blocks_per_cell).map(commonest).collect();
    let lines: Vec<Line> =
        cells.chunks(columns.max(1)).map(|row| row.iter().map(|&kind| cell(kind)).collect()).collect();
    frame.render_widget(Paragraph::new(lines).block(frame::titled(title).title_bottom(legend(snapshot))), area);
}

fn cell(kind: Kind) -> Span<'static> {
    Span::styled(kind.letter().to_string(), style(kind))
}

/// The kind that most of some blocks are; of several, the first of [`Kind::ALL`], where free is the last.
fn commonest(blocks: &[Kind]) -> Kind {
    let count = |kind: Kind| blocks.iter().filter(|&&block| block == kind).count();
    // Of equal ones `max_by_key` takes the last.
    Kind::ALL.into_iter().rev().max_by_key(|&kind| count(kind)).unwrap_or(Kind::Free)
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
        let of = |letters: &str| commonest(&letters.chars().filter_map(Kind::from_letter).collect::<Vec<_>>()).letter();
        for (letters, expected) in
            [("n", 'n'), ("nns", 'n'), ("..s", '.'), ("..ss", 's'), ("hhnn.", 'h'), ("b...", '.')]
        {
            assert_eq!(of(letters), expected, "{letters}");
        }
    }
}
