//! The toolboxes of a Python interpreter: found, hosted, replaced when packages change; and the published ones held against the
//! published service.
mod compare;
mod discovery;
mod life;
mod published;
mod scene;
