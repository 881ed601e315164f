//! Writing YAML as PyYAML's emitter does: block style, 80 columns, ASCII only.

/// How a scalar is asked to be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wish {
    /// Plain if its text reads back as the right type.
    Plain,
    /// Plain would read back as another type.
    Quoted,
    Literal,
}

const WIDTH: usize = 80;

fn is_break(c: char) -> bool {
    matches!(c, '\n' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

fn is_blank(c: Option<char>) -> bool {
    c.is_none_or(|c| matches!(c, '\0' | ' ' | '\t' | '\r') || is_break(c))
}

/// Which styles a text can be written in.
#[expect(clippy::struct_excessive_bools, reason = "independent facts about a text")]
#[derive(Debug, Clone, Copy)]
pub(super) struct Analysis {
    empty: bool,
    pub(super) multiline: bool,
    plain: bool,
    single: bool,
    block: bool,
}

/// Combinations of white space that decide on styles.
#[expect(clippy::struct_excessive_bools, reason = "independent facts about a text")]
#[derive(Default)]
struct Spaces {
    leading: bool,
    trailing: bool,
    trailing_space: bool,
    break_space: bool,
    space_break: bool,
}

fn spaces(chars: &[char]) -> Spaces {
    let mut out = Spaces::default();
    for (index, c) in chars.iter().enumerate() {
        let previous = index.checked_sub(1).map(|before| chars[before]);
        let (space, line) = (*c == ' ', is_break(*c));
        if !space && !line {
            continue;
        }
        out.leading |= index == 0;
        out.trailing |= index + 1 == chars.len();
        out.trailing_space |= space && index + 1 == chars.len();
        out.break_space |= space && previous.is_some_and(is_break);
        out.space_break |= line && previous == Some(' ');
    }
    out
}

/// Whether a plain scalar in block context could be taken for something else.
fn has_indicators(text: &str, chars: &[char]) -> bool {
    if text.starts_with("---") || text.starts_with("...") {
        return true;
    }
    chars.iter().enumerate().any(|(index, c)| {
        let next = chars.get(index + 1).copied();
        let previous = index.checked_sub(1).map(|before| chars[before]);
        match c {
            '#' => is_blank(previous),
            ',' | '[' | ']' | '{' | '}' | '&' | '*' | '!' | '|' | '>' | '\'' | '"' | '%' | '@'
            | '`' => index == 0,
            '?' | '-' => index == 0 && is_blank(next),
            ':' => is_blank(next),
            _ => false,
        }
    })
}

pub(super) fn analyze(text: &str) -> Analysis {
    let chars: Vec<char> = text.chars().collect();
    if chars.is_empty() {
        return Analysis { empty: true, multiline: false, plain: true, single: true, block: false };
    }
    let spaces = spaces(&chars);
    let special = chars.iter().any(|c| *c != '\n' && !(' '..='~').contains(c));
    let multiline = chars.iter().any(|c| is_break(*c));
    let double_only = spaces.space_break || special;
    Analysis {
        empty: false,
        multiline,
        plain: !(spaces.leading
            || spaces.trailing
            || spaces.break_space
            || double_only
            || multiline
            || has_indicators(text, &chars)),
        single: !(spaces.break_space || double_only),
        block: !(spaces.trailing_space || double_only),
    }
}

/// The output, and what the next token needs to know about it.
pub(super) struct Emitter {
    pub(super) out: String,
    pub(super) column: usize,
    pub(super) indent: usize,
    /// The last thing written was white space.
    whitespace: bool,
    /// Only indentation and indicators stand on the line so far.
    pub(super) indention: bool,
    /// The end of the document has to be marked.
    pub(super) open_ended: bool,
}

impl Emitter {
    pub(super) fn new() -> Self {
        Self {
            out: String::new(),
            column: 0,
            indent: 0,
            whitespace: true,
            indention: true,
            open_ended: false,
        }
    }

    fn push(&mut self, text: &str) {
        self.out.push_str(text);
        self.column += text.chars().count();
    }

    pub(super) fn indicator(
        &mut self,
        text: &str,
        spaced: bool,
        whitespace: bool,
        indention: bool,
    ) {
        if spaced && !self.whitespace {
            self.push(" ");
        }
        self.push(text);
        self.whitespace = whitespace;
        self.indention = self.indention && indention;
        self.open_ended = false;
    }

    pub(super) fn line_break(&mut self) {
        self.out.push('\n');
        self.column = 0;
        self.whitespace = true;
        self.indention = true;
    }

    pub(super) fn write_indent(&mut self) {
        let fresh = self.indention
            && (self.column < self.indent || self.column == self.indent && self.whitespace);
        if !fresh {
            self.line_break();
        }
        if self.column < self.indent {
            let spaces = " ".repeat(self.indent - self.column);
            self.push(&spaces);
            self.whitespace = true;
        }
    }

    /// Writes a scalar in the best style that its text allows. `key`: as a simple key, on one line. `root`: it is the whole
    /// document.
    pub(super) fn scalar(&mut self, text: &str, wish: Wish, key: bool, root: bool) {
        let analysis = analyze(text);
        let unfit_key = key && (analysis.empty || analysis.multiline);
        if wish == Wish::Plain && analysis.plain && !unfit_key {
            self.plain(text, !key, root);
        } else if wish == Wish::Literal && !key && analysis.block {
            self.literal(text);
        } else if wish != Wish::Literal && analysis.single && !(key && analysis.multiline) {
            self.single_quoted(text, !key);
        } else {
            self.double_quoted(text, !key);
        }
    }

    fn plain(&mut self, text: &str, split: bool, root: bool) {
        if root {
            self.open_ended = true;
        }
        if text.is_empty() {
            return;
        }
        if !self.whitespace {
            self.push(" ");
        }
        self.whitespace = false;
        self.indention = false;
        let parts: Vec<&str> = text.split(' ').collect();
        for (index, part) in parts.iter().enumerate() {
            if index > 0 {
                // A single space between two words is where a long line may be folded.
                let single = !parts[index - 1].is_empty() && !part.is_empty();
                if single && split && self.column > WIDTH {
                    self.write_indent();
                    self.whitespace = false;
                    self.indention = false;
                } else {
                    self.push(" ");
                }
            }
            self.push(part);
        }
    }

    fn single_quoted(&mut self, text: &str, split: bool) {
        self.indicator("'", true, false, false);
        let chars: Vec<char> = text.chars().collect();
        let mut at = 0;
        while at < chars.len() {
            let kind = |c: char| (c == ' ', is_break(c));
            let first = kind(chars[at]);
            let mut end = at + 1;
            while end < chars.len() && kind(chars[end]) == first {
                end += 1;
            }
            let run = &chars[at..end];
            match first {
                (true, _) => {
                    let inside = at != 0 && end != chars.len();
                    if run.len() == 1 && self.column > WIDTH && split && inside {
                        self.write_indent();
                    } else {
                        self.push(&" ".repeat(run.len()));
                    }
                }
                (_, true) => {
                    if run[0] == '\n' {
                        self.line_break();
                    }
                    for _ in run {
                        self.line_break();
                    }
                    self.write_indent();
                }
                _ => {
                    let text: String = run.iter().collect();
                    self.push(&text.replace('\'', "''"));
                }
            }
            at = end;
        }
        self.indicator("'", false, false, false);
    }

    fn double_quoted(&mut self, text: &str, split: bool) {
        self.indicator("\"", true, false, false);
        let chars: Vec<char> = text.chars().collect();
        let plain = |c: char| (' '..='~').contains(&c) && c != '"' && c != '\\';
        let (mut start, mut end) = (0, 0);
        while end <= chars.len() {
            let c = chars.get(end).copied();
            if !c.is_some_and(plain) {
                if start < end {
                    let text: String = chars[start..end].iter().collect();
                    self.push(&text);
                    start = end;
                }
                if let Some(c) = c {
                    self.push(&escape(c));
                    start = end + 1;
                }
            }
            let inside = end > 0 && end + 1 < chars.len();
            let pending = end.saturating_sub(start);
            if inside && (c == Some(' ') || start >= end) && self.column + pending > WIDTH && split
            {
                if start < end {
                    let text: String = chars[start..end].iter().collect();
                    self.push(&text);
                    start = end;
                }
                self.push("\\");
                self.write_indent();
                self.whitespace = false;
                self.indention = false;
                if chars.get(start) == Some(&' ') {
                    self.push("\\");
                }
            }
            end += 1;
        }
        self.indicator("\"", false, false, false);
    }

    fn literal(&mut self, text: &str) {
        let mut hints = String::from("|");
        if text.starts_with([' ', '\n']) {
            hints.push('2');
        }
        let keep = text == "\n" || text.ends_with("\n\n");
        if !text.ends_with('\n') {
            hints.push('-');
        } else if keep {
            hints.push('+');
        }
        self.indicator(&hints, true, false, false);
        self.open_ended = keep;
        self.line_break();
        let lines: Vec<&str> = text.split('\n').collect();
        for (index, line) in lines.iter().enumerate() {
            if !line.is_empty() {
                self.write_indent();
                self.push(line);
            }
            if index + 1 < lines.len() || !line.is_empty() {
                self.line_break();
            }
        }
    }
}

fn escape(c: char) -> String {
    let code = u32::from(c);
    let short = match c {
        '\0' => '0',
        '\x07' => 'a',
        '\x08' => 'b',
        '\t' => 't',
        '\n' => 'n',
        '\x0b' => 'v',
        '\x0c' => 'f',
        '\r' => 'r',
        '\x1b' => 'e',
        '"' => '"',
        '\\' => '\\',
        '\u{85}' => 'N',
        '\u{a0}' => '_',
        '\u{2028}' => 'L',
        '\u{2029}' => 'P',
        _ if code <= 0xff => return format!("\\x{code:02X}"),
        _ if code <= 0xffff => return format!("\\u{code:04X}"),
        _ => return format!("\\U{code:08X}"),
    };
    format!("\\{short}")
}
