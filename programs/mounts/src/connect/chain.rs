//! Errors with their causes.

use std::error::Error;

use rmcp::transport::streamable_http_client::StreamableHttpError;

/// Describes an error with its causes, each of them once.
pub(crate) fn chain(error: &(dyn Error + 'static)) -> String {
    // This error has a cause that it does not report.
    if let Some(StreamableHttpError::<reqwest::Error>::Client(error)) = error.downcast_ref() {
        return chain(error);
    }
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text = format!("{text}: {cause_text}");
        }
        next = cause.source();
    }
    text
}
