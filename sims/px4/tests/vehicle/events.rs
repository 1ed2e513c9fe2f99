//! The vehicle's events and metadata files as a listener decodes them, message by message.
use mavlink::{MavHeader, dialects::common::*};
use px4_sim::{Home, Mode, Quirk, Quirks, Vehicle, World, link::Link, vehicle::Health};
use serde_json::Value;

const STEP: f64 = 0.01;
const OPEN: u8 = 4;
const READ: u8 = 5;
const CLOSE: u8 = 1;
const SUM: u8 = 14;
const READ_MANY: u8 = 15;

/// A vehicle and a listener.
struct Listener {
    vehicle: Vehicle,
    link: Link,
    sequence: u16,
}

impl Listener {
    /// A listener to a vehicle that has just booted.
    fn new(quirks: Quirks) -> Self {
        Self {
            vehicle: Vehicle::new(Home::default(), quirks, World::default()),
            link: Link::new(1),
            sequence: 0,
        }
    }

    fn hears(&mut self, seconds: f64) -> Vec<MavMessage> {
        let mut events = Vec::new();
        for _ in 0..(seconds / STEP) as usize {
            self.vehicle.step(STEP);
            self.link.poll(&mut self.vehicle);
            events.extend(self.link.take().into_iter().map(|outgoing| outgoing.message));
        }
        events
    }

    fn asks(&mut self, message: MavMessage) -> Vec<MavMessage> {
        let header = MavHeader {
            system_id: 245,
            component_id: 190,
            sequence: 0,
        };
        self.link.handle(&mut self.vehicle, header, &message);
        let answers = self.link.take();
        answers.into_iter().map(|outgoing| outgoing.message).collect()
    }

    fn commands(&mut self, command: MavCmd, param1: f32) -> Vec<MavMessage> {
        self.asks(MavMessage::COMMAND_LONG(COMMAND_LONG_DATA {
            command,
            param1,
            target_system: 1,
            target_component: 1,
            ..COMMAND_LONG_DATA::DEFAULT
        }))
    }

    fn wants_file(&mut self, code: u8, offset: u32, data: &[u8]) -> Vec<Answer> {
        self.sequence = self.sequence.wrapping_add(1);
        let size = if data.is_empty() { 239 } else { data.len() as u8 };
        self.repeats(code, offset, size, data)
    }

    fn repeats(&mut self, code: u8, offset: u32, size: u8, data: &[u8]) -> Vec<Answer> {
        let mut payload = [0; 251];
        payload[..2].copy_from_slice(&self.sequence.to_le_bytes());
        (payload[3], payload[4]) = (code, size);
        payload[8..12].copy_from_slice(&offset.to_le_bytes());
        payload[12..12 + data.len()].copy_from_slice(data);
        let answers = self.asks(MavMessage::FILE_TRANSFER_PROTOCOL(FILE_TRANSFER_PROTOCOL_DATA {
            target_network: 0,
            target_system: 1,
            target_component: 1,
            payload,
        }));
        let payload = |message| match message {
            MavMessage::FILE_TRANSFER_PROTOCOL(answer) => {
                assert_eq!((answer.target_system, answer.target_component), (245, 190));
                Answer::of(&answer.payload)
            }
            other => panic!("{other:?}"),
        };
        answers.into_iter().map(payload).collect()
    }

    /// Reads the whole file in bursts.
    fn reads(&mut self, uri: &str) -> Vec<u8> {
        let path = uri
            .strip_prefix("mftp://")
            .expect("a file of the vehicle's")
            .as_bytes();
        let opened = self.wants_file(OPEN, 0, path);
        let size = u32::from_le_bytes(opened[0].data[..].try_into().unwrap()) as usize;
        let mut file = Vec::new();
        while file.len() < size {
            let pieces = self.wants_file(READ_MANY, file.len() as u32, &[]);
            for (index, piece) in pieces.iter().enumerate() {
                assert_eq!(piece.offset as usize, file.len());
                assert_eq!(piece.sequence, self.sequence + 1 + index as u16);
                assert_eq!(piece.is_last, index + 1 == pieces.len());
                file.extend(&piece.data);
            }
        }
        assert_eq!(file.len(), size);
        assert!(self.wants_file(CLOSE, 0, &[])[0].ok);
        file
    }

    /// Path and checksum of the index file, if announced.
    fn announced(&mut self) -> Option<(String, u32)> {
        let answers = self.commands(MavCmd::MAV_CMD_REQUEST_MESSAGE, 397.0);
        answers.into_iter().find_map(|message| match message {
            MavMessage::COMPONENT_METADATA(said) => {
                Some((said.uri.to_str().unwrap().to_owned(), said.file_crc))
            }
            _ => None,
        })
    }

