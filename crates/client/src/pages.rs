//! Lists that are asked for in pages, and put together again. Read [`Paged`].

use std::time::Duration;

use serde::Serialize;
use serde_json::Value;

use crate::client::Client;
use crate::error::ClientError;
use crate::payload::{ExportRequest, ListRequest};
use crate::received::Received;
use crate::topic::Topic;

/// How many tools a page has at most. The service ends a page also where it becomes long.
const PAGE: u32 = 500;

/// How many times a list is begun. It is begun anew when the service no longer has the snapshot that the cursor refers to.
const ATTEMPTS: usize = 3;

/// How many pages a list has at most, far more than the tools of any service fill. A list that goes on would fill the memory.
const MAX_PAGES: usize = 1000;

/// A request whose answer can be asked for in pages.
pub trait Paged: Clone + Serialize {
    /// Makes this a request for at most `limit` tools from `cursor` on.
    fn turn(&mut self, limit: u32, cursor: Option<String>);
    /// Whether the request itself asks for a part.
    fn is_part(&self) -> bool;
}

impl Paged for ListRequest {
    fn turn(&mut self, limit: u32, cursor: Option<String>) {
        (self.limit, self.cursor) = (Some(limit), cursor);
    }

    fn is_part(&self) -> bool {
        self.limit.is_some() || self.cursor.is_some()
    }
}

impl Paged for ExportRequest {
    fn turn(&mut self, limit: u32, cursor: Option<String>) {
        (self.limit, self.cursor) = (Some(limit), cursor);
    }

    fn is_part(&self) -> bool {
        self.limit.is_some() || self.cursor.is_some()
    }
}

impl Client {
    /// Asks for a list. If it is too large for one message, the service says so, and it is asked for page by page and
    /// returned as one answer. Waits `wait` for each page.
    ///
    /// # Errors
    /// As [`ask`](Self::ask). An error of the service is no error here, but the answer.
    ///
    /// # Cancel safety
    /// Safe: it changes nothing.
    pub async fn ask_all<Q: Paged, A>(
        &self,
        topic: Topic<Q, A>,
        request: &Q,
        wait: Duration,
    ) -> Result<Received<A>, ClientError> {
        let answer = self.ask(topic, request, wait).await?;
        if answer.error().is_none() || !answer.data.contains_key("limit") {
            return Ok(answer);
        }
        self.ask_in_pages(topic, request, wait).await
    }

    /// Asks for a list page by page, and returns it as one answer: no other client has to wait behind a long message.
    /// A request with a `limit` or a `cursor` of its own is asked as it is. Waits `wait` for each page.
    ///
    /// # Errors
    /// As [`ask`](Self::ask). An error of the service is no error here, but the answer.
    ///
    /// # Cancel safety
    /// Safe: it changes nothing.
    pub async fn ask_in_pages<Q: Paged, A>(
        &self,
        topic: Topic<Q, A>,
        request: &Q,
        wait: Duration,
    ) -> Result<Received<A>, ClientError> {
        if request.is_part() {
            return self.ask(topic, request, wait).await;
        }
        let mut attempt = 0;
        loop {
            attempt += 1;
            let (answer, is_whole) = self.all_pages(topic, request, wait).await?;
            if is_whole || attempt == ATTEMPTS {
                return Ok(answer);
            }
        }
    }

    /// The list, or the first error; and whether beginning anew would not help. A list that does not end is an error.
    async fn all_pages<Q: Paged, A>(
        &self,
        topic: Topic<Q, A>,
        request: &Q,
        wait: Duration,
    ) -> Result<(Received<A>, bool), ClientError> {
        let mut request = request.clone();
        request.turn(PAGE, None);
        let mut whole = self.ask(topic, &request, wait).await?;
        let mut cursor = next(&mut whole);
        let mut pages = 1;
        while let Some(at) = cursor {
            if pages == MAX_PAGES {
                let cause = format!("the list does not end after {MAX_PAGES} pages");
                return Err(ClientError::Unreadable {
                    topic: topic.name(),
                    cause: serde::de::Error::custom(cause),
                });
            }
            pages += 1;
            request.turn(PAGE, Some(at));
            let mut page = self.ask(topic, &request, wait).await?;
            if page.error().is_some() {
                return Ok((page, false));
            }
            cursor = next(&mut page);
            if let (Some(Value::Array(tools)), Some(Value::Array(more))) =
                (whole.data.get_mut("tools"), page.data.get_mut("tools"))
            {
                tools.append(more);
            }
        }
        Ok((whole, true))
    }
}

/// Takes the cursor of the next page out of an answer.
fn next<A>(answer: &mut Received<A>) -> Option<String> {
    match answer.data.shift_remove("next_cursor") {
        Some(Value::String(cursor)) => Some(cursor),
        _ => None,
    }
}
