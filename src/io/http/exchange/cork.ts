/** Writes in one system call. A throw may not cross the native frame of a cork: it is rethrown outside. */
import type { HttpResponse } from '../listen/server.ts';

/** One function for all corks and its arguments: a closure for each write would cost a tenth of the write. */
let corkedResponse: HttpResponse | undefined;
let corkedPiece: Uint8Array = new Uint8Array(0);
let corkedHasRoom = true;
let corkedFailure: unknown;

function writeCorked(): void {
  try {
    corkedHasRoom = corkedResponse?.write(corkedPiece) === true;
  } catch (error) {
    corkedFailure = error ?? new Error('unknown failure of the writer');
  }
}

/** One write in a cork of its own; false when the socket is full. Synchronous, and nothing within calls back here. */
export function writePiece(response: HttpResponse, piece: Uint8Array): boolean {
  corkedResponse = response;
  corkedPiece = piece;
  corkedHasRoom = true;
  corkedFailure = undefined;
  response.cork(writeCorked);
  if (corkedFailure !== undefined) throw corkedFailure;
  return corkedHasRoom;
}

/** Runs the writes of one cork. */
export function corked(response: HttpResponse, write: () => void): void {
  let failure: unknown;
  response.cork(() => {
    try {
      write();
    } catch (error) {
      failure = error ?? new Error('unknown failure of the writer');
    }
  });
  if (failure !== undefined) throw failure;
}
