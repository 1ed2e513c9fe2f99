//! The bus and the connection to it, for `status`.

use url::Url;

use crate::api::BusStatus;
use bus::{BusClient, shown};

pub(super) fn bus_status(
    client: Option<&BusClient>,
    url: &Url,
    (turned_away, dropped): (u64, u64),
) -> BusStatus {
    let counters = client.map(BusClient::counters).unwrap_or_default();
    let rows = [
        ("connections", counters.connections),
        ("notices_dropped", counters.notices_dropped),
        ("answers_resent", counters.answers_resent),
        ("answers_given_up", counters.answers_given_up),
        ("frames_dropped", counters.frames_dropped),
        ("requests_turned_away", turned_away),
        ("requests_dropped", dropped),
    ];
    BusStatus {
        url: shown(url),
        connected: client.is_some_and(|client| client.connection_now().is_up()),
        echoes: client.is_some_and(BusClient::echoes),
        counters: rows
            .into_iter()
            .map(|(name, count)| (name.to_owned(), count))
            .collect(),
    }
}
