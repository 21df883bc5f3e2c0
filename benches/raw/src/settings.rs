//! The QUIC settings under measurement.

use archipelago_quic::QuicSettings;

/// The default settings, changed as the environment variable `ARCHIPELAGO_RAW_QUIC` says, which the child inherits:
/// `max_packet=1452,ack_every=0` and the like, to see what one setting is worth. What is not understood is ignored.
pub fn quic_settings() -> QuicSettings {
    let mut settings = QuicSettings::default();
    let changes = std::env::var("ARCHIPELAGO_RAW_QUIC").unwrap_or_default();
    for (name, value) in changes.split(',').filter_map(|change| change.split_once('=')) {
        change(&mut settings, name, value.parse().unwrap_or(0));
    }
    settings
}

fn change(settings: &mut QuicSettings, name: &str, value: u32) {
    match name {
        "max_packet" => settings.max_packet = u16::try_from(value).unwrap_or(u16::MAX),
        "ack_every" => settings.ack_every = value,
        "stream_window" => settings.stream_window = value,
        "socket_buffer" => settings.socket_buffer = value as usize,
        "segmentation_offload" => settings.segmentation_offload = value != 0,
        _ => {}
    }
}
