//! The parts that panels have in common: frames, rows of a name and a value, rows of history, times.
//!
//! Invariant: the newest of a history stands at the right end.

use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, RenderDirection, Sparkline};

use crate::time_span;

const NS_PER_S: u64 = 1_000_000_000;

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

/// The right one is a little wider.
pub fn halves(area: Rect) -> [Rect; 2] {
    Layout::horizontal([Constraint::Fill(19), Constraint::Fill(21)]).areas(area)
}

/// Values from the newest to the oldest; one that is not known leaves a gap.
pub fn history(values: impl Iterator<Item = Option<u64>>, style: Style) -> Sparkline<'static> {
    Sparkline::default()
        .data(values.collect::<Vec<_>>())
        .direction(RenderDirection::RightToLeft)
        .absent_value_symbol(" ")
        .style(style)
}

/// A time by its two largest units: `1y 2mo`.
pub fn span(ns: u64) -> String {
    time_span::short(ns / NS_PER_S)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_written_by_its_two_largest_units() {
        let of = |seconds: u64| span(seconds * NS_PER_S);
        assert_eq!([of(0), of(59), of(3_723), of(90_000)], ["0s", "59s", "1h 2m", "1d 1h"]);
        assert_eq!([of(31_557_600), of(35_000_000)], ["1y", "1y 1mo"]);
    }
}
