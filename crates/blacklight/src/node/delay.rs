//! Delays of timers, and warnings about invalid delays.

use std::fmt;
use std::time::Duration;

/// The longest delay, in milliseconds: almost 25 days.
///
/// ```
/// use blacklight::node::{Delay, TIMEOUT_MAX};
///
/// assert_eq!(Delay::from(TIMEOUT_MAX).as_ms(), TIMEOUT_MAX);
/// assert_eq!(Delay::from(TIMEOUT_MAX + 1).as_ms(), 1);
/// ```
pub const TIMEOUT_MAX: u32 = i32::MAX as u32;

/// A delay for [`Node::set_timeout`](super::Node::set_timeout): a number of milliseconds or a
/// [`Duration`].
///
/// The rules are Node's. A value that is below 1, not a number, or above [`TIMEOUT_MAX`] counts
/// as 1, and fractions of a millisecond are truncated. Only a [`Duration`] is rounded up, so that
/// its timer is never early.
///
/// ```
/// use blacklight::node::Delay;
/// use std::time::Duration;
///
/// assert_eq!(Delay::from(250).as_ms(), 250);
/// assert_eq!(Delay::from(0).as_ms(), 1);
/// assert_eq!(Delay::from(-5).as_ms(), 1);
/// assert_eq!(Delay::from(f64::NAN).as_ms(), 1);
/// assert_eq!(Delay::from(3_000_000_000_u64).as_ms(), 1);
/// assert_eq!(Delay::from(2.9).as_ms(), 2);
/// assert_eq!(Delay::from(Duration::from_micros(2_900)).as_ms(), 3);
/// ```
#[derive(Clone, Copy, PartialEq, PartialOrd, Debug)]
pub struct Delay(f64);

impl Delay {
    /// The milliseconds that a timer with this delay waits: at least 1, and at most
    /// [`TIMEOUT_MAX`].
    ///
    /// ```
    /// use blacklight::node::{Delay, TIMEOUT_MAX};
    ///
    /// assert_eq!(Delay::from(2.9).as_ms(), 2);
    /// assert_eq!(Delay::from(0).as_ms(), 1);
    /// assert_eq!(Delay::from(TIMEOUT_MAX).as_ms(), TIMEOUT_MAX);
    /// ```
    pub fn as_ms(self) -> u32 {
        if (1.0..=f64::from(TIMEOUT_MAX)).contains(&self.0) {
            self.0 as u32
        } else {
            1
        }
    }

    /// The warning about the delay, if it is invalid.
    pub(crate) fn warning(self) -> Option<Warning> {
        let kind = if self.0 > f64::from(TIMEOUT_MAX) {
            WarningKind::Overflow
        } else if self.0 < 0.0 {
            WarningKind::Negative
        } else if self.0.is_nan() {
            WarningKind::NotANumber
        } else {
            return None;
        };
        Some(Warning { kind, delay: self })
    }
}

/// The number as JavaScript writes it.
impl fmt::Display for Delay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.0 < 0.0 { "-" } else { "" };
        let size = self.0.abs();
        if size.is_infinite() {
            write!(f, "{sign}Infinity")
        } else if size >= 1e21 {
            write!(f, "{sign}{}", format!("{size:e}").replace('e', "e+"))
        } else {
            write!(f, "{}", self.0)
        }
    }
}

impl From<f64> for Delay {
    fn from(ms: f64) -> Delay {
        Delay(ms)
    }
}

impl From<i32> for Delay {
    fn from(ms: i32) -> Delay {
        Delay(ms.into())
    }
}

impl From<u32> for Delay {
    fn from(ms: u32) -> Delay {
        Delay(ms.into())
    }
}

impl From<i64> for Delay {
    fn from(ms: i64) -> Delay {
        Delay(ms as f64)
    }
}

impl From<u64> for Delay {
    fn from(ms: u64) -> Delay {
        Delay(ms as f64)
    }
}

impl From<Duration> for Delay {
    fn from(time: Duration) -> Delay {
        Delay(time.as_nanos().div_ceil(1_000_000) as f64)
    }
}

