//! The picture of a mounted volume: its blocks, where pages go, the bytes that move, life, room and wear.

mod flow;
mod map;
mod rest;
mod snapshot;
mod state;

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};

pub use snapshot::Snapshot;
pub use state::State;

use super::frame::{halves, span};
use super::wear;

/// Rows of the panels below the map.
const FLOW_ROWS: u16 = 6;
const REST_ROWS: u16 = 8;

/// Draws everything above the keys.
pub fn draw(frame: &mut Frame, area: Rect, state: &State) {
    let snapshot = &state.snapshot;
    // A small chip leaves the rows that its map does not need to the wear.
    let map_rows = map::rows(snapshot, area.width).min(area.height - FLOW_ROWS - REST_ROWS - 1);
    let heights = [1, map_rows, FLOW_ROWS].map(Constraint::Length);
    let heights = heights.into_iter().chain([Constraint::Min(REST_ROWS)]);
    let [head, blocks, flow, rest] = Layout::vertical(heights).areas(area);
    let [shares, rates] = halves(flow);
    let [life, wear_area] = halves(rest);
    draw_head(frame, head, snapshot);
    map::draw(frame, blocks, snapshot);
    flow::draw_shares(frame, shares, state);
    flow::draw_rates(frame, rates, state);
    rest::draw_life(frame, life, snapshot);
    wear::draw(frame, wear_area, &snapshot.wear);
}

/// What is watched, how long it has been mounted, and its health.
fn draw_head(frame: &mut Frame, area: Rect, snapshot: &Snapshot) {
    let mounted = &snapshot.mounted;
    let health = &snapshot.health.state;
    let style = if health == "good" { Style::new().fg(Color::Green) } else { Style::new().fg(Color::Red) };
    let right = Line::from(vec![
        Span::raw(format!("mounted for {}, health ", span(mounted.elapsed_ns))),
        Span::styled(health.clone(), style),
    ]);
    let right_width = u16::try_from(right.width()).unwrap_or(u16::MAX);
    let [left, right_area] =
        Layout::horizontal([Constraint::Fill(1), Constraint::Length(right_width)]).spacing(1).areas(area);
    let name = Span::styled(snapshot.image.clone(), Style::new().add_modifier(Modifier::BOLD));
    frame.render_widget(Line::from(vec![name, Span::raw(format!(" on {}", mounted.mountpoint))]), left);
    frame.render_widget(right, right_area);
}