    /// The texts of its events, found as a ground station does.
    fn texts(&mut self) -> Value {
        let (uri, _) = self.announced().expect("metadata");
        let general: Value = serde_json::from_slice(&self.reads(&uri)).unwrap();
        let kind = &general["metadataTypes"][0];
        assert_eq!(kind["type"], 4, "{general}");
        serde_json::from_slice(&self.reads(kind["uri"].as_str().unwrap())).unwrap()
    }
}

/// Data of a file, or a refusal.
#[derive(Debug, PartialEq)]
struct Answer {
    sequence: u16,
    ok: bool,
    is_last: bool,
    offset: u32,
    data: Vec<u8>,
}

impl Answer {
    fn of(payload: &[u8; 251]) -> Self {
        Self {
            sequence: u16::from_le_bytes(payload[..2].try_into().unwrap()),
            ok: payload[3] == 128,
            is_last: payload[6] == 1,
            offset: u32::from_le_bytes(payload[8..12].try_into().unwrap()),
            data: payload[12..12 + usize::from(payload[4])].to_vec(),
        }
    }
}

fn events(heard: &[MavMessage]) -> Vec<EVENT_DATA> {
    let event = |message: &MavMessage| match message {
        MavMessage::EVENT(event) => Some(event.clone()),
        _ => None,
    };
    heard.iter().filter_map(event).collect()
}

/// Decodes an event: group, sentence, and arguments by name.
fn read(event: &EVENT_DATA, texts: &Value) -> (String, String, Value) {
    let component = &texts["components"]["1"];
    let id = (event.id & 0x00ff_ffff).to_string();
    assert_eq!(event.id >> 24, 1);
    let (group, text) = ["arming_check", "health"]
        .into_iter()
        .find_map(|group| Some((group, component["event_groups"][group]["events"].get(&id)?)))
        .unwrap_or_else(|| panic!("{id} has no text"));
    let (mut at, mut arguments) = (0, serde_json::Map::new());
    let mut sentence = text["message"].as_str().unwrap().to_owned();
    for (index, argument) in text["arguments"].as_array().unwrap().iter().enumerate() {
        let kind = argument["type"].as_str().unwrap();
        let plain = component["enums"]
            .get(kind)
            .map_or(kind, |kind| kind["type"].as_str().unwrap());
        let (value, size) = match plain {
            "uint8_t" => (u32::from(event.arguments[at]), 1),
            "uint32_t" => (
                u32::from_le_bytes(event.arguments[at..at + 4].try_into().unwrap()),
                4,
            ),
            other => panic!("{other}"),
        };
        sentence = sentence.replace(&format!("{{{}}}", index + 1), &value.to_string());
        arguments.insert(argument["name"].as_str().unwrap().to_owned(), value.into());
        at += size;
    }
    (group.to_owned(), sentence, arguments.into())
}

/// The last report: whether it would arm in this mode, and the sentences for it.
fn report(heard: &[MavMessage], texts: &Value, mode: Mode) -> (bool, Vec<String>) {
    let group = texts["components"]["1"]["navigation_mode_groups"]["groups"]
        .as_object()
        .unwrap()
        .iter()
        .find(|(_, modes)| modes[0] == mode.custom_mode())
        .map(|(group, _)| group.parse::<u32>().unwrap())
        .expect("a mode that PX4 reports about");
    let all: Vec<_> = events(heard).iter().map(|event| read(event, texts)).collect();
    let begins = |(_, _, arguments): &(String, String, Value)| arguments.get("can_arm").is_some();
    let last = all.iter().rposition(begins).expect("a report");
    let (_, _, summary) = &all[last];
    let (_, _, end) = all.last().unwrap();
    assert!(
        end.get("is_present").is_some(),
        "it ends with the second summary: {all:?}"
    );
    let has = |bits: &Value| bits.as_u64().unwrap() >> group & 1 == 1;
    let about = all[last + 1..all.len() - 1]
        .iter()
        .filter(|(_, _, arguments)| has(&arguments["modes"]));
    let part = |(group, _, arguments): &(String, String, Value)| {
        let bits = [&summary["error"], &end["error"], &summary["warning"]].map(|bits| bits.as_u64().unwrap());
        let at = arguments["health_component_index"].as_u64().unwrap();
        (group.clone(), bits.map(|bits| bits >> at & 1 == 1))
    };
    for check in about.clone() {
        let (group, [needed, broken, warned]) = part(check);
        let counted = if group == "health" {
            broken
        } else {
            needed || warned
        };
        // Events at level information are in no summary.
        let information = ["Home position not set", "Mode not suitable for arming"].contains(&&*check.1);
        assert!(counted || information, "{check:?} in {summary} {end}");
    }
    (
        has(&summary["can_arm"]),
        about.map(|(_, sentence, _)| sentence.clone()).collect(),
    )
}

