//! The topics that were spoken on.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use ovos_toolbox_sdk::tokio::sync::Mutex;
use ros_graph::definition::TypeName;
use ros_graph::error::GraphError;
use ros_graph::graph::{Graph, Publisher};

/// How long a listener is waited for.
const PATIENCE: Duration = Duration::from_secs(4);

/// Channels of topics: they stay announced, so that an end is heard at once.
#[derive(Default)]
pub(crate) struct Channels(Mutex<HashMap<(String, TypeName), Arc<dyn Publisher>>>);

impl Channels {
    /// The channel, which is heard.
    ///
    /// # Errors
    /// Nothing of this type hears it.
    pub(crate) async fn open(
        &self,
        graph: &dyn Graph,
        topic: &str,
        of: &TypeName,
    ) -> Result<Arc<dyn Publisher>, GraphError> {
        let mut channels = self.0.lock().await;
        let key = (topic.to_owned(), of.clone());
        let publisher = match channels.get(&key) {
            Some(publisher) => Arc::clone(publisher),
            None => graph.publisher(topic, of).await?,
        };
        publisher.ready(PATIENCE).await?;
        channels.insert(key, Arc::clone(&publisher));
        Ok(publisher)
    }

    /// Takes all announcements back.
    pub(crate) async fn close(&self) {
        self.0.lock().await.clear();
    }
}
