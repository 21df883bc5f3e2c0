//! The cables do what the rules expect of them.

#![expect(clippy::disallowed_methods, reason = "the network under a transport")]
#![allow(clippy::unwrap_used)]

use std::time::Duration;

use archipelago_protocol::identity::NodeAddress;
use archipelago_transport_conformance::{Cable, Cut, TcpCable, UdpCable, stays_pending, within};
use bytes::Bytes;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, UdpSocket};

fn real<T>(scene: impl AsyncFnOnce() -> T) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    tokio::task::LocalSet::new()
        .block_on(&runtime, async { within(Duration::from_secs(20), "the scene ends", scene()).await })
}

async fn wired() -> (TcpCable, TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let cable = TcpCable::new(&listener.local_addr().unwrap().into()).await;
    let client = TcpStream::connect((cable.address().host(), cable.address().port())).await.unwrap();
    let (server, _) = listener.accept().await.unwrap();
    (cable, client, server)
}

async fn passes(from: &mut TcpStream, to: &mut TcpStream, text: &[u8]) {
    from.write_all(text).await.unwrap();
    let mut heard = vec![0; text.len()];
    to.read_exact(&mut heard).await.unwrap();
    assert_eq!(heard, text);
}

#[test]
fn tcp_cable_holds_back_what_is_cut_and_delivers_it_when_healed() {
    real(async || {
        let (cable, mut client, mut server) = wired().await;
        passes(&mut client, &mut server, b"there").await;
        passes(&mut server, &mut client, b"back").await;
        cable.cut(Cut::Both);
        client.write_all(b"held").await.unwrap();
        server.write_all(b"held").await.unwrap();
        let mut byte = [0; 1];
        assert!(stays_pending(A_WHILE, server.read(&mut byte)).await, "nothing arrives over a cut cable");
        assert!(stays_pending(A_WHILE, client.read(&mut byte)).await, "nothing comes back over a cut cable");
        cable.heal();
        let mut held = [0; 4];
        server.read_exact(&mut held).await.unwrap();
        client.read_exact(&mut held).await.unwrap();
        assert_eq!(&held, b"held");
    });
}

#[test]
fn tcp_cable_can_be_cut_in_one_direction() {
    real(async || {
        let (cable, mut client, mut server) = wired().await;
        for cut in [Cut::Towards, Cut::Back] {
            cable.cut(cut);
            let (deaf, other) =
                if cut == Cut::Towards { (&mut server, &mut client) } else { (&mut client, &mut server) };
            other.write_all(b"x").await.unwrap();
            assert!(stays_pending(A_WHILE, deaf.read_u8()).await);
            passes(deaf, other, b"still passes").await;
            cable.heal();
            assert_eq!(deaf.read_u8().await.unwrap(), b'x');
        }
    });
}

#[test]
fn tcp_cable_hides_an_end_while_it_is_cut() {
    real(async || {
        let (cable, client, mut server) = wired().await;
        cable.cut(Cut::Both);
        drop(client);
        let mut byte = [0; 1];
        assert!(stays_pending(A_WHILE, server.read(&mut byte)).await, "not even an end passes");
        cable.heal();
        assert_eq!(server.read(&mut byte).await.unwrap(), 0);
    });
}

#[test]
fn tcp_cable_slips_garbage_in() {
    real(async || {
        let (cable, mut client, mut server) = wired().await;
        passes(&mut client, &mut server, b"good").await;
        cable.inject(Bytes::from_static(b"garbage"));
        let mut heard = [0; 7];
        server.read_exact(&mut heard).await.unwrap();
        assert_eq!(&heard, b"garbage");
    });
}

#[test]
fn udp_cable_throws_away_what_is_cut() {
    real(async || {
        let server = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let to: NodeAddress = server.local_addr().unwrap().into();
        let cable = UdpCable::new(&to).await;
        let client = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        client.connect((cable.address().host(), cable.address().port())).await.unwrap();
        let mut buffer = [0; 64];
        client.send(b"there").await.unwrap();
        let (len, from) = server.recv_from(&mut buffer).await.unwrap();
        assert_eq!(&buffer[..len], b"there");
        server.send_to(b"back", from).await.unwrap();
        assert_eq!(client.recv(&mut buffer).await.unwrap(), 4);
        cable.cut(Cut::Towards);
        client.send(b"lost").await.unwrap();
        assert!(stays_pending(A_WHILE, server.recv(&mut buffer)).await);
        server.send_to(b"passes", from).await.unwrap();
        assert_eq!(client.recv(&mut buffer).await.unwrap(), 6);
        cable.heal();
        assert!(stays_pending(A_WHILE, server.recv(&mut buffer)).await, "what was lost stays lost");
        cable.inject(Bytes::from_static(b"garbage"));
        assert_eq!(server.recv(&mut buffer).await.unwrap(), 7);
    });
}

const A_WHILE: Duration = Duration::from_millis(100);
