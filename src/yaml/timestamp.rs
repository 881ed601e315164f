//! The dates and times that Go's YAML libraries recognise.

use jiff::civil::Date;

/// `text` as RFC 3339 with the fraction's trailing zeros dropped, if it is a date (`2024-1-2`), or a date and time with `T`
/// or `t` and a zone, or with a space and none (which means UTC).
pub(super) fn to_rfc3339(text: &str) -> Option<String> {
    let mut rest = Cursor(text);
    let year = rest.digits(4, 4)?;
    rest.literal('-')?;
    let month = rest.digits(1, 2)?;
    rest.literal('-')?;
    let day = rest.digits(1, 2)?;
    // The calendar's rules: 2023-02-29 is no date, and stays a string.
    let (y, m, d) = (i16::try_from(year).ok()?, i8::try_from(month).ok()?, i8::try_from(day).ok()?);
    Date::new(y, m, d).ok()?;
    let date = format!("{year:04}-{month:02}-{day:02}");
    if rest.0.is_empty() {
        return Some(format!("{date}T00:00:00Z"));
    }
    let separator = rest.any()?;
    let hour = rest.digits(1, 2)?;
    rest.literal(':')?;
    let minute = rest.digits(1, 2)?;
    rest.literal(':')?;
    let second = rest.digits(1, 2)?;
    if hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    let fraction = rest.fraction()?;
    let zone = match separator {
        'T' | 't' => rest.zone()?,
        ' ' => "Z".to_owned(),
        _ => return None,
    };
    rest.0.is_empty().then(|| format!("{date}T{hour:02}:{minute:02}:{second:02}{fraction}{zone}"))
}

struct Cursor<'a>(&'a str);

impl Cursor<'_> {
    fn any(&mut self) -> Option<char> {
        let first = self.0.chars().next()?;
        self.0 = &self.0[first.len_utf8()..];
        Some(first)
    }

    fn literal(&mut self, wanted: char) -> Option<()> {
        self.0 = self.0.strip_prefix(wanted)?;
        Some(())
    }

    fn digits(&mut self, least: usize, most: usize) -> Option<u32> {
        let count = self.0.bytes().take(most).take_while(u8::is_ascii_digit).count();
        let (number, rest) = self.0.split_at(count);
        self.0 = rest;
        if count < least { None } else { number.parse().ok() }
    }

    /// A fraction of a second, `.` included, at most nine digits; empty when there is none.
    fn fraction(&mut self) -> Option<String> {
        let Some(rest) = self.0.strip_prefix(['.', ',']) else { return Some(String::new()) };
        let count = rest.bytes().take_while(u8::is_ascii_digit).count();
        if count == 0 {
            return None;
        }
        let digits = rest[..count.min(9)].trim_end_matches('0');
        self.0 = &rest[count..];
        Some(if digits.is_empty() { String::new() } else { format!(".{digits}") })
    }

    fn zone(&mut self) -> Option<String> {
        let sign = self.any()?;
        if sign == 'Z' {
            return Some("Z".to_owned());
        }
        if !matches!(sign, '+' | '-') {
            return None;
        }
        let hours = self.digits(2, 2)?;
        self.literal(':')?;
        let minutes = self.digits(2, 2)?;
        if hours > 24 || minutes > 60 {
            return None;
        }
        let utc = hours == 0 && minutes == 0;
        Some(if utc { "Z".to_owned() } else { format!("{sign}{hours:02}:{minutes:02}") })
    }
}
