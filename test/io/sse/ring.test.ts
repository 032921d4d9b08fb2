/** The ring of frames: what it keeps alive. What it sends is shown by hub.test.ts and model.test.ts. */
import t from 'tap';
import type { StoredEvent } from '../../../src/domain/events/events.ts';
import { FrameRing } from '../../../src/io/sse/ring.ts';

const EVENTS = 2_000;
const ROOM_BYTES = 64 * 1024;

function eventOf(sequence: number, dataBytes: number): StoredEvent {
  const facts = { sequence, module: 'core', tick: String(sequence), type: 'Noted', userId: String(sequence) };
  const jsonText = JSON.stringify({ data: 'x'.repeat(dataBytes) });
  return { ...facts, appId: undefined, currency: undefined, netType: undefined, jsonText, acceptedMs: 0 };
}

/** The frame of an event as the ring holds it: one that is due alone is not copied. */
function frameOf(ring: FrameRing, sequence: number): Buffer {
  const { bytes } = ring.collect(String(sequence), sequence, sequence);
  if (bytes === undefined) throw new Error(`no frame ${sequence}`);
  return bytes;
}

t.test('ring: frames hold only their own memory, whatever is allocated between them', async (t) => {
  const ring = new FrameRing('e', 0);
  const others: Buffer[] = [];
  for (let sequence = 1; sequence <= EVENTS; sequence += 1) {
    ring.append(eventOf(sequence, sequence % 400), 0);
    others.push(Buffer.from('y'.repeat(3_000)));
  }
  const kept = new Set(Array.from({ length: EVENTS }, (_, index) => frameOf(ring, index + 1).buffer));
  const keptBytes = [...kept].reduce((sum, { byteLength }) => sum + byteLength, 0);
  // A piece ends early if a frame does not fit any more: by less than one of these frames.
  const wasted = (ring.size.sizeBytes / ROOM_BYTES) * 500;
  t.ok(keptBytes <= ring.size.sizeBytes + wasted + ROOM_BYTES, `${keptBytes} for ${ring.size.sizeBytes}`);
  t.equal(others.length, EVENTS);
});

t.test('ring: frames of every length are read unchanged', async (t) => {
  const ring = new FrameRing('e', 0);
  const lengths = [0, 1, 300, 4_000, 4_096, 5_000, 70_000, 20, 64_000];
  for (const [index, length] of lengths.entries()) ring.append(eventOf(index + 1, length), 0);
  for (const [index, length] of lengths.entries())
    t.equal(
      frameOf(ring, index + 1).toString(),
      `id: e-${index + 1}\nevent: Noted\ndata: ${JSON.stringify({ data: 'x'.repeat(length) })}\n\n`,
      `${length}`,
    );
});
