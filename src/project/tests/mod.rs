mod args;
mod targets;
