//! The device monitor's devices are in the lists, and changes are events. A provider in this process simulates the
//! devices, because the test machine has none.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a failed test panics and prints"
)]

use std::time::{Duration, Instant};

use gst::prelude::*;
use gstreamer_toolbox::Gstreamer;
use ovos_toolbox_sdk::prelude::*;
use ovos_toolbox_sdk::testing::Harness;

mod played {
    use std::sync::OnceLock;

    use gst::glib;
    use gst::prelude::*;
    use gst::subclass::prelude::*;

    #[derive(Default)]
    pub(crate) struct DeviceInner;

    #[glib::object_subclass]
    impl ObjectSubclass for DeviceInner {
        const NAME: &'static str = "TestPlayedDevice";
        type Type = Device;
        type ParentType = gst::Device;
    }

    impl ObjectImpl for DeviceInner {}
    impl GstObjectImpl for DeviceInner {}
    impl DeviceImpl for DeviceInner {
        fn create_element(&self, name: Option<&str>) -> Result<gst::Element, gst::LoggableError> {
            let builder = gst::ElementFactory::make("v4l2src").property("device", "/dev/video42");
            let element = match name {
                Some(name) => builder.name(name).build(),
                None => builder.build(),
            };
            element.map_err(|_| gst::LoggableError::new(*CATEGORY, glib::bool_error!("no v4l2src")))
        }
    }

    static CATEGORY: std::sync::LazyLock<gst::DebugCategory> =
        std::sync::LazyLock::new(|| gst::DebugCategory::new("played", gst::DebugColorFlags::empty(), None));

    glib::wrapper! {
        pub(crate) struct Device(ObjectSubclass<DeviceInner>) @extends gst::Device, gst::Object;
    }

    impl Device {
        pub(crate) fn new() -> Self {
            let caps: gst::Caps = "video/x-raw, format=NV12, width=1920, height=1080"
                .parse()
                .unwrap();
            glib::Object::builder()
                .property("display-name", "Played camera")
                .property("device-class", "Video/Source")
                .property("caps", caps)
                .build()
        }
    }

    #[derive(Default)]
    pub(crate) struct ProviderInner;

    #[glib::object_subclass]
    impl ObjectSubclass for ProviderInner {
        const NAME: &'static str = "TestPlayedProvider";
        type Type = Provider;
        type ParentType = gst::DeviceProvider;
    }

    impl ObjectImpl for ProviderInner {}
    impl GstObjectImpl for ProviderInner {}
    impl DeviceProviderImpl for ProviderInner {
        fn metadata() -> Option<&'static gst::subclass::DeviceProviderMetadata> {
            static METADATA: OnceLock<gst::subclass::DeviceProviderMetadata> = OnceLock::new();
            Some(METADATA.get_or_init(|| {
                gst::subclass::DeviceProviderMetadata::new(
                    "Played",
                    "Source/Video",
                    "Plays devices",
                    "This test",
                )
            }))
        }

        fn start(&self) -> Result<(), gst::LoggableError> {
            Ok(())
        }

        fn stop(&self) {}
    }

    glib::wrapper! {
        pub(crate) struct Provider(ObjectSubclass<ProviderInner>) @extends gst::DeviceProvider, gst::Object;
    }

    pub(crate) fn register() {
        gst::DeviceProvider::register(
            None,
            "playedprovider",
            gst::Rank::PRIMARY,
            Provider::static_type(),
        )
        .unwrap();
    }
}

#[test]
fn devices_that_come_and_go_are_events_and_are_listed() {
    gst::init().unwrap();
    played::register();
    let state = tempfile::tempdir().unwrap();
    let toolbox = Harness::open::<Gstreamer>(json!({"state_dir": state.path()})).unwrap();
    let provider = gst::DeviceProviderFactory::find("playedprovider")
        .unwrap()
        .get()
        .unwrap();
    // The monitor starts in the background.
    let deadline = Instant::now() + Duration::from_secs(30);
    while !provider.is_started() {
        assert!(Instant::now() < deadline, "the monitor does not start");
        std::thread::yield_now();
    }
    let listed = || {
        let list = toolbox.call("list_video_devices", json!({})).unwrap();
        let devices = list["devices"].as_array().unwrap().clone();
        devices
            .into_iter()
            .find(|device| device["device"] == json!("/dev/video42"))
    };
    let device = played::Device::new();
    provider.device_add(&device);
    let event = toolbox.wait_event("device_added");
    assert_eq!(event.data.unwrap()["name"], json!("Played camera"));
    let found = listed().expect("the device that was plugged in");
    assert_eq!(found["name"], json!("Played camera"));
    assert_eq!(found["element"], json!("v4l2src"));
    assert!(found["caps"].as_str().unwrap().contains("NV12"), "{found}");

    provider.device_remove(&device);
    let event = toolbox.wait_event("device_removed");
    assert_eq!(event.data.unwrap()["class"], json!("Video/Source"));
    assert!(listed().is_none());
    assert!(toolbox.close().is_clean());
}
