//! Texts and values for the comparison with Go's libraries; the same in every run.

use serde::Deserialize;
use serde_json::{Value, json};

/// The pieces that texts are made of, from `shapes.json`.
#[derive(Deserialize)]
struct Shapes {
    /// Scalars of every shape that YAML 1.1 or 1.2 know, and those that look like one.
    scalars: Vec<String>,
    /// Contents of literal and folded scalars.
    blocks: Vec<String>,
    /// Whole texts.
    structures: Vec<String>,
}

fn shapes() -> Shapes {
    serde_json::from_str(include_str!("shapes.json")).unwrap()
}

pub(crate) fn scalars() -> Vec<String> {
    shapes().scalars
}

const TAGS: &[&str] = &[
    "!!str",
    "!!int",
    "!!float",
    "!!bool",
    "!!null",
    "!!timestamp",
    "!!binary",
    "!!map",
    "!!seq",
    "!",
    "!custom",
];

/// A small generator of numbers that never changes.
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % limit as u64).unwrap()
    }

    fn pick<'a, T: ?Sized>(&mut self, list: &[&'a T]) -> &'a T {
        list[self.below(list.len())]
    }
}

/// Blocks with every header.
fn blocks() -> Vec<String> {
    let mut out = Vec::new();
    for body in shapes().blocks {
        for style in ["|", ">"] {
            for header in ["", "-", "+", "2", "2-", "+2", "1", "4"] {
                let indented: String = body
                    .split_inclusive('\n')
                    .map(|line| if line == "\n" { line.to_owned() } else { format!("  {line}") })
                    .collect();
                out.push(format!("a: {style}{header}\n{indented}"));
                if header.len() < 2 {
                    let end = if indented.ends_with('\n') { "" } else { "\n" };
                    out.push(format!("- {style}{header}\n{indented}{end}- b\n"));
                    out.push(format!(
                        "a:\n  b: {style}{header}\n    {}{end}c: 1\n",
                        indented.replace("\n  ", "\n    ").trim_start()
                    ));
                }
            }
        }
    }
    out
}

/// Texts with a character removed, doubled or put in.
fn mutated(texts: &[String]) -> Vec<String> {
    let pieces = [
        " ", "\n", ":", "-", "'", "\"", "#", ",", "[", "]", "{", "}", "&x ", "*x", "!", "|", ">",
        "?", "\t", "  ", ": ", "- ", "a", "1", "%", "\\", "\n\n", "---\n", "\r\n", "é",
    ];
    let mut dice = Dice(0x9E37_79B9_7F4A_7C15);
    let mut out = Vec::new();
    for text in texts {
        let places: Vec<usize> = text.char_indices().map(|(at, _)| at).collect();
        if places.is_empty() {
            continue;
        }
        let at = places[dice.below(places.len())];
        let skip = text[at..].chars().next().map_or(0, char::len_utf8) * dice.below(2);
        let piece = if dice.below(3) == 0 { "" } else { dice.pick(&pieces) };
        out.push(format!("{}{piece}{}", &text[..at], &text[at + skip..]));
    }
    out
}

/// Texts of a few lines each: any content at any indentation, tabs and half-open brackets and quotes among it.
fn tangled() -> Vec<String> {
    let indents =
        ["", "", "  ", "  ", "    ", " ", "\t", " \t", "  \t", "- ", "  - ", "-\t", "- \t"];
    let contents = [
        "a: 1",
        "b: x",
        "c:",
        "- d",
        "-",
        "- e: 1",
        "f: - g",
        "'h': \"i\"",
        "? j",
        ": k",
        "l",
        "m n",
        "[o,",
        "p]",
        "[q]",
        "{r: s,",
        "t: u}",
        "{v: w}",
        "&x y",
        "*x",
        "z: &x 1",
        "a: *x",
        "a: &x",
        "!!str 5",
        "b: !!int '7'",
        "!t",
        "# c",
        "d: # c",
        "'e",
        "f'",
        "\"g",
        "h\"",
        "i: 'j",
        "k: \"l",
        "m: |",
        "n: >-",
        "o: |+",
        "|",
        "text",
        "p: q: r",
        "---",
        "--- s",
        "...",
        "",
        "",
        "\t",
        "t:\tu",
        "v\t: w",
        "x:\t- y",
        "<<: *x",
        "<<: {z: 1}",
        "é: 🚀",
        "a: 2024-01-02",
        "b: [c, {d: e}]",
        "f: [",
        "]",
        "}",
        ",",
        "g: {",
        "h: yes",
        "\"i\\tj\"",
        "k: -",
        "-\tl",
        "?\tm",
        "n: [\to,\tp\t]",
        "%YAML 1.1",
        "\u{feff}q: r",
    ];
    let mut dice = Dice(0x5851_F42D_4C95_7F2D);
    (0..6000)
        .map(|number| {
            let lines = 2 + dice.below(5);
            let line_end = if number % 9 == 0 { "\r\n" } else { "\n" };
            let parts: Vec<&str> = (0..lines)
                .flat_map(|_| [dice.pick(&indents), dice.pick(&contents), line_end])
                .collect();
            let mut text = parts.concat();
            if number % 7 == 0 {
                text.truncate(text.trim_end().len());
            }
            if number % 50 == 0 {
                text.insert(0, '\u{feff}');
            }
            text
        })
        .collect()
}

