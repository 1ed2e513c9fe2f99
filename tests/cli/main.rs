//! The command line, as scripts and people meet it: the real binary against a scripted service.

mod answers;
mod emergency;
mod help;
mod invoke;
mod scripted;
mod silence;
