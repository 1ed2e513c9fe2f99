//! Every topic, and the one answer to it. Read [`Api::handle`].

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::cancel::cancel;
use super::reload::reload;
use super::request::Request;
use super::state::Api;
use super::status::asks_for_guides;
use super::topic::Topic;
use client::payload::IsReady;

/// With more calls under way than this, the answer to a status request is made on a thread for blocking work.
const MANY_CALLS: usize = 256;

impl Api {
    /// Answers one request. Configuration topics are ignored: the service handles them.
    ///
    /// # Cancel safety
    /// Not safe: the request stays unanswered. The service drops it only when the service itself ends.
    pub async fn handle(self: &Arc<Self>, topic: Topic, request: Request) {
        self.requests.fetch_add(1, Ordering::Relaxed);
        self.wait_for_start(&topic, &request).await;
        match topic {
            Topic::List | Topic::Export | Topic::Discover => self.answer_list(topic, request).await,
            Topic::Get => self.answer(&request, &self.get(&request)).await,
            Topic::Invoke => {
                let answer = self.invoke(&request).await;
                self.answer(&request, &answer).await;
                self.content.answered(&answer.content);
            }
            Topic::Run => {
                let answer = self.run_steps(&request).await;
                self.answer(&request, &answer).await;
                for step in &answer.steps {
                    self.content.answered(&step.content);
                }
            }
            Topic::Reload => {
                let answer = reload(&*self.toolboxes, &self.registry, &request).await;
                self.answer_apart(request, move |_| answer).await;
            }
            Topic::Plan => {
                let answer = self.plan(&request).await;
                self.answer(&request, &answer).await;
            }
            Topic::Cancel => self.answer(&request, &cancel(&self.engine, &request)).await,
            Topic::Status if self.engine.calls_in_flight() > MANY_CALLS => {
                let guides = asks_for_guides(&request);
                self.answer_apart(request, move |api| api.status_for(guides))
                    .await;
            }
            Topic::Status => {
                let status = self.status_for(asks_for_guides(&request));
                self.answer(&request, &status).await;
            }
            Topic::Resume => {
                let answer = self.resume(&request).await;
                self.answer(&request, &answer).await;
            }
            Topic::Call { ref toolbox_id } => {
                if let Some(answer) = self.call(&request, toolbox_id.as_deref()).await {
                    self.answer(&request, &answer).await;
                    self.content.answered(&answer.content);
                }
            }
            Topic::IsReady => {
                let status = self.ready.load(Ordering::Relaxed);
                self.answer(&request, &IsReady { status }).await;
            }
            Topic::AllLoaded => {
                let status = self.serves_all();
                self.answer(&request, &IsReady { status }).await;
            }
            Topic::ConfigurationUpdated | Topic::ConfigurationPatch | Topic::ConfigurationPatchClear => {}
        }
    }

    /// Removes content whose time is over, from time to time and after each answer with content. Never ends.
    ///
    /// # Cancel safety
    /// A sweep that has begun goes on.
    pub async fn sweep_content(&self) {
        self.content.keep_swept().await;
    }
}
