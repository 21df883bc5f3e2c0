//! The cluster as it is now, again and again.
//!
//! [`Sample`] is what was asked at one moment, [`frame::lines`] what is shown of two of them. Here is the terminal: its own screen,
//! and its old state afterwards, whatever happens.

mod frame;
mod sample;

use std::io::{self, IsTerminal, Write, stdout};
use std::time::Duration;

use crossterm::cursor::{Hide, MoveTo, Show};
use crossterm::event::{Event, KeyCode, KeyEvent, KeyModifiers, poll, read};
use crossterm::style::Print;
use crossterm::terminal::{
    Clear, ClearType, EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode, size,
};
use crossterm::{execute, queue};
use sample::Sample;
use serde_json::json;

use crate::api::Api;
use crate::host;
use crate::screen::Screen;
use crate::trouble::{Ended, Trouble, Verdict};

/// Shows the cluster once, or until the key `q`.
pub(crate) fn top(api: &Api, screen: &mut Screen, once: bool, every: Duration) -> Ended {
    if screen.is_for_programs() {
        screen.json(&Sample::take(api)?.as_json())?;
    } else if once {
        for line in frame::lines(None, &Sample::take(api)?) {
            screen.line(&line)?;
        }
    } else if stdout().is_terminal() {
        live(api, every)?;
    } else {
        return Err(Trouble::Usage("this is no terminal: add --once".to_owned()));
    }
    Ok(Verdict::Yes)
}

fn live(api: &Api, every: Duration) -> Result<(), Trouble> {
    // Asked before the screen is taken: what goes wrong is said where it can be read afterwards.
    let mut now = Sample::take(api)?;
    let mut before = None;
    let _raw = Raw::enter()?;
    loop {
        draw(&frame::lines(before.as_ref(), &now))?;
        if wants_to_leave(every)? {
            return Ok(());
        }
        let next = Sample::take(api)?;
        before = Some(std::mem::replace(&mut now, next));
    }
}

fn draw(lines: &[String]) -> io::Result<()> {
    let (columns, rows) = size()?;
    let mut out = stdout().lock();
    queue!(out, MoveTo(0, 0))?;
    for line in lines.iter().take(rows.saturating_sub(1).into()) {
        let fits: String = line.chars().take(columns.into()).collect();
        queue!(out, Print(fits), Clear(ClearType::UntilNewLine), Print("\r\n"))?;
    }
    queue!(out, Clear(ClearType::FromCursorDown))?;
    out.flush()
}

/// Waits for a key, or until it is time to look again.
fn wants_to_leave(every: Duration) -> io::Result<bool> {
    let until = host::now() + every;
    loop {
        let left = until.saturating_duration_since(host::now());
        if !poll(left)? {
            return Ok(false);
        }
        if let Event::Key(KeyEvent { code, modifiers, .. }) = read()? {
            let interrupts = modifiers.contains(KeyModifiers::CONTROL) && code == KeyCode::Char('c');
            if interrupts || matches!(code, KeyCode::Char('q') | KeyCode::Esc) {
                return Ok(true);
            }
        }
    }
}

/// The terminal while it is ours.
struct Raw;

impl Raw {
    fn enter() -> io::Result<Self> {
        enable_raw_mode()?;
        let raw = Self;
        execute!(stdout(), EnterAlternateScreen, Hide)?;
        Ok(raw)
    }
}

impl Drop for Raw {
    fn drop(&mut self) {
        // There is nobody to tell that the terminal is gone.
        let _ = execute!(stdout(), Show, LeaveAlternateScreen);
        let _ = disable_raw_mode();
    }
}

impl Sample {
    fn as_json(&self) -> serde_json::Value {
        json!({ "node": self.node, "members": self.members, "kinds": self.kinds, "messages": self.messages })
    }
}
