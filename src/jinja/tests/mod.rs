mod basics;
mod replay;
