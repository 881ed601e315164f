//! The block at the end of a terminal: what goes on at the moment.

use std::{fmt::Write, time::Instant};

use crate::{
    object::ObjectRef,
    observer::{EngineEvent, Stage},
};

const FRAMES: [char; 10] = ['⠋', '⠙', '⠹', '⠸', '⠼', '⠴', '⠦', '⠧', '⠇', '⠏'];
/// Lines that the block may take; the rest is counted.
const MOST_LINES: usize = 12;

/// What goes on, and how many lines of it are on the screen.
#[derive(Default)]
pub(super) struct Block {
    items: Vec<(String, usize)>,
    waits: Vec<(ObjectRef, String, Instant)>,
    applied: usize,
    planned: usize,
    deleted: usize,
    frame: usize,
    drawn: usize,
}

impl Block {
    /// Takes notice of an event.
    pub(super) fn note(&mut self, event: &EngineEvent, now: Instant) {
        match event {
            EngineEvent::StageStarted { stage: Stage::Apply } => {
                (self.applied, self.planned) = (0, 0);
            }
            EngineEvent::StageFinished { .. } => {
                self.items.clear();
                self.waits.clear();
            }
            EngineEvent::ItemStarted { item, objects } => {
                self.planned += objects;
                self.items.push((item.clone(), *objects));
            }
            EngineEvent::ItemFinished { item, .. } => {
                let at = self.items.iter().position(|(running, _)| running == item);
                at.map(|at| self.items.remove(at));
            }
            EngineEvent::ObjectApplied { .. } => self.applied += 1,
            EngineEvent::ObjectDeleted { object } => {
                self.deleted += 1;
                self.waits.retain(|(waited, ..)| waited != object);
            }
            EngineEvent::Waiting { object, reason } => {
                match self.waits.iter_mut().find(|(waited, ..)| waited == object) {
                    Some((_, known, _)) => reason.clone_into(known),
                    None => self.waits.push((object.clone(), reason.clone(), now)),
                }
            }
            EngineEvent::WaitEnded { object } => {
                self.waits.retain(|(waited, ..)| waited != object);
            }
            _ => {}
        }
    }

    /// Since when an object is waited for.
    pub(super) fn waits_since(&self, object: &ObjectRef) -> Option<Instant> {
        self.waits.iter().find(|(waited, ..)| waited == object).map(|(_, _, since)| *since)
    }

    /// What removes the block from the screen.
    pub(super) fn erase(&mut self) -> String {
        let lines = std::mem::take(&mut self.drawn);
        "\x1b[1A\x1b[2K".repeat(lines)
    }

    /// What draws the block anew, for a terminal with `width` columns.
    pub(super) fn draw(
        &mut self,
        stages: impl Iterator<Item = (Stage, Instant)>,
        width: usize,
        colour: bool,
        now: Instant,
    ) -> String {
        let lines = self.lines(stages, now);
        let mut out = self.erase();
        self.frame += 1;
        let spinner = FRAMES[self.frame % FRAMES.len()];
        for line in &lines {
            let line: String = line.chars().take(width.saturating_sub(3)).collect();
            let _ = if colour {
                writeln!(out, "\x1b[36m{spinner}\x1b[0m {line}")
            } else {
                writeln!(out, "{spinner} {line}")
            };
        }
        self.drawn = lines.len();
        out
    }

    fn lines(&self, stages: impl Iterator<Item = (Stage, Instant)>, now: Instant) -> Vec<String> {
        let seconds = |since: Instant| now.saturating_duration_since(since).as_secs();
        let mut lines: Vec<String> = stages
            .map(|(stage, since)| {
                let text = super::stage_text(stage);
                let counts = match stage {
                    Stage::Apply => format!(" {} of {}", self.applied, self.planned),
                    Stage::Prune | Stage::Delete => format!(" {}", self.deleted),
                    _ => String::new(),
                };
                format!("{text}{counts} ({} s)", seconds(since))
            })
            .collect();
        let items = self.items.iter().filter(|(_, objects)| *objects > 0);
        lines.extend(
            items.map(|(item, objects)| {
                format!("  {item}: applying {}", super::count_text(*objects))
            }),
        );
        lines.extend(self.waits.iter().map(|(object, reason, since)| {
            format!("  waiting for {object}: {reason} ({} s)", seconds(*since))
        }));
        if lines.len() > MOST_LINES {
            let more = lines.len() - MOST_LINES + 1;
            lines.truncate(MOST_LINES - 1);
            lines.push(format!("  … and {more} more"));
        }
        lines
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn the_block_shows_what_goes_on_and_goes_when_it_is_over() {
        let start = Instant::now();
        let object = ObjectRef::new("apps/v1", "Deployment", Some("ns"), "web");
        let mut block = Block::default();
        block.note(&EngineEvent::StageStarted { stage: Stage::Apply }, start);
        block.note(&EngineEvent::ItemStarted { item: "app".to_owned(), objects: 2 }, start);
        block.note(&EngineEvent::ObjectApplied { object: object.clone() }, start);
        let waiting = EngineEvent::Waiting { object: object.clone(), reason: "0 of 1".to_owned() };
        block.note(&waiting, start);
        let now = start + Duration::from_secs(7);
        let stages = || std::iter::once((Stage::Apply, start));
        let drawn = block.draw(stages(), 30, false, now);
        assert_eq!(
            drawn,
            "⠙ Applying objects 1 of 2 (7 s)\n⠙   app: applying 2 objects\n⠙   waiting for ns/Deployment\n"
                .replace("Applying objects 1 of 2 (7 s)", "Applying objects 1 of 2 (7 ")
        );
        // The next one takes the place of the last.
        block.note(&EngineEvent::WaitEnded { object }, now);
        let again = block.draw(stages(), 80, false, now);
        assert!(again.starts_with(&"\x1b[1A\x1b[2K".repeat(3)), "{again:?}");
        assert!(!again.contains("waiting"), "{again:?}");
        assert_eq!(block.erase(), "\x1b[1A\x1b[2K".repeat(2));
        assert_eq!(block.erase(), "");
    }

    #[test]
    fn a_block_does_not_fill_the_screen() {
        let now = Instant::now();
        let mut block = Block::default();
        for index in 0..30 {
            let item = format!("item-{index}");
            block.note(&EngineEvent::ItemStarted { item, objects: 1 }, now);
        }
        let drawn = block.draw(std::iter::empty(), 80, false, now);
        assert_eq!(drawn.lines().count(), MOST_LINES);
        assert!(drawn.ends_with("… and 19 more\n"), "{drawn}");
    }
}