/// All texts, as bytes because some are not UTF-8.
pub(crate) fn texts() -> Vec<Vec<u8>> {
    let mut out: Vec<String> = Vec::new();
    for scalar in scalars() {
        for frame in [
            "{}\n",
            "a: {}\n",
            "a: {} # c\n",
            "- {}\n",
            "a: [{}]\n",
            "a: {b: {}}\n",
            "{}: v\n",
            "a:\n  {}: v\n",
            "? {}\n: v\n",
            "a: &x {}\nb: *x\n",
        ] {
            out.push(frame.replacen("{}", &scalar, 1));
        }
        for tag in TAGS {
            out.push(format!("a: {tag} {scalar}\n"));
        }
    }
    let structures = shapes().structures;
    let shapes: Vec<String> = structures.iter().cloned().chain(blocks()).collect();
    out.extend(shapes.iter().cloned());
    out.extend(shapes.iter().map(|text| text.replace('\n', "\r\n")));
    out.extend(structures.iter().map(|text| {
        format!("k:\n{}", text.lines().fold(String::new(), |all, line| all + "  " + line + "\n"))
    }));
    out.extend(mutated(&shapes));
    out.extend(tangled());
    let mut bytes: Vec<Vec<u8>> = out.into_iter().map(String::into_bytes).collect();
    bytes.extend([
        b"a: \xE9\n".to_vec(),
        b"\xFF\xFE".to_vec(),
        b"a: \xC0\x80\n".to_vec(),
        b"a: \xED\xA0\x80\n".to_vec(),
        b"# \xE9\na: 1\n".to_vec(),
        b"a: 'x\xE9'\n".to_vec(),
    ]);
    let mut seen = std::collections::HashSet::new();
    bytes.retain(|text| seen.insert(text.clone()));
    bytes
}

/// Values whose emission is compared.
pub(crate) fn values() -> Vec<Value> {
    let mut out = Vec::new();
    let words = [
        "the",
        "quick: brown",
        "#fox",
        "jumps",
        "- over",
        "it's",
        "\"lazy\"",
        "dog",
        "é",
        "🚀",
        "x".repeat(30).leak(),
        "a:",
        ", b",
        "{{ y }}",
    ];
    let mut dice = Dice(42);
    for length in 0..400 {
        let text: Vec<&str> = (0..=length % 40).map(|_| dice.pick(&words)).collect();
        let text = text.join(dice.pick(&[" ", "  ", "\n", " \n", "\n ", "\n\n", "\t", ""]));
        let text = format!(
            "{}{text}{}",
            dice.pick(&["", "", " ", "\n"]),
            dice.pick(&["", "", " ", "\n", "\n\n"])
        );
        out.push(match length % 5 {
            0 => json!(text),
            1 => json!({ "k": text }),
            2 => json!({ "a": { "b": [text, { "c": 1 }] } }),
            3 => json!([[text], {}]),
            _ => json!({ text: "v" }),
        });
    }
    for scalar in scalars() {
        out.extend([json!(scalar), json!({ "k": scalar }), json!([scalar]), json!({ &scalar: 1 })]);
        out.push(json!(format!("{scalar}\n")));
        out.push(json!(format!("x\n{scalar}")));
    }
    for number in [
        "0",
        "-1",
        "1.5",
        "1e3",
        "1e20",
        "1e21",
        "123456789012345",
        "0.1",
        "1e-7",
        "-0.0",
        "3.0",
        "1.7976931348623157e308",
        "5e-324",
    ] {
        out.push(serde_json::from_str(number).unwrap());
    }
    out.push(json!({ "a": null, "b": true, "c": [], "d": {}, "e": [[], {}, null] }));
    out
}

/// Whether configuration keeps a value as it is.
pub(crate) fn is_normal(value: &Value) -> bool {
    match value {
        Value::Number(number) => match number.as_i64() {
            Some(integer) => integer.unsigned_abs() <= 1 << 53,
            None => number.as_f64().is_some_and(|float| float.fract() != 0.0),
        },
        Value::Array(items) => items.iter().all(is_normal),
        Value::Object(map) => map.values().all(is_normal),
        _ => true,
    }
}
