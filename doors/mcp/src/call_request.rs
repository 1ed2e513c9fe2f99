//! A request that makes a call: what belongs to it, and to the client that sent it.

use std::sync::Arc;

use client::Client;
use door::{LongCall, LongCalls, Turn};
use rmcp::model::CallToolResponse;
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer};
use tokio_util::sync::CancellationToken;

/// What a call comes to.
pub(crate) type Outcome = Result<CallToolResponse, ErrorData>;

/// The calls of one client that go on after their requests.
pub(crate) type Calls = LongCalls<Outcome>;

/// Everything that a call needs of its request. A call may live longer than that.
pub(crate) struct CallRequest {
    pub(crate) context: RequestContext<RoleServer>,
    pub(crate) turn: Arc<Turn>,
    /// Cancelled when the client is gone, if the transport reports that for the whole session.
    pub(crate) gone: CancellationToken,
    /// Cancelled when the session of the client ends, if it has one.
    pub(crate) session_ended: Option<CancellationToken>,
    pub(crate) call: Arc<LongCall<Outcome>>,
    /// The bus, as a client that says for whom the call is made.
    pub(crate) client: Client,
}
