//! The wear of a chip: its blocks by how often they were erased.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::{Color, Style};
use ratatui::widgets::{Bar, BarChart};
use serde::Deserialize;

use super::frame;
use crate::output::grouped;

/// The erases of a chip's blocks, as an answer has them.
#[derive(Clone, Debug, Deserialize)]
pub struct Wear {
    pub histogram: Vec<Range>,
    pub min: u32,
    pub mean: f64,
    pub max: u32,
    pub endurance_native: u32,
}

/// The blocks that were erased so often: from, to (both included).
#[derive(Clone, Debug, Deserialize)]
pub struct Range {
    pub from: u32,
    pub blocks: u64,
}

/// Draws how many blocks were erased how often.
pub fn draw(frame: &mut Frame, area: Rect, wear: &Wear) {
    let title = format!("Erases of a block: {}-{}, mean {:.1}", wear.min, wear.max, wear.mean);
    let endures = format!(" it endures {} natively ", grouped(wear.endurance_native.into()));
    let panel = frame::titled(title).title_bottom(endures);
    let bars: Vec<Bar> =
        wear.histogram.iter().map(|range| Bar::with_label(range.from.to_string(), range.blocks)).collect();
    let bar_width = (panel.inner(area).width + 1) / u16::try_from(bars.len().max(1)).unwrap_or(u16::MAX);
    let chart = BarChart::vertical(bars)
        .bar_width(bar_width.saturating_sub(1).clamp(1, 8))
        .bar_gap(1)
        .bar_style(Style::new().fg(Color::Blue))
        .value_style(Style::new().fg(Color::White).bg(Color::Blue))
        .block(panel);
    frame.render_widget(chart, area);
}
