//! What a handler gives.

use futures_util::future::BoxFuture;

use crate::ToolError;

/// The result of a handler, as JSON text.
pub(crate) type Job = BoxFuture<'static, Result<String, ToolError>>;