/// The kind of a [`Warning`].
///
/// ```
/// use blacklight::node::{Node, WarningKind};
///
/// let node = Node::new()?;
/// node.on_warning(|_, warning| {
///     assert_eq!(warning.kind(), WarningKind::Negative);
///     assert_eq!(warning.name(), "TimeoutNegativeWarning");
///     assert!(warning.message().starts_with("-5 is a negative number."));
/// });
/// node.set_timeout(|_, _| (), -5);
/// node.run();
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum WarningKind {
    /// A delay of more than [`TIMEOUT_MAX`] milliseconds.
    Overflow,
    /// A negative delay; reported once.
    Negative,
    /// A delay that is not a number; reported once.
    NotANumber,
}

/// A warning about an invalid delay, which counts as one millisecond.
///
/// `Display` gives the text that Node prints.
///
/// ```
/// use blacklight::node::{Node, WarningKind};
/// use std::{cell::RefCell, rc::Rc};
///
/// let node = Node::new()?;
/// let texts = Rc::new(RefCell::new(Vec::new()));
/// let seen = texts.clone();
/// node.on_warning(move |_, warning| {
///     assert_eq!(warning.kind(), WarningKind::Overflow);
///     seen.borrow_mut().push(warning.to_string());
/// });
/// node.set_timeout(|_, _| (), f64::INFINITY);
/// node.run();
/// assert_eq!(
///     *texts.borrow(),
///     ["TimeoutOverflowWarning: Infinity does not fit into a 32-bit signed integer.\n\
///       Timeout duration was set to 1."]
/// );
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Warning {
    kind: WarningKind,
    delay: Delay,
}

impl Warning {
    /// The kind of the warning.
    ///
    /// ```
    /// use blacklight::node::{Node, WarningKind};
    ///
    /// let node = Node::new()?;
    /// node.on_warning(|_, warning| assert_eq!(warning.kind(), WarningKind::Negative));
    /// node.set_timeout(|_, _| (), -1);
    /// node.run();
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn kind(&self) -> WarningKind {
        self.kind
    }

    /// Node's name for this kind of warning.
    ///
    /// ```
    /// use blacklight::node::Node;
    ///
    /// let node = Node::new()?;
    /// node.on_warning(|_, warning| assert_eq!(warning.name(), "TimeoutNaNWarning"));
    /// node.set_timeout(|_, _| (), f64::NAN);
    /// node.run();
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn name(&self) -> &'static str {
        match self.kind {
            WarningKind::Overflow => "TimeoutOverflowWarning",
            WarningKind::Negative => "TimeoutNegativeWarning",
            WarningKind::NotANumber => "TimeoutNaNWarning",
        }
    }

    /// The text of the warning, without its name.
    ///
    /// ```
    /// use blacklight::node::Node;
    ///
    /// let node = Node::new()?;
    /// node.on_warning(|_, warning| {
    ///     assert_eq!(warning.to_string(), format!("{}: {}", warning.name(), warning.message()));
    /// });
    /// node.set_timeout(|_, _| (), f64::NAN);
    /// node.run();
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn message(&self) -> String {
        let delay = self.delay;
        let complaint = match self.kind {
            WarningKind::Overflow => "does not fit into a 32-bit signed integer",
            WarningKind::Negative => "is a negative number",
            WarningKind::NotANumber => "is not a number",
        };
        format!("{delay} {complaint}.\nTimeout duration was set to 1.")
    }
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.name(), self.message())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_numbers_as_javascript_does() {
        let cases = [
            (3e9, "3000000000"),
            (3_000_000_000.5, "3000000000.5"),
            (1e20, "100000000000000000000"),
            (1e21, "1e+21"),
            (1.5e25, "1.5e+25"),
            (-1e21, "-1e+21"),
            (-2.5, "-2.5"),
            (f64::INFINITY, "Infinity"),
            (f64::NEG_INFINITY, "-Infinity"),
            (f64::NAN, "NaN"),
        ];
        for (number, text) in cases {
            assert_eq!(Delay(number).to_string(), text);
        }
    }

    #[test]
    fn complains_of_what_node_complains_of() {
        let kind = |ms: f64| Delay(ms).warning().map(|warning| warning.kind());
        assert_eq!(kind(f64::from(TIMEOUT_MAX)), None);
        assert_eq!(
            kind(f64::from(TIMEOUT_MAX) + 0.5),
            Some(WarningKind::Overflow)
        );
        assert_eq!(kind(0.0), None);
        assert_eq!(kind(0.5), None);
        assert_eq!(kind(-0.5), Some(WarningKind::Negative));
        assert_eq!(kind(f64::NAN), Some(WarningKind::NotANumber));
    }
}
