//! What moves: the shares of callers' pages that go to SLC, the rule by which they do, and the bytes that flash is read and programmed for.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Style};
use ratatui::text::Line;
use ratatui::widgets::LineGauge;

use super::super::frame;
use super::state::{Rates, Sample, State};
use crate::size;

/// Of shares the history has whole parts of this.
const SHARE_WHOLE: u64 = 1000;

/// Columns before the history of a rate: its name and its value.
const RATE_WIDTH: u16 = 25;

/// Draws α and δ, each with its history, and what goes to SLC next.
pub fn draw_shares(frame: &mut Frame, area: Rect, state: &State) {
    let mounted = &state.snapshot.mounted;
    let to_slc = mounted.to_slc.as_ref();
    let next = to_slc.map(|to_slc| format!(" next: {:.2} to SLC, {} ", to_slc.share, to_slc.rule)).unwrap_or_default();
    let panel = frame::titled(format!("SLC shares, policy {}", mounted.policy)).title_bottom(next);
    let rows = Layout::vertical([Constraint::Length(1); 4]).split(panel.inner(area));
    frame.render_widget(panel, area);
    let alpha = ("α", Color::Cyan, "decides nothing here");
    let delta = ("δ", Color::Green, "no lifetime is to be kept");
    draw_share(frame, [rows[0], rows[1]], state, |sample| sample.alpha, alpha);
    draw_share(frame, [rows[2], rows[3]], state, |sample| sample.delta, delta);
}

/// Draws a share by its sign and colour, or why there is none.
fn draw_share(
    frame: &mut Frame,
    [row, below]: [Rect; 2],
    state: &State,
    share: fn(&Sample) -> Option<f64>,
    (sign, color, why_none): (&str, Color, &str),
) {
    let Some(now) = state.history.front().and_then(share) else {
        frame.render_widget(Line::styled(format!("{sign}  {why_none}"), Color::DarkGray), row);
        return;
    };
    let gauge = LineGauge::default()
        .ratio(now.clamp(0.0, 1.0))
        .label(format!("{sign} {now:.2}"))
        .filled_symbol("█")
        .unfilled_symbol("░")
        .filled_style(color)
        .unfilled_style(Color::DarkGray);
    frame.render_widget(gauge, row);
    let parts = |sample| share(sample).map(|share| (share * SHARE_WHOLE as f64) as u64);
    frame.render_widget(frame::history(state.history.iter().map(parts), color.into()).max(SHARE_WHOLE), below);
}

/// Draws the rates, each with its history.
pub fn draw_rates(frame: &mut Frame, area: Rect, state: &State) {
    let panel = frame::titled("Bytes a second on flash");
    let rows = Layout::vertical([Constraint::Length(1); 4]).split(panel.inner(area));
    frame.render_widget(panel, area);
    type Rate = fn(&Rates) -> u64;
    let rates: [(&str, Rate, Color); 4] = [
        ("host write", |rates| rates.host, Color::Cyan),
        ("read", |rates| rates.read, Color::Green),
        ("migration", |rates| rates.migration, Color::Blue),
        ("collection", |rates| rates.collection, Color::Yellow),
    ];
    for (row, (name, rate, color)) in rows.iter().zip(rates) {
        let now = state.rates().map_or_else(|| "-".to_owned(), |rates| format!("{}/s", size::human(rate(&rates))));
        let [said, past] = Layout::horizontal([Constraint::Length(RATE_WIDTH), Constraint::Fill(1)]).areas(*row);
        frame.render_widget(frame::row(name, format!("{now:>13}"), Style::new()), said);
        let values = state.history.iter().map(|sample| sample.rates.as_ref().map(rate));
        frame.render_widget(frame::history(values, color.into()), past);
    }
}
