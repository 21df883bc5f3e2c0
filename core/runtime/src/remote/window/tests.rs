use archipelago_protocol::link::Window;

use super::*;

#[test]
fn it_decides_as_the_window_does() {
    for (bytes, jobs) in [(100, 1_000), (1_000, 3), (10, 2), (0, 0), (usize::MAX, usize::MAX)] {
        let settings = WindowSettings { bytes, jobs };
        let (shared, mut window) = (SharedWindow::new(settings), Window::new(settings));
        let (mut held, mut state) = (Vec::new(), 7_u64);
        for _ in 0..2_000 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let len = (state >> 40) as u32 % 60;
            if state >> 63 == 0 {
                shared.admit(len);
                window.admit(len as usize);
                held.push(len);
            } else if let Some(len) = held.pop() {
                let was_shut = !window.may_read();
                window.release(len as usize);
                assert_eq!(shared.release(len), was_shut && window.may_read());
            }
            assert_eq!(shared.may_read(), window.may_read(), "{settings:?}");
        }
    }
}

#[test]
fn it_is_open_when_all_threads_have_given_their_shares_back() {
    let window = SharedWindow::new(WindowSettings { bytes: 1_000, jobs: 4 });
    for _ in 0..200 {
        std::thread::scope(|scope| {
            (0..4).for_each(|_| {
                scope.spawn(|| {
                    for _ in 0..20 {
                        window.admit(300);
                        window.release(300);
                    }
                });
            });
        });
        assert!(window.may_read());
    }
}
