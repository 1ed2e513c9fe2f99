//! A call that was sent: its progress, its answer, its cancel.

use std::marker::PhantomData;
use std::time::Duration;

use serde::Serialize;
use tokio::time::{Instant, sleep_until, timeout_at};

use crate::client::{Client, FOREVER, deadline};
use crate::error::ClientError;
use crate::payload::{
    CallOptions, CancelResponse, GetRequest, InvokeRequest, InvokeResponse, ProgressMessage, RunRequest,
    RunResponse,
};
use crate::pulse::{Beat, Pulse};
use crate::received::Received;
use crate::routes::{Arrival, Route};
use crate::topic::{self, Topic};

/// How long a service may take to answer the request by which the client finds out whether the service runs.
const SIGN_OF_LIFE_WAIT: Duration = Duration::from_secs(5);

/// How long after its own `timeout_ms` the answer to a call may arrive.
const ANSWER_MARGIN: Duration = Duration::from_secs(10);

/// How long to wait for the answer to a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Patience {
    /// At most this long.
    AtMost(Duration),
    /// As long as the call runs, which the service bounds, provided that a service gives a sign of life within 5 s. For that sign
    /// the client asks for the tool together with the call. While the call runs, the client asks for the status every second: a
    /// service that ended or was restarted would never answer the call.
    WhileItRuns,
}

/// What arrives for a call whose answer is an `A`.
#[derive(Debug)]
pub enum Step<A = InvokeResponse> {
    /// Its progress; only for calls that ask for it.
    Progress(Received<ProgressMessage>),
    /// Its answer, which is the last step.
    Answer(Received<A>),
}

/// A call that was sent, or a run. Only [`cancel`](Self::cancel) ends it; dropping this does not.
pub struct Call<A = InvokeResponse> {
    client: Client,
    topic: &'static str,
    is: PhantomData<fn() -> A>,
    call_id: String,
    route: Route,
    /// The request that shows whether a service runs, and when its answer is due; `None` once the answer has arrived.
    sign: Option<(Route, Instant)>,
    pulse: Option<Pulse>,
    wait: Duration,
    end: Instant,
}

impl Client {
    /// Sends a call of a tool, and never waits.
    ///
    /// A request without a `call_id` gets one that no other call has.
    ///
    /// # Errors
    /// [`ClientError::NotSent`], [`ClientError::TooLarge`]: nothing was sent.
    pub fn invoke(&self, mut request: InvokeRequest, patience: Patience) -> Result<Call, ClientError> {
        let call_id = own_id(&mut request.options);
        let bound = request.options.timeout();
        let name = request.name.clone();
        self.follow(topic::INVOKE, &request, (call_id, bound, name), patience)
    }

    /// Sends a run, and never waits. [`Patience`] counts for the run as a whole.
    ///
    /// A request without a `call_id` gets one that no other call has.
    ///
    /// # Errors
    /// As [`invoke`](Self::invoke).
    pub fn run(&self, mut request: RunRequest, patience: Patience) -> Result<Call<RunResponse>, ClientError> {
        let call_id = own_id(&mut request.options);
        let bound = request.options.timeout();
        let name = request.steps.first().map(|step| step.name.clone());
        let name = name.unwrap_or_default();
        self.follow(topic::RUN, &request, (call_id, bound, name), patience)
    }

