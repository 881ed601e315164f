mod bodies;
mod conflict;
mod decide;
mod plan;
mod run;
