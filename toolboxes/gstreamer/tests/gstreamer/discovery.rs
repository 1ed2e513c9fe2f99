//! Devices and storage are those of the machine at the moment of the call; here below a test `sysroot`.

use std::fs;
use std::io::{Read as _, Write as _};
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::path::Path;

use ovos_toolbox_sdk::prelude::*;
use ovos_toolbox_sdk::testing::{self, Harness};

/// The contents of `/sys/class/hdmirx/hdmirx0/info` on Amlogic's kernels.
fn receiver(width: u32, height: u32, rate: u32) -> String {
    format!(
        "HDMI info\n\nColor Space: 3-YUV420\nDvi: 0\nInterlace: 0\nHtotal: 2200\nHactive: {width}\nVtotal: 1125\n\
         Vactive: {height}\nRepetition: 0\nColor Depth: 8\nFrame Rate: {rate}\nSkip frame: 0\n"
    )
}

struct Machine {
    root: tempfile::TempDir,
}

impl Machine {
    fn new() -> Self {
        Self {
            root: tempfile::tempdir().unwrap(),
        }
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.root.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn remove(&self, path: &str) {
        fs::remove_file(self.root.path().join(path)).unwrap();
    }

    fn open(&self) -> Harness {
        let config = json!({"sysroot": self.root.path(), "state_dir": self.root.path().join("state")});
        crate::rig::harness(config).unwrap()
    }
}

fn only<'a>(list: &'a Value, key: &str, value: &str) -> &'a Value {
    let found: Vec<&Value> = list
        .as_array()
        .unwrap()
        .iter()
        .filter(|entry| entry[key] == json!(value))
        .collect();
    assert_eq!(found.len(), 1, "{key} {value} in {list}");
    found[0]
}

#[test]
fn an_hdmi_input_follows_its_cable() {
    let machine = Machine::new();
    machine.write("dev/vdin1", "");
    machine.write("sys/class/hdmirx/hdmirx0/info", &receiver(1920, 1080, 6000));
    let toolbox = machine.open();
    for (info, available, short, long) in [
        (
            receiver(1920, 1080, 6000),
            true,
            json!("1080p60"),
            json!("1920x1080@60"),
        ),
        (receiver(0, 0, 0), false, Value::Null, Value::Null),
        (
            receiver(3840, 2160, 2997),
            true,
            json!("2160p30"),
            json!("3840x2160@30"),
        ),
    ] {
        machine.write("sys/class/hdmirx/hdmirx0/info", &info);
        let board = toolbox.call("get_board_info", json!({})).unwrap();
        let input = only(&board["video_inputs"], "device", "/dev/vdin1");
        assert_eq!(input["type"], json!("hdmi-in"), "{input}");
        assert_eq!(input["available"], json!(available), "{input}");
        assert_eq!(input["signal"], short, "{input}");
        let list = toolbox.call("list_video_devices", json!({})).unwrap();
        let device = only(&list["devices"], "device", "/dev/vdin1");
        assert_eq!(device["name"], json!("HDMI-In"), "{device}");
        assert_eq!(device["current_signal"], long, "{device}");
        assert_eq!(device["available"], json!(available), "{device}");
        if !available {
            assert!(
                device["reason"].as_str().unwrap().starts_with("no signal"),
                "{device}"
            );
        }
    }
}

