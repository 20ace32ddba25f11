//! What an experiment comes to: rows with bars, tables and plots. Invariant: a row's verdict follows from its figure and
//! its bar, and each row says what it was run with.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Serialize, Serializer};

use crate::play::Setting;

/// All that is made of an experiment's results.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    pub rows: Vec<Row>,
    pub tables: Vec<Table>,
    pub plots: Vec<Plot>,
    pub column_plots: Vec<ColumnPlot>,
}

/// A figure, beside the paper's.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    pub name: String,
    /// What the paper says, if it says.
    pub paper: Option<f64>,
    pub ours: f64,
    pub unit: &'static str,
    pub bar: Bar,
    /// The figure meets its bar.
    pub ok: bool,
    /// The bar is known not to be met so far, and is told as such.
    pub open: bool,
    /// Why the bar is what it is, or is open, where the paper's figure does not say it.
    pub reason: &'static str,
    pub parameters: Parameters,
}

impl Row {
    /// A figure that only has to be shown.
    pub fn shown(name: impl Into<String>, ours: f64, unit: &'static str, parameters: &Parameters) -> Self {
        let (name, parameters) = (name.into(), parameters.clone());
        Self { name, paper: None, ours, unit, bar: Bar::Shown, ok: true, open: false, reason: "", parameters }
    }

    /// The same, with what the paper says.
    pub fn paper(self, paper: f64) -> Self {
        Self { paper: Some(paper), ..self }
    }

    /// The same, held to a bar.
    pub fn bar(self, bar: Bar) -> Self {
        Self { bar, ok: bar.holds(self.ours), ..self }
    }

    /// The same, with why the bar is what it is.
    pub fn because(self, reason: &'static str) -> Self {
        Self { reason, ..self }
    }

    /// The same; that the bar is not met is known, and why.
    pub fn open(self, reason: &'static str) -> Self {
        Self { open: !self.ok, reason, ..self }
    }

    /// What is told of the bar: met, not met, or open; nothing where the figure only has to be shown.
    pub fn verdict(&self) -> &'static str {
        match (self.bar.is_shown(), self.ok, self.open) {
            (true, ..) => "",
            (_, true, _) => "ok",
            (_, _, true) => "open",
            (..) => "NOT OK",
        }
    }
}

/// What is demanded of a figure.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Bar {
    /// Nothing: it is shown.
    Shown,
    AtMost(f64),
    AtLeast(f64),
    Exactly(f64),
    Between(f64, f64),
    /// So near to that figure.
    Within {
        percent: f64,
        of: f64,
    },
}

impl Bar {
    /// Whether nothing is demanded.
    pub fn is_shown(self) -> bool {
        self == Bar::Shown
    }

    fn holds(self, ours: f64) -> bool {
        match self {
            Bar::Shown => true,
            Bar::AtMost(most) => ours <= most,
            Bar::AtLeast(least) => ours >= least,
            Bar::Exactly(figure) => ours == figure,
            Bar::Between(least, most) => (least..=most).contains(&ours),
            Bar::Within { percent, of } => (ours - of).abs() <= of.abs() * percent / 100.0,
        }
    }
}

impl fmt::Display for Bar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Bar::Shown => Ok(()),
            Bar::AtMost(most) => write!(f, "≤ {most}"),
            Bar::AtLeast(least) => write!(f, "≥ {least}"),
            Bar::Exactly(figure) => write!(f, "= {figure}"),
            Bar::Between(least, most) => write!(f, "{least} to {most}"),
            Bar::Within { percent, of } => write!(f, "{of} ± {percent} %"),
        }
    }
}

impl Serialize for Bar {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Bar::Shown => serializer.serialize_none(),
            bar => serializer.collect_str(bar),
        }
    }
}

/// What a figure was got with, by name.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Parameters(BTreeMap<&'static str, String>);

impl Parameters {
    /// Those of a setting.
    pub fn of(setting: &Setting) -> Self {
        let Setting { profile, host, policy, .. } = setting;
        let chip = format!("{}, {} MiB", profile.name, profile.capacity_bytes() >> 20);
        Self::default().with("chip", chip).with("host_cost", host.name).with("policy", policy.to_string())
    }

    /// The same, and one more, or another in its place.
    pub fn with(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.0.insert(name, value.into());
        self
    }

    pub fn iter(&self) -> impl Iterator<Item = (&'static str, &str)> {
        self.0.iter().map(|(&name, value)| (name, value.as_str()))
    }
}

/// Figures for a spreadsheet.
#[derive(Clone, Debug)]
pub struct Table {
    /// Its file's name without the ending.
    pub name: String,
    pub header: Vec<&'static str>,
    pub rows: Vec<Vec<String>>,
}

/// Lines or points over two axes.
#[derive(Clone, Debug)]
pub struct Plot {
    /// Its file's name without the ending.
    pub name: String,
    pub title: String,
    pub x: Axis,
    pub y: Axis,
    pub series: Vec<Series>,
}

#[derive(Clone, Debug)]
pub struct Axis {
    pub label: &'static str,
    pub from: f64,
    pub to: f64,
}

#[derive(Clone, Debug)]
pub struct Series {
    pub name: String,
    pub points: Vec<(f64, f64)>,
    /// Whether each point has a mark of its own.
    pub marked: bool,
}

/// Columns in groups, one of each series in each group.
#[derive(Clone, Debug)]
pub struct ColumnPlot {
    /// Its file's name without the ending.
    pub name: String,
    pub title: String,
    pub groups: Vec<&'static str>,
    pub y: Axis,
    pub series: Vec<ColumnSeries>,
}

#[derive(Clone, Debug)]
pub struct ColumnSeries {
    pub name: String,
    /// Of each group.
    pub heights: Vec<f64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_decides_and_says_what_it_is() {
        let row = |bar| Row::shown("x", 10.0, "µs", &Parameters::default()).paper(9.0).bar(bar);
        let all = [
            (Bar::AtMost(10.0), true, "≤ 10"),
            (Bar::AtMost(9.5), false, "≤ 9.5"),
            (Bar::AtLeast(10.5), false, "≥ 10.5"),
            (Bar::Exactly(10.0), true, "= 10"),
            (Bar::Between(9.0, 9.9), false, "9 to 9.9"),
            (Bar::Within { percent: 1.0, of: 10.1 }, true, "10.1 ± 1 %"),
            (Bar::Within { percent: 1.0, of: 10.2 }, false, "10.2 ± 1 %"),
        ];
        for (bar, ok, said) in all {
            assert_eq!((row(bar).ok, bar.to_string().as_str()), (ok, said));
        }
        assert!(!row(Bar::AtMost(f64::NAN)).ok);
        let told = |bar| row(bar).open("why").verdict();
        assert_eq!([told(Bar::AtMost(9.5)), told(Bar::AtMost(10.0)), told(Bar::Shown)], ["open", "ok", ""]);
        let bad = row(Bar::AtMost(9.5)).because("of that");
        assert_eq!((bad.verdict(), bad.reason), ("NOT OK", "of that"));
        let json = serde_json::to_value(row(Bar::Shown)).unwrap();
        assert!(json["ok"] == true && json["bar"].is_null() && json["paper"] == 9.0, "{json}");
    }
}
