//! The picture: the newest answer and those before it, and whether it stands still.
//!
//! Invariant: all of it follows from the answers, in their order; a picture stays one of a volume, or of a card.

use std::time::Duration;

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;
use serde::Deserialize;
use serde::de::IgnoredAny;

use super::card::{self, CardHistory, CardSnapshot};
use super::volume::{self, Snapshot, State};

/// The least that everything fits on, and the size of a picture of plain text.
pub const WIDTH: u16 = 80;
pub const HEIGHT: u16 = 24;

/// An answer of a server.
pub enum ServerAnswer {
    Volume(Box<Snapshot>),
    Card(Box<CardSnapshot>),
}

impl ServerAnswer {
    /// Reads an answer of `flexfs info --json`.
    ///
    /// # Errors
    /// The reason why it is neither of a volume nor of a card.
    pub fn read(text: &str) -> Result<Self, serde_json::Error> {
        /// The part that only a card has.
        #[derive(Deserialize)]
        struct OfCard {
            served: Option<IgnoredAny>,
        }
        match serde_json::from_str::<OfCard>(text)?.served {
            Some(_) => serde_json::from_str(text).map(Self::Card),
            None => serde_json::from_str(text).map(Self::Volume),
        }
    }
}

/// The part of a picture above the keys.
enum PictureContent {
    Volume(State),
    Card(CardHistory),
}

/// What is on the screen.
pub struct Picture {
    content: PictureContent,
    /// Time between two answers that was asked for.
    interval: Duration,
    pub paused: bool,
    /// The server has answered the last question.
    pub answered: bool,
}

impl Picture {
    pub fn new(answer: ServerAnswer, interval: Duration) -> Self {
        let content = match answer {
            ServerAnswer::Volume(snapshot) => PictureContent::Volume(State::new(*snapshot)),
            ServerAnswer::Card(snapshot) => PictureContent::Card(CardHistory::new(*snapshot)),
        };
        Self { content, interval, paused: false, answered: true }
    }

    /// Goes on to a newer answer, unless the picture stands still.
    pub fn take(&mut self, answer: ServerAnswer) {
        self.answered = true;
        if self.paused {
            return;
        }
        match (&mut self.content, answer) {
            (PictureContent::Volume(state), ServerAnswer::Volume(snapshot)) => state.take(*snapshot),
            (PictureContent::Card(history), ServerAnswer::Card(snapshot)) => history.take(*snapshot),
            // Another server has the image now.
            (content, answer) => *content = Self::new(answer, self.interval).content,
        }
    }

    /// Draws everything.
    pub fn draw(&self, frame: &mut Frame) {
        let area = frame.area();
        if area.width < WIDTH || area.height < HEIGHT {
            let said = format!("needs {WIDTH} x {HEIGHT}, this is {} x {}; q quits", area.width, area.height);
            frame.render_widget(Paragraph::new(said), area);
            return;
        }
        let [content, foot] = Layout::vertical([Constraint::Fill(1), Constraint::Length(1)]).areas(area);
        match &self.content {
            PictureContent::Volume(state) => volume::draw(frame, content, state),
            PictureContent::Card(history) => card::draw(frame, content, history),
        }
        self.draw_foot(frame, foot);
    }

    /// The keys, how often is asked, and what keeps the picture from being new.
    fn draw_foot(&self, frame: &mut Frame, area: Rect) {
        let mut spans = vec![Span::raw(format!("q quit  p pause  asks every {} s", self.interval.as_secs_f64()))];
        let loud = Style::new().add_modifier(Modifier::REVERSED);
        if self.paused {
            spans.extend([Span::raw("  "), Span::styled(" PAUSED: p goes on ", loud)]);
        }
        if !self.answered {
            spans.extend([Span::raw("  "), Span::styled(" NO ANSWER: this is as it was ", loud)]);
        }
        frame.render_widget(Line::from(spans), area);
    }
}
