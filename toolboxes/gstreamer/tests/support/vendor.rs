//! Encoders of a board's vendor, because the test machine has none. They come when a test says so through a socket, as if a plugin
//! were installed.

use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;

use gst::glib;
use gst::prelude::*;
use gst::subclass::prelude::*;

/// Declares an encoder with its class and its input caps.
macro_rules! encoder {
    ($module:ident, $name:literal, $class:literal, $takes:literal) => {
        pub(super) mod $module {
            use std::sync::{LazyLock, OnceLock};

            use super::*;

            #[derive(Default)]
            pub struct Inner;

            #[glib::object_subclass]
            impl ObjectSubclass for Inner {
                const NAME: &'static str = concat!("Test", stringify!($module));
                type Type = Outer;
                type ParentType = gst::Element;
            }

            impl ObjectImpl for Inner {
                fn properties() -> &'static [glib::ParamSpec] {
                    static PROPERTIES: LazyLock<Vec<glib::ParamSpec>> = LazyLock::new(|| {
                        let bitrate = glib::ParamSpecInt::builder("bitrate")
                            .blurb("Target bitrate in bits per second")
                            .minimum(1_000_000)
                            .maximum(100_000_000)
                            .default_value(10_000_000);
                        vec![bitrate.build()]
                    });
                    PROPERTIES.as_ref()
                }

                fn property(&self, _: usize, _: &glib::ParamSpec) -> glib::Value {
                    10_000_000_i32.to_value()
                }

                fn set_property(&self, _: usize, _: &glib::Value, _: &glib::ParamSpec) {}
            }

            impl GstObjectImpl for Inner {}

            impl ElementImpl for Inner {
                fn metadata() -> Option<&'static gst::subclass::ElementMetadata> {
                    static METADATA: OnceLock<gst::subclass::ElementMetadata> = OnceLock::new();
                    Some(METADATA.get_or_init(|| {
                        gst::subclass::ElementMetadata::new(
                            "Vendor H.264 encoder",
                            $class,
                            "Encodes on the chip",
                            "A vendor",
                        )
                    }))
                }

                fn pad_templates() -> &'static [gst::PadTemplate] {
                    static TEMPLATES: LazyLock<Vec<gst::PadTemplate>> = LazyLock::new(|| {
                        let template = |name, direction, caps: &str| {
                            let caps: gst::Caps = caps.parse().unwrap();
                            gst::PadTemplate::new(name, direction, gst::PadPresence::Always, &caps).unwrap()
                        };
                        vec![
                            template("sink", gst::PadDirection::Sink, $takes),
                            template(
                                "src",
                                gst::PadDirection::Src,
                                "video/x-h264, profile=(string){ baseline, main, high }",
                            ),
                        ]
                    });
                    TEMPLATES.as_ref()
                }
            }

            glib::wrapper! {
                pub struct Outer(ObjectSubclass<Inner>) @extends gst::Element, gst::Object;
            }

            pub(crate) fn register() {
                gst::Element::register(None, $name, gst::Rank::MARGINAL, Outer::static_type()).unwrap();
            }
        }
    };
}

encoder!(
    classed,
    "vnd_h264enc",
    "Codec/Encoder/Video/Hardware",
    "video/x-raw, format=(string){ NV12, NV21 }, width=(int)[ 32, 4096 ], height=(int)[ 32, 2160 ]"
);
encoder!(
    dmabuf,
    "vnd_dmabuf_h264enc",
    "Codec/Encoder/Video",
    "video/x-raw(memory:DMABuf), format=(string)NV12, width=(int)[ 1, 1920 ], height=(int)[ 1, 1088 ]"
);

/// The variable with the path of the test's socket.
pub(crate) const VENDOR: &str = "OVOS_TEST_VENDOR";

/// Registers the encoders when the test says something, and tells it.
pub(crate) fn await_install() {
    let mut test = UnixStream::connect(std::env::var_os(VENDOR).unwrap()).unwrap();
    std::thread::spawn(move || {
        test.read_exact(&mut [0]).unwrap();
        classed::register();
        dmabuf::register();
        test.write_all(b"!").unwrap();
    });
}
