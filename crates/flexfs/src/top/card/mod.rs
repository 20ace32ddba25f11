//! The picture of a card that is served: its blocks by use, the bytes that hosts and flash move, the work that it makes, wear.

mod history;
mod map;
mod snapshot;

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;

pub use history::CardHistory;
pub use snapshot::CardSnapshot;

use super::frame::{self, halves, row, span};
use super::wear;
use crate::output::grouped;
use crate::size;
use history::CardRates;

/// Rows of the panels below the map.
const RATE_ROWS: u16 = 6;
const WORK_ROWS: u16 = 9;
/// Columns before the history of a rate: its name and its value.
const RATE_WIDTH: u16 = 25;

/// Draws everything above the keys.
pub fn draw(frame: &mut Frame, area: Rect, history: &CardHistory) {
    let snapshot = &history.snapshot;
    let map_rows = map::rows(snapshot, area.width).min(area.height - RATE_ROWS - WORK_ROWS - 1);
    let heights = [1, map_rows, RATE_ROWS].map(Constraint::Length).into_iter().chain([Constraint::Min(WORK_ROWS)]);
    let [head, blocks, rates, rest] = Layout::vertical(heights).areas(area);
    let [work, wear_area] = halves(rest);
    draw_head(frame, head, snapshot);
    map::draw(frame, blocks, snapshot);
    draw_rates(frame, rates, history);
    draw_work(frame, work, snapshot);
    wear::draw(frame, wear_area, &snapshot.wear);
}

/// What is served, where and for how long, and to how many.
fn draw_head(frame: &mut Frame, area: Rect, snapshot: &CardSnapshot) {
    let served = &snapshot.served;
    let clients = if served.clients == 1 { "1 client".to_owned() } else { format!("{} clients", served.clients) };
    let right = Line::from(format!("served for {}, {clients}", span(served.elapsed_ns)));
    let right_width = u16::try_from(right.width()).unwrap_or(u16::MAX);
    let [left, right_area] =
        Layout::horizontal([Constraint::Fill(1), Constraint::Length(right_width)]).spacing(1).areas(area);
    let name = Span::styled(snapshot.image.clone(), Style::new().add_modifier(Modifier::BOLD));
    frame.render_widget(Line::from(vec![name, Span::raw(format!(" at {}", served.uri))]), left);
    frame.render_widget(right, right_area);
}

/// Bytes a second of hosts and of flash, each with its history.
fn draw_rates(frame: &mut Frame, area: Rect, history: &CardHistory) {
    let panel = frame::titled("Bytes a second");
    let rows = Layout::vertical([Constraint::Length(1); 4]).split(panel.inner(area));
    frame.render_widget(panel, area);
    type Rate = fn(&CardRates) -> u64;
    let rates: [(&str, Rate, Color); 4] = [
        ("host read", |rates| rates.host_read, Color::Green),
        ("flash read", |rates| rates.flash_read, Color::Yellow),
        ("host write", |rates| rates.host_written, Color::Cyan),
        ("programs", |rates| rates.programmed, Color::Blue),
    ];
    for (row, (name, rate, color)) in rows.iter().zip(rates) {
        let now = history.rates().map_or_else(|| "-".to_owned(), |rates| format!("{}/s", size::human(rate(rates))));
        let [said, past] = Layout::horizontal([Constraint::Length(RATE_WIDTH), Constraint::Fill(1)]).areas(*row);
        frame.render_widget(frame::row(name, format!("{now:>13}"), Style::new()), said);
        let values = history.all_rates().map(|rates| rates.map(rate));
        frame.render_widget(frame::history(values, color.into()), past);
    }
}

/// The work since the card was opened.
fn draw_work(frame: &mut Frame, area: Rect, snapshot: &CardSnapshot) {
    let (host, work) = (&snapshot.served.host, &snapshot.served.work);
    let failed = if host.failures > 0 { Style::new().fg(Color::Red) } else { Style::new() };
    let plain = |name, value: String| row(name, value, Style::new());
    let lines = vec![
        plain("requests", format!("{} r, {} w, {} t", grouped(host.reads), grouped(host.writes), grouped(host.trims))),
        row("failed", grouped(host.failures), failed),
        plain("amplified", format!("{:.3} programs a sector", work.write_amplification)),
        plain("merges", format!("{} whole, {} partial", grouped(work.merges), grouped(work.partial_merges))),
        plain("switches", grouped(work.switches)),
        plain("map pages", format!("{} and {} copied", grouped(work.map_writes), grouped(work.map_copies))),
        plain("erases", grouped(work.erases)),
    ];
    frame.render_widget(Paragraph::new(lines).block(frame::titled("Work since it was opened")), area);
}