#[test]
fn its_events_say_why_it_would_not_arm() {
    let sound = Health::default();
    type Spoils = fn(&mut Vehicle);
    let rows: [(Spoils, Mode, &[&str]); 8] = [
        (|_| {}, Mode::Hold, &[]),
        (|_| {}, Mode::Offboard, &["No offboard signal"]),
        (
            |v| v.health.mag = false,
            Mode::Hold,
            &["No valid data from Compass 0"],
        ),
        (
            |v| (v.health.gyro, v.health.accel) = (false, false),
            Mode::Hold,
            &["No valid data from Gyro 0", "No valid data from Accelerometer 0"],
        ),
        (
            |v| v.health.gps = false,
            Mode::Hold,
            &["No valid global position estimate"],
        ),
        (|v| v.health.home = false, Mode::Hold, &["Home position not set"]),
        (|v| v.battery_pct = 6.0, Mode::Hold, &["Critical battery"]),
        (
            |v| {
                v.land();
            },
            Mode::Land,
            &["Mode not suitable for arming"],
        ),
    ];
    let mut listener = Listener::new(Quirks::all());
    let texts = listener.texts();
    for (spoil, mode, expected) in rows {
        (listener.vehicle.health, listener.vehicle.battery_pct) = (sound, 100.0);
        listener.hears(5.0);
        spoil(&mut listener.vehicle);
        listener.hears(5.0);
        let commands = listener.commands(MavCmd::MAV_CMD_RUN_PREARM_CHECKS, 0.0);
        let (can_arm, sentences) = report(&commands, &texts, mode);
        assert_eq!(sentences, expected, "{mode:?}");
        assert_eq!(can_arm, expected.is_empty(), "{sentences:?}");
        if listener.vehicle.mode() == mode {
            assert_eq!(can_arm, listener.vehicle.armable(), "{sentences:?}");
        }
    }
    // A warning does not prevent arming.
    listener
        .vehicle
        .set_mode(Mode::Hold, px4_sim::log::Cause::Command);
    (listener.vehicle.health, listener.vehicle.battery_pct) = (sound, 12.0);
    let events = listener.hears(5.0);
    assert_eq!(
        report(&events, &texts, Mode::Hold),
        (true, vec!["Low battery".to_owned()])
    );
}

#[test]
fn it_reports_what_changes_and_nothing_else() {
    let mut listener = Listener::new(Quirks::all());
    assert!(!events(&listener.hears(5.0)).is_empty());
    assert!(events(&listener.hears(30.0)).is_empty());
    // At most every two seconds.
    let mut replies = Vec::new();
    for _ in 0..10 {
        listener.vehicle.health.mag ^= true;
        replies.extend(listener.hears(0.1));
    }
    replies.extend(listener.hears(10.0));
    let summaries = events(&replies)
        .into_iter()
        .filter(|event| event.log_levels == 0x88);
    assert_eq!(summaries.count(), 4, "two reports: {replies:?}");
}

#[test]
fn events_are_counted_and_told_again() {
    let mut listener = Listener::new(Quirks::all());
    let replies = listener.hears(10.0);
    let MavMessage::CURRENT_EVENT_SEQUENCE(count) = replies
        .iter()
        .find(|message| matches!(message, MavMessage::CURRENT_EVENT_SEQUENCE(_)))
        .unwrap()
    else {
        unreachable!()
    };
    assert!(
        count
            .flags
            .contains(MavEventCurrentSequenceFlags::MAV_EVENT_CURRENT_SEQUENCE_FLAGS_RESET)
    );
    let sent = events(&replies);
    for (index, event) in sent.iter().enumerate() {
        assert_eq!(event.sequence, count.sequence.wrapping_add(1 + index as u16));
    }
    let again = |listener: &mut Listener, first: u16, last: u16| {
        listener.asks(MavMessage::REQUEST_EVENT(REQUEST_EVENT_DATA {
            first_sequence: first,
            last_sequence: last,
            target_system: 1,
            target_component: 1,
        }))
    };
    let (first, last) = (sent[0].sequence, sent[sent.len() - 1].sequence);
    assert_eq!(events(&again(&mut listener, first, last)), sent);
    let MavMessage::RESPONSE_EVENT_ERROR(error) =
        &again(&mut listener, first.wrapping_sub(1), first.wrapping_sub(1))[0]
    else {
        panic!("an event from before the first one")
    };
    assert_eq!(
        (error.sequence, error.sequence_oldest_available),
        (first.wrapping_sub(1), first)
    );
    // An unlimited request gets a limited answer.
    assert!(again(&mut listener, 0, u16::MAX).len() < 100);
}

