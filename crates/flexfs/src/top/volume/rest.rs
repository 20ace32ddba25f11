//! What is left: of the chip's life, and of room.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::Line;
use ratatui::widgets::Paragraph;

use super::super::frame::{self, row, span};
use super::snapshot::{Life, Snapshot};
use crate::figures::date;
use crate::size;

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
