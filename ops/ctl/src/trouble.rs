//! Why a command did not do what it was asked, and the exit code that says so to programs.

use std::fmt;
use std::io;

/// Why a command ended early.
#[derive(Debug)]
pub(crate) enum Trouble {
    /// It was asked for something that makes no sense. Nothing was sent.
    Usage(String),
    /// The node refused.
    Refused {
        /// The word for programs.
        code: String,
        /// The sentence for people.
        message: String,
    },
    /// The answer is no, or what was asked did not come about.
    Failed(String),
    /// Nobody answered, or whoever did is no admin API. An act may have been carried out if the answer was lost.
    Unreachable(String),
    /// What was found out could not be written.
    Output(io::Error),
}

impl Trouble {
    /// The exit code: 1 for a no, 2 for a mistake in the command, 3 if nobody answers. Whoever has read enough of the output has
    /// everything that was wanted.
    pub(crate) fn exit_code(&self) -> u8 {
        match self {
            Self::Output(error) if error.kind() == io::ErrorKind::BrokenPipe => 0,
            Self::Refused { .. } | Self::Failed(_) | Self::Output(_) => 1,
            Self::Usage(_) => 2,
            Self::Unreachable(_) => 3,
        }
    }

    /// Whether there is nothing to say about it.
    pub(crate) fn is_silent(&self) -> bool {
        self.exit_code() == 0
    }

    /// Whether it is a refusal with this word.
    pub(crate) fn is(&self, word: &str) -> bool {
        matches!(self, Self::Refused { code, .. } if code == word)
    }
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Usage(message) | Self::Failed(message) | Self::Unreachable(message) => f.write_str(message),
            Self::Refused { code, message } => write!(f, "{message} ({code})"),
            Self::Output(error) => write!(f, "the output: {error}"),
        }
    }
}

impl From<io::Error> for Trouble {
    fn from(error: io::Error) -> Self {
        Self::Output(error)
    }
}

/// What a command has to say by its exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It is as it should be.
    Yes,
    /// It is not: exit code 1.
    No,
}

/// How a command ends.
pub(crate) type Ended = Result<Verdict, Trouble>;
