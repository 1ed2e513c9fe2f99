//! The vendor's own stop, which an emergency calls last.

use std::time::Duration;

use ros_graph::error::GraphError;
use ros_graph::graph::Graph;
use serde_json::{Map, Value};

/// Asks the service of the vendor's stop.
///
/// # Errors
/// It did not answer, or says that it did not do it.
pub(super) async fn ask(
    graph: &dyn Graph,
    service: &str,
    request: &Map<String, Value>,
    patience: Duration,
) -> Result<(), GraphError> {
    let request = Value::Object(request.clone());
    let answer = graph.call(service, &request, patience).await?;
    if answer["success"] != false {
        return Ok(());
    }
    let why = answer["message"].as_str().filter(|why| !why.is_empty());
    Err(GraphError::Refused {
        name: service.to_owned(),
        reason: why.unwrap_or("it does not say why").to_owned(),
    })
}
