//! A device provider whose camera comes and goes as a test says through a socket.

use std::io::{BufRead as _, BufReader};
use std::os::unix::net::UnixStream;
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
            gst::subclass::DeviceProviderMetadata::new("Played", "Source/Video", "Plays devices", "This test")
        }))
    }

    /// The test says line by line what happens; the first line before the provider has started.
    fn start(&self) -> Result<(), gst::LoggableError> {
        let path = std::env::var_os(DEVICES).unwrap();
        let mut orders = BufReader::new(UnixStream::connect(path).unwrap()).lines();
        let provider = self.obj().clone();
        let device = Device::new();
        let obey = move |line: String| match line.as_str() {
            "add" => provider.device_add(&device),
            "remove" => provider.device_remove(&device),
            _ => {}
        };
        obey(orders.next().unwrap().unwrap());
        std::thread::spawn(move || orders.map_while(Result::ok).for_each(obey));
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

/// The variable with the path of the test's socket.
pub(crate) const DEVICES: &str = "OVOS_TEST_DEVICES";
