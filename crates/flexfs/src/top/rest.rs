//! What is left: of the chip's life, of room, and of the blocks' endurance.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::Line;
use ratatui::widgets::{Bar, BarChart, Paragraph};

use super::frame::{self, row};
use super::snapshot::{Life, Snapshot};
use crate::figures::date;
use crate::output::grouped;
use crate::{size, time_span};

const NS_PER_S: u64 = 1_000_000_000;

/// Draws how the life stands, and what room there is.
pub fn draw_life(frame: &mut Frame, area: Rect, snapshot: &Snapshot) {
    let mut lines = match &snapshot.life {
        Some(life) => life_rows(life),
        None => vec![row("life", "no lifetime is to be kept", Style::new().fg(Color::DarkGray))],
    };
    lines.extend(room_rows(snapshot));
    frame.render_widget(Paragraph::new(lines).block(frame::titled("Life and room")), area);
}

fn life_rows(life: &Life) -> Vec<Line<'static>> {
    let spent_bytes = life.budget_bytes.saturating_sub(life.left_bytes);
    let over = part(life.elapsed_ns, life.goal_ns, span);
    let spent = part(spent_bytes, life.budget_bytes, size::human);
    let (end, style) = match life.ends_ns {
        None => ("when its goal is reached".to_owned(), Style::new()),
        Some(ends_ns) => (
            format!("{}, goal not met", date(life.start_ns, ends_ns)),
            Style::new().fg(Color::Red).add_modifier(Modifier::BOLD),
        ),
    };
    vec![row("life", over, Style::new()), row("budget", spent, Style::new()), row("ends", end, style)]
}

fn room_rows(snapshot: &Snapshot) -> [Line<'static>; 3] {
    let (mounted, health) = (&snapshot.mounted, &snapshot.health);
    let short = if mounted.headroom_blocks < 0 { Style::new().fg(Color::Red) } else { Style::new() };
    let under_way = mounted.under_way.as_deref().unwrap_or("nothing");
    [
        row("headroom", format!("{} blocks", mounted.headroom_blocks), short),
        row("under way", under_way, Style::new()),
        row("waiting", format!("{} failing, {} fading", health.failing_blocks, health.fading_blocks), Style::new()),
    ]
}

/// A part of a whole, in per cent and by itself.
fn part(part: u64, whole: u64, shown: fn(u64) -> String) -> String {
    format!("{:.0} %: {} of {}", 100.0 * part as f64 / whole.max(1) as f64, shown(part), shown(whole))
}

/// A time by its two largest units: `1y 2mo`.
pub fn span(ns: u64) -> String {
    time_span::short(ns / NS_PER_S)
}

/// Draws how many blocks were erased how often.
pub fn draw_wear(frame: &mut Frame, area: Rect, snapshot: &Snapshot) {
    let wear = &snapshot.wear;
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
