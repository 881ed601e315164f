mod errors;
mod reading;
mod robustness;
mod typed;
mod writing;
