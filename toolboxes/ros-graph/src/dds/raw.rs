//! Samples as bytes: their types are known at run time alone.

use std::convert::Infallible;

use rustdds::bytes::Bytes;
use rustdds::no_key::{
    DataWriter, Decode, DefaultDecoder, DeserializerAdapter, SerializerAdapter, SimpleDataReader,
};
use rustdds::{GUID, RepresentationIdentifier, WriteOptionsBuilder};

use crate::cdr::Order;

/// A sample has at most so many bytes; of a larger one only its size is kept.
pub(super) const LARGEST: usize = 32 << 20;

/// The bytes of a sample without its four bytes of encapsulation.
#[derive(Clone, Debug)]
pub(super) struct Raw {
    pub(super) bytes: Vec<u8>,
    pub(super) order: Order,
}

pub(super) struct RawAdapter;

#[derive(Clone)]
pub(super) struct RawDecoder;

pub(super) type Reader = SimpleDataReader<Raw, RawAdapter>;
pub(super) type Writer = DataWriter<Raw, RawAdapter>;

/// Gives a new reliable writer something that readers acknowledge as soon as they know the writer: a sample for a reader that
/// there is not, which is sent to none. What is written before a reader knows its writer is lost to it.
pub(super) fn greet(writer: &Writer) -> bool {
    let nothing = Raw {
        bytes: Vec::new(),
        order: Order::Little,
    };
    let to_none = WriteOptionsBuilder::new()
        .to_single_reader(GUID::GUID_UNKNOWN)
        .build();
    writer.write_with_options(nothing, to_none).is_ok()
}

/// Whether every reliable reader has acknowledged what was written, and so knows the writer. It does not wait.
pub(super) fn is_known(writer: &Writer) -> bool {
    matches!(
        writer.wait_for_acknowledgments(std::time::Duration::ZERO),
        Ok(true)
    )
}

impl DeserializerAdapter<Raw> for RawAdapter {
    type Error = Infallible;
    type Decoded = Raw;

    fn supported_encodings() -> &'static [RepresentationIdentifier] {
        &[RepresentationIdentifier::CDR_LE, RepresentationIdentifier::CDR_BE]
    }

    fn transform_decoded(decoded: Raw) -> Raw {
        decoded
    }
}

impl DefaultDecoder<Raw> for RawAdapter {
    type Decoder = RawDecoder;
    const DECODER: RawDecoder = RawDecoder;
}

impl<'de> Decode<'de, Raw> for RawDecoder {
    type Error = Infallible;

    fn decode_bytes(self, bytes: &'de [u8], encoding: RepresentationIdentifier) -> Result<Raw, Infallible> {
        let order = match encoding {
            RepresentationIdentifier::CDR_BE => Order::Big,
            _ => Order::Little,
        };
        // An empty sample is no message of any type, and is refused when it is read.
        let kept = if bytes.len() > LARGEST { &[] } else { bytes };
        Ok(Raw {
            bytes: kept.to_vec(),
            order,
        })
    }
}

impl SerializerAdapter<Raw> for RawAdapter {
    type Error = Infallible;

    fn output_encoding() -> RepresentationIdentifier {
        RepresentationIdentifier::CDR_LE
    }

    fn to_bytes(value: &Raw) -> Result<Bytes, Infallible> {
        Ok(Bytes::copy_from_slice(&value.bytes))
    }
}
