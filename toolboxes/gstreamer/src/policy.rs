//! The policy: what a pipeline may access.
//!
//! Decides whether the configuration allows an element, and each property that names a file, a device, a descriptor or
//! a network address. A property is judged by its kind, never by a list of elements: a property that gives access in an
//! unknown way is refused. The policy is applied three times: to the text, to the elements made from it, and to later
//! changes ([`guard::watch`]).
//!
//! If the kernel confines the process to the configured folders and devices ([`is_confined`]) and denies every socket,
//! the policy refuses before a pipeline runs, with an explanation, what the kernel would not let it open; a property
//! that is not understood is left to the kernel. If the process may open sockets, such a property is refused as without
//! a confinement, because the kernel knows neither hosts nor the sockets of other programs. Starts nothing. Read
//! [`Policy`].

mod access;
mod address;
mod allowed;
mod confined;
mod devices;
mod element;
mod examination;
pub(crate) mod guard;
mod judge;
mod network;
mod paths;
mod refusal;
mod site;

pub(crate) use allowed::Policy;
pub(crate) use confined::is_confined;
pub(crate) use devices::canonical as canonical_device;
pub(crate) use refusal::Refusal;
