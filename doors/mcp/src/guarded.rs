//! Answers that come even if our own code panics.

use std::panic::AssertUnwindSafe;

use futures_util::FutureExt as _;
use rmcp::ErrorData;

/// Gives an answer even if our own code panics. Without this the library would leave the request unanswered.
pub(crate) async fn guarded<T>(
    what: &str,
    answer: impl Future<Output = Result<T, ErrorData>>,
) -> Result<T, ErrorData> {
    AssertUnwindSafe(answer).catch_unwind().await.unwrap_or_else(|_| {
        tracing::error!("{what} panicked");
        let text = format!("{what} failed because of a bug of ovos-tools-mcp: its log says more");
        Err(ErrorData::internal_error(text, None))
    })
}