#[test]
fn a_device_that_is_plugged_in_or_out_is_seen_at_the_next_call() {
    let machine = Machine::new();
    fs::create_dir_all(machine.root.path().join("sys/class/video4linux")).unwrap();
    let toolbox = machine.open();
    let names = || {
        let list = toolbox.call("list_video_devices", json!({})).unwrap();
        let devices = list["devices"].as_array().unwrap().clone();
        devices
            .iter()
            .map(|device| device["device"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(names(), Vec::<String>::new());

    // As in sysfs: the class has links into the device tree.
    let real = "sys/devices/pci0000:00/usb1/1-2/video4linux/video0";
    machine.write(&format!("{real}/name"), "HD Webcam: HD Webcam\n");
    machine.write("dev/video0", "");
    symlink(
        Path::new("../../devices/pci0000:00/usb1/1-2/video4linux/video0"),
        machine.root.path().join("sys/class/video4linux/video0"),
    )
    .unwrap();
    assert_eq!(names(), ["/dev/video0"]);
    let list = toolbox.call("list_video_devices", json!({})).unwrap();
    let device = only(&list["devices"], "device", "/dev/video0");
    assert_eq!(device["name"], json!("HD Webcam: HD Webcam"));
    assert_eq!(device["type"], json!("usb-cam"));
    // The node is a plain file here, which answers no ioctl.
    assert_eq!(device["available"], json!(false));

    machine.remove("sys/class/video4linux/video0");
    assert_eq!(names(), Vec::<String>::new());
}

#[test]
fn sound_cards_are_those_of_alsa() {
    let machine = Machine::new();
    machine.write(
        "proc/asound/cards",
        " 0 [AMLAUGESOUND   ]: AML-AUGESOUND - AML-AUGESOUND\n                      AML-AUGESOUND\n\
         \x201 [Device         ]: USB-Audio - USB Microphone\n                      Maker USB Microphone at usb-1\n",
    );
    machine.write(
        "proc/asound/pcm",
        "00-00: TDM-A-hdmirx hdmirx-0 : HDMI-In : capture 1\n00-01: TDM-B dummy : Line : playback 1 : capture 1\n\
         01-00: USB Audio : USB Audio : capture 1\n",
    );
    machine.write("proc/asound/card1/usbid", "1234:5678\n");
    machine.write(
        "proc/asound/card0/pcm1c/sub0/status",
        "state: RUNNING\nowner_pid   : 4711\ntrigger_time: 1.0\n",
    );
    machine.write("proc/asound/card1/pcm0c/sub0/status", "closed\n");
    for node in ["pcmC0D0c", "pcmC0D1c", "pcmC1D0c"] {
        machine.write(&format!("dev/snd/{node}"), "");
    }
    let toolbox = machine.open();
    let list = toolbox.call("list_audio_devices", json!({})).unwrap();
    let names: Vec<String> = list["devices"]
        .as_array()
        .unwrap()
        .iter()
        .map(|device| {
            format!(
                "{} {} {} {} {} {}",
                device["device"].as_str().unwrap(),
                device["direction"].as_str().unwrap(),
                device["type"].as_str().unwrap(),
                device["name"].as_str().unwrap(),
                device["card"].as_str().unwrap(),
                device["reason"].as_str().unwrap_or("ready")
            )
        })
        .collect();
    assert_eq!(
        names,
        [
            "hw:0,0 capture hdmi-audio HDMI-In AML-AUGESOUND ready",
            "hw:0,1 capture analog Line AML-AUGESOUND process 4711 uses it",
            "hw:0,1 playback analog Line AML-AUGESOUND the device is gone",
            "hw:1,0 capture usb-audio USB Audio USB Microphone ready",
        ]
    );
    let board = toolbox.call("get_board_info", json!({})).unwrap();
    assert_eq!(board["audio_inputs"].as_array().unwrap().len(), 3, "{board}");
    let hdmi = only(&board["audio_inputs"], "device", "hw:0,0");
    assert_eq!(hdmi["available"], json!(true));
}

#[test]
fn storage_is_what_is_mounted_and_what_the_configuration_names() {
    let machine = Machine::new();
    for folder in ["mnt/sdcard", "media/my stick", "home", "proc"] {
        fs::create_dir_all(machine.root.path().join(folder)).unwrap();
    }
    machine.write(
        "proc/mounts",
        "sysfs /sys sysfs rw 0 0\n/dev/mmcblk1p1 /mnt/sdcard vfat rw 0 0\n/dev/sda1 /media/my\\040stick exfat rw 0 0\n\
         tmpfs /run tmpfs rw 0 0\n/dev/loop3 /snap/core squashfs ro 0 0\n/dev/sdb1 /gone ext4 rw 0 0\n",
    );
    let toolbox = machine.open();
    let all = toolbox.call("check_storage", json!({})).unwrap();
    let card = only(&all["storage"], "path", "/mnt/sdcard");
    assert_eq!(card["mounted"], json!(true));
    assert_eq!(card["available"], json!(true));
    assert_eq!(card["filesystem"], json!("vfat"));
    // All folders of the test are on this file system.
    let room = rustix::fs::statvfs(machine.root.path()).unwrap();
    let total = (room.f_blocks * room.f_frsize) as f64 / 1e9;
    assert!(
        (card["total_gb"].as_f64().unwrap() - total).abs() < 0.011,
        "{card} and {total}"
    );
    assert!(card["free_gb"].as_f64().unwrap() <= card["total_gb"].as_f64().unwrap());
    let data = only(&all["storage"], "path", "/data");
    assert_eq!(
        (&data["mounted"], &data["available"], &data["free_gb"]),
        (&json!(false), &json!(false), &Value::Null)
    );

    let stick = toolbox
        .call("check_storage", json!({"path": "/media/my stick"}))
        .unwrap();
    assert_eq!(stick["storage"].as_array().unwrap().len(), 1);
    assert_eq!(stick["storage"][0]["mounted"], json!(true));
    let home = toolbox.call("check_storage", json!({"path": "/home"})).unwrap();
    assert_eq!(
        (&home["storage"][0]["mounted"], &home["storage"][0]["exists"]),
        (&json!(false), &json!(true))
    );
    let error = toolbox
        .call("check_storage", json!({"path": "relative"}))
        .unwrap_err();
    assert!(error.message.contains("absolute path"), "{error}");
    drop(machine);
}

/// The real machine, whatever it has.
#[test]
fn the_real_machine_answers() {
    let state = tempfile::tempdir().unwrap();
    let toolbox = crate::rig::harness(json!({"state_dir": state.path()})).unwrap();
    let board = toolbox.call("get_board_info", json!({})).unwrap();
    for key in [
        "video_inputs",
        "audio_inputs",
        "encoders",
        "custom_plugins",
        "storage",
    ] {
        assert!(board[key].is_array(), "{key} of {board}");
    }
    let encoders = board["encoders"].as_array().unwrap();
    assert!(
        encoders.contains(&json!("x264enc")) && encoders.contains(&json!("jpegenc")),
        "{board}"
    );
    assert!(!board["storage"].as_array().unwrap().is_empty(), "{board}");
}

#[test]
fn encoders_are_described_by_their_codec_and_limits() {
    let machine = Machine::new();
    let toolbox = machine.open();
    let h264 = toolbox
        .call("get_encoder_info", json!({"encoder": "h264"}))
        .unwrap();
    let x264 = &h264["x264enc"];
    assert_eq!(x264["codec"], json!("H.264"), "{x264}");
    assert_eq!(x264["hardware"], json!(false));
    // Its property is in kbit/s, up to 2048000.
    assert_eq!(x264["max_bitrate"], json!(2_048_000_000_u64));
    assert_eq!(x264["bitrate_unit"], json!("kbit/s"));
    assert_eq!(x264["properties"]["bitrate"]["max"], json!(2_048_000));
    assert_eq!(x264["properties"]["bitrate"]["default"], json!(2048));
    let presets = x264["properties"]["speed-preset"]["values"].as_array().unwrap();
    assert!(presets.contains(&json!("ultrafast")), "{presets:?}");
    assert!(
        h264.as_object()
            .unwrap()
            .values()
            .all(|encoder| encoder["codec"] == json!("H.264")),
        "{h264}"
    );

    let h265 = toolbox
        .call("get_encoder_info", json!({"encoder": "h265"}))
        .unwrap();
    assert_eq!(h265["x265enc"]["codec"], json!("H.265"));
    assert!(h265.get("x264enc").is_none());

    let all = toolbox.call("get_encoder_info", json!({})).unwrap();
    assert!(all.as_object().unwrap().len() > h264.as_object().unwrap().len());
    let audio = toolbox
        .call("get_encoder_info", json!({"encoder": "all", "media": "audio"}))
        .unwrap();
    assert_eq!(audio["opusenc"]["codec"], json!("Opus"), "{}", audio["opusenc"]);
    assert!(
        toolbox
            .call("get_encoder_info", json!({"encoder": "vp8"}))
            .is_err()
    );
}

/// A model reads the answer; what it leaves out is there for one encoder.
#[test]
fn answers_about_encoders_fit_and_one_encoder_has_all() {
    let machine = Machine::new();
    let toolbox = machine.open();
    for arguments in [
        json!({}),
        json!({"encoder": "all"}),
        json!({"encoder": "h264"}),
        json!({"encoder": "h265"}),
        json!({"media": "audio"}),
        json!({"media": "image"}),
    ] {
        let found = toolbox.call("get_encoder_info", arguments.clone()).unwrap();
        let length = found.to_string().len();
        assert!(length <= 16_000, "{arguments}: {length}");
        for (name, encoder) in found.as_object().unwrap() {
            assert!(
                encoder["codec"].is_string() && encoder["hardware"].is_boolean(),
                "{name}: {encoder}"
            );
        }
    }
    for name in ["x264enc", "vp8enc", "opusenc"] {
        let found = toolbox
            .call("get_encoder_info", json!({"encoder": name}))
            .unwrap();
        assert_eq!(found.as_object().unwrap().len(), 1, "{found}");
        assert!(
            found[name]["properties"].as_object().unwrap().len() > 5,
            "{found}"
        );
    }
    let unknown = toolbox
        .call("get_encoder_info", json!({"encoder": "x246enc"}))
        .unwrap_err();
    let text = unknown.to_string();
    assert!(text.contains("x264enc") && text.contains("h265"), "{text}");
}

#[test]
fn elements_are_found_by_words_class_caps_and_rank() {
    let machine = Machine::new();
    let toolbox = machine.open();
    for (query, first) in [
        (json!({"words": "srtsink"}), "srtsink"),
        (json!({"words": "h264 payload"}), "rtph264pay"),
        (
            json!({"class": "Codec/Encoder/Video", "caps": "video/x-h264", "direction": "src"}),
            "x264enc",
        ),
        (json!({"class": "Parser", "caps": "video/x-h265"}), "h265parse"),
    ] {
        let found = toolbox.call("search_elements", query.clone()).unwrap();
        let names: Vec<&str> = found["elements"]
            .as_array()
            .unwrap()
            .iter()
            .map(|one| one["element"].as_str().unwrap())
            .collect();
        assert!(names.contains(&first), "{query}: {names:?}");
        if query["words"].is_string() {
            assert_eq!(names[0], first, "{query}");
        }
    }
    let decoders = toolbox
        .call(
            "search_elements",
            json!({"class": "Decoder", "rank": "primary", "limit": 500}),
        )
        .unwrap();
    let all = toolbox
        .call("search_elements", json!({"class": "Decoder", "limit": 500}))
        .unwrap();
    assert!(decoders["total"].as_u64().unwrap() < all["total"].as_u64().unwrap());
    let few = toolbox.call("search_elements", json!({"limit": 3})).unwrap();
    assert_eq!(few["elements"].as_array().unwrap().len(), 3);
    assert!(few["total"].as_u64().unwrap() > 500, "{few}");
    let error = toolbox.call("search_elements", json!({"caps": "?"})).unwrap_err();
    assert!(error.message.contains("expected caps"), "{error}");
    let error = toolbox
        .call("get_gst_element_info", json!({"element": "x264encc"}))
        .unwrap_err();
    assert!(error.message.contains("Did you mean 'x264enc'?"), "{error}");
}

#[test]
fn an_encoder_of_the_boards_vendor_appears_by_itself() {
    let machine = Machine::new();
    let socket = machine.root.path().join("vendor");
    let listener = UnixListener::bind(&socket).unwrap();
    testing::role_env("OVOS_TEST_VENDOR", &socket);
    let toolbox = machine.open();
    assert!(
        toolbox
            .call("get_encoder_info", json!({"encoder": "h264"}))
            .unwrap()
            .get("vnd_h264enc")
            .is_none()
    );
    // As if a plugin were installed while the toolbox runs.
    let (mut judge, _) = listener.accept().unwrap();
    judge.write_all(b"!").unwrap();
    judge.read_exact(&mut [0]).unwrap();
    let found = toolbox
        .call("get_encoder_info", json!({"encoder": "h264"}))
        .unwrap();
    for (name, resolution, evidence) in [
        ("vnd_h264enc", "4096x2160", "Codec/Encoder/Video/Hardware"),
        ("vnd_dmabuf_h264enc", "1920x1088", "memory:DMABuf"),
    ] {
        let encoder = &found[name];
        assert_eq!(encoder["codec"], json!("H.264"), "{encoder}");
        assert_eq!(encoder["hardware"], json!(true), "{encoder}");
        assert!(
            encoder["hardware_evidence"].as_str().unwrap().contains(evidence),
            "{encoder}"
        );
        assert_eq!(encoder["max_resolution"], json!(resolution), "{encoder}");
        assert_eq!(encoder["max_bitrate"], json!(100_000_000), "{encoder}");
        assert_eq!(
            encoder["profiles"],
            json!(["baseline", "main", "high"]),
            "{encoder}"
        );
        let bitrate = &encoder["properties"]["bitrate"];
        assert_eq!(
            (&bitrate["type"], &bitrate["min"]),
            (&json!("int"), &json!(1_000_000)),
            "{encoder}"
        );
        assert_eq!(
            (&bitrate["max"], &bitrate["default"]),
            (&json!(100_000_000), &json!(10_000_000)),
            "{encoder}"
        );
    }
    // Hardware encoders come first.
    let board = toolbox.call("get_board_info", json!({})).unwrap();
    let first: Vec<&Value> = board["encoders"].as_array().unwrap().iter().take(2).collect();
    assert_eq!(
        first,
        [&json!("vnd_dmabuf_h264enc"), &json!("vnd_h264enc")],
        "{board}"
    );
}
