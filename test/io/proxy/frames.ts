/** WebSocket frames byte for byte (RFC 6455 5.2), for raw sockets. */

export interface Frame {
  readonly opcode: number;
  readonly payload?: Uint8Array | string;
  /** True unless given. */
  readonly fin?: boolean;
  /** Three bits. */
  readonly rsv?: number;
  /** True unless given: clients mask. */
  readonly isMasked?: boolean;
  /** The length as 16 or 64 bits although fewer suffice. */
  readonly lengthBits?: 16 | 64;
  /** Another length than that of the payload. */
  readonly declaredBytes?: number;
}

export const CONTINUATION = 0;
export const TEXT = 1;
export const BINARY = 2;
export const CLOSE = 8;
export const PING = 9;
export const PONG = 10;

/** Any four bytes. */
const MASK = Buffer.from([0x37, 0xfa, 0x21, 0x3d]);

export function frame({
  opcode,
  payload = '',
  fin = true,
  rsv = 0,
  isMasked = true,
  lengthBits,
  declaredBytes,
}: Frame): Buffer {
  const bytes = Buffer.from(payload);
  const length = declaredBytes ?? bytes.length;
  const masked = isMasked ? 0x80 : 0;
  const first = (fin ? 0x80 : 0) | (rsv << 4) | opcode;
  let head: Buffer;
  if (lengthBits === 64 || length > 0xffff) {
    head = Buffer.alloc(10);
    head.writeBigUInt64BE(BigInt(length), 2);
    head[1] = masked | 127;
  } else if (lengthBits === 16 || length > 125) {
    head = Buffer.alloc(4);
    head.writeUInt16BE(length, 2);
    head[1] = masked | 126;
  } else head = Buffer.from([0, masked | length]);
  head[0] = first;
  if (!isMasked) return Buffer.concat([head, bytes]);
  return Buffer.concat([head, MASK, bytes.map((byte, index) => byte ^ (MASK[index % 4] ?? 0))]);
}

/** A close frame; without a code its payload is empty. */
export function closeFrame(code?: number, reason: Uint8Array | string = ''): Buffer {
  if (code === undefined) return frame({ opcode: CLOSE });
  const number = Buffer.alloc(2);
  number.writeUInt16BE(code);
  return frame({ opcode: CLOSE, payload: Buffer.concat([number, Buffer.from(reason)]) });
}

/** Fields of a handshake. */
export const HANDSHAKE = {
  Upgrade: 'websocket',
  Connection: 'Upgrade',
  'Sec-WebSocket-Key': 'dGhlIHNhbXBsZSBub25jZQ==',
  'Sec-WebSocket-Version': '13',
};

/** Frames that a server sent, from latin1. Rest that is no whole frame is dropped. */
export function framesOf(text: string): { readonly opcode: number; readonly payload: Buffer }[] {
  let bytes = Buffer.from(text, 'latin1');
  const frames: { opcode: number; payload: Buffer }[] = [];
  while (bytes.length >= 2) {
    const short = (bytes[1] ?? 0) & 0x7f;
    const headBytes = short === 127 ? 10 : short === 126 ? 4 : 2;
    if (bytes.length < headBytes) break;
    const length =
      short === 127 ? Number(bytes.readBigUInt64BE(2)) : short === 126 ? bytes.readUInt16BE(2) : short;
    frames.push({
      opcode: (bytes[0] ?? 0) & 0x0f,
      payload: Buffer.from(bytes.subarray(headBytes, headBytes + length)),
    });
    bytes = bytes.subarray(headBytes + length);
  }
  return frames;
}