    /// Sends a call with this id and this time limit of its own. `tool` is the tool that the request for the sign of life asks
    /// for.
    fn follow<Q: Serialize, A>(
        &self,
        topic: Topic<Q, A>,
        request: &Q,
        (call_id, bound, name): (String, Option<Duration>, String),
        patience: Patience,
    ) -> Result<Call<A>, ClientError> {
        let (sign, wait) = match patience {
            Patience::AtMost(wait) => (None, wait),
            Patience::WhileItRuns => {
                let request = GetRequest {
                    name,
                    ..GetRequest::default()
                };
                let sign = self.send(topic::GET.name(), &request)?;
                let wait = bound.map_or(FOREVER, |bound| bound + ANSWER_MARGIN);
                (Some((sign, deadline(SIGN_OF_LIFE_WAIT))), wait)
            }
        };
        let route = self.send(topic.name(), request)?;
        let pulse = sign.is_some().then(Pulse::new);
        Ok(Call {
            client: self.clone(),
            topic: topic.name(),
            is: PhantomData,
            call_id,
            route,
            sign,
            pulse,
            wait,
            end: deadline(wait),
        })
    }
}

/// Returns the id of a call. A call without one gets a new one.
fn own_id(options: &mut CallOptions) -> String {
    let own = || format!("client-{}", uuid::Uuid::new_v4());
    options.call_id.get_or_insert_with(own).clone()
}

impl<A> Call<A> {
    /// The id of the call, for cancel and status.
    #[must_use]
    pub fn call_id(&self) -> &str {
        &self.call_id
    }

    /// Waits for the next step.
    ///
    /// # Errors
    /// [`ClientError::NoService`], [`ClientError::NoAnswer`], [`ClientError::Lost`]: the call may still run, so cancel it.
    /// [`ClientError::Restarted`].
    ///
    /// # Cancel safety
    /// Safe: nothing is lost.
    pub async fn next(&mut self) -> Result<Step<A>, ClientError> {
        loop {
            let Self {
                client,
                route,
                sign,
                pulse,
                end,
                ..
            } = self;
            let alive = async {
                match sign {
                    Some((route, end)) => timeout_at(*end, route.next()).await,
                    None => std::future::pending().await,
                }
            };
            let beat = async {
                match pulse {
                    Some(pulse) => pulse.beat(client).await,
                    None => std::future::pending().await,
                }
            };
            let arrival = tokio::select! {
                biased;
                arrival = route.next() => arrival,
                beat = beat => match beat {
                    Beat::Alive => continue,
                    Beat::Mute => {
                        self.pulse = None;
                        continue;
                    }
                    Beat::Gone(wait) => return Err(self.client.no_service(wait)),
                    Beat::Restarted => return Err(self.client.restarted()),
                },
                answered = alive => match answered {
                    Ok(Arrival::Lost(cause)) => Arrival::Lost(cause),
                    Ok(_) => {
                        self.sign = None;
                        continue;
                    }
                    Err(_) => return Err(self.client.no_service(SIGN_OF_LIFE_WAIT)),
                },
                () = sleep_until(*end) => return Err(self.client.no_answer(self.topic, self.wait)),
            };
            self.sign = None;
            match arrival {
                Arrival::Answer(data) => return Ok(Step::Answer(Received::new(self.topic, data))),
                Arrival::Lost(cause) => return Err(self.client.lost(cause)),
                Arrival::Progress(data) => {
                    let of = data.get("call_id").and_then(|call_id| call_id.as_str());
                    if of == Some(self.call_id.as_str()) {
                        return Ok(Step::Progress(Received::new(topic::PROGRESS, data)));
                    }
                }
            }
        }
    }

    /// Waits for the answer, and ignores the progress.
    ///
    /// # Errors
    /// As [`next`](Self::next).
    ///
    /// # Cancel safety
    /// If dropped, the steps so far are lost, and the call continues.
    pub async fn answer(mut self) -> Result<Received<A>, ClientError> {
        loop {
            if let Step::Answer(answer) = self.next().await? {
                return Ok(answer);
            }
        }
    }

    /// Cancels the call. Its answer still arrives, and tells how the call ended.
    ///
    /// # Errors
    /// As [`Client::cancel`].
    ///
    /// # Cancel safety
    /// If dropped, the cancel may have been sent.
    pub async fn cancel(&self) -> Result<CancelResponse, ClientError> {
        self.client.cancel(&self.call_id).await
    }
}
