/** The body of a client's request on its way to a module, at the module's pace. */
import { Readable } from 'node:stream';
import type { IncomingBody } from '../http/stream.ts';
import type { RelayedBody } from './module-call.ts';

/** Bytes that wait for the module; what the client's socket still delivers after a pause comes on top. */
const WAITING_BYTES = 64 * 1024;

/**
 * Reads nothing until the module's connection asks: until then the body stays within the bound on bodies in flight.
 * `onProgress` is called for every piece. Destroyed when the client leaves in mid-body, so that the module sees a cut
 * request and never a shorter one.
 */
export function relayedBody(incoming: IncomingBody, onProgress: () => void): RelayedBody {
  let begun = false;
  let waiting = false;
  const body = new Readable({
    highWaterMark: WAITING_BYTES,
    read() {
      waiting = true;
      if (begun) {
        incoming.resume();
        return;
      }
      begun = true;
      incoming.read({
        data(bytes) {
          onProgress();
          // A copy: the piece is gone when this returns.
          if (body.push(Buffer.from(bytes))) return;
          waiting = false;
          incoming.pause();
        },
        end() {
          waiting = false;
          body.push(null);
        },
        lost: () => body.destroy(new Error('the client went away')),
      });
    },
    destroy(error, done) {
      incoming.discard();
      done(error);
    },
  });
  // Told to the module's connection; without a listener an error would end the process.
  body.on('error', () => onProgress());
  return { stream: body, waitsForClient: () => waiting };
}
