//! `flexfs top`: watches a mounted volume in the terminal, until a key or the end of the mount.
//!
//! Invariants: the terminal is left as it was, whatever ends this; a server that is slow to answer keeps no key waiting.

use std::fs;
use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::mpsc::{self, Receiver, TryRecvError};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyModifiers};

use crate::host::At;
use crate::interrupt::Interrupt;
use crate::monitor::{self, Form};
use crate::top::{self, Snapshot, State};
use crate::{cli, output};

/// How long a key or an answer may wait until it is seen to.
const LOOK_EVERY: Duration = Duration::from_millis(50);

pub fn run(args: &cli::Top) -> Result<ExitCode> {
    let (image, interval) = (args.image.as_path(), args.interval);
    let mut state = State::new(look(image)?, interval);
    if args.once {
        thread::sleep(interval);
        state.take(look(image)?);
        output::say(&top::text(&state))?;
        return Ok(ExitCode::SUCCESS);
    }
    if !io::stdout().is_terminal() {
        let shown = image.display();
        bail!(
            "{shown}: standard output is not a terminal; `flexfs info {shown}` tells the figures as text, and `flexfs \
             top --once {shown}` prints one picture"
        );
    }
    watch(image, state)
}

/// What the server tells now.
fn look(image: &Path) -> Result<Snapshot> {
    let shown = image.display();
    match monitor::ask(image, Form::Json) {
        Some(answer) => read(image, &answer),
        None if monitor::is_served(image) => {
            bail!("{shown}: its server does not answer; it does so to root and to whoever mounted it")
        }
        None => {
            fs::metadata(image).at(image)?;
            bail!(
                "{shown}: not mounted; mount it with `flexfs mount {shown} DIR`, or see it with `flexfs info {shown}`"
            )
        }
    }
}

fn read(image: &Path, answer: &str) -> Result<Snapshot> {
    let shown = image.display();
    serde_json::from_str(answer).map_err(|error| {
        anyhow!("{shown}: its server answers in another way ({error}); mount it again with this version of flexfs")
    })
}

/// The terminal while it is drawn on.
struct Screen(DefaultTerminal);

impl Screen {
    fn open() -> Result<Self> {
        Ok(Self(ratatui::try_init().context("cannot draw on the terminal")?))
    }

    fn draw(&mut self, state: &State) -> Result<()> {
        self.0.draw(|frame| top::draw(frame, state)).context("cannot draw on the terminal")?;
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
enum News {
    Told(String),
    /// The server is there and does not answer.
    Silent,
    /// The server is gone.
    Ended,
    Pause,
    Resized,
    Quit,
}

fn watch(image: &Path, mut state: State) -> Result<ExitCode> {
    let interrupt = Interrupt::watch()?;
    let answers = ask_every(state.interval, image.to_path_buf())?;
    let mut screen = Screen::open()?;
    loop {
        screen.draw(&state)?;
        match next(&answers, &interrupt)? {
            News::Told(answer) => state.take(read(image, &answer)?),
            News::Silent => state.answered = false,
            News::Pause => state.paused = !state.paused,
            News::Resized => {}
            News::Quit => return Ok(ExitCode::SUCCESS),
            News::Ended => {
                drop(screen);
                output::say(&format!("{}: not mounted any more", image.display()))?;
                return Ok(ExitCode::SUCCESS);
            }
        }
    }
}

/// Asks again and again in the background, until nobody listens or the server is gone.
fn ask_every(interval: Duration, image: PathBuf) -> Result<Receiver<News>> {
    let (send, answers) = mpsc::channel();
    let ask = move || {
        loop {
            thread::sleep(interval);
            let news = match monitor::ask(&image, Form::Json) {
                Some(answer) => News::Told(answer),
                None if monitor::is_served(&image) => News::Silent,
                None => News::Ended,
            };
            if send.send(news).is_err() {
                return;
            }
        }
    };
    thread::Builder::new().name("asker".into()).spawn(ask).context("cannot ask in the background")?;
    Ok(answers)
}

/// Waits for what changes the screen.
fn next(answers: &Receiver<News>, interrupt: &Interrupt) -> Result<News> {
    loop {
        interrupt.check()?;
        match answers.try_recv() {
            Ok(news) => return Ok(news),
            Err(TryRecvError::Empty) => {}
            Err(TryRecvError::Disconnected) => bail!("cannot ask any more in the background"),
        }
        if event::poll(LOOK_EVERY).context("cannot read the terminal")?
            && let Some(news) = meaning(&event::read().context("cannot read the terminal")?)
        {
            return Ok(news);
        }
    }
}

/// What an event of the terminal asks for.
fn meaning(event: &Event) -> Option<News> {
    match event {
        Event::Resize(..) => Some(News::Resized),
        Event::Key(KeyEvent { code, modifiers, .. }) => match code {
            KeyCode::Char('c') if modifiers.contains(KeyModifiers::CONTROL) => Some(News::Quit),
            KeyCode::Char('q') | KeyCode::Esc => Some(News::Quit),
            KeyCode::Char('p') => Some(News::Pause),
            _ => None,
        },
        _ => None,
    }
}
