//! The screen of `flexfs top`: what a mounted volume does, drawn from the answers of its server.
//!
//! Invariant: a screen is a function of the [`State`] and the size alone, and every figure on it is what
//! `flexfs info --json` tells of the same moment; only rates are differences of two answers.

mod flow;
mod frame;
mod map;
mod rest;
pub mod screen;
mod snapshot;
mod state;
#[cfg(test)]
mod tests;

use std::convert::Infallible;

use ratatui::backend::TestBackend;
use ratatui::buffer::Buffer;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;
use ratatui::{Frame, Terminal};

pub use snapshot::Snapshot;
pub use state::State;

/// The least that everything fits on, and the size of a picture of plain text.
pub const WIDTH: u16 = 80;
pub const HEIGHT: u16 = 24;

/// Rows of the panels between the map and the keys.
const FLOW_ROWS: u16 = 6;
const REST_ROWS: u16 = 8;

/// Draws everything.
pub fn draw(frame: &mut Frame, state: &State) {
    let area = frame.area();
    if area.width < WIDTH || area.height < HEIGHT {
        let said = format!("needs {WIDTH} x {HEIGHT}, this is {} x {}; q quits", area.width, area.height);
        frame.render_widget(Paragraph::new(said), area);
        return;
    }
    let snapshot = &state.snapshot;
    // A small chip leaves the rows that its map does not need to the wear.
    let map_rows = map::rows(snapshot, area.width).min(area.height - FLOW_ROWS - REST_ROWS - 2);
    let heights = [1, map_rows, FLOW_ROWS].map(Constraint::Length);
    let heights = heights.into_iter().chain([Constraint::Min(REST_ROWS), Constraint::Length(1)]);
    let [head, blocks, flow, rest, foot] = Layout::vertical(heights).areas(area);
    let [shares, rates] = halves(flow);
    let [life, wear] = halves(rest);
    draw_head(frame, head, snapshot);
    map::draw(frame, blocks, snapshot);
    flow::draw_shares(frame, shares, state);
    flow::draw_rates(frame, rates, state);
    rest::draw_life(frame, life, snapshot);
    rest::draw_wear(frame, wear, snapshot);
    draw_foot(frame, foot, state);
}

/// The right one is a little wider.
fn halves(area: Rect) -> [Rect; 2] {
    Layout::horizontal([Constraint::Fill(19), Constraint::Fill(21)]).areas(area)
}

/// What is watched, how long it has been mounted, and its health.
fn draw_head(frame: &mut Frame, area: Rect, snapshot: &Snapshot) {
    let mounted = &snapshot.mounted;
    let health = &snapshot.health.state;
    let style = if health == "good" { Style::new().fg(Color::Green) } else { Style::new().fg(Color::Red) };
    let right = Line::from(vec![
        Span::raw(format!("mounted for {}, health ", rest::span(mounted.elapsed_ns))),
        Span::styled(health.clone(), style),
    ]);
    let right_width = u16::try_from(right.width()).unwrap_or(u16::MAX);
    let [left, right_area] =
        Layout::horizontal([Constraint::Fill(1), Constraint::Length(right_width)]).spacing(1).areas(area);
    let name = Span::styled(snapshot.image.clone(), Style::new().add_modifier(Modifier::BOLD));
    frame.render_widget(Line::from(vec![name, Span::raw(format!(" on {}", mounted.mountpoint))]), left);
    frame.render_widget(right, right_area);
}

/// The keys, how often is asked, and what keeps the picture from being new.
fn draw_foot(frame: &mut Frame, area: Rect, state: &State) {
    let mut spans = vec![Span::raw(format!("q quit  p pause  asks every {} s", state.interval.as_secs_f64()))];
    let loud = Style::new().add_modifier(Modifier::REVERSED);
    if state.paused {
        spans.extend([Span::raw("  "), Span::styled(" PAUSED: p goes on ", loud)]);
    }
    if !state.answered {
        spans.extend([Span::raw("  "), Span::styled(" NO ANSWER: this is as it was ", loud)]);
    }
    frame.render_widget(Line::from(spans), area);
}

/// The screen as plain text of [`WIDTH`] x [`HEIGHT`].
pub fn text(state: &State) -> String {
    text_of(state, WIDTH, HEIGHT).unwrap_or_else(|never| match never {})
}

/// The screen as plain text of this size.
fn text_of(state: &State, width: u16, height: u16) -> Result<String, Infallible> {
    let mut terminal = Terminal::new(TestBackend::new(width, height))?;
    let drawn = terminal.draw(|frame| draw(frame, state))?;
    Ok(lines(drawn.buffer).join("\n"))
}

/// The rows of a screen, without the spaces at their ends.
fn lines(buffer: &Buffer) -> Vec<String> {
    let rows = buffer.content().chunks(usize::from(buffer.area.width).max(1));
    rows.map(|row| row.iter().map(|cell| cell.symbol()).collect::<String>().trim_end().to_owned()).collect()
}
