//! What the panels have in common: their frames, rows of a name and a value, and rows of history.
//!
//! Invariant: the newest of a history stands at the right end.

use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, RenderDirection, Sparkline};

/// How wide the names of rows are.
const NAME_WIDTH: usize = 10;

/// A frame with a title.
pub fn titled(title: impl Into<String>) -> Block<'static> {
    Block::bordered().title(format!(" {} ", title.into()))
}

/// A name and a value.
pub fn row(name: &str, value: impl Into<String>, style: Style) -> Line<'static> {
    let name = Span::styled(format!("{name:NAME_WIDTH$}"), Style::new().add_modifier(Modifier::BOLD));
    Line::from(vec![name, Span::styled(value.into(), style)])
}

/// Values from the newest to the oldest; one that is not known leaves a gap.
pub fn history(values: impl Iterator<Item = Option<u64>>, style: Style) -> Sparkline<'static> {
    Sparkline::default()
        .data(values.collect::<Vec<_>>())
        .direction(RenderDirection::RightToLeft)
        .absent_value_symbol(" ")
        .style(style)
}
