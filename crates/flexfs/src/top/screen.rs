//! The picture in a terminal, until a key, a signal, or the end of what is watched.
//!
//! Invariants: the terminal is left as it was, whatever ends this; no key waits for news.

use std::sync::mpsc::{Receiver, TryRecvError};
use std::time::Duration;

use anyhow::{Context, Error, Result};
use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyModifiers};

use super::{Picture, ServerAnswer};
use crate::interrupt::Interrupt;

/// How long a key or an answer may wait until it is seen to.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// What is heard of the volume or card that is watched.
pub enum News {
    Told(ServerAnswer),
    /// It is there, and tells nothing.
    Silent,
    /// It is gone. So it is if nobody is left to tell anything.
    Ended,
    Failed(Error),
}

/// What ended the picture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// A key.
    Quit,
    /// What was watched.
    Ended,
}

/// The terminal while it is drawn on.
struct Screen(DefaultTerminal);

impl Screen {
    fn open() -> Result<Self> {
        Ok(Self(ratatui::try_init().context("cannot draw on the terminal")?))
    }

    fn draw(&mut self, picture: &Picture) -> Result<()> {
        self.0.draw(|frame| picture.draw(frame)).context("cannot draw on the terminal")?;
        Ok(())
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        // Where the terminal is gone there is nothing to restore.
        let _ = ratatui::try_restore();
    }
}

/// What changes the screen.
enum Change {
    News(News),
    Pause,
    Resized,
    Quit,
}

/// Draws what is heard, from this picture on.
pub fn watch(mut picture: Picture, news: &Receiver<News>) -> Result<End> {
    let interrupt = Interrupt::watch()?;
    let mut screen = Screen::open()?;
    loop {
        screen.draw(&picture)?;
        match next(news, &interrupt)? {
            Change::News(News::Told(answer)) => picture.take(answer),
            Change::News(News::Silent) => picture.answered = false,
            Change::News(News::Ended) => return Ok(End::Ended),
            Change::News(News::Failed(error)) => return Err(error),
            Change::Pause => picture.paused = !picture.paused,
            Change::Resized => {}
            Change::Quit => return Ok(End::Quit),
        }
    }
}

/// Waits for what changes the screen.
fn next(news: &Receiver<News>, interrupt: &Interrupt) -> Result<Change> {
    loop {
        interrupt.check()?;
        match news.try_recv() {
            Ok(news) => return Ok(Change::News(news)),
            Err(TryRecvError::Empty) => {}
            Err(TryRecvError::Disconnected) => return Ok(Change::News(News::Ended)),
        }
        if event::poll(LOOK_EVERY).context("cannot read the terminal")?
            && let Some(change) = meaning(&event::read().context("cannot read the terminal")?)
        {
            return Ok(change);
        }
    }
}

/// What an event of the terminal asks for.
fn meaning(event: &Event) -> Option<Change> {
    match event {
        Event::Resize(..) => Some(Change::Resized),
        Event::Key(KeyEvent { code, modifiers, .. }) => match code {
            KeyCode::Char('c') if modifiers.contains(KeyModifiers::CONTROL) => Some(Change::Quit),
            KeyCode::Char('q') | KeyCode::Esc => Some(Change::Quit),
            KeyCode::Char('p') => Some(Change::Pause),
            _ => None,
        },
        _ => None,
    }
}
