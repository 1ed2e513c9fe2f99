//! The media player: ovos-media, or the player that is part of ovos-audio. Read [`Player`].

use ovos_toolbox_sdk::schemars::JsonSchema;
use ovos_toolbox_wire::{Failure, FailureKind, Object};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::time::{Duration, Instant, sleep};

use crate::line::{Call, Line};

/// How long the player may take to do what it is told.
const DONE_WAIT: Duration = Duration::from_secs(5);

/// How often it is asked whether it has.
const AGAIN: Duration = Duration::from_millis(200);

/// Return what the media player is playing.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NowPlayingArgs {}

/// Play a stream or a file, such as a web radio.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct PlayMediaArgs {
    /// Its address: http, https or file.
    #[schemars(regex(pattern = r"^(https?|file)://"))]
    uri: String,
    /// What people call it.
    name: Option<String>,
}

/// Control what the media player is playing.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ControlMediaArgs {
    action: Action,
}

#[derive(Clone, Copy, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Action {
    Pause,
    Resume,
    Stop,
    Next,
    Previous,
}

#[derive(Clone, PartialEq, Serialize, JsonSchema)]
pub(crate) struct Playing {
    /// What the player says it does; null if it does not say, as the player in ovos-audio.
    state: Option<State>,
    title: Option<String>,
    artist: Option<String>,
    /// The one that answered: ovos-media or ovos-audio.
    player: Player,
    /// Whether the player has said that what it was told is so. false: it was told, and does not say.
    confirmed: bool,
}

#[derive(Clone, Copy, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum State {
    Stopped,
    Loading,
    Playing,
    Paused,
    /// It was told to play something that it cannot play.
    Failed,
}

/// Who plays.
#[derive(Clone, Copy, PartialEq, Serialize, JsonSchema)]
enum Player {
    #[serde(rename = "ovos-media")]
    Media,
    #[serde(rename = "ovos-audio")]
    Audio,
}

impl Player {
    fn topic(self, action: Action) -> String {
        let word = match (self, action) {
            (_, Action::Pause) => "pause",
            (_, Action::Resume) => "resume",
            (_, Action::Stop) => "stop",
            (_, Action::Next) => "next",
            (Self::Media, Action::Previous) => "previous",
            (Self::Audio, Action::Previous) => "prev",
        };
        match self {
            Self::Media => format!("ovos.common_play.{word}"),
            Self::Audio => format!("mycroft.audio.service.{word}"),
        }
    }
}

/// Asks what is played.
pub(crate) async fn now_playing(line: Line, _: Call, _: NowPlayingArgs) -> Result<Playing, Failure> {
    look(&line).await
}

/// Plays an address.
pub(crate) async fn play(line: Line, _: Call, args: PlayMediaArgs) -> Result<Playing, Failure> {
    let before = look(&line).await?;
    let (topic, data) = match before.player {
        Player::Media => {
            // 2 is audio, both as what it is and as how it is played.
            let media = json!({
                "uri": args.uri, "title": args.name.as_deref().unwrap_or(&args.uri), "media_type": 2, "playback": 2,
            });
            let data = json!({"media": media, "playlist": [media], "disambiguation": [media]});
            ("ovos.common_play.play", data)
        }
        Player::Audio => (
            "mycroft.audio.service.play",
            json!({"tracks": [args.uri], "utterance": ""}),
        ),
    };
    line.send(&line.message(topic, data, None))?;
    until(&line, before.player, "play it", |now| {
        now.state == Some(State::Playing)
    })
    .await
}

/// Controls what is played.
pub(crate) async fn control(line: Line, _: Call, args: ControlMediaArgs) -> Result<Playing, Failure> {
    let before = look(&line).await?;
    let is_idle = matches!(before.state, Some(State::Stopped | State::Failed));
    if is_idle && args.action != Action::Stop {
        let text = "nothing is playing; play_media plays an address";
        return Err(Failure::new(FailureKind::StateError, text));
    }
    let topic = before.player.topic(args.action);
    line.send(&line.message(&topic, json!({}), None))?;
    let title = before.title.clone();
    until(&line, before.player, "do that", |now| match args.action {
        Action::Pause => now.state == Some(State::Paused),
        Action::Resume => now.state == Some(State::Playing),
        Action::Stop => now.state == Some(State::Stopped),
        Action::Next | Action::Previous => now.title != title || now.state == Some(State::Stopped),
    })
    .await
}

/// Asks the player until what it was told is so.
async fn until(
    line: &Line,
    player: Player,
    told: &str,
    is_so: impl Fn(&Playing) -> bool,
) -> Result<Playing, Failure> {
    let end = Instant::now() + DONE_WAIT;
    loop {
        let now = look(line).await?;
        if player == Player::Audio {
            return Ok(Playing {
                confirmed: false,
                ..now
            });
        }
        if is_so(&now) {
            return Ok(now);
        }
        if Instant::now() >= end {
            let state = match now.state {
                Some(State::Playing) => "plays",
                Some(State::Paused) => "is paused",
                Some(State::Stopped) => "plays nothing",
                Some(State::Loading) => "is still loading",
                Some(State::Failed) => {
                    "reports that it cannot play it: the address is wrong, or it has no backend for such a stream"
                }
                None => "does not report its state",
            };
            let text =
                format!("ovos-media was told to {told}, but after {DONE_WAIT:?} it {state}; see its log");
            return Err(Failure::new(FailureKind::StateError, text));
        }
        sleep(AGAIN).await;
    }
}

/// What is played, by the player that answers; by ovos-media where both do.
async fn look(line: &Line) -> Result<Playing, Failure> {
    let (status, track) = ("ovos.common_play.status", "mycroft.audio.service.track_info");
    let text_of = |data: &Object, key: &str| {
        let text = data.get(key).and_then(Value::as_str);
        text.filter(|text| !text.is_empty()).map(str::to_owned)
    };
    if let Some(answer) = line
        .ask(status, json!({}), &["ovos.common_play.status.response"])
        .await?
    {
        let number = |key: &str| answer.data.get(key).and_then(Value::as_u64);
        // It says that it plays also while it loads something (2), and what is invalid (8).
        let state = match (number("player_state"), number("media_state")) {
            (Some(1), Some(8)) => Some(State::Failed),
            (Some(1), Some(2)) => Some(State::Loading),
            (Some(1), _) => Some(State::Playing),
            (Some(2), _) => Some(State::Paused),
            (Some(0), _) => Some(State::Stopped),
            _ => None,
        };
        return Ok(Playing {
            state,
            title: text_of(&answer.data, "title"),
            artist: text_of(&answer.data, "artist"),
            player: Player::Media,
            confirmed: true,
        });
    }
    let answers = ["mycroft.audio.service.track_info_reply"];
    let Some(answer) = line.ask(track, json!({}), &answers).await? else {
        let text = format!(
            "nothing answers {status} or {track}, so nothing was played or changed; start ovos-media, or ovos-audio with its own player"
        );
        return Err(Failure::new(FailureKind::StateError, text));
    };
    Ok(Playing {
        state: None,
        title: text_of(&answer.data, "name").or_else(|| text_of(&answer.data, "title")),
        artist: text_of(&answer.data, "artist"),
        player: Player::Audio,
        confirmed: true,
    })
}
