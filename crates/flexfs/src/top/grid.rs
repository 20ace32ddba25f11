//! A map of blocks: a cell for a block, or for several where there are more blocks than cells.
//!
//! Invariants: the blocks of a cell follow each other, each block is in one cell, and all cells but the last stand for as
//! many blocks; a cell shows the commonest kind of its blocks.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;

use super::frame;
use crate::output::grouped;

/// The kinds of a map: in which order they win a cell where several are as common, and the looks of each.
pub struct GridKinds<K> {
    /// The last wins over no other.
    pub order: Vec<K>,
    pub cell: fn(K) -> Span<'static>,
}

/// Rows that a map with its frame needs to show each block by itself.
pub fn rows(blocks: usize, width: u16) -> u16 {
    let cells = usize::from(width.saturating_sub(2)).max(1);
    u16::try_from(blocks.div_ceil(cells)).unwrap_or(u16::MAX).saturating_add(2)
}

/// Draws the map, with `title` behind the number of blocks above it, and the legend below.
pub fn draw<K: Copy + PartialEq>(
    frame: &mut Frame,
    area: Rect,
    blocks: &[K],
    kinds: &GridKinds<K>,
    title: &str,
    legend: Line<'static>,
) {
    let (columns, rows) = (usize::from(area.width.saturating_sub(2)), usize::from(area.height.saturating_sub(2)));
    let blocks_per_cell = blocks.len().div_ceil((columns * rows).max(1)).max(1);
    let title = format!("{} blocks, {blocks_per_cell} a cell; {title}", grouped(blocks.len() as u64));
    let cells: Vec<K> = blocks.chunks(blocks_per_cell).filter_map(|blocks| commonest(blocks, &kinds.order)).collect();
    let lines: Vec<Line> =
        cells.chunks(columns.max(1)).map(|row| row.iter().map(|&kind| (kinds.cell)(kind)).collect()).collect();
    frame.render_widget(Paragraph::new(lines).block(frame::titled(title).title_bottom(legend)), area);
}

/// The kind that most of some blocks are; of several, the first in order.
pub fn commonest<K: Copy + PartialEq>(blocks: &[K], order: &[K]) -> Option<K> {
    let count = |kind: &K| blocks.iter().filter(|block| *block == kind).count();
    // Of equal ones `max_by_key` takes the last.
    order.iter().rev().max_by_key(|kind| count(kind)).copied()
}
