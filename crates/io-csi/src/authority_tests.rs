use super::*;

const GREETING: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

fn frame(kind: u8, flags: u8, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    [&length[1..], &[kind, flags, 0, 0, 0, 1], payload].concat()
}

fn literal(first: u8, value: &[u8]) -> Vec<u8> {
    [&[first, u8::try_from(value.len()).unwrap()], value].concat()
}

/// Passes a connection's bytes whole, and again in every two pieces, and shows what came out after the greeting.
fn pass(frames: &[u8]) -> Vec<u8> {
    let input = [GREETING, frames].concat();
    let mut whole = input.clone();
    Scan::default().pass(&mut whole);
    for cut in 0..input.len() {
        let mut pieces = input.clone();
        let mut scan = Scan::default();
        let (left, right) = pieces.split_at_mut(cut);
        scan.pass(left);
        scan.pass(right);
        assert_eq!(pieces, whole, "cut at {cut}");
    }
    whole.split_off(GREETING.len())
}

#[test]
fn an_authority_becomes_plain_in_every_way_it_can_be_written() {
    let path = b"%2Ftmp%2Fs";
    for first in [0x41, 0x01, 0x11] {
        let block = [&[0x83][..], &literal(first, path), &[0x86]].concat();
        let plain = [&[0x83][..], &literal(first, b"llllllllll"), &[0x86]].concat();
        assert_eq!(pass(&frame(HEADERS, 4, &block)), frame(HEADERS, 4, &plain));
    }
    // Coded: the mark of the code goes too.
    let coded = [&[0x41, 0x83], &[0xff, 0xff, 0xff][..]].concat();
    assert_eq!(pass(&frame(HEADERS, 4, &coded)), frame(HEADERS, 4, &[0x41, 3, b'l', b'l', b'l']));
    // The name spelled out, and coded.
    let spelled = [&[0x40, 10][..], NAME, &[2, b'%', b'2']].concat();
    assert_eq!(pass(&frame(HEADERS, 4, &spelled)), frame(HEADERS, 4, &[&[0x40, 10][..], NAME, b"\x02ll"].concat()));
    let named = [&[0x40, 0x88][..], NAME_CODED, &[2, b'%', b'2']].concat();
    assert_eq!(
        pass(&frame(HEADERS, 4, &named)),
        frame(HEADERS, 4, &[&[0x40, 0x88][..], NAME_CODED, b"\x02ll"].concat())
    );
}

#[test]
fn long_values_padding_priority_and_continuations_are_understood() {
    let value = [b'%'; 300];
    let block = [&[0x41, 0x7f, 0xad, 0x01][..], &value].concat();
    let plain = [&[0x41, 0x7f, 0xad, 0x01][..], &[FILL; 300]].concat();
    for (flags, before, after) in [
        (4, &[][..], &[][..]),
        (4 | PADDED, &[2][..], &[0x41, 0x41][..]),
        (4 | PRIORITY, &[0x41, 1, 1, 1, 1][..], &[][..]),
        (4 | PADDED | PRIORITY, &[1, 0x41, 1, 1, 1, 1][..], &[0x41][..]),
    ] {
        let wrap = |block: &[u8]| frame(HEADERS, flags, &[before, block, after].concat());
        assert_eq!(pass(&wrap(&block)), wrap(&plain));
    }
    for cut in (0..=block.len()).step_by(11) {
        let split = |block: &[u8]| {
            [frame(HEADERS, 0, &block[..cut]), frame(CONTINUATION, 4, &block[cut..]), frame(0, 0, b"\x41\x01/")]
                .concat()
        };
        assert_eq!(pass(&split(&block)), split(&plain), "cut at {cut}");
    }
}

#[test]
fn everything_else_passes_untouched() {
    let path = literal(0x44, b"/csi.v1.Identity/Probe");
    let other = [&[0x40, 10][..], b":authoritx", &[1, b'%']].concat();
    let size = [0x3f, 0xe1, 0x1f];
    let indexed = [0xff, 0x80, 0x01];
    let block = [&size[..], &path, &other, &indexed, &literal(0x0f, b"x"), b"y"].concat();
    let frames = [
        frame(4, 0, &[0, 3, 0, 0, 0, 100]),
        frame(HEADERS, 4, &block),
        frame(0, 1, &literal(0x41, b"%2F")),
        frame(HEADERS, 4, &[]),
        frame(HEADERS, 4 | PADDED, &[]),
        frame(HEADERS, 4 | PADDED, &[9, 0x41, 1, b'%']),
        frame(HEADERS, 4, &[0x82]),
    ]
    .concat();
    assert_eq!(pass(&frames), frames);
}

// Reliability 129: whatever bytes arrive, nothing panics and nothing grows.
#[test]
fn any_bytes_pass() {
    let mut seed = 1u64;
    for _ in 0..2000 {
        let mut bytes = GREETING.to_vec();
        for _ in 0..200 {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            bytes.push(match seed >> 60 {
                0..=3 => 0,
                4 => 0xff,
                5 => HEADERS,
                6 => PADDED | PRIORITY,
                _ => (seed >> 40) as u8,
            });
        }
        Scan::default().pass(&mut bytes);
    }
}