#[test]
fn its_files_are_read_like_any_vehicles() {
    let mut listener = Listener::new(Quirks::all());
    let (uri, sum) = listener.announced().expect("metadata");
    let path = uri.strip_prefix("mftp://").unwrap().as_bytes();
    let whole = listener.reads(&uri);
    assert_eq!(listener.wants_file(SUM, 0, path)[0].data, sum.to_le_bytes());

    let refused = |answers: &[Answer]| (answers.len(), answers[0].ok, answers[0].data.clone());
    assert_eq!(refused(&listener.wants_file(READ, 0, &[])), (1, false, vec![4]));
    assert_eq!(
        refused(&listener.wants_file(OPEN, 0, b"etc/passwd")),
        (1, false, vec![10])
    );
    assert_eq!(refused(&listener.wants_file(6, 0, path)), (1, false, vec![7]));
    assert!(listener.wants_file(OPEN, 0, path)[0].ok);
    assert_eq!(refused(&listener.wants_file(OPEN, 0, path)), (1, false, vec![5]));
    let end = whole.len() as u32;
    assert_eq!(refused(&listener.wants_file(READ, end, &[])), (1, false, vec![6]));
    assert_eq!(
        refused(&listener.wants_file(READ, u32::MAX, &[])),
        (1, false, vec![6])
    );
    assert_eq!(refused(&listener.repeats(READ, 0, 240, &[])), (1, false, vec![3]));
    let tail = listener.wants_file(READ, end - 7, &[]);
    assert_eq!(tail[0].data, whole[whole.len() - 7..]);
    // A lost answer is requested again.
    let closed = listener.wants_file(CLOSE, 0, &[]);
    assert!(closed[0].ok);
    assert_eq!(listener.repeats(CLOSE, 0, 239, &[]), closed);
    // A file left open by a dead reader is closed after a while.
    assert!(listener.wants_file(OPEN, 0, path)[0].ok);
    listener.hears(11.0);
    assert!(listener.wants_file(OPEN, 0, path)[0].ok);
}

#[test]
fn without_texts_there_are_events_all_the_same() {
    let mut quirks = Quirks::all();
    assert!(!quirks.has(Quirk::NoEventMetadata));
    quirks.set(Quirk::NoEventMetadata, true);
    let mut listener = Listener::new(quirks);
    assert!(!events(&listener.hears(5.0)).is_empty());
    assert_eq!(listener.announced(), None);
    assert!(!listener.wants_file(OPEN, 0, b"etc/extras/all_events.json")[0].ok);
}

#[test]
fn a_late_acknowledgement_comes_after_the_change_of_mode() {
    for (quirk, late) in [(false, false), (true, true)] {
        let mut quirks = Quirks::all();
        assert!(!quirks.has(Quirk::LateModeAcks));
        quirks.set(Quirk::LateModeAcks, quirk);
        let mut listener = Listener::new(quirks);
        listener.hears(5.0);
        let is_ack = |message: &MavMessage| matches!(message, MavMessage::COMMAND_ACK(_));
        for sub_mode in [3.0, 5.0, 3.0] {
            // AUTO (4) with LOITER (3) or RTL (5).
            let answers = listener.asks(MavMessage::COMMAND_LONG(COMMAND_LONG_DATA {
                command: MavCmd::MAV_CMD_DO_SET_MODE,
                param1: 1.0,
                param2: 4.0,
                param3: sub_mode,
                target_system: 1,
                target_component: 1,
                ..COMMAND_LONG_DATA::DEFAULT
            }));
            let mode = if sub_mode == 3.0 { Mode::Hold } else { Mode::Return };
            assert_eq!(listener.vehicle.mode(), mode);
            assert_eq!(answers.iter().any(is_ack), !late);
            assert!(!listener.hears(0.04).iter().any(is_ack));
            assert_eq!(listener.hears(0.45).iter().any(is_ack), late);
        }
    }
}
