//! A robot whose section or files cannot be used, beside others that can.
//!
//! It drives nothing: every action fails with the reason. Read [`Refused`].

use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde_json::{Value, json};

use super::contract::{ActionOutput, Adapter};
use super::control::Control;
use crate::action::Action;
use crate::capability::Capabilities;
use crate::error::ActionError;
use crate::subsystem::Subsystem;

/// A robot that is not driven.
pub(crate) struct Refused {
    capabilities: Capabilities,
    reason: Arc<str>,
}

impl Refused {
    pub(crate) fn new(capabilities: Capabilities, reason: &str) -> Self {
        Self {
            capabilities,
            reason: reason.into(),
        }
    }

    fn why(&self) -> ActionError {
        ActionError::Refused(self.reason.to_string())
    }
}

impl Adapter for Refused {
    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    fn connect(&self) -> BoxFuture<'_, Result<(), ActionError>> {
        async { Err(self.why()) }.boxed()
    }

    fn execute<'a>(
        &'a self,
        _: &'a Action,
        _: &'a Control,
    ) -> BoxFuture<'a, Result<ActionOutput, ActionError>> {
        async { Err(self.why()) }.boxed()
    }

    fn state(&self, _: Subsystem) -> Value {
        json!({"positions": {}, "connected": false})
    }

    fn halt(&self, _: &[Subsystem], _: bool) -> Result<(), ActionError> {
        // Nothing was begun that could go on.
        Ok(())
    }

    fn reset(&self) -> Result<(), ActionError> {
        Ok(())
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        async {}.boxed()
    }
}
